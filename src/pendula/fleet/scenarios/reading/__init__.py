"""Reader of scenario documents; reports every fault with its place.

document         the whole document
tasks            streams, tasks, goods and dispatch parameters
events           faults, operator actions and external routes
expected         expectations
traffic_params   traffic parameters
"""

from pendula.fleet.scenarios.reading.document import read_scenario
from pendula.fleet.scenarios.reading.events import read_drill

__all__ = ["read_drill", "read_scenario"]
