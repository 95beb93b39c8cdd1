"""Who may go on: locks, and the rule that keeps everybody able to get to rest.

resources     the one relation of mutual exclusion as a value
demand        a complete way to rest as the locks see it
shut          places that operators have closed, and where a way comes to one
columns       for every resource a set of trucks, a bit each
lock_state    who holds what, how far each grant reaches, and columns over trucks
refuge        where a truck is in nobody's way, and how far it can get now
blocked_by    the graph of who stands in whose way, and its cycles
witness       the stored schedule that brings everybody to rest, and whether it survives a grant
dominating    where a truck is less in the way than wherever it passes
pairs         two trucks that would not get to rest if they were alone
search        a new schedule, found among the trucks in the way
cut_off       how far the others can get while a truck has failed
grants        the only functions that change a lock state
"""
