"""The order within a minute, as ranks in the queue of coming matters.

An end has the admission number of its action as its rank: below all of these.
"""

FIRST = 1 << 56

REQUESTED = FIRST  # interrupts, cancellations, resumptions
WAKING = FIRST + 1  # nothing of its own: whoever is first in a queue has its turn in this minute
JOINING = FIRST + 2  # holds that are over
LATE = FIRST + 3  # submissions of before the minute, by their true time
SUBMITTED = FIRST + 4
FOLLOWING = FIRST + 5  # what follows from ends and rejections
EXPIRING = FIRST + 6  # items whose time is over
