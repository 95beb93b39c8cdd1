"""Changes of a world, as functions over its state: commands, and the phases of a minute.

    advance         advances time, minute by minute, epoch by epoch
    commands        queues submissions and requests for their minute
    submissions     reads an instance and takes its id
    admission       makes an action of an instance: checks, duration, resources
    turns           starts the first action in the queues of free locks
    interrupting    interrupts, preempts, cancels and resumes
    ends            ends a segment: releases locks, reveals knowledge
    follow_ups      asks processes and hooks for follow-ups
    waits           processes that wait for the first of several conditions

Within a minute the order is fixed: ends, interrupts, visibility changes, admissions, starts.
"""
