"""Who answers what a run asks: behaviours of the user's own, a payment service, a solver.

answers            everybody a run may ask, behind one door: a behaviour, a payment service, a solver
behaviours         behaviour of one's own: a Python object that plans the payments of a tick
payment_service    A payment service of somebody else
"""
