"""What changes a world: what comes in, and how a minute is lived through. Functions over the state.

    advance         time goes on: minute after minute, epoch after epoch
    submission      instances and requests come in and are queued for their minute
    arrivals        an instance gets its id, or a fault
    admission       an instance becomes an action: checked, timed, its resources reserved
    turns           who is first in the queues of free locks starts
    interrupting    who may break off whom; cancelling and resuming
    ends            a segment is over: locks are free, something comes to light
    follow_ups      processes and hooks are asked what comes next
    waits           processes that wait for the first of several things

Within a minute the order is fixed: ends, interrupts, visibility changes, admissions, starts.
"""
