"""The request of a truck: the units ahead of its grant up to the lookahead, with their resources (FLT-COR-9)."""

from pendula.fleet.contracts.traffic import CorridorRequest, GrantUnit
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.track import Track
from pendula.fleet.driving.uses import NEVER_UM
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import metres
from pendula.fleet.views.reasons import resource_id


def corridor_request(record: Record, now_ms: int, params: TrafficParams) -> CorridorRequest | None:
    """The request in the form of the contract; None for a truck without a route."""
    track = record.track
    if track is None:
        return None
    return CorridorRequest(
        contractVersion=CONTRACT_VERSION,
        robotId=record.robot_id,
        routeId=track.plan.route_id,
        revision=track.plan.revision,
        nowMs=now_ms,
        priorityClass=record.priority,
        currentS=metres(record.at_um),
        lookaheadM=metres(params.lookahead_um),
        lookbackM=metres(params.lookback_um),
        units=_units(record, track, params),
    )


def _units(record: Record, track: Track, params: TrafficParams) -> tuple[GrantUnit, ...]:
    reach = min(record.at_um + params.lookahead_um, track.goal_um)
    units: list[GrantUnit] = []
    for s0, s1 in zip(track.stands[record.granted :], track.stands[record.granted + 1 :], strict=False):
        if s0 >= reach:
            break
        units.append(GrantUnit(len(units), metres(s0), metres(s1), unit_resources(record.site, track, s0, s1)))
    return tuple(units)


def unit_resources(site: CompiledMap, track: Track, s0_um: int, s1_um: int) -> tuple[str, ...]:
    """The names of all resources between two positions: cells as their group and their conflicts."""
    names: set[str] = set()
    for use in track.taken(-NEVER_UM, s1_um):
        if use.free_um > s0_um:
            names.add(resource_id(site, use.resource))
            names |= set(conflicts_of(site, use.resource))
    return tuple(sorted(names))


def conflicts_of(site: CompiledMap, resource: int) -> tuple[str, ...]:
    """The named conflicts in whose windows a cell lies."""
    if resource >= len(site.cells):
        return ()
    edge, s0, s1 = (int(column[resource]) for column in (site.cells.edge, site.cells.s0, site.cells.s1))
    return tuple(
        f"CONFLICT:{conflict.id}"
        for conflict in site.named
        if any(on == edge and low < s1 and high > s0 for on, low, high in conflict.windows)
    )
