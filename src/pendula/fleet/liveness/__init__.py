"""Whether a fleet can run on a map for ever, and what is in the way.

certificate    the map conditions W1 to W3: a certificate, or a counterexample
closures       what trucks at rest close to all others, and to each of them
clearance      how much a parking spur lacks: moved outward until nobody's way is touched any more
fitting        what makes a fleet not fit a map before any condition is looked at
fleet_search   a fleet for a map that came without one
"""

from pendula.fleet.liveness.certificate import Certificate, certify

__all__ = ["Certificate", "certify"]
