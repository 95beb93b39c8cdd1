"""Served runs: engines, ticks, streams, files, and journals of ended runs.

served_run    one run: engine, ring buffer of events, commands, ticks
run_writer    writes the record, metrics, bottlenecks and files of a run
metronome     heartbeats and ticks, never two ticks at once
recovery      finishes runs of a killed process, and loads ended runs from their journals
ended_run     the history of an ended run
what_if       forks a run and compares both branches
store_thread  the thread that writes to the store, so that the event loop never waits for a disk
counters      Prometheus metrics
"""
