"""Start of a fleet: trucks in their rest nodes or elsewhere, and whether that state is safe (W4)."""

from collections.abc import Mapping

from pendula.fleet.driving.params import TrafficParams, asked_um, short_um
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.track import track_of
from pendula.fleet.driving.uses import Ground
from pendula.fleet.health.held_places import held_at, held_in_node
from pendula.fleet.routing.planner import Anchor, AtNode, Closed, Planner
from pendula.fleet.routing.route_plan import RoutePlan, plan_route
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.traffic.demand import Demand
from pendula.fleet.traffic.grants import Accepted, Effort, Rule, accept_route
from pendula.fleet.traffic.lock_state import LockState
from pendula.fleet.trucks.profiles import RobotProfile

# Checked once, so the search may be long.
_NODES = 3_000


def record_of(
    site: CompiledMap, number: int, profile: RobotProfile, robot_id: str, park_node_id: str, params: TrafficParams
) -> Record:
    """The record of a truck before its first report: it stands in its rest node."""
    rest = site.node_number[park_node_id]
    return Record(
        site=site,
        number=number,
        robot_id=robot_id,
        profile=profile,
        rest=rest,
        short_um=short_um(profile, params),
        node=rest,
        asked_um=asked_um(profile, params),
    )


def place_all(
    records: list[Record],
    locks: LockState,
    starts: Mapping[str, Anchor],
    closed: Mapping[str, Closed],
    ground: Ground,
    rule: Rule,
) -> list[str]:
    """Place every truck at its start, with a route to rest. Returns a sentence for each that cannot be placed."""
    faults = []
    # Trucks at rest block no other truck: they come first, so that the others are checked against all of them.
    for record in sorted(records, key=lambda record: (record.robot_id in starts, record.robot_id)):
        start = starts.get(record.robot_id)
        fault = (
            _at_rest(record, locks, rule)
            if start is None or start == AtNode(record.rest)
            else _elsewhere(record, locks, start, closed[record.robot_id], ground, rule)
        )
        if fault is not None:
            faults.append(fault if isinstance(fault, str) else _in_the_way(record, records, fault))
    return faults


def _in_the_way(record: Record, records: list[Record], cycle: tuple[int, ...]) -> str:
    """The sentence for a truck that would close a cycle at its start."""
    others = ", ".join(repr(records[number].robot_id) for number in cycle if number != record.number)
    because = f", because of {others}" if others else ""
    return f"W4: truck {record.robot_id!r} cannot start where it stands{because}"


def _at_rest(record: Record, locks: LockState, rule: Rule) -> tuple[int, ...] | None:
    record.held = held_in_node(record, record.rest)
    row = sorted(record.held)
    return _placed(record, locks, Demand.of_rows([row], [row]), rule)


def _elsewhere(
    record: Record, locks: LockState, start: Anchor, closed: Closed, ground: Ground, rule: Rule
) -> str | tuple[int, ...] | None:
    planner = Planner(ground.site, record.profile)
    plan = plan_route(
        planner,
        record.robot_id,
        f"{record.robot_id}-start",
        start,
        (record.rest,),
        record.rest,
        reason="START",
        closed=closed,
    )
    if not isinstance(plan, RoutePlan):
        return f"W4: truck {record.robot_id!r} has no route to rest from its start"
    if isinstance(start, AtNode):
        record.node = start.node
    record.held = held_at(record, ground, plan)
    # The plan is in force from the first tick; until then it stands.
    track = track_of(ground, plan, record.short_um, plan.start_um, record.held)
    fault = _placed(record, locks, track.demand, rule)
    record.track = track
    record.at_um = record.hold_um = record.farthest_um = record.target_um = plan.start_um
    record.bound_um = plan.start_um - record.short_um
    return fault


def _placed(record: Record, locks: LockState, demand: Demand, rule: Rule) -> tuple[int, ...] | None:
    """None, or the cycle that the truck would close."""
    effort = Effort(per_search=_NODES)
    answer = accept_route(locks, record.number, demand, 0, rule=rule, effort=effort)
    return None if isinstance(answer, Accepted) else answer.cycle
