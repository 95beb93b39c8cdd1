"""Liveness of a map: whether a fleet can run on it without a permanent standstill, and what prevents it.

certificate    the map conditions W1 to W3: a certificate, or a counterexample
closures       edges and nodes that trucks at rest close to other trucks
clearance      by how much a parking spur is too short, or two spurs are too close
fitting        mismatches of a fleet and a map that are checked before the conditions
fleet_search   search for a fleet on a map that comes without one
"""

from pendula.fleet.liveness.certificate import Certificate, certify

__all__ = ["Certificate", "certify"]
