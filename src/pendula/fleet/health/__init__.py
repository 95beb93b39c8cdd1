"""Whether a truck can be counted on, before anybody gets a lock: what stops it, what it keeps, how it comes back.

orders        what people order a truck, and what came of it
places        whether a truck can be where it says it is
obedience     commands that are not acknowledged, or move nothing
judging       which of all reasons to stop counts in this tick
protection    both places of a lost truck, and who has to stop for it
closures      what failed trucks close to all others
rejoining     a truck beside its line drives back to it
node_locks    a truck that stops in a node takes the lock of it
standing      what a truck holds where it stands
recovery      failed trucks keep their cells, and take up their way again
"""
