"""What traffic shows of itself: requests, snapshots, reasons. Views on what is held, never locks of their own.

reasons             why a truck stands, and the chain of blockers
limits              what explains the end of a grant
corridor_request    the units a truck asks for
snapshot            the locks of a tick
robot_state         a truck as the contract shows it
dropped             the last report of a truck that was dropped
swings              how much trucks go back and forth instead of getting on
"""
