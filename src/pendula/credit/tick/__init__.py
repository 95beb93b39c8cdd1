"""One tick, phase by phase: functions over the state of a run.

phases         the list of phases, the short phases themselves, and the effects of events of the timeline
draft          the intermediate result of a tick, passed from phase to phase: attempts, counts, metrics
payments       tries payments, counts them, emits their events
clearing       one clearing call: cycles or the best circulation, its events, trust growth
questions      questions to external code, and validation of the answers
event_parts    parts of the ledger as they appear in events
"""
