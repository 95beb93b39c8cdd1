"""Whose turn it is: the order in which trucks are asked, whom a waiter bars, and which way a lane is driven.

ranks         the one order in which trucks are asked
queueing      who waits for whom, and whom a waiter bars
reservations  what trucks reserve ahead of what they need now
directions    which direction of a lane stays, and which is let run dry
"""
