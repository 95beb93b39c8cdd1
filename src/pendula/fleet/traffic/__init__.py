"""Who may go on: locks, the refuge rule and the tick around them.

resources     the one relation of mutual exclusion as a value
demand        a complete way to rest as the locks see it
lock_state    who holds what, how far each grant reaches, and columns over trucks
grants        the only functions that change a lock state
"""
