"""The commands, one module each: they read arguments, call the library, and print the result.

actions, credit, fleet, jobs, playback    the commands of a scheduler
replay      replays a journal, or verifies the trail of a store
serve       runs the server with the control room; makes a checked copy of its data
token       manages access tokens
bench       runs benchmarks beside peers
"""
