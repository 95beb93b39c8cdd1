"""Ways to use a world: batch runs, a game loop, logs.

batch        runs whole epochs: a file or plain arguments in, results out
live         a game loop: submit, interrupt, advance, ask why, estimate, observe
user_code    hooks, functions of modifiers and processes
logs         the world log and the log of the player character, in memory or in files
audio        names of audio files for the events of a run
"""
