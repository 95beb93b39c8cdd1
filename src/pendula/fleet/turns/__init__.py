"""Turns: the order in which trucks are asked, what a waiting truck bars, and the directions of lanes.

ranks         the order in which trucks are asked
queueing      which truck waits for which, and what it bars
reservations  what trucks reserve ahead of what they need now
directions    which direction of a lane is kept, and which is drained
"""
