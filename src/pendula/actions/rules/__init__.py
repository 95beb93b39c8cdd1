"""What holds in every world: how long something takes, who may begin, what is used up, who gets to know.

    validation    whether an instance or a definition is as it should be, with the code of the first fault
    duration      minutes from base, effort, skill and modifier, in exact arithmetic
    timing        the minutes of an instance in its world, and what they rest on
    skills        how skilled an actor is, from 0 to 3
    locks         who holds a lock, who waits for it, in which order
    resources     what is reserved, consumed, returned and made
    visibility    who knows of a thing, who sees an event
    conditions    what has to hold for a modifier or a follow-up
    waiting       what a process may wait for
    names         which names a configuration may have

Nothing here knows a world: each module can be read, and tested, alone.
"""

from pendula.actions.rules.locks import Action, Lock, Stage
from pendula.actions.rules.validation import Fault, Verb

__all__ = ["Action", "Fault", "Lock", "Stage", "Verb"]
