"""Trucks on their routes: the record of each, and its route as the locks see it.

params        the parameters of traffic and their rules
uses          the resources of a route, with their intervals
track         a route as uses of resources and standing positions
records       the record of a truck between two ticks
stops         codes of stops, and their precedence
doubts        data of a truck whose position is in doubt
detours       detours for waiting trucks
screening     checks of routes that need no position
adoption      how a new route replaces the old one
"""
