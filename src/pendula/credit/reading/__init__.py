"""Parses documents into models, with every fault of a document at its place.

scenario         a scenario file into a `Scenario`
timeline         its events: stress, injections and notes
scope            the context of a reading: strict or lenient, known codes, warnings
settings_file    a settings file into texts by name
"""
