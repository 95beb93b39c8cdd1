"""Grants: locks, and the rule that keeps every truck able to get to rest.

resources     the one relation of mutual exclusion as a value
demand        a complete route to rest as the locks see it
shut          places closed by operators, and where a route meets one
columns       for every resource a set of trucks, a bit each
lock_state    held resources, ends of grants, and columns over trucks
refuge        positions where a truck blocks no other, and how far it can get now
blocked_by    the graph of blocking trucks, and its cycles
witness       the stored schedule that brings all trucks to rest, and whether it survives a grant
dominating    positions that block less than all positions before
pairs         two trucks that could not get to rest even alone
search        the search for a new schedule
cut_off       how far other trucks can get while one has failed
grants        the only functions that change a lock state
"""
