"""Scenarios: a map, trucks, tasks and events in a file, run in virtual time and checked by the judge."""

from pendula.fleet.scenarios.model import Scenario
from pendula.fleet.scenarios.reading import read_scenario, shipped, shipped_names
from pendula.fleet.scenarios.running import Result, Run, ScenarioRefused

__all__ = ["Result", "Run", "Scenario", "ScenarioRefused", "read_scenario", "shipped", "shipped_names"]
