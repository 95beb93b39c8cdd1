"""Whether a fleet can run on a map without ever standing still for good: the map conditions W1 to W3, with a
certificate or the smallest counterexample and its remedy. (W4 is about the state a run starts from.)

The standing set of a truck at rest is its turning zone, the last cell of each way in, and the section of its spur.
No other truck may use an edge that conflicts with it, nor stop or turn in a node whose zone does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pendula.fleet.clearance import missing_distance_um, missing_length_um
from pendula.fleet.compiled import CompiledMap
from pendula.fleet.envelope import stop_distance_um
from pendula.fleet.model import Code, Finding, Fleet, Truck, finding
from pendula.fleet.planner import AtNode, Closed, Planner
from pendula.fleet.profiles import RobotProfile, hash_of
from pendula.fleet.sections import dead_end, other_end
from pendula.fleet.units import MILLION, ceil_div, plain
from pendula.fleet.validation import standing_set
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal


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


def fleet_findings(site: CompiledMap, fleet: Fleet, profiles: Sequence[RobotProfile]) -> list[Finding]:
    """What makes a fleet not fit a map before any condition is looked at."""
    known = site.node_number
    findings = []
    if hash_of(profiles) != site.profile_hash:
        message = "the map was compiled for other truck profiles"
        findings.append(finding(Code.PROFILE_HASH_MISMATCH, message, "compile it again", expected=site.profile_hash))
    names = {profile.profile_id for profile in profiles}
    for truck in fleet.trucks:
        if truck.profile_id not in names:
            message = f"truck {truck.robot_id!r} has the unknown profile {truck.profile_id!r}"
            findings.append(finding(Code.PROFILE_MISSING_FIELD, message, "add the profile", robotId=truck.robot_id))
        if truck.park_node_id not in known:
            message = f"the rest node {truck.park_node_id!r} of truck {truck.robot_id!r} is not a node"
            findings.append(
                finding(Code.MISSING_PARKING_NODE, message, "name an existing node", robotId=truck.robot_id)
            )
    for stream in fleet.streams:
        for name in (*stream.pick_node_ids, *stream.drop_node_ids):
            if name not in known:
                message = f"stream {stream.stream_id!r} names {name!r}, which is not a node"
                findings.append(finding(Code.MISSING_PICK_DROP_NODE, message, "name an existing node", nodeId=name))
    return findings


def certify(
    site: CompiledMap, fleet: Fleet, profiles: Sequence[RobotProfile]
) -> tuple[Certificate | None, tuple[Finding, ...]]:
    """The certificate and the findings; no certificate where the fleet does not fit the map at all."""
    wrong = fleet_findings(site, fleet, profiles)
    if wrong:
        return None, tuple(wrong)
    by_id = {profile.profile_id: profile for profile in profiles}
    rests = {truck.robot_id: site.node_number[truck.park_node_id] for truck in fleet.trucks}
    closed = {truck.robot_id: closed_for(site, truck, fleet) for truck in fleet.trucks}
    legs = _legs(site, fleet)
    why = (
        _shared_rest(fleet)
        or _resting_side_by_side(site, rests)
        or _missing_way(site, fleet, by_id, rests, closed, legs)
        or _too_short_sighted(site, fleet, by_id)
    )
    certificate = Certificate(why is None, closed, len(legs), why)
    if why is None:
        return certificate, ()
    details: dict[str, Json] = {"condition": why.condition, **why.details}
    return certificate, (finding(Code.MAP_NOT_LIVE, why.message, why.remedy, **details),)


def closed_for(site: CompiledMap, truck: Truck, fleet: Fleet) -> Closed:
    """What a truck keeps off so that all others can rest."""
    edges: set[int] = set()
    turns: set[int] = set()
    for other in fleet.trucks:
        if other.park_node_id != truck.park_node_id:
            shut = closed_by(site, site.node_number[other.park_node_id])
            edges |= shut.edges
            turns |= shut.turns
    return Closed(frozenset(edges), frozenset(turns))


def closed_by(site: CompiledMap, rest: int) -> Closed:
    """What a truck at rest in a node closes to all others."""
    count = len(site.cells)
    edges: set[int] = set()
    turns: set[int] = set()
    for resource in standing_set(site, rest):
        related = site.conflicts.members(resource)
        if resource < count:
            related += site.following.members(resource)
            for section in site.sections_of_cell.get(resource, ()):
                for low, high in site.sections[section].cells:
                    related += range(low, high + 1)
        for one in related:
            if one < count:
                edges.add(int(site.cells.edge[one]))
            else:
                turns.add(one - count)
    return Closed(frozenset(edges), frozenset(turns))


def _legs(site: CompiledMap, fleet: Fleet) -> list[Leg]:
    """Rest to pick, pick to drop and drop to rest, for every truck and stream; each once."""
    legs: dict[tuple[str, int, int], Leg] = {}
    number = site.node_number
    for truck in sorted(fleet.trucks, key=lambda one: one.robot_id):
        rest = number[truck.park_node_id]
        for stream in sorted(fleet.streams, key=lambda one: one.stream_id):
            picks = [number[name] for name in stream.pick_node_ids]
            drops = [number[name] for name in stream.drop_node_ids]
            pairs = [(rest, pick) for pick in picks]
            pairs += [(pick, drop) for pick in picks for drop in drops]
            pairs += [(drop, rest) for drop in drops]
            for start, goal in pairs:
                if start != goal:
                    legs.setdefault((truck.robot_id, start, goal), Leg(truck.robot_id, start, goal, stream.stream_id))
    return list(legs.values())


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


def _resting_side_by_side(site: CompiledMap, rests: dict[str, int]) -> Counterexample | None:
    robots = sorted(rests)
    for place, robot in enumerate(robots):
        own = standing_set(site, rests[robot])
        for other in robots[place + 1 :]:
            if any(site.conflicts.holds(a, b) for a in own for b in standing_set(site, rests[other])):
                names = [site.network.nodes[rests[one]].id for one in (robot, other)]
                need = missing_distance_um(site)
                return Counterexample(
                    "W1",
                    f"trucks cannot rest in {names[0]!r} and {names[1]!r} at the same time",
                    f"place them {plain(need)} m apart",
                    {"nodeIds": names, "distanceM": plain(need)},
                )
    return None


def _missing_way(
    site: CompiledMap,
    fleet: Fleet,
    profiles: dict[str, RobotProfile],
    rests: dict[str, int],
    closed: dict[str, Closed],
    legs: list[Leg],
) -> Counterexample | None:
    planners = {name: Planner(site, profile) for name, profile in profiles.items()}
    profile_of = {truck.robot_id: truck.profile_id for truck in fleet.trucks}
    for leg in legs:
        planner = planners[profile_of[leg.robot_id]]
        if _possible(planner, leg, closed[leg.robot_id]):
            continue
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
    return None


def _possible(planner: Planner, leg: Leg, closed: Closed) -> bool:
    if leg.goal in closed.turns:
        return False
    return not isinstance(planner.way(AtNode(leg.start), leg.goal, closed), Refusal)


def _blocked_by_rest(
    site: CompiledMap, planner: Planner, leg: Leg, rests: dict[str, int], details: dict[str, Json]
) -> Counterexample:
    """Names the single truck at rest that closes the way, or all of them where only together they do."""
    others = [robot for robot in sorted(rests) if robot != leg.robot_id]
    alone = [robot for robot in others if not _possible(planner, leg, closed_by(site, rests[robot]))]
    guilty = alone[:1] or others
    nodes = site.network.nodes
    names = [nodes[rests[robot]].id for robot in guilty]
    start, goal = nodes[leg.start].id, nodes[leg.goal].id
    message = f"truck {leg.robot_id!r} cannot go from {start!r} to {goal!r} while a truck rests in {', '.join(names)}"
    details = {**details, "restNodeIds": names}
    need = missing_length_um(site, planner, leg.start, leg.goal, rests[guilty[0]]) if alone else None
    if need is None:
        at = nodes[_mouth(site, rests[guilty[0]])].id
        return Counterexample("W1", message, f"add a parking spur at {at} and rest there", details)
    spur = site.network.groups[site.network.meeting[rests[guilty[0]]][0]]
    whole = spur.length_um + need
    details = {**details, "missingM": plain(need), "spurM": plain(whole)}
    return Counterexample("W1", message, f"make the spur {spur.key} {plain(whole)} m long", details)


def _mouth(site: CompiledMap, rest: int) -> int:
    """Where the dead end of a rest node begins; the node itself where it is on a way through."""
    network, node = site.network, rest
    if network.degree(rest) == 1:
        for group in dead_end(network, rest):
            node = other_end(network, group, node)
    return node


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
