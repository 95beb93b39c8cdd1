"""The deterministic kernel, readable in an evening. Standard library and msgspec, nothing else.

    errors, limits      what can go wrong, with codes; how much is too much, with names
    canonical           one value, one sequence of bytes; digests and digest chains
    time                integer instants; naive and offset times never mix
    queue, rng          total order; reproducible randomness
    engine              what every engine is: commands in, outcomes out, reasons for everything
    replay              feed a journal to a fresh engine and compare

    disk, journal       the only way to files; framed, checksummed, chained records, many to a flush
    frames, segments    the bytes of a record; the files of a journal, read and checked
    bodies, stream      what is in a record; events for those who follow
    driver, commit      the one road into a live engine; many waiters, one flush
    recording           an engine with a journal of its own, ready to run
    wallclock           the only place that reads a clock

The modules of the second group touch the world; no decision module may import them.
"""
