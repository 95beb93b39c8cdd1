"""Health of trucks, updated before locks are granted: reasons to stop, reserved places, recovery.

orders        operator orders to trucks, and their results
places        whether a reported position is plausible
obedience     commands that are not acknowledged or have no effect
judging       the reason to stop of each truck in this tick
protection    both places of a lost truck, and the trucks that must stop for it
closures      places closed by failed trucks and by operators
rejoining     a truck beside its line drives back to it
node_locks    a truck that stops in a node locks it
held_places   what a truck holds at its position
recovery      failed trucks keep their cells, and return to their routes
"""
