"""Scenarios: a map, trucks, tasks and events in a file, run in virtual time under the eyes of the judge.

model          what a scenario is
reading/       a document into a scenario
names          what is named twice, or is not there
configuring    a scenario as the configuration of an engine
running        one run, tick by tick
outside_routes routes from a planner outside the fleet
measures       what is measured on the way
expectations   what did not come true
library        the scenarios that come with Pendula, in `files`
"""

from pendula.fleet.scenarios.library import shipped, shipped_names
from pendula.fleet.scenarios.model import Scenario
from pendula.fleet.scenarios.names import ScenarioRefused
from pendula.fleet.scenarios.reading import read_scenario
from pendula.fleet.scenarios.running import Result, Run

__all__ = ["Result", "Run", "Scenario", "ScenarioRefused", "read_scenario", "shipped", "shipped_names"]
