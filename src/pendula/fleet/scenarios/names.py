"""Unknown and duplicate names in a scenario, reported before the run starts.

Picks and drops of streams are checked with the fleet (`liveness`). This module checks all other names, and operator
actions that can never be applied.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import UNSET, Struct, structs

from pendula.fleet.map.site import CompiledMap
from pendula.fleet.scenarios.model import OnLane, Scenario
from pendula.fleet.sentences import sentence_of
from pendula.fleet.tasks.operators import refused
from pendula.fleet.units import plain
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import suggestion

# Members of events and expectations that are names, and their kinds.
_KINDS = {"robot_id": "truck", "node_id": "node", "edge_key": "edge", "group_key": "lane", "leaves_at": "node"}


class ScenarioRefused(InputRefused):
    """A scenario cannot start or continue because of an unknown or duplicate name. Facts: `findings` (sentences), or
    `robotId`."""

    code = "scenario_refused"


def name_faults(scenario: Scenario, site: CompiledMap) -> list[str]:
    """A sentence for each wrong name, in the order of the scenario."""
    known = {
        "truck": {robot.robot_id for robot in scenario.robots},
        "node": set(site.node_number),
        "edge": set(site.edge_number),
        "lane": {group.key for group in site.network.groups},
    }
    return [
        *([] if scenario.robots else ["there is no truck: name some under robots"]),
        *_duplicates("trucks", (robot.robot_id for robot in scenario.robots)),
        *_duplicates("streams", (stream.stream_id for stream in scenario.streams)),
        *_duplicates("tasks", (task.task_id for task in scenario.tasks)),
        *_robot_faults(scenario, site),
        *_task_faults(scenario, known),
        *(f"there is no node {node!r} to limit" for node in scenario.dispatch.node_limits if node not in known["node"]),
        *(
            f"there is no {kind} {name!r}{suggestion(name, sorted(known[kind]))}"
            for part in (*scenario.task_events, *scenario.events, *scenario.routes, *scenario.expect)
            for kind, name in _names_in(part)
            if name not in known[kind]
        ),
        *_action_faults(scenario, site, known["truck"]),
    ]


def _task_faults(scenario: Scenario, known: Mapping[str, Collection[str]]) -> Iterator[str]:
    for task in scenario.tasks:
        for verb, node in (("loads", task.pick_node_id), ("unloads", task.drop_node_id)):
            if node not in known["node"]:
                hint = suggestion(node, sorted(known["node"]))
                yield f"task {task.task_id!r} {verb} in {node!r}, which is not a node{hint}"
        for name in task.robot_ids:
            if name not in known["truck"]:
                hint = suggestion(name, sorted(known["truck"]))
                yield f"task {task.task_id!r} is for {name!r}, which is not a truck{hint}"


def _action_faults(scenario: Scenario, site: CompiledMap, trucks: Collection[str]) -> Iterator[str]:
    """Operator actions that would be rejected at any time."""
    for action in scenario.actions:
        refusal = refused(action, site)
        prefix = f"{action.type} at {action.ts} ms cannot be done"
        if refusal is not None:
            edge = "" if action.anchor is UNSET else action.anchor.edgeKey
            hint = suggestion(edge, tuple(site.edge_number)) if refusal.code == "UNKNOWN_PLACE" else ""
            yield f"{prefix}: {sentence_of(refusal.code, refusal.facts)}{hint}"
        elif action.robotId is not UNSET and action.robotId not in trucks:
            yield f"{prefix}: there is no truck {action.robotId!r}{suggestion(action.robotId, sorted(trucks))}"


def _duplicates(what: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"there are two {what} {name!r}"
        seen.add(name)


def _robot_faults(scenario: Scenario, site: CompiledMap) -> Iterator[str]:
    nodes, profiles = site.node_number, {profile.profile_id for profile in scenario.profiles}
    for robot in scenario.robots:
        if robot.profile_id not in profiles:
            known = ", ".join(sorted(profiles))
            sentence = f"truck {robot.robot_id!r} has the undefined profile {robot.profile_id!r}; defined are {known}"
            yield sentence + suggestion(robot.profile_id, sorted(profiles))
        if robot.park_node_id not in nodes:
            hint = suggestion(robot.park_node_id, tuple(nodes))
            yield f"truck {robot.robot_id!r} rests in {robot.park_node_id!r}, which is not a node{hint}"
        elif robot.start_node_id not in nodes:
            hint = suggestion(robot.start_node_id, tuple(nodes))
            yield f"truck {robot.robot_id!r} begins in {robot.start_node_id!r}, which is not a node{hint}"
        if robot.anchor is not None:
            yield from _anchor_faults(robot.robot_id, robot.anchor, site)


def _anchor_faults(robot_id: str, anchor: OnLane, site: CompiledMap) -> Iterator[str]:
    if anchor.edge_key not in site.edge_number:
        hint = suggestion(anchor.edge_key, tuple(site.edge_number))
        yield f"truck {robot_id!r} begins on {anchor.edge_key!r}, which is not an edge{hint}"
        return
    length = site.network.edges[site.edge_number[anchor.edge_key]].path.length_um
    if anchor.s_um > length:
        begins = f"truck {robot_id!r} begins {plain(anchor.s_um)} m along {anchor.edge_key!r}"
        yield f"{begins}, which is {plain(length)} m long"


def _names_in(named: Struct) -> Iterator[tuple[str, str]]:
    """The kinds and names in a struct and its nested structs."""
    for member, value in structs.asdict(named).items():
        if member in _KINDS and value is not None:
            yield _KINDS[member], value
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Struct):
                yield from _names_in(part)
