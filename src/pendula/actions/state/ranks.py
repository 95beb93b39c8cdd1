"""The order within a minute, as ranks in the event queue.

The rank of an end is the admission number of its action, which is below all of these.
"""

FIRST = 1 << 56

REQUESTED = FIRST  # interrupts, cancellations, resumptions
WAKING = FIRST + 1  # no event: candidates start in this minute
JOINING = FIRST + 2  # ends of holds
LATE = FIRST + 3  # submissions for the past, by their exact time
SUBMITTED = FIRST + 4
FOLLOWING = FIRST + 5  # follow-ups of ends and rejections
EXPIRING = FIRST + 6  # expiries of knowledge items
