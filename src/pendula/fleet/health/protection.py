"""A truck with a doubtful position is protected at both places; trucks with a grant there stop (FLT-FAIL-5, 6).

If two trucks are too close from the first report on, both stop, and an operator decides (FLT-FAIL-15).

`extra` of a lost truck contains everything near the disc it may cover, so another truck is in danger exactly if it
holds some of that.
"""

from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.stops import Stop
from pendula.fleet.driving.uses import NEVER_UM, Act, Ground
from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.health.judging import is_fresh
from pendula.fleet.health.places import STANDING_UM_S, cover_reported_place


def protect(records: list[Record], ground: Ground, params: TrafficParams, now_ms: int) -> list[tuple[Record, Record]]:
    """Update what lost trucks may cover, and note the truck for which each other truck must stop. Returns the newly
    stopped trucks, each with the truck it stops for."""
    for record in records:
        if record.doubt is not None:
            record.doubt = cover_reported_place(record, ground, params)
    lost = [record for record in records if record.doubt is not None and record.doubt.extra]
    begun = [record for record in lost if record.doubt is not None and record.doubt.first]
    stopped = []
    for record in records:
        if lost or record.foreign is not None:
            before, close = record.foreign, _too_close(record, records, begun)
            record.foreign = _endangering_truck(record, lost, params, now_ms) if close is None else close
            record.too_close = close is not None
            if record.foreign not in (None, before):
                stopped.append((record, records[record.foreign]))
    return stopped


def _endangering_truck(record: Record, lost: list[Record], params: TrafficParams, now_ms: int) -> int | None:
    """The first lost truck that may be inside the grant of a truck."""
    keeps = frozenset(record.keeps)
    others = (other for other in lost if other is not record)
    return next((other.number for other in others if _endangers(other, record, keeps, params, now_ms)), None)


def _endangers(lost: Record, record: Record, keeps: frozenset[int], params: TrafficParams, now_ms: int) -> bool:
    """Whether a lost truck may be inside the grant of another. The position of a truck that stands beyond its stop line
    is certain: trucks that no longer enter that place may leave."""
    met = keeps.intersection(_danger(lost))
    if not met or not _stands_beyond(lost, params, now_ms):
        return bool(met)
    return any(_is_ahead(record, resource, params) for resource in met)


def _stands_beyond(lost: Record, params: TrafficParams, now_ms: int) -> bool:
    known = lost.doubt is not None and lost.doubt.code == Stop.OVERRUN and not lost.doubt.torn
    return known and lost.v_um_s < STANDING_UM_S and is_fresh(lost, now_ms, params)


def _is_ahead(record: Record, resource: int, params: TrafficParams) -> bool:
    """Whether a truck may still enter something it holds: it has not passed the cell, or may turn in the disc. Critical
    sections do not count, since they consist of cells."""
    site = record.site
    if resource < len(site.cells):
        return record.held.get(resource, NEVER_UM) > record.at_um
    acts = () if record.track is None else record.track.acts[record.acted :]
    return resource < site.token(0) and any(
        site.zone(act.node) == resource and _may_turn(record, act, params) for act in acts
    )


def _may_turn(record: Record, act: Act, params: TrafficParams) -> bool:
    """Whether a truck may still turn in a node: false once it is there with the target heading."""
    if act.yaw_urad is None:
        return False
    if record.pose is None or record.at_um < act.s_um - params.arrive_tol_um:
        return True
    return abs(turn_urad(record.pose.yaw_urad, act.yaw_urad)) > params.turn_tol_urad


def _too_close(record: Record, records: list[Record], begun: list[Record]) -> int | None:
    """The first truck whose place may overlap that of this one, if one of the two was lost from the start."""
    others = records if any(first is record for first in begun) else begun
    return next((other.number for other in others if other is not record and _overlap(record, other)), None)


def _overlap(a: Record, b: Record) -> bool:
    of_a, of_b = _danger(a), _danger(b)
    return not (of_a.isdisjoint(of_b) and of_a.isdisjoint(b.keeps) and of_b.isdisjoint(a.keeps))


def _danger(lost: Record) -> set[int]:
    """Places that no other truck may enter."""
    return set() if lost.doubt is None else set(lost.doubt.extra)
