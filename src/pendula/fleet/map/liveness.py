"""Whether a fleet can run on a map without a permanent standstill: the map conditions W1 to W3, with a certificate or a
counterexample and its remedy. (W4 is about the initial state of a run.) The set of trucks that a counterexample names
is minimal.

A remedy with a number is sufficient for the obstacle it names: once applied, the map is LIVE or another obstacle is
named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice, pairwise, permutations
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pendula.fleet.map.exclusion import boundaries
from pendula.fleet.map.geometry import meet, near
from pendula.fleet.map.network import network_numbers
from pendula.fleet.map.planner import AtNode, Closed, Planner, Way
from pendula.fleet.map.resting import Rest, closed_by, closed_for_all, home_of, kept_sections, rests_of
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile, hash_of, stop_distance_um
from pendula.fleet.model import (
    Code,
    CurveKind,
    Finding,
    Fleet,
    Granularity,
    Origin,
    Stream,
    Truck,
    finding,
    pick_is_drop,
)
from pendula.fleet.sentences import map_finding
from pendula.fleet.units import MILLION, ceil_div, plain
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal
from pendula.kernel.wording import suggestion

# Missing distances of blocking trucks at rest: a standing set is moved away until it touches nothing.
# A result is a distance that is sufficient: once applied, the obstacle is gone. Only straight dead ends and conflicts
# of distance alone have one; in all other cases the result is None.

Ints = NDArray[np.int64]
STEP_UM = 100_000
_MOST_STEPS = 300
# A spur whose last cell barely touches is long enough.
_TOUCH_UM = 10
# On curves the windows of discs are wider than the areas of the cells, by the step of the poses.
_CURVE_UM = 60_000


@dataclass(frozen=True, eq=False, slots=True)
class _Spur:
    """A straight dead end: its node, outward direction, length, and the shapes and lengths of the last cells on its
    ways in."""

    rest: Rest
    x: int
    y: int
    outward: tuple[float, float]
    length_um: int
    last: tuple[tuple[Ints, int], ...]


@dataclass(frozen=True, eq=False, slots=True)
class _Used:
    """The area of a way: the shapes of all its cells, of its curved cells, and the nodes in which it turns or stops."""

    quads: Ints
    curved: Ints
    discs: list[int]


def missing_distance_um(site: CompiledMap, rest: Rest, other: Rest) -> int | None:
    """The distance at which two trucks can rest at the ends of two parallel spurs, moved apart along the line between
    them; None if the spurs are not parallel or distance is not the cause."""
    first, second = _spur(site, rest), _spur(site, other)
    if first is None or second is None or not _plain(site):
        return None
    homes = [home_of(site, rest.node), home_of(site, other.node)]
    if homes[0] is None or homes[1] is None or homes[0][0] & homes[1][0]:
        return None
    turn = first.outward[0] * second.outward[1] - first.outward[1] * second.outward[0]
    dx, dy = float(second.x - first.x), float(second.y - first.y)
    apart = float(np.sqrt(dx * dx + dy * dy))
    if abs(turn) > 1e-6 or apart < 1.0:
        return None
    own, others = _standing(site, first, 0), _standing(site, second, 0)
    least = ceil_div(int(apart), STEP_UM) * STEP_UM
    for step in range(_MOST_STEPS):
        far = least + step * STEP_UM
        shift = np.rint(np.array([dx, dy]) * (far / apart - 1.0)).astype(np.int64)
        x, y = second.x + int(shift[0]), second.y + int(shift[1])
        if not _rests_touch(site, (own, first.x, first.y), (others + shift, x, y)):
            return far
    return None


def missing_length_um(site: CompiledMap, planner: Planner, start: int, goal: int, rest: Rest) -> int | None:
    """By how much the spur of a rest must grow to free the way from `start` to `goal`, in whole steps; None if it is
    not a straight dead end or its length is not the cause."""
    spur, home = _spur(site, rest), home_of(site, rest.node)
    way = planner.way(AtNode(start), goal)
    if spur is None or home is None or not _plain(site) or isinstance(way, Refusal):
        return None
    if set(way.edges) & home[0] or goal in home[1] or _keeps_a_section_of(site, rest, way):
        return None
    used = _used(site, way, goal)
    for step in range(1, _MOST_STEPS):
        more = step * STEP_UM
        shift = np.rint(np.array(spur.outward) * more).astype(np.int64)
        x, y = spur.x + int(shift[0]), spur.y + int(shift[1])
        if not _touches(site, _standing(site, spur, more) + shift, used, x, y):
            return more
    return None


def _plain(site: CompiledMap) -> bool:
    """Whether conflicts depend on areas alone, without a conflict margin and with granularity WINDOW."""
    return site.params.conflict_margin_um == 0 and site.params.granularity is Granularity.WINDOW


def _keeps_a_section_of(site: CompiledMap, rest: Rest, way: Way) -> bool:
    sections = set(kept_sections(site, rest))
    return any(
        sections & set(site.sections_of_cell.get(cell, ())) for edge in way.edges for cell in site.cells.of_edge(edge)
    )


def _spur(site: CompiledMap, rest: Rest) -> _Spur | None:
    network = site.network
    if network.degree(rest.node) != 1:
        return None
    group = network.groups[network.meeting[rest.node][0]]
    arriving = [edge for edge in network.incoming[rest.node] if network.group_of[edge] == network.meeting[rest.node][0]]
    if not arriving or any(network.edges[edge].path.kind is not CurveKind.STRAIGHT for edge in group.edges):
        return None
    path = network.edges[arriving[0]].path
    dx, dy = float(path.x[-1] - path.x[0]), float(path.y[-1] - path.y[0])
    size = float(np.sqrt(dx * dx + dy * dy))
    at = network.nodes[rest.node].at
    last = tuple(_last_cell(site, edge) for edge in arriving)
    return _Spur(rest, at.x_um, at.y_um, (dx / size, dy / size), path.length_um, last)


def _quads(site: CompiledMap, cell: int) -> Ints:
    return site.cells.quads[int(site.cells.quad_first[cell]) : int(site.cells.quad_first[cell + 1])]


def _last_cell(site: CompiledMap, edge: int) -> tuple[Ints, int]:
    cell = int(site.cells.first[edge + 1]) - 1
    return _quads(site, cell), int(site.cells.s1[cell] - site.cells.s0[cell])


def _standing(site: CompiledMap, spur: _Spur, more_um: int) -> Ints:
    """The shapes that a truck at rest would hold if the spur were longer by `more_um`, relative to the present end: one
    whole cell back, or the cells that the release bound has not passed."""
    bounds = boundaries(spur.length_um + more_um, site.params.cell_len_um)
    held = bounds[:-1][bounds[1:] > bounds[-1] - spur.rest.short_um]
    reach = max(site.params.cell_len_um - _TOUCH_UM, int(bounds[-1] - held[0]) if len(held) else 0)
    parts = []
    for quads, own in spur.last:
        back = np.rint(np.array(spur.outward) * (reach - own)).astype(np.int64)
        parts += [quads - back] if reach <= own else [quads, quads - back]
    return np.concatenate(parts)


def _used(site: CompiledMap, way: Way, goal: int) -> _Used:
    straight: list[Ints] = []
    curved: list[Ints] = []
    for edge in way.edges:
        own = site.cells.of_edge(edge)
        part = site.cells.quads[int(site.cells.quad_first[own.start]) : int(site.cells.quad_first[own.stop])]
        (straight if site.network.edges[edge].path.kind is CurveKind.STRAIGHT else curved).append(part)
    none = np.zeros((0, 4, 2), dtype=np.int64)
    bends = np.concatenate([none, *curved])
    return _Used(np.concatenate([bends, *straight]), bends, _turning_nodes(site, way.edges, goal))


def _turning_nodes(site: CompiledMap, edges: tuple[int, ...], goal: int) -> list[int]:
    nodes = [goal]
    for before, after in pairwise(edges):
        k = next(k for k in site.transitions.of(before) if int(site.transitions.out[k]) == after)
        if not bool(site.transitions.tangent[k]):
            nodes.append(site.network.edges[before].end)
    return nodes


def _touches(site: CompiledMap, standing: Ints, used: _Used, x: int, y: int) -> bool:
    radius = float(site.zones.radius_um + 1)
    if bool(near(used.quads, x, y, radius).any()) or bool(near(used.curved, x, y, radius + _CURVE_UM).any()):
        return True
    if any(bool(meet(np.broadcast_to(quad, used.quads.shape), used.quads).any()) for quad in standing):
        return True
    for node in used.discs:
        at = site.network.nodes[node].at
        if _discs_touch(site, at.x_um - x, at.y_um - y) or bool(near(standing, at.x_um, at.y_um, radius).any()):
            return True
    return False


def _rests_touch(site: CompiledMap, first: tuple[Ints, int, int], second: tuple[Ints, int, int]) -> bool:
    radius = float(site.zones.radius_um + 1)
    if _discs_touch(site, first[1] - second[1], first[2] - second[2]):
        return True
    if bool(near(first[0], second[1], second[2], radius).any()) or bool(
        near(second[0], first[1], first[2], radius).any()
    ):
        return True
    return any(bool(meet(np.broadcast_to(quad, second[0].shape), second[0]).any()) for quad in first[0])


def _discs_touch(site: CompiledMap, dx: int, dy: int) -> bool:
    return dx * dx + dy * dy <= (2 * site.zones.radius_um + 2) ** 2


# Mismatches of a fleet and a map, checked before the map conditions: unknown names, other truck profiles, undeclared
# stations in dead ends.


def fleet_findings(site: CompiledMap, fleet: Fleet, profiles: Sequence[RobotProfile]) -> list[Finding]:
    """Findings that forbid checking the map conditions for a fleet."""
    known = site.node_number
    findings = []
    if hash_of(profiles) != site.profile_hash:
        message = "the map was compiled for other truck profiles"
        findings.append(finding(Code.PROFILE_HASH_MISMATCH, message, "compile it again", expected=site.profile_hash))
    names = {profile.profile_id for profile in profiles}
    seen: set[str] = set()
    for truck in fleet.trucks:
        if truck.robot_id in seen:
            message = f"there are two trucks {truck.robot_id!r}"
            findings.append(finding(Code.DUPLICATE_ID, message, "rename one", id=truck.robot_id))
        seen.add(truck.robot_id)
        if truck.profile_id not in names:
            message = f"truck {truck.robot_id!r} has the unknown profile {truck.profile_id!r}"
            message += suggestion(truck.profile_id, sorted(names))
            findings.append(finding(Code.PROFILE_MISSING_FIELD, message, "add the profile", robotId=truck.robot_id))
        if truck.park_node_id not in known:
            message = f"the rest node {truck.park_node_id!r} of truck {truck.robot_id!r} is not a node"
            message += suggestion(truck.park_node_id, tuple(known))
            findings.append(
                finding(Code.MISSING_PARKING_NODE, message, "name an existing node", robotId=truck.robot_id)
            )
    for stream in fleet.streams:
        for name in dict.fromkeys((*stream.pick_node_ids, *stream.drop_node_ids)):
            if name not in known:
                message = f"stream {stream.stream_id!r} names {name!r}, which is not a node"
                message += suggestion(name, tuple(known))
                findings.append(finding(Code.MISSING_PICK_DROP_NODE, message, "name an existing node", nodeId=name))
            if name in stream.pick_node_ids and name in stream.drop_node_ids:
                message = pick_is_drop(f"stream {stream.stream_id!r}", name)
                findings.append(finding(Code.MISSING_PICK_DROP_NODE, message, "name another node", nodeId=name))
        for name in stream.robot_ids:
            if name not in seen:
                message = f"stream {stream.stream_id!r} names the truck {name!r}, which is not in the fleet"
                message += suggestion(name, sorted(seen))
                findings.append(finding(Code.MAP_PARSE_ERROR, message, "name a truck of the fleet", robotId=name))
    return findings


def serves(truck: Truck, stream: Stream, number: Mapping[str, int], network_of: Sequence[int]) -> bool:
    """Whether a truck serves a stream: the stream names it, or names no truck and has a stop in the network of its rest
    node."""
    if stream.robot_ids:
        return truck.robot_id in stream.robot_ids
    own = network_of[number[truck.park_node_id]]
    return any(network_of[number[name]] == own for name in (*stream.pick_node_ids, *stream.drop_node_ids))


def undeclared_dead_ends(site: CompiledMap, fleet: Fleet) -> list[Finding]:
    """Picks and drops in dead ends that the map does not declare as stations. Without a section a second truck may
    follow the first one in."""
    network = site.network
    guarded = {member.group for section in site.sections for member in section.members}
    stops = {
        site.node_number[name]
        for stream in fleet.streams
        for name in (*stream.pick_node_ids, *stream.drop_node_ids)
        if name in site.node_number
    }
    return [
        map_finding(Code.DEAD_END_WITHOUT_TOKEN, nodeId=network.nodes[node].id)
        for node in sorted(stops)
        if _is_dead_end(site, node) and network.meeting[node][0] not in guarded
    ]


def _is_dead_end(site: CompiledMap, node: int) -> bool:
    """Whether trucks enter and leave a node by the same lane."""
    network = site.network
    return network.degree(node) == 1 and bool(network.incoming[node] and network.outgoing[node])


@dataclass(frozen=True, slots=True)
class Leg:
    """A trip that a truck must be able to make: from one node to another, for a stream."""

    robot_id: str
    start: int
    goal: int
    stream_id: str


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The first condition that fails, with the first truck and leg that fail it."""

    condition: str
    message: str
    remedy: str
    details: dict[str, Json]


@dataclass(frozen=True)
class Certificate:
    """`live` with the edges and nodes closed to every truck, or the counterexample."""

    live: bool
    closed: dict[str, Closed]
    legs: int
    counterexample: Counterexample | None

    def form(self, site: CompiledMap) -> dict[str, Any]:
        edges, nodes = site.network.edges, site.network.nodes
        trucks = [
            {
                "robotId": robot,
                "closedEdgeKeys": sorted(edges[edge].key for edge in closed.edges),
                "closedTurnNodeIds": sorted(nodes[node].id for node in closed.turns),
            }
            for robot, closed in sorted(self.closed.items())
        ]
        failure = self.counterexample
        return {
            "live": self.live,
            "legs": self.legs,
            "trucks": trucks,
            "counterexample": None
            if failure is None
            else {
                "condition": failure.condition,
                "message": failure.message,
                "remedy": failure.remedy,
                "details": failure.details,
            },
        }


@lru_cache(4)
def certify_cached(
    site: CompiledMap, fleet: Fleet, profiles: tuple[RobotProfile, ...]
) -> tuple[Certificate | None, tuple[Finding, ...]]:
    """`certify` with a cache: a fleet is created, opened and inspected on the same map."""
    return certify(site, fleet, profiles)


def certify(
    site: CompiledMap, fleet: Fleet, profiles: Sequence[RobotProfile]
) -> tuple[Certificate | None, tuple[Finding, ...]]:
    """The certificate and the findings; no certificate if the fleet does not fit the map at all."""
    mismatches = fleet_findings(site, fleet, profiles)
    if mismatches:
        return None, tuple(mismatches)
    by_id = {profile.profile_id: profile for profile in profiles}
    rests = rests_of(site, fleet, by_id)
    closed = closed_for_all(site, rests)
    legs = _legs(site, fleet)
    counterexample = (
        _unserved_stream(site, fleet)
        or _shared_rest(fleet)
        or _conflicting_rests(site, rests)
        or _too_many_in_a_section(site, rests)
        or _missing_way(site, fleet, by_id, rests, closed, legs)
        or _too_short_lookahead(site, fleet, by_id)
    )
    certificate = Certificate(counterexample is None, closed, len(legs), counterexample)
    findings = undeclared_dead_ends(site, fleet)
    if counterexample is not None:
        details: dict[str, Json] = {"condition": counterexample.condition, **counterexample.details}
        findings.insert(0, finding(Code.MAP_NOT_LIVE, counterexample.message, counterexample.remedy, **details))
    return certificate, tuple(findings)


def _legs(site: CompiledMap, fleet: Fleet) -> list[Leg]:
    """Rest to pick, pick to drop and drop to rest, for every truck and every stream it serves, without duplicates."""
    legs: dict[tuple[str, int, int], Leg] = {}
    number = site.node_number
    network_of = network_numbers(site.network)
    for truck in sorted(fleet.trucks, key=lambda truck: truck.robot_id):
        rest = number[truck.park_node_id]
        for stream in sorted(fleet.streams, key=lambda stream: stream.stream_id):
            if not serves(truck, stream, number, network_of):
                continue
            picks = [number[name] for name in stream.pick_node_ids]
            drops = [number[name] for name in stream.drop_node_ids]
            pairs = [(rest, pick) for pick in picks]
            pairs += [(pick, drop) for pick in picks for drop in drops]
            pairs += [(drop, rest) for drop in drops]
            for start, goal in pairs:
                if start != goal:
                    legs.setdefault((truck.robot_id, start, goal), Leg(truck.robot_id, start, goal, stream.stream_id))
    return list(legs.values())


def _unserved_stream(site: CompiledMap, fleet: Fleet) -> Counterexample | None:
    network_of = network_numbers(site.network)
    for stream in sorted(fleet.streams, key=lambda stream: stream.stream_id):
        if fleet.trucks and not any(serves(truck, stream, site.node_number, network_of) for truck in fleet.trucks):
            return Counterexample(
                "W2",
                f"no truck can serve stream {stream.stream_id!r}: none rests in the network of its stops",
                f"add a truck that rests in the network of {stream.pick_node_ids[0]}, or join the networks",
                {"streamId": stream.stream_id},
            )
    return None


def _shared_rest(fleet: Fleet) -> Counterexample | None:
    owner: dict[str, str] = {}
    for truck in sorted(fleet.trucks, key=lambda truck: truck.robot_id):
        first = owner.setdefault(truck.park_node_id, truck.robot_id)
        if first != truck.robot_id:
            return Counterexample(
                "W1",
                f"trucks {first!r} and {truck.robot_id!r} share the rest node {truck.park_node_id!r}",
                f"add a parking spur for {truck.robot_id}",
                {"robotIds": [first, truck.robot_id], "nodeId": truck.park_node_id},
            )
    return None


def _conflicting_rests(site: CompiledMap, rests: Mapping[str, Rest]) -> Counterexample | None:
    """The first pair of trucks, by id, whose standing sets exclude each other."""
    standing = {robot: site.standing_set(rest.node, rest.short_um) for robot, rest in rests.items()}
    holders: dict[int, list[str]] = {}
    for robot, resources in standing.items():
        for resource in resources:
            holders.setdefault(resource, []).append(robot)
    for robot, resources in standing.items():
        around = {
            other for resource in resources for near in site.blocking(resource) for other in holders.get(near, ())
        }
        neighbour = min((other for other in around if other > robot), default=None)
        if neighbour is not None:
            return _rests_too_close(site, rests, (robot, neighbour))
    return None


def _rests_too_close(site: CompiledMap, rests: Mapping[str, Rest], robots: tuple[str, str]) -> Counterexample:
    first, second = (rests[robot] for robot in robots)
    names = [site.network.nodes[rest.node].id for rest in (first, second)]
    need = missing_distance_um(site, first, second)
    message = f"trucks {robots[0]!r} and {robots[1]!r} cannot rest in {names[0]!r} and {names[1]!r} at the same time"
    details: dict[str, Json] = {"robotIds": list(robots), "nodeIds": list(names)}
    if need is None:
        remedy = f"add a parking spur farther away from {names[0]} and let {robots[1]} rest there"
        return Counterexample("W1", message, remedy, details)
    details["distanceM"] = plain(need)
    return Counterexample("W1", message, f"place {names[0]} and {names[1]} {plain(need)} m apart", details)


def _too_many_in_a_section(site: CompiledMap, rests: Mapping[str, Rest]) -> Counterexample | None:
    inside: dict[int, list[str]] = {}
    for robot, rest in rests.items():
        for section in kept_sections(site, rest):
            inside.setdefault(section, []).append(robot)
    for section, robots in sorted(inside.items()):
        crowded = site.sections[section]
        if len(robots) > crowded.capacity:
            remedy = f"raise its capacity to {len(robots)}"
            if crowded.origin is Origin.GENERATED:
                remedy = f"draw a critical section with capacity {len(robots)} over the dead end"
            return Counterexample(
                "W1",
                f"{len(robots)} trucks rest in section {crowded.id!r}, which holds {crowded.capacity}",
                f"{remedy}, or let {robots[-1]} rest elsewhere",
                {"criticalSectionId": crowded.id, "robotIds": list(robots)},
            )
    return None


def _missing_way(
    site: CompiledMap,
    fleet: Fleet,
    profiles: dict[str, RobotProfile],
    rests: Mapping[str, Rest],
    closed: dict[str, Closed],
    legs: list[Leg],
) -> Counterexample | None:
    planners = {name: Planner(site, profile) for name, profile in profiles.items()}
    profile_of = {truck.robot_id: truck.profile_id for truck in fleet.trucks}
    first_missing: int | None = None
    # Goal by goal, so that only the trees of one goal are in memory; the first failing leg is reported.
    for _, group in groupby(sorted(enumerate(legs), key=_goal), key=_goal):
        for number, leg in group:
            if first_missing is None or number < first_missing:
                possible = _is_possible(planners[profile_of[leg.robot_id]], leg, closed[leg.robot_id])
                first_missing = first_missing if possible else number
        for planner in planners.values():
            planner.forget()
    if first_missing is None:
        return None
    leg = legs[first_missing]
    planner = planners[profile_of[leg.robot_id]]
    start, goal = (site.network.nodes[node].id for node in (leg.start, leg.goal))
    details: dict[str, Json] = {"robotId": leg.robot_id, "from": start, "to": goal, "streamId": leg.stream_id}
    if not _is_possible(planner, leg, Closed()):
        missing_edge = _missing_edge(site, planner, leg)
        return Counterexample(
            "W2",
            f"truck {leg.robot_id!r} finds no way from {start!r} to {goal!r}",
            f"add an edge from {missing_edge[0]} to {missing_edge[1]}",
            {**details, "edge": [*missing_edge]},
        )
    return _blocked_by_rest(site, planner, leg, rests, details)


def _goal(numbered: tuple[int, Leg]) -> int:
    return numbered[1].goal


def _is_possible(planner: Planner, leg: Leg, closed: Closed) -> bool:
    network = planner.site.network
    if network.nodes[leg.start].turning:
        return planner.cost_us(AtNode(leg.start), leg.goal, closed) is not None
    # In a node without turning a truck keeps its heading: the way must continue from every way in.
    ways_in = [edge for edge in network.incoming[leg.start] if planner.usable(edge, closed)]
    return bool(ways_in) and all(planner.onward_us(edge, leg.goal, closed) is not None for edge in ways_in)


def _missing_edge(site: CompiledMap, planner: Planner, leg: Leg) -> tuple[str, str]:
    """The closest pair of a node that the truck can reach and a node from which it can reach the goal: an edge between
    them completes the way."""
    network = site.network
    edges, nodes = network.edges, network.nodes
    reached: set[int] = set()
    queue = [edge for edge in network.outgoing[leg.start] if planner.usable(edge)]
    while queue:
        edge = queue.pop()
        if edge not in reached:
            reached.add(edge)
            queue += planner.after(edge)
    onward = [edge for edge in range(len(edges)) if planner.usable(edge) and _leads_to(planner, edge, leg.goal)]
    # At nodes without turning a new edge helps only at the ends of the way.
    near = {leg.start, *(edges[edge].end for edge in reached if nodes[edges[edge].end].turning)}
    far = {leg.goal, *(edges[edge].start for edge in onward if nodes[edges[edge].start].turning)}

    def apart(pair: tuple[int, int]) -> tuple[int, tuple[int, int]]:
        dx, dy = (getattr(nodes[pair[0]].at, axis) - getattr(nodes[pair[1]].at, axis) for axis in ("x_um", "y_um"))
        return dx * dx + dy * dy, pair

    first, second = min(((a, b) for a in near for b in far if a != b), key=apart)
    return nodes[first].id, nodes[second].id


def _leads_to(planner: Planner, edge: int, goal: int) -> bool:
    return planner.onward_us(edge, goal) is not None


def _blocked_by_rest(
    site: CompiledMap, planner: Planner, leg: Leg, rests: Mapping[str, Rest], details: dict[str, Json]
) -> Counterexample:
    """A counterexample with a minimal set of trucks at rest that close the way together."""
    robots = _closing_trucks(site, planner, leg, rests)
    nodes = site.network.nodes
    names = [nodes[rests[robot].node].id for robot in robots]
    start, goal = nodes[leg.start].id, nodes[leg.goal].id
    resting = " and ".join(f"{robot!r} rests in {name!r}" for robot, name in zip(robots, names, strict=True))
    message = f"truck {leg.robot_id!r} cannot go from {start!r} to {goal!r} while {resting}"
    if len(robots) > 1:
        message += "; none of them can be left out"
    details = {**details, "restRobotIds": [*robots], "restNodeIds": [*names]}
    stop = next((robot for robot in robots if rests[robot].node in (leg.start, leg.goal)), None)
    if stop is not None:
        name = nodes[rests[stop].node].id
        remedy = f"let {stop} rest elsewhere than in {name}: it is a stop of stream {leg.stream_id}"
        return Counterexample("W1", message, remedy, details)
    rest = rests[robots[0]]
    need = missing_length_um(site, planner, leg.start, leg.goal, rest) if len(robots) == 1 else None
    if need is None:
        return Counterexample("W1", message, _spur_for(site, planner, leg, robots[0], rest), details)
    spur = site.network.groups[site.network.meeting[rest.node][0]]
    whole = spur.length_um + need
    details = {**details, "missingM": plain(need), "spurM": plain(whole)}
    return Counterexample("W1", message, f"make the spur {spur.key} {plain(whole)} m long", details)


def _closing_trucks(site: CompiledMap, planner: Planner, leg: Leg, rests: Mapping[str, Rest]) -> list[str]:
    """A minimal set of trucks at rest that closes a way: a single truck, or the rest after dropping redundant trucks
    in the order of their ids. Other sets may close it too."""
    closing = [robot for robot in rests if robot != leg.robot_id]

    def closes(robots: Sequence[str]) -> bool:
        return not _is_possible(planner, leg, closed_by(site, [rests[robot] for robot in robots]))

    alone = next((robot for robot in closing if closes([robot])), None)
    if alone is not None:
        return [alone]
    for robot in tuple(closing):
        fewer = [other for other in closing if other != robot]
        if closes(fewer):
            closing = fewer
    return closing


def _spur_for(site: CompiledMap, planner: Planner, leg: Leg, robot: str, rest: Rest) -> str:
    """The remedy without a number: where a blocking truck may rest instead."""
    nodes = site.network.nodes
    home = home_of(site, rest.node)
    if home is None:
        return f"add a parking spur at {nodes[rest.node].id} and let {robot} rest there"
    edges, inner, mouth = home
    way = planner.way(AtNode(leg.start), leg.goal)
    through = leg.start in inner or leg.goal in inner or (not isinstance(way, Refusal) and bool(edges & {*way.edges}))
    kind = "a parking spur of its own" if through else "a longer parking spur"
    return f"add {kind} at {nodes[mouth].id} and let {robot} rest there instead of in {nodes[rest.node].id}"


def _too_short_lookahead(site: CompiledMap, fleet: Fleet, profiles: dict[str, RobotProfile]) -> Counterexample | None:
    for truck in sorted(fleet.trucks, key=lambda truck: truck.robot_id):
        need = least_lookahead_um(profiles[truck.profile_id], site.params.cell_len_um, fleet)
        if fleet.lookahead_um < need:
            return Counterexample(
                "W3",
                f"truck {truck.robot_id!r} cannot stop at every cell boundary: lookaheadM is "
                f"{plain(fleet.lookahead_um)}, needed are {plain(need)}",
                f"set lookaheadM to at least {plain(need)}",
                {"robotId": truck.robot_id, "lookaheadM": plain(fleet.lookahead_um), "neededM": plain(need)},
            )
    return None


def least_lookahead_um(profile: RobotProfile, cell_len_um: int, fleet: Fleet) -> int:
    """The least `lookaheadM`: rolling target, stopping distance at `vMax`, one cell, and one tick of driving."""
    tick = ceil_div(profile.v_max_um_s * fleet.tick_ms * 1000, MILLION)
    return fleet.rtp_lookahead_um + stop_distance_um(profile, profile.v_max_um_s) + cell_len_um + tick


# Search for a fleet on a map that comes without one: the first candidate for which the map is LIVE.
# Trucks rest at parking nodes and carry between stations; where the map has none, at other nodes. The same map gives
# the same fleet. The search is bounded, so it may miss an existing fleet.

_MOST_STREAMS = 40
_MOST_RESTS = 30


def fitting_fleet(site: CompiledMap, profile: RobotProfile, trucks: int = 4) -> Fleet | None:
    """A fleet of at most `trucks` trucks and one stream that is LIVE on the map; None if the search finds none."""
    rests = _rests(site)
    for pick, drop in islice(_stops(site), _MOST_STREAMS):
        fleet = Fleet((), (Stream("S1", (pick,), (drop,)),))
        for rest in rests:
            if rest not in (pick, drop):
                number = len(fleet.trucks) + 1
                candidate = replace(fleet, trucks=(*fleet.trucks, Truck(f"R{number}", profile.profile_id, rest)))
                fleet = candidate if _is_live(site, candidate, profile) else fleet
            if len(fleet.trucks) == trucks:
                break
        if fleet.trucks:
            return fleet
    return None


def _is_live(site: CompiledMap, fleet: Fleet, profile: RobotProfile) -> bool:
    certificate, _ = certify(site, fleet, [profile])
    return certificate is not None and certificate.live


def _rests(site: CompiledMap) -> list[str]:
    """Candidates: parking nodes first, then ends of dead ends, then all other nodes."""
    network = site.network
    order = sorted(range(len(network.nodes)), key=lambda node: (not network.nodes[node].parking, network.degree(node)))
    return [network.nodes[node].id for node in order[:_MOST_RESTS]]


def _stops(site: CompiledMap) -> Iterator[tuple[str, str]]:
    """Pairs of stations, then pairs that include other nodes; parking nodes are excluded."""
    nodes = site.network.nodes
    stations = [node.id for node in nodes if node.station]
    others = [node.id for node in nodes if not node.station and not node.parking]
    yield from islice(permutations(stations, 2), _MOST_STREAMS // 2)
    yield from permutations([*stations, *others], 2)
