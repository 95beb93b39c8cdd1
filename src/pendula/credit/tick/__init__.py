"""One tick, phase by phase: functions over the state of a run.

phases         the list of phases, and the short phases themselves
draft          the intermediate result of a tick, passed from phase to phase
actions        attempts of a tick: planned, waiting and scheduled payments, scheduled clearings
injections     effects of due events of the timeline
payments       tries payments, counts them, emits their events
clearing       one clearing call: cycles or the best circulation, its events, trust growth
metrics        metrics of a tick, per equivalent
questions      questions to external code, and validation of the answers
event_parts    parts of the ledger as they appear in events
"""
