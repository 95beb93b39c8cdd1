"""Scenarios: a map, trucks, tasks and events in a file, run in virtual time and checked by the judge.

model           the structs of a scenario
reading/        reader of scenario documents
names           unknown and duplicate names
configuring     the engine configuration of a scenario
running         one run, tick by tick
outside_routes  routes from an external planner
measures        measurements of a run
expectations    expectations that a run did not meet
library         the bundled scenarios, in `files`
"""

from pendula.fleet.scenarios.library import shipped, shipped_names
from pendula.fleet.scenarios.model import Scenario
from pendula.fleet.scenarios.names import ScenarioRefused
from pendula.fleet.scenarios.reading import read_scenario
from pendula.fleet.scenarios.running import Result, Run

__all__ = ["Result", "Run", "Scenario", "ScenarioRefused", "read_scenario", "shipped", "shipped_names"]
