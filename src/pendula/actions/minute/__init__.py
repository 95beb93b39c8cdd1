"""The state of a world and its changes, as functions over the state: the phases of a minute.

    world_state     the state itself, the plans of its verbs, the ranks within a minute
    event_writer    the clock, and numbered events in the order of a minute
    advance         advances time, minute by minute, epoch by epoch
    admission       makes an action of an instance: checks, duration, resources
    turns           starts the first action in the queues of free locks
    interrupting    interrupts, preempts, cancels and resumes
    ends            ends a segment: releases locks, reveals knowledge
    follow_ups      reads instances; asks processes and hooks for follow-ups, notifies processes that wait

Within a minute the order is fixed: ends, interrupts, visibility changes, admissions, starts.
"""
