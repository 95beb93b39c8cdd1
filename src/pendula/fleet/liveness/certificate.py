"""Whether a fleet can run on a map without a permanent standstill: the map conditions W1 to W3, with a certificate or a
counterexample and its remedy. (W4 is about the initial state of a run.) The set of trucks that a counterexample names
is minimal.

A remedy with a number is sufficient for the obstacle it names: once applied, the map is LIVE or another obstacle is
named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from pendula.fleet.liveness.clearance import missing_distance_um, missing_length_um
from pendula.fleet.liveness.closures import Rest, closed_by, closed_for_all, home_of, kept_sections, rests_of
from pendula.fleet.liveness.fitting import fleet_findings, serves, undeclared_dead_ends
from pendula.fleet.model import Code, Finding, Fleet, Origin, finding
from pendula.fleet.network.components import network_numbers
from pendula.fleet.routing.planner import AtNode, Closed, Planner
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.envelope import stop_distance_um
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.fleet.units import MILLION, ceil_div, plain
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal


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
