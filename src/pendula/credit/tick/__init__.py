"""One tick, phase by phase, over the state of a run.

clearing       one clearing call of a run: cycles or the best circulation, its events
draft          what one tick has come to so far, handed from phase to phase
event_parts    how things of the ledger look in events: routes, edges, positions and lines as they stand
injections     what an event of the timeline does when it is due: notes, and injections where they are allowed
metrics        what is measured in a tick, per equivalent: whole counts in, decimal strings with eight digits out
payments       the payments of a tick, in the order of the plan: tried, counted, told
phases         one tick of a run, phase by phase: events due, budget, plan, payments, clearing, decay, measuring
questions      what a run asks of others: an outside payment service, a behaviour of the user's own, a solver
"""
