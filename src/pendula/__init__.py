"""Pendula: schedules that come out the same every time.

A map of the package, from the ground up:

    pendula.kernel      time, order, randomness, canonical bytes, journals, replay: standard library and msgspec
    pendula.documents   the one reader of YAML and JSON
    pendula.testing     faulty disks, seeded histories, contract suites: for our tests and for yours
    pendula.server      HTTP, streams and the control room
    pendula.cli         the program `pendula`

The five schedulers (actions, playback, jobs, credit, fleet) stand between documents and server; none knows another.
"""

__version__ = "0.1.0"
