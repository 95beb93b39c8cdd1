"""Making scenarios: what a designer should look at, their form, and villages out of a seed.

linting           what a designer should look at in a scenario before it runs: who is cut off, what is silenced
reachability      the shape of a network of lines: who is joined to whom, who is within reach
schema            the forms of a scenario
village           A village of one's own: a scenario of invented people and firms that trade in circles
village_groups    who lives in an invented network: what the groups are, how their members pay
example           the example of the room: a village of a hundred that runs out of credit
"""
