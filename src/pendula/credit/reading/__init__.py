"""Documents into models, with every fault of a document at its place.

scenario         a scenario file into a `Scenario`
timeline         its events: stress, injections and notes
scope            what a reading carries along: strict or lenient, codes so far, warnings
settings_file    settings by name or by variable into texts
"""
