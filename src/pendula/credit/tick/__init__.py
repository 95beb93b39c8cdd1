"""One tick, phase by phase: functions over the state of a run.

phases         the list of phases, and those that need no module of their own
draft          what the tick has come to so far, handed from phase to phase
actions        what a tick tries: payments out of its plan or an earlier one, and dated clearings
injections     what an event of the timeline does when it is due
payments       the payments of the plan: tried, counted, told
clearing       one clearing call: circles or the best circulation, its events, trust that grows
metrics        what is measured, per equivalent
questions      what is asked of others, and how far their answers are believed
event_parts    how things of the ledger look in events
"""
