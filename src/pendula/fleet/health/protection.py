"""A truck with a doubtful position is protected at both places; trucks with a grant there stop (FLT-FAIL-5, 6).

If that holds from the first report on, both trucks stop, and an operator decides (FLT-FAIL-15).

What the lost truck may cover contains everything that comes near its disc, so another truck is in danger exactly where
it holds something of that.
"""

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.driving.uses import NEVER_UM, Act, Ground
from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.health.judging import is_fresh
from pendula.fleet.health.places import STANDING_UM_S, covered


def protect(records: list[Record], ground: Ground, params: TrafficParams, now_ms: int) -> list[tuple[Record, Record]]:
    """Looks up what lost trucks may cover, and notes for every one whom it has to stop for. Returns who has to from now
    on, with that other truck."""
    for record in records:
        if record.doubt is not None:
            record.doubt = covered(record, ground, params)
    lost = [one for one in records if one.doubt is not None and one.doubt.extra]
    begun = [one for one in lost if one.doubt is not None and one.doubt.first]
    found = []
    for record in records:
        if lost or record.foreign is not None:
            before, close = record.foreign, _too_close(record, records, begun)
            record.foreign = _stranger(record, lost, params, now_ms) if close is None else close
            record.too_close = close is not None
            if record.foreign not in (None, before):
                found.append((record, records[record.foreign]))
    return found


def _stranger(record: Record, lost: list[Record], params: TrafficParams, now_ms: int) -> int | None:
    """The first lost truck that may be inside the grant of a truck."""
    keeps = frozenset(record.keeps)
    others = (one for one in lost if one is not record)
    return next((one.number for one in others if _endangers(one, record, keeps, params, now_ms)), None)


def _endangers(lost: Record, record: Record, keeps: frozenset[int], params: TrafficParams, now_ms: int) -> bool:
    """Whether a lost truck may be where another one has a right to be. One that stands beyond its stop line is where it
    is: who does not go there any more may leave."""
    met = keeps.intersection(_danger(lost))
    if not met or not _stands_beyond(lost, params, now_ms):
        return bool(met)
    return any(_is_ahead(record, one, params) for one in met)


def _stands_beyond(lost: Record, params: TrafficParams, now_ms: int) -> bool:
    known = lost.doubt is not None and lost.doubt.code == Stop.OVERRUN and not lost.doubt.torn
    return known and lost.v_um_s < STANDING_UM_S and is_fresh(lost, now_ms, params)


def _is_ahead(record: Record, resource: int, params: TrafficParams) -> bool:
    """Whether a truck may be in something it holds from now on: it has not passed the cell, or may turn in the disc. A
    section is no place, and what the truck would meet in it are cells."""
    site = record.site
    if resource < len(site.cells):
        return record.held.get(resource, NEVER_UM) > record.at_um
    acts = () if record.track is None else record.track.acts[record.acted :]
    return resource < site.token(0) and any(
        site.zone(act.node) == resource and _may_turn(record, act, params) for act in acts
    )


def _may_turn(record: Record, act: Act, params: TrafficParams) -> bool:
    """Whether a truck still turns in a node, in whichever direction: not where it is there and looks that way."""
    if act.yaw_urad is None:
        return False
    if record.pose is None or record.at_um < act.s_um - params.arrive_tol_um:
        return True
    return abs(turn_urad(record.pose.yaw_urad, act.yaw_urad)) > params.turn_tol_urad


def _too_close(record: Record, records: list[Record], begun: list[Record]) -> int | None:
    """The first truck that may be where this one may be, where one of the two was lost from the start."""
    others = records if any(one is record for one in begun) else begun
    return next((one.number for one in others if one is not record and _meet(record, one)), None)


def _meet(a: Record, b: Record) -> bool:
    of_a, of_b = _danger(a), _danger(b)
    return not (of_a.isdisjoint(of_b) and of_a.isdisjoint(b.keeps) and of_b.isdisjoint(a.keeps))


def _danger(lost: Record) -> set[int]:
    """What no other truck may be in."""
    return set() if lost.doubt is None else set(lost.doubt.extra)
