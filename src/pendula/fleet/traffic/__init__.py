"""Who may go on: routes as the locks see them, the refuge rule, and what is known of every truck.

resources     the one relation of mutual exclusion as a value
demand        a complete way to rest as the locks see it
lock_state    who holds what, how far each grant reaches, and columns over trucks
refuge        where a truck is in nobody's way
blocked_by    who stands in whose way up to the next refuge
witness       schedules that bring everybody to rest
grants        the only functions that change a lock state
params        the parameters of traffic and what must hold between them
track         a route as uses of resources and standing positions
records       what is known of a truck between two ticks
adoption      how a new route takes the place of the old one
"""
