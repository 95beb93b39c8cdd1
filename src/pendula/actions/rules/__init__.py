"""Rules without a world: durations, locks, resources, visibility. Each module can be read and tested alone.

validation    instances and definitions, read and checked; the limits
duration      minutes from base, effort, skill, modifiers and noise, in exact arithmetic
locks         holders and queues of locks
resources     amounts reserved, consumed, returned and produced
visibility    which actors know an item or see an event
conditions    conditions of modifiers and follow-ups, conditions that a process can wait for
"""
