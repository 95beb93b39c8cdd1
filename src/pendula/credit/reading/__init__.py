"""Documents into models, with every fault of a document.

scenario         A scenario file into a `Scenario`: every fault at once
settings_file    settings in a file: an object of settings by name or by variable, `{"clearing_policy": "adaptive"
timeline         the events of a scenario: stress, injections and notes, with every fault at its place
"""
