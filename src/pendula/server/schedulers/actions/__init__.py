"""The scheduler of actions over HTTP: worlds.

routes       making a world, what is asked of one, what it tells
views        how a world stands at any moment and why, its events, its logs
estimates    when a wish would start, without doing it
choices      what can be asked of one, to choose from
bounds       how much one command may ask of a world
demo         the town of the package, alive, its days repeated for ever
"""
