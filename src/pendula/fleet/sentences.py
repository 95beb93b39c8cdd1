"""Sentences of codes and facts, rendered where they are shown; no journal, state or digest contains one."""

from collections.abc import Callable, Mapping
from typing import Any

from pendula.kernel.canonical import Json


def _no_route(facts: Mapping[str, Any]) -> str:
    without = f" without {', '.join(facts['blocked'])}" if facts["blocked"] else ""
    return f"there is no way to {facts['goal']}{without}"


REFUSALS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "NO_ROUTE": _no_route,
    "ROBOT_FAULT": lambda facts: f"{facts['robotId']} has to be cleared first",
    "TASK_HELD": lambda facts: f"task {facts['taskId']!r} is held already: {facts['cause']}",
    "TASK_LOADED": lambda facts: (
        f"the goods of task {facts['taskId']!r} are on {facts['robotId']}, or about to be: it stays with the truck"
    ),
    "TASK_NOT_ASSIGNED": lambda facts: f"no truck has task {facts['taskId']!r}",
    "TASK_NOT_HELD": lambda facts: f"task {facts['taskId']!r} is {facts['state']}",
    "TASK_UNKNOWN": lambda facts: f"there is no open task {facts['taskId']!r}",
    "route_off_the_map": lambda facts: f"Route {facts['routeId']!r} of {facts['robotId']!r} has {facts['fault']}",
    "time_went_back": lambda facts: (
        f"The clock went back from {facts['lastMs']} to {facts['nowMs']}; trucks get no command"
    ),
}


def sentence_of(code: str, facts: Mapping[str, Json]) -> str:
    """The sentence for the code of a refusal."""
    return REFUSALS[code](facts)
