"""Runs that are served: what a server needs of the scheduler, without a network and without an event loop.

lifecycle      the states of a run, what each command makes of them, how many may be active
records        what is known of a run, open or not; ids, owners, seeds
ring           the newest events, numbered, for readers that come and go
event_forms    events as they are streamed
pictures       a network as pages draw it
bottlenecks    where payments get stuck, hop by hop
series         measured values at even steps of virtual time
targets        who can be paid, how far away, how much at most
scenarios      what runs can be made of: bundled and uploaded
store          what outlives the process, in one database
artifacts      what a run leaves in its directory
settings       what the process is told beside the settings of runs
"""
