"""Served runs: everything a server needs from the scheduler, without network and event loop.

lifecycle      states and transitions of a run, limits on active runs
records        the record of a run; ids, owners, seeds
pictures       snapshots of a network for display
bottlenecks    lines where payments fail most often
series         metrics at even steps of virtual time
targets        possible receivers, with distance and maximum amount
scenarios      bundled and uploaded scenarios
store          the database: scenarios, records, metrics, bottlenecks
artifacts      the output directory of a served run
settings       settings of the server process, beside those of runs
"""
