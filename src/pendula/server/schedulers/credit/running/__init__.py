"""Runs while they are served: their engines, their time, those who follow them, and what is written down of them.

served_run    one run: its engine, its ring of events, its files, its commands
run_writer    what is written down of a run: record, measurements, bottlenecks, files
metronome     a beat each second, one tick a beat at most, and never two at once
recovery      runs that a killed process left, and runs that have ended, read from their journals
ended_run     a run that has ended, to be looked back at
what_if       a run that goes on twice, as it is and with other settings
record_keeper the thread that writes to the store, so that the event loop never waits for a disk
counters      what Prometheus reads of served runs
"""
