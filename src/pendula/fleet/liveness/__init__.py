"""Whether a fleet can run on a map for ever, and what is in the way.

certificate    whether a fleet can run on a map without ever standing still for good: the map conditions W1 to W3
clearance      how much a parking spur lacks: its standing set is moved outward until nobody's way is touched any
"""
