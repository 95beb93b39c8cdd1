"""A document into a scenario, with every fault told where it stands.

document         the whole document
tasks            streams, tasks and what happens to goods
events           what goes wrong, and what operators do
expected         what the scenario says will come true
traffic_params   the parameters of traffic
"""

from pendula.fleet.scenarios.reading.document import read_scenario
from pendula.fleet.scenarios.reading.events import read_drill

__all__ = ["read_drill", "read_scenario"]
