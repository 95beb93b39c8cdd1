"""A file in, all its faults, its form; its channels and its calls.

loading      A file of section 13 into what a run needs; every fault of the file at once, each with its place
opening      the channels of a file, opened: records as they are written, caches from disk
recording    A run written down: the calls of a file once more through a player with a journal
schema       the form of a file of channels as JSON Schema
script       A file run to its end: the calls it scripts, or so many times `next`, and what came of each
why          why an item of a scripted run came up: the run is made once more, up to the item, and asked there
"""
