"""Views of traffic: requests, snapshots, reasons. They only read locks.

reasons             why a truck stands, and the chain of blockers
limits              explanation of the end of a grant
corridor_request    the units a truck requests
snapshot            the locks of a tick
robot_state         a truck in the form of the contract
dropped             the last dropped report of a truck
swings              how much trucks oscillate
"""
