"""A file of actions: read into what a run takes, checked with all its faults, its form as a schema.

checking    everything that is wrong with a file of actions, single things too, each with its place and its code
loading     A file into the document that a run takes; what spoils the whole is refused
schema      the form of a file of actions as JSON Schema
"""
