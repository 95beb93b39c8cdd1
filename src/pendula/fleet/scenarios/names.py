"""Names in a scenario that are there twice, or not at all: told before anything moves.

Picks and drops of streams are looked at with the fleet (`liveness`); this is about everything else that a scenario
names, and about what people are to do that can never be done.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import UNSET, Struct, structs

from pendula.fleet.operators.actions import refused
from pendula.fleet.scenarios.model import OnLane, Scenario
from pendula.fleet.sentences import sentence_of
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
        *_of_tasks(scenario, known),
        *(f"there is no node {one!r} to limit" for one in scenario.dispatch.node_limits if one not in known["node"]),
        *(
            f"there is no {kind} {name!r}{suggestion(name, sorted(known[kind]))}"
            for one in (*scenario.task_events, *scenario.events, *scenario.routes, *scenario.expect)
            for kind, name in _named(one)
            if name not in known[kind]
        ),
        *_of_people(scenario, site, known["truck"]),
    ]


def _of_tasks(scenario: Scenario, known: Mapping[str, Collection[str]]) -> Iterator[str]:
    for one in scenario.tasks:
        for does, node in (("loads", one.pick_node_id), ("unloads", one.drop_node_id)):
            if node not in known["node"]:
                near = suggestion(node, sorted(known["node"]))
                yield f"task {one.task_id!r} {does} in {node!r}, which is not a node{near}"
        for name in one.robot_ids:
            if name not in known["truck"]:
                near = suggestion(name, sorted(known["truck"]))
                yield f"task {one.task_id!r} is for {name!r}, which is not a truck{near}"


def _of_people(scenario: Scenario, site: CompiledMap, trucks: Collection[str]) -> Iterator[str]:
    """Actions that would be refused whenever they came."""
    for one in scenario.actions:
        no = refused(one, site)
        what = f"{one.type} at {one.ts} ms cannot be done"
        if no is not None:
            edge = "" if one.anchor is UNSET else one.anchor.edgeKey
            near = suggestion(edge, tuple(site.edge_number)) if no.code == "UNKNOWN_PLACE" else ""
            yield f"{what}: {sentence_of(no.code, no.facts)}{near}"
        elif one.robotId is not UNSET and one.robotId not in trucks:
            yield f"{what}: there is no truck {one.robotId!r}{suggestion(one.robotId, sorted(trucks))}"


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
            told = f"truck {one.robot_id!r} has the profile {one.profile_id!r}, which is not given; given are {known}"
            yield told + suggestion(one.profile_id, sorted(profiles))
        if one.park_node_id not in nodes:
            near = suggestion(one.park_node_id, tuple(nodes))
            yield f"truck {one.robot_id!r} rests in {one.park_node_id!r}, which is not a node{near}"
        elif one.start_node_id not in nodes:
            near = suggestion(one.start_node_id, tuple(nodes))
            yield f"truck {one.robot_id!r} begins in {one.start_node_id!r}, which is not a node{near}"
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
