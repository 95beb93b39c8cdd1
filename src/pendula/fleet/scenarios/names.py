"""Names in a scenario that are there twice, or not at all: told before anything moves.

Picks and drops are looked at with the fleet (`liveness`); this is about everything else that a scenario names.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from pendula.fleet.scenarios.model import OnLane, Scenario
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import plain
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import suggestion

# Members of events and expectations that name something, and what that is.
_KINDS = {"robot_id": "truck", "node_id": "node", "edge_key": "edge", "group_key": "lane", "leaves_at": "node"}


class ScenarioRefused(InputRefused):
    """A scenario that cannot begin, or go on: it names what is not there, or two things alike. Facts: `findings`,
    sentences; or the truck."""

    code = "scenario_refused"


def wrong_names(scenario: Scenario, site: CompiledMap) -> list[str]:
    """A sentence for each, in the order of the scenario."""
    known = {
        "truck": {one.robot_id for one in scenario.robots},
        "node": set(site.node_number),
        "edge": set(site.edge_number),
        "lane": {group.key for group in site.network.groups},
    }
    return [
        *([] if scenario.robots else ["there is no truck: name some under robots"]),
        *_twice("trucks", (one.robot_id for one in scenario.robots)),
        *_twice("streams", (one.stream_id for one in scenario.streams)),
        *_twice("tasks", (one.task_id for one in scenario.tasks)),
        *_of_robots(scenario, site),
        *(f"there is no node {one!r} to limit" for one in scenario.dispatch.node_limits if one not in known["node"]),
        *(
            f"there is no {kind} {name!r}"
            for one in (*scenario.task_events, *scenario.events, *scenario.routes, *scenario.expect)
            for kind, name in _named(one)
            if name not in known[kind]
        ),
    ]


def _twice(what: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"there are two {what} {name!r}"
        seen.add(name)


def _of_robots(scenario: Scenario, site: CompiledMap) -> Iterator[str]:
    nodes, profiles = site.node_number, {one.profile_id for one in scenario.profiles}
    for one in scenario.robots:
        if one.profile_id not in profiles:
            known = ", ".join(sorted(profiles))
            yield f"truck {one.robot_id!r} has the profile {one.profile_id!r}, which is not given; given are {known}"
        if one.park_node_id not in nodes:
            yield f"truck {one.robot_id!r} rests in {one.park_node_id!r}, which is not a node"
        elif one.start_node_id not in nodes:
            yield f"truck {one.robot_id!r} begins in {one.start_node_id!r}, which is not a node"
        if one.anchor is not None:
            yield from _of_anchor(one.robot_id, one.anchor, site)


def _of_anchor(robot_id: str, anchor: OnLane, site: CompiledMap) -> Iterator[str]:
    if anchor.edge_key not in site.edge_number:
        near = suggestion(anchor.edge_key, tuple(site.edge_number))
        yield f"truck {robot_id!r} begins on {anchor.edge_key!r}, which is not an edge{near}"
        return
    length = site.network.edges[site.edge_number[anchor.edge_key]].path.length_um
    if anchor.s_um > length:
        begins = f"truck {robot_id!r} begins {plain(anchor.s_um)} m along {anchor.edge_key!r}"
        yield f"{begins}, which is {plain(length)} m long"


def _named(one: Struct) -> Iterator[tuple[str, str]]:
    """What something names, and in the parts it is made of: the kind and the name."""
    for member, value in structs.asdict(one).items():
        if member in _KINDS and value is not None:
            yield _KINDS[member], value
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Struct):
                yield from _named(part)
