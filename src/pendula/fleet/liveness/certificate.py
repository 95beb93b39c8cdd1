"""Whether a fleet can run on a map without ever standing still for good: the map conditions W1 to W3, with a
certificate or the smallest counterexample and its remedy. (W4 is about the state a run starts from.)

The standing set of a truck at rest is its turning zone, the last cell of each way in, and the section of its spur.
No other truck may use an edge that conflicts with it, nor stop or turn in a node whose zone does.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pendula.fleet.exclusion.critical_sections import EXIT_CLEARANCE_UM, dead_end, other_end
from pendula.fleet.liveness.clearance import missing_distance_um, missing_length_um
from pendula.fleet.model import Code, Finding, Fleet, Truck, finding
from pendula.fleet.routing.planner import AtNode, Closed, Planner, Way
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.envelope import stop_distance_um
from pendula.fleet.trucks.profiles import RobotProfile, hash_of
from pendula.fleet.units import MILLION, ceil_div, plain
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal

# A truck has arrived when it stands this close to its node (`arriveTolM`).
ARRIVE_TOL_UM = 100_000


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
    seen: set[str] = set()
    for truck in fleet.trucks:
        if truck.robot_id in seen:
            message = f"there are two trucks {truck.robot_id!r}"
            findings.append(finding(Code.DUPLICATE_ID, message, "rename one", id=truck.robot_id))
        seen.add(truck.robot_id)
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


def undeclared_dead_ends(site: CompiledMap, fleet: Fleet) -> list[Finding]:
    """Picks and drops in dead ends of which the map does not know that trucks stop there: without a section nothing
    keeps a second truck from following the first one in."""
    network = site.network
    guarded = {member.group for section in site.sections for member in section.members}
    asked = {
        site.node_number[name]
        for stream in fleet.streams
        for name in (*stream.pick_node_ids, *stream.drop_node_ids)
        if name in site.node_number
    }
    return [
        finding(
            Code.DEAD_END_WITHOUT_TOKEN,
            f"trucks load or unload in the dead end to {network.nodes[node].id!r}, which has no section",
            "declare it under stations",
            nodeId=network.nodes[node].id,
        )
        for node in sorted(asked)
        if _is_dead_end(site, node) and network.meeting[node][0] not in guarded
    ]


def _is_dead_end(site: CompiledMap, node: int) -> bool:
    """Whether trucks come in and go out by the same lane."""
    network = site.network
    return network.degree(node) == 1 and bool(network.incoming[node] and network.outgoing[node])


def certify(
    site: CompiledMap, fleet: Fleet, profiles: Sequence[RobotProfile]
) -> tuple[Certificate | None, tuple[Finding, ...]]:
    """The certificate and the findings; no certificate where the fleet does not fit the map at all."""
    wrong = fleet_findings(site, fleet, profiles)
    if wrong:
        return None, tuple(wrong)
    by_id = {profile.profile_id: profile for profile in profiles}
    rests = {truck.robot_id: site.node_number[truck.park_node_id] for truck in fleet.trucks}
    closed = {truck.robot_id: closed_for(site, truck, fleet, by_id) for truck in fleet.trucks}
    legs = _legs(site, fleet)
    why = (
        _shared_rest(fleet)
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


def short_um(profile: RobotProfile) -> int:
    """How far before its rest node the release bound of a truck at rest may lie."""
    return profile.localization_error.value_um + ARRIVE_TOL_UM


def closed_for(site: CompiledMap, truck: Truck, fleet: Fleet, profiles: Mapping[str, RobotProfile]) -> Closed:
    """What a truck keeps off so that all others can rest."""
    return closed_by(
        site,
        *(
            (site.node_number[other.park_node_id], short_um(profiles[other.profile_id]))
            for other in fleet.trucks
            if other.robot_id != truck.robot_id
        ),
    )


def closed_by(site: CompiledMap, *rests: tuple[int, int]) -> Closed:
    """What trucks at rest, each in a node and with what its release bound lacks, close to all others. A section is
    closed when as many rest in it as it holds."""
    count = len(site.cells)
    related: set[int] = set()
    inside: Counter[int] = Counter()
    for rest, short in rests:
        standing = site.standing_set(rest, short)
        cells = [one for one in standing if one < count]
        for resource in standing:
            related.update(site.conflicts.members(resource))
        for cell in cells:
            related.update(site.following.members(cell))
        inside.update({section for cell in cells for section in site.sections_of_cell.get(cell, ())})
    for section, taken in inside.items():
        if taken >= site.sections[section].capacity:
            related.update(cell for low, high in site.sections[section].cells for cell in range(low, high + 1))
    edges = frozenset(int(site.cells.edge[one]) for one in related if one < count)
    return Closed(edges, frozenset(one - count for one in related if one >= count))


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
        own = site.standing_set(rests[robot])
        for other in robots[place + 1 :]:
            if any(site.conflicts.holds(a, b) for a in own for b in site.standing_set(rests[other])):
                names = [site.network.nodes[rests[one]].id for one in (robot, other)]
                need = missing_distance_um(site)
                return Counterexample(
                    "W1",
                    f"trucks cannot rest in {names[0]!r} and {names[1]!r} at the same time",
                    f"place them {plain(need)} m apart",
                    {"nodeIds": names, "distanceM": plain(need)},
                )
    return None


def _too_many_in_a_section(site: CompiledMap, rests: dict[str, int]) -> Counterexample | None:
    inside: dict[int, list[str]] = {}
    for robot in sorted(rests):
        cells = (one for one in site.standing_set(rests[robot]) if one < len(site.cells))
        for section in sorted({number for cell in cells for number in site.sections_of_cell.get(cell, ())}):
            inside.setdefault(section, []).append(robot)
    for section, robots in sorted(inside.items()):
        one = site.sections[section]
        if len(robots) > one.capacity:
            return Counterexample(
                "W1",
                f"{len(robots)} trucks rest in section {one.id!r}, which holds {one.capacity}",
                f"raise its capacity to {len(robots)}, or let trucks rest elsewhere",
                {"criticalSectionId": one.id, "robotIds": list(robots)},
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
        way = _way(planner, leg, closed[leg.robot_id])
        if way is not None:
            stuck = _no_exit(site, leg, way)
            if stuck is not None:
                return stuck
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
        short = {truck.robot_id: short_um(profiles[truck.profile_id]) for truck in fleet.trucks}
        return _blocked_by_rest(site, planner, leg, rests, short, details)
    return None


def _way(planner: Planner, leg: Leg, closed: Closed) -> Way | None:
    way = planner.way(AtNode(leg.start), leg.goal, closed)
    return None if isinstance(way, Refusal) else way


def _possible(planner: Planner, leg: Leg, closed: Closed) -> bool:
    return _way(planner, leg, closed) is not None


def _no_exit(site: CompiledMap, leg: Leg, way: Way) -> Counterexample | None:
    """A section on the way that the truck could enter but not clear before it stops at the goal."""
    begin = 0
    ends: dict[int, int] = {}
    for edge in way.edges:
        for cell in site.cells.of_edge(edge):
            for section in site.sections_of_cell.get(cell, ()):
                ends[section] = begin + int(site.cells.s1[cell])
        begin += site.network.edges[edge].path.length_um
    trail = site.envelope.trail_um(site.network.edges[way.edges[-1]].style)
    for section, end in sorted(ends.items()):
        lacks = end + trail + EXIT_CLEARANCE_UM - begin
        # A goal inside the section keeps the token; one right behind it leaves the tail inside for ever.
        if end < begin and lacks > 0:
            start, goal = (site.network.nodes[node].id for node in (leg.start, leg.goal))
            name = site.sections[section].id
            return Counterexample(
                "W2",
                f"truck {leg.robot_id!r} cannot clear section {name!r} before it stops in {goal!r}",
                f"move {goal} {plain(lacks)} m away, or let the section cover it",
                {"robotId": leg.robot_id, "from": start, "to": goal, "criticalSectionId": name},
            )
    return None


def _blocked_by_rest(
    site: CompiledMap,
    planner: Planner,
    leg: Leg,
    rests: dict[str, int],
    short: dict[str, int],
    details: dict[str, Json],
) -> Counterexample:
    """Names the single truck at rest that closes the way, or all of them where only together they do."""
    others = [robot for robot in sorted(rests) if robot != leg.robot_id]
    alone = [robot for robot in others if not _possible(planner, leg, closed_by(site, (rests[robot], short[robot])))]
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
