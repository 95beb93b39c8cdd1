"""Rules without a world: durations, locks, resources, visibility. Each module can be read and tested alone.

validation    instances and definitions, read and checked; the limits
duration      minutes from base, effort, skill and modifier, in exact arithmetic
timing        the duration of an instance: skill, modifiers, noise
skills        skill levels, 0 to 3
locks         holders and queues of locks
resources     amounts reserved, consumed, returned and produced
visibility    which actors know an item or see an event
conditions    conditions of modifiers and follow-ups
waiting       conditions that a process can wait for
names         known and unknown names of a configuration
"""

from pendula.actions.rules.locks import Action, Lock, Stage
from pendula.actions.rules.validation import Fault, Verb

__all__ = ["Action", "Fault", "Lock", "Stage", "Verb"]
