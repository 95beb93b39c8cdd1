"""Trucks on their ways: what is known of each, and its route as the locks see it.

params        the parameters of traffic and what must hold between them
uses          what a route uses from where to where
track         a route as uses of resources and standing positions
records       what is known of a truck between two ticks
stops         why a truck must stand, and which reason counts
doubts        what is known of a truck whose place is in doubt
detours       another way on for a truck that waits
screening     whether a route can be meant for a truck at all
adoption      how a new route takes the place of the old one
"""
