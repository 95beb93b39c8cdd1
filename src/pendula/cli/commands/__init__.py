"""The commands, a module each: they read arguments, call what does the work, and show what came out.

actions, credit, fleet, jobs, playback    the commands of a scheduler, a folder each
replay      a journal, or the trail of a store, fed to a fresh engine and compared
backup      a checked copy of a data directory
serve       the server with the control room
token       access tokens
completion  what a shell needs to complete our words
bench       side by side with peers
"""
