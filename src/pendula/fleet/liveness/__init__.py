"""Whether a fleet can run on a map for ever, and what is in the way.

certificate    the map conditions W1 to W3: a certificate, or the smallest counterexamples
clearance      how much a parking spur lacks: moved outward until nobody's way is touched any more
"""

from pendula.fleet.liveness.certificate import Certificate, certify

__all__ = ["Certificate", "certify"]
