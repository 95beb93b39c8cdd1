"""Whether a fleet can run on a map without ever standing still for good: the map conditions W1 to W3, with a
certificate or the smallest counterexample and its remedy. (W4 is about the state a run starts from.)

A remedy with a number is enough for the obstacle it names: applied, the map is LIVE or the next obstacle is named.
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


@dataclass(frozen=True, slots=True)
class Leg:
    """A way that a truck needs: from one node to another, for a stream."""

    robot_id: str
    start: int
    goal: int
    stream_id: str


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The first condition that fails, for the first truck and leg that shows it."""

    condition: str
    message: str
    remedy: str
    details: dict[str, Json]


@dataclass(frozen=True)
class Certificate:
    """`live` with what every truck keeps off, or the counterexample."""

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
        why = self.counterexample
        return {
            "live": self.live,
            "legs": self.legs,
            "trucks": trucks,
            "counterexample": None
            if why is None
            else {
                "condition": why.condition,
                "message": why.message,
                "remedy": why.remedy,
                "details": why.details,
            },
        }


@lru_cache(4)
def certified(
    site: CompiledMap, fleet: Fleet, profiles: tuple[RobotProfile, ...]
) -> tuple[Certificate | None, tuple[Finding, ...]]:
    """As `certify`, remembered: a fleet is made, opened and looked back at on one and the same map."""
    return certify(site, fleet, profiles)


def certify(
    site: CompiledMap, fleet: Fleet, profiles: Sequence[RobotProfile]
) -> tuple[Certificate | None, tuple[Finding, ...]]:
    """The certificate and the findings; no certificate where the fleet does not fit the map at all."""
    wrong = fleet_findings(site, fleet, profiles)
    if wrong:
        return None, tuple(wrong)
    by_id = {profile.profile_id: profile for profile in profiles}
    rests = rests_of(site, fleet, by_id)
    closed = closed_for_all(site, rests)
    legs = _legs(site, fleet)
    why = (
        _served_by_nobody(site, fleet)
        or _shared_rest(fleet)
        or _resting_side_by_side(site, rests)
        or _too_many_in_a_section(site, rests)
        or _missing_way(site, fleet, by_id, rests, closed, legs)
        or _too_short_sighted(site, fleet, by_id)
    )
    certificate = Certificate(why is None, closed, len(legs), why)
    findings = undeclared_dead_ends(site, fleet)
    if why is not None:
        details: dict[str, Json] = {"condition": why.condition, **why.details}
        findings.insert(0, finding(Code.MAP_NOT_LIVE, why.message, why.remedy, **details))
    return certificate, tuple(findings)


def _legs(site: CompiledMap, fleet: Fleet) -> list[Leg]:
    """Rest to pick, pick to drop and drop to rest, for every truck and every stream it serves; each once."""
    legs: dict[tuple[str, int, int], Leg] = {}
    number = site.node_number
    network_of = network_numbers(site.network)
    for truck in sorted(fleet.trucks, key=lambda one: one.robot_id):
        rest = number[truck.park_node_id]
        for stream in sorted(fleet.streams, key=lambda one: one.stream_id):
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


def _served_by_nobody(site: CompiledMap, fleet: Fleet) -> Counterexample | None:
    network_of = network_numbers(site.network)
    for stream in sorted(fleet.streams, key=lambda one: one.stream_id):
        if fleet.trucks and not any(serves(one, stream, site.node_number, network_of) for one in fleet.trucks):
            return Counterexample(
                "W2",
                f"no truck can serve stream {stream.stream_id!r}: none rests in the network of its stops",
                "add a truck there, or join the networks",
                {"streamId": stream.stream_id},
            )
    return None


def _shared_rest(fleet: Fleet) -> Counterexample | None:
    owner: dict[str, str] = {}
    for truck in sorted(fleet.trucks, key=lambda one: one.robot_id):
        first = owner.setdefault(truck.park_node_id, truck.robot_id)
        if first != truck.robot_id:
            return Counterexample(
                "W1",
                f"trucks {first!r} and {truck.robot_id!r} share the rest node {truck.park_node_id!r}",
                f"add a parking spur for {truck.robot_id}",
                {"robotIds": [first, truck.robot_id], "nodeId": truck.park_node_id},
            )
    return None


def _resting_side_by_side(site: CompiledMap, rests: Mapping[str, Rest]) -> Counterexample | None:
    """Two trucks whose standing sets exclude each other: the first pair, in the order of their ids."""
    standing = {robot: site.standing_set(rest.node, rest.short_um) for robot, rest in rests.items()}
    holders: dict[int, list[str]] = {}
    for robot, resources in standing.items():
        for resource in resources:
            holders.setdefault(resource, []).append(robot)
    for robot, resources in standing.items():
        around = {other for one in resources for near in site.blocking(one) for other in holders.get(near, ())}
        beside = min((other for other in around if other > robot), default=None)
        if beside is not None:
            return _apart(site, rests[robot], rests[beside])
    return None


def _apart(site: CompiledMap, one: Rest, other: Rest) -> Counterexample:
    names = [site.network.nodes[rest.node].id for rest in (one, other)]
    need = missing_distance_um(site, one, other)
    message = f"trucks cannot rest in {names[0]!r} and {names[1]!r} at the same time"
    details: dict[str, Json] = {"nodeIds": list(names)}
    if need is None:
        return Counterexample("W1", message, "let one of them rest in a dead end of its own, farther away", details)
    details["distanceM"] = plain(need)
    return Counterexample("W1", message, f"place them {plain(need)} m apart", details)


def _too_many_in_a_section(site: CompiledMap, rests: Mapping[str, Rest]) -> Counterexample | None:
    inside: dict[int, list[str]] = {}
    for robot, rest in rests.items():
        for section in kept_sections(site, rest):
            inside.setdefault(section, []).append(robot)
    for section, robots in sorted(inside.items()):
        one = site.sections[section]
        if len(robots) > one.capacity:
            raised = f"raise its capacity to {len(robots)}"
            if one.origin is Origin.GENERATED:
                raised = f"draw a critical section with capacity {len(robots)} over the dead end"
            return Counterexample(
                "W1",
                f"{len(robots)} trucks rest in section {one.id!r}, which holds {one.capacity}",
                f"{raised}, or let trucks rest elsewhere",
                {"criticalSectionId": one.id, "robotIds": list(robots)},
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
    missing: int | None = None
    # Goal by goal, so that the ways to one goal are all that is kept in memory; the first leg that fails is named.
    for _, group in groupby(sorted(enumerate(legs), key=_goal), key=_goal):
        for at, leg in group:
            if missing is None or at < missing:
                possible = _possible(planners[profile_of[leg.robot_id]], leg, closed[leg.robot_id])
                missing = missing if possible else at
        for planner in planners.values():
            planner.forget()
    if missing is None:
        return None
    leg = legs[missing]
    planner = planners[profile_of[leg.robot_id]]
    start, goal = (site.network.nodes[node].id for node in (leg.start, leg.goal))
    details: dict[str, Json] = {"robotId": leg.robot_id, "from": start, "to": goal, "streamId": leg.stream_id}
    if not _possible(planner, leg, Closed()):
        return Counterexample(
            "W2",
            f"truck {leg.robot_id!r} finds no way from {start!r} to {goal!r}",
            f"add an edge that leads to {goal}",
            details,
        )
    return _blocked_by_rest(site, planner, leg, rests, details)


def _goal(numbered: tuple[int, Leg]) -> int:
    return numbered[1].goal


def _possible(planner: Planner, leg: Leg, closed: Closed) -> bool:
    network = planner.site.network
    if network.nodes[leg.start].turning:
        return planner.cost_us(AtNode(leg.start), leg.goal, closed) is not None
    # Where nobody turns a truck leaves as it came: the way must go on from every way in.
    ways_in = [edge for edge in network.incoming[leg.start] if planner.usable(edge, closed)]
    return bool(ways_in) and all(planner.onward_us(edge, leg.goal, closed) is not None for edge in ways_in)


def _blocked_by_rest(
    site: CompiledMap, planner: Planner, leg: Leg, rests: Mapping[str, Rest], details: dict[str, Json]
) -> Counterexample:
    """Names the single truck at rest that closes the way, or all of them where only together they do."""
    others = [robot for robot in rests if robot != leg.robot_id]
    alone = [robot for robot in others if not _possible(planner, leg, closed_by(site, [rests[robot]]))]
    guilty = [rests[robot] for robot in alone[:1] or others]
    nodes = site.network.nodes
    names = [nodes[rest.node].id for rest in guilty]
    start, goal = nodes[leg.start].id, nodes[leg.goal].id
    message = f"truck {leg.robot_id!r} cannot go from {start!r} to {goal!r} while a truck rests in {', '.join(names)}"
    details = {**details, "restNodeIds": list(names)}
    if alone and guilty[0].node in (leg.start, leg.goal):
        remedy = f"let nobody rest in {names[0]}: it is a stop of stream {leg.stream_id}"
        return Counterexample("W1", message, remedy, details)
    need = missing_length_um(site, planner, leg.start, leg.goal, guilty[0]) if alone else None
    if need is None:
        home = home_of(site, guilty[0].node)
        at = nodes[guilty[0].node if home is None else home[2]].id
        return Counterexample("W1", message, f"add a parking spur at {at} and rest there", details)
    spur = site.network.groups[site.network.meeting[guilty[0].node][0]]
    whole = spur.length_um + need
    details = {**details, "missingM": plain(need), "spurM": plain(whole)}
    return Counterexample("W1", message, f"make the spur {spur.key} {plain(whole)} m long", details)


def _too_short_sighted(site: CompiledMap, fleet: Fleet, profiles: dict[str, RobotProfile]) -> Counterexample | None:
    for truck in sorted(fleet.trucks, key=lambda one: one.robot_id):
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
