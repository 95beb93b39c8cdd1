"""Why a truck stands: reason codes, resource ids as operators know them, and the chain of blockers to its root."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
from msgspec import UNSET, Struct

from pendula.fleet.contracts import Alert, HoldReason, Phase
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.sentences import beside_line_sentence, roll_back_sentence
from pendula.fleet.tick.records import NOWHERE_UM, Record, Rejoin, Stop, Waiting, hold_of
from pendula.fleet.traffic.lock_state import Closing, Exclusion, LockState
from pendula.fleet.traffic.refuge import cycle_of
from pendula.kernel.canonical import Json

# What a waiting truck waits for: its blocker, what that holds against it, and its queue.
# Computed from the records of one tick, so that the answer agrees with its locks: a blocker holds what is named.


class Held(Struct, frozen=True):
    """A blocking truck, and the resource it holds against another one."""

    by: Record
    resource: int


def shown_of(record: Record) -> frozenset[int]:
    """Everything a truck closes to others, as in the snapshot: a lost one also covers its reported position."""
    extra = () if record.doubt is None else record.doubt.extra
    return frozenset((*record.keeps, *extra))


def blocker_of(record: Record) -> int | None:
    """The blocker of a truck; None for a truck that stands for a reason of its own."""
    if record.stop_code in (Stop.FOREIGN_OCCUPANCY, Stop.OCCUPANCY_CONFLICT):
        return record.foreign
    if record.stop_code is not None and record.stop_code != Stop.SAFE_STATE:
        return None
    return None if record.waiting is None else record.waiting.by


def held_against(record: Record, records: Sequence[Record]) -> Held | None:
    """What the blocker of a truck holds against its next unit; None for a truck without a blocker."""
    number = blocker_of(record)
    if number is None:
        return None
    other = records[number]
    shown = shown_of(other)
    waiting = record.waiting
    if record.stop_code is None and waiting is not None and waiting.theirs in shown:
        return Held(other, waiting.theirs)
    exclusion = Exclusion.of_site(record.site)
    resource = _first_excluded(record, shown, exclusion)
    return None if resource is None else Held(other, resource)


def _first_excluded(record: Record, shown: frozenset[int], exclusion: Exclusion) -> int | None:
    """The first resource of the blocker that excludes what a truck is in or needs on its route; otherwise a resource
    that the blocker stands on."""
    held = np.array(sorted(shown), dtype=np.int64)
    if not len(held):
        return None
    around = exclusion.around(held)
    if record.stop_code is not None:
        own = np.array(record.keeps, dtype=np.int64)
    else:
        own = np.zeros(0, dtype=np.int64)
    track = record.track
    if track is not None:
        used = track.used
        own = np.concatenate([own, used.resource[used.need_um >= record.grant_um]])
    met = np.flatnonzero(np.isin(own, around))
    if not len(met):
        return int(held[0])
    row: list[int] = exclusion.row(int(own[met[0]])).tolist()
    return next(resource for resource in row if resource in shown)


def queue_of(record: Record, records: Sequence[Record]) -> int | None:
    """The resource in whose queue a truck waits: what its blocker holds. A truck that may not overtake a waiting one is
    behind it in the same queue. None without a blocker."""
    seen = {record.number}
    at = record
    while at.waiting is not None and at.waiting.code == _QUEUE_ORDER and at.stop_code is None:
        by = at.waiting.by
        if by is None or by in seen or records[by].waiting is None or records[by].stop_code is not None:
            break
        seen.add(by)
        at = records[by]
    held = held_against(at, records)
    return None if held is None else held.resource


_QUEUE_ORDER = "WAIT_QUEUE_ORDER"
WAIT_EDGE_DIRECTION = "WAIT_EDGE_DIRECTION"
WAIT_SPACING = "WAIT_SPACING"
WAIT_CONFLICT = "WAIT_CONFLICT"
WAIT_NODE = "WAIT_NODE"
WAIT_CRITICAL_SECTION = "WAIT_CRITICAL_SECTION"
WAIT_EXIT_ROOM = "WAIT_EXIT_ROOM"
WAIT_QUEUE_ORDER = "WAIT_QUEUE_ORDER"
WAIT_ACK = "WAIT_ACK"
WAIT_SAFE_STATE = "WAIT_SAFE_STATE"
WAIT_CLOSED = "WAIT_CLOSED"
# Codes with which a truck with a route may wait.
WAITS = (
    *(WAIT_EDGE_DIRECTION, WAIT_SPACING, WAIT_CONFLICT, WAIT_NODE, WAIT_CRITICAL_SECTION, WAIT_EXIT_ROOM),
    *(WAIT_QUEUE_ORDER, WAIT_ACK, WAIT_SAFE_STATE, WAIT_CLOSED),
)
IDLE_NO_TASK = "IDLE_NO_TASK"
GOING_TO_PARK = "GOING_TO_PARK"


class Unheard(Enum):
    """Since when an awaited truck has not reported."""

    EVER = auto()
    THE_RESTART = auto()


@dataclass(frozen=True, slots=True)
class Reason:
    """The answer to "why does truck X stand?". `chain`: each truck waits for the next, the last for none or for one of
    the chain; `cycle`: what the grant or the route would have closed; `unheard`: None for a truck that has reported."""

    robot_id: str
    hold_reason: HoldReason
    code: str | None
    blocker: str | None
    # What the blocker holds.
    resource: str | None
    queue_position: int | None
    wait_ms: int
    chain: tuple[str, ...]
    cycle: tuple[str, ...]
    unheard: Unheard | None = None
    # For a cut-off truck: the code of the truck that blocks its only route.
    cut_off_by: str | None = None
    # Whether a stuck truck had to turn, whether it can turn, and whether a stopped one drives on.
    turning: bool = False
    turns: bool = True
    defiant: bool = False
    # Whether an operator has freed its place: it is no longer where it was.
    removed: bool = False
    # Whether it has since reported a position, which is kept for it.
    covers: bool = False
    # Whether an operator has cleared its overrun while it still stands for it.
    cleared: bool = False
    # Whether a truck beside its line drives back, or what has to move before it can.
    rejoins: bool = False
    must_move: str | None = None
    # Whether an operator relocated it since its position came in doubt, and does not pause it.
    placed: bool = False
    # What it requested.
    requested: str | None = None
    # The closed place before it.
    closing: Closing | None = None


def resource_id(site: CompiledMap, resource: int) -> str:
    """A resource by the name of its kind: cells by their edge group."""
    cells = len(site.cells)
    if resource < cells:
        return f"EDGE_GROUP:{site.network.edges[int(site.cells.edge[resource])].group_key}"
    return site.resource_name(resource)


def held_code(site: CompiledMap, mine: int, theirs: int, beyond_section: bool) -> str:
    """The code of a blocked unit, from the requested resource and the one held against it."""
    cells = len(site.cells)
    nodes = cells + len(site.network.nodes)
    if mine >= nodes:
        return WAIT_CRITICAL_SECTION
    if beyond_section:
        return WAIT_EXIT_ROOM
    if mine >= cells or theirs >= cells:
        return WAIT_NODE
    a, b = int(site.cells.edge[mine]), int(site.cells.edge[theirs])
    group_of, edges = site.network.group_of, site.network.edges
    if group_of[a] == group_of[b]:
        same = edges[a].forward_on_axis == edges[b].forward_on_axis
        return WAIT_SPACING if same else WAIT_EDGE_DIRECTION
    return WAIT_SPACING if site.following.holds(mine, theirs) else WAIT_CONFLICT


def in_the_way(
    locks: LockState, records: list[Record], record: Record, holders: Sequence[tuple[int, int]]
) -> Waiting | None:
    """What blocks the next unit of a truck: of several holders (resource and truck) the nearest along its route, then
    by resource id, then by robot id."""
    track, site = record.track, record.site
    assert track is not None
    unit = track.taken(track.stands[record.granted], track.stands[record.granted + 1])
    resources = {resource for resource, _ in holders}
    first = min(
        (use for use in unit if use.resource in resources),
        key=lambda use: (use.need_um, resource_id(site, use.resource)),
        default=None,
    )
    if first is None:
        return None
    mine = first.resource
    by = min((j for resource, j in holders if resource == mine), key=lambda j: records[j].robot_id)
    theirs, tokens = against(locks, by, mine), site.token(0)
    beyond = any(_end_um(site, record, use.resource) <= first.need_um for use in unit if use.resource >= tokens)
    return Waiting(held_code(site, mine, theirs, beyond), mine, by, theirs)


def against(locks: LockState, j: int, resource: int) -> int:
    """The smallest resource of truck j that excludes a resource."""
    held = locks.truck(j).held - locks.truck(j).reaches
    return next((other for other in locks.exclusion.row(resource).tolist() if other in held), resource)


def hold_reason(record: Record) -> HoldReason:
    if record.stop_code is not None:
        return hold_of(record.stop_code)
    return HoldReason.NONE if record.waiting is None else HoldReason.TRAFFIC_HOLD


def code_of(record: Record) -> str | None:
    """The code that says most about why a truck stands or where it goes; None if it just drives its task."""
    if record.stop_code is not None:
        return record.stop_code
    if record.waiting is not None:
        return record.waiting.code
    if record.pending is not None and record.refused_cycle:
        return WAIT_SAFE_STATE
    if record.phase is Phase.TO_PARK:
        return GOING_TO_PARK
    return IDLE_NO_TASK if record.phase is Phase.IDLE else None


def stands_for(record: Record) -> str | None:
    """The code with which a truck stops, or else waits; None for a truck that may drive or has no route. Each tick with
    it counts as one period of standing."""
    return None if record.stop_code is None and record.waiting is None else code_of(record)


def why(
    record: Record, records: list[Record], now_ms: int, place: int | None, closing: Closing | None = None
) -> Reason:
    """Why a truck stands, with the chain of blockers to its root."""
    waiting = record.waiting
    cycle = waiting.cycle if waiting is not None and waiting.cycle else record.refused_cycle
    chain = [record.number]
    last = record
    while (following := blocker_of(last)) is not None:
        last = records[following]
        if last.number in chain:
            break
        chain.append(last.number)
    since = record.stands_since_ms
    against = held_against(record, records)
    return Reason(
        robot_id=record.robot_id,
        hold_reason=hold_reason(record),
        code=code_of(record),
        blocker=None if (by := blocker_of(record)) is None else records[by].robot_id,
        resource=None if against is None else resource_id(record.site, against.resource),
        queue_position=place,
        wait_ms=0 if since is None else now_ms - since,
        chain=tuple(records[number].robot_id for number in chain),
        cycle=tuple(records[number].robot_id for number in cycle),
        unheard=_unheard(record),
        cut_off_by=_cut_off_by(record, records),
        turning=record.stuck_at == "TURN",
        turns="turnInPlace" in record.profile.capabilities,
        defiant=record.defiant,
        removed=record.doubt is not None and record.doubt.low_um >= NOWHERE_UM,
        covers=record.doubt is not None and bool(record.doubt.extra),
        cleared=record.stop_code == Stop.OVERRUN and record.latched is None,
        rejoins=record.rejoin_um is not None,
        must_move=_must_move(record, records),
        placed=record.doubt is not None and record.doubt.confirmed and not record.paused,
        requested=requested_id(record),
        closing=closing,
    )


def line_facts(record: Record, back: Rejoin, holders: Sequence[Record]) -> dict[str, Json]:
    """Where a truck beside its line is, and the trucks in its way back to it, each with what it holds."""
    site = record.site
    blockers: list[Json] = [
        [holder.robot_id, resource_id(site, resource)]
        for holder, (_, resource) in zip(holders, back.blockers, strict=True)
    ]
    return {
        "robotId": record.robot_id,
        "asideUm": back.aside_um,
        "onUm": back.on_um,
        "edgeKey": site.network.edges[back.edge].key,
        "blockers": blockers,
    }


def _roll_back_sentence(lost: Record, other: Record) -> str | None:
    """What to do about a truck that has passed its stop line and stands in what another one still needs."""
    doubt, site = lost.doubt, lost.site
    if doubt is None or doubt.code != Stop.OVERRUN:
        return None
    covered = [resource for resource in sorted(doubt.extra) if resource in other.held and resource < site.token(0)]
    facts: dict[str, Json] = {
        "robotId": lost.robot_id,
        "other": other.robot_id,
        "faulty": lost.latched is not None,
        "beyondUm": doubt.beyond_um,
        "resource": resource_id(site, covered[-1]) if covered else None,
    }
    return roll_back_sentence(facts) or None


def _must_move(record: Record, records: Sequence[Record]) -> str | None:
    if record.stop_code == Stop.FOREIGN_OCCUPANCY and record.foreign is not None:
        return _roll_back_sentence(records[record.foreign], record)
    if record.stop_code == Stop.OVERRUN:
        stopped = (
            other for other in records if other.stop_code == Stop.FOREIGN_OCCUPANCY and other.foreign == record.number
        )
        return next((_roll_back_sentence(record, other) for other in stopped), None)
    back = None if record.doubt is None else record.doubt.rejoin
    if back is None or back.target_um is not None:
        return None
    return beside_line_sentence(line_facts(record, back, [records[number] for number, _ in back.blockers]))


def requested_id(record: Record) -> str | None:
    """What a waiting truck requested and did not get, by its name; None while it is stopped."""
    waiting = record.waiting
    if waiting is None or waiting.resource is None or record.stop_code not in (None, Stop.SAFE_STATE):
        return None
    return resource_id(record.site, waiting.resource)


def _unheard(record: Record) -> Unheard | None:
    if record.pose is None:
        return Unheard.EVER
    return Unheard.THE_RESTART if record.unheard else None


def _cut_off_by(record: Record, records: list[Record]) -> str | None:
    """A refusal as unsafe has a cycle; a truck that waits until all have reported is blocked by none."""
    waiting = record.waiting
    if code_of(record) != WAIT_SAFE_STATE or waiting is None or waiting.cycle or waiting.resource is None:
        return None
    return None if waiting.by is None else code_of(records[waiting.by])


def _end_um(site: CompiledMap, record: Record, token: int) -> int:
    """Where on the route of a truck the section of a token ends."""
    assert record.track is not None
    section = token - site.token(0)
    start = record.grant_um
    inside = [
        use.free_um
        for use in record.track.taken(start, record.track.stands[record.granted + 1])
        if section in site.sections_of_cell.get(use.resource, ())
    ]
    return max(inside, default=start)


# Alerts of a tick: deadlocks, refused routes, failed trucks and those that they cut off.
# Without a failed truck there must be no deadlock alert (FLT-LIVE-6); the refuge rule ensures this.

DEADLOCK_SUSPECTED = "DEADLOCK_SUSPECTED"
DEADLOCK_CONFIRMED = "DEADLOCK_CONFIRMED"
ROUTE_REFUSED = "ROUTE_REFUSED"
ROBOT_OFFLINE = "ROBOT_OFFLINE"
ROBOT_FAULT = "ROBOT_FAULT"
SAFETY_STOP = "SAFETY_STOP"
POSE_JUMP = "POSE_JUMP"
OFF_ROUTE = "OFF_ROUTE"
HOLDPOINT_OVERRUN = "HOLDPOINT_OVERRUN"
FOREIGN_OCCUPANCY = "FOREIGN_OCCUPANCY"
OCCUPANCY_CONFLICT = "OCCUPANCY_CONFLICT"
ROBOT_SET_ASIDE = "ROBOT_SET_ASIDE"
NO_COMMS = "NO_COMMS"
# A truck drives on despite a stop command.
STOP_IGNORED = "STOP_IGNORED"
# A truck waits for the same truck: first a notice, later an alert. Notices are not in the list of alerts.
WAIT_NOTICE = "WAIT_NOTICE"
WAIT_TOO_LONG = "WAIT_TOO_LONG"
# Alert codes of failed trucks, by the code with which they stand.
FAILURE: Mapping[str, str] = {
    Stop.ROBOT_FAULT: ROBOT_FAULT,
    Stop.STUCK: ROBOT_FAULT,
    Stop.OFFLINE: ROBOT_OFFLINE,
    Stop.OVERRUN: HOLDPOINT_OVERRUN,
    Stop.POSE_JUMP: POSE_JUMP,
    Stop.OFF_ROUTE: OFF_ROUTE,
    # An operator has freed what it held: it is no longer where it was.
    Stop.OPERATOR: ROBOT_SET_ASIDE,
}
ALERTS = (
    *(DEADLOCK_SUSPECTED, DEADLOCK_CONFIRMED, ROUTE_REFUSED, ROBOT_OFFLINE, ROBOT_FAULT, SAFETY_STOP),
    *(POSE_JUMP, OFF_ROUTE, HOLDPOINT_OVERRUN, FOREIGN_OCCUPANCY, OCCUPANCY_CONFLICT, ROBOT_SET_ASIDE, NO_COMMS),
    *(STOP_IGNORED, WAIT_NOTICE, WAIT_TOO_LONG),
)
# A truck this close to the end of its grant is blocked; farther off it still drives or turns, and frees what is behind
# it. Contains the hysteresis of hold points and the buffer before them.
_AT_THE_END_UM = 500_000


def waiting_cycle(records: list[Record], waits: Mapping[int, set[int]]) -> tuple[int, ...]:
    """A cycle of standing trucks, each waiting for what the next one holds; empty if there is none."""
    graph = {
        number: sum(1 << other for other in sorted(others))
        for number, others in sorted(waits.items())
        if (waiting := records[number].waiting) is not None
        and waiting.code != WAIT_SAFE_STATE
        and records[number].grant_um - records[number].at_um <= _AT_THE_END_UM
    }
    return cycle_of(graph)


def watched(since: dict[tuple[int, ...], int], cycle: tuple[int, ...], now_ms: int) -> dict[tuple[int, ...], int]:
    """Since when the cycle of this tick exists, by its members."""
    if not cycle:
        return {}
    members = tuple(sorted(cycle))
    return {members: since.get(members, now_ms)}


def alert(
    number: int, code: str, severity: str, since_ms: int, robot_id: str | None = None, /, **details: Json
) -> Alert:
    assert code in ALERTS, f"{code} is not in ALERTS"
    return Alert(
        alertId=f"al-{number}",
        code=code,
        severity=severity,
        sinceMs=since_ms,
        details=details,
        robotId=UNSET if robot_id is None else robot_id,
    )
