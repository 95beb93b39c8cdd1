"""A truck that stops in a node on its route locks the node (FLT-DCL-5).

This applies under every `nodeLockPolicy`: while the truck stands there it holds the turning zone, unless another truck
holds something that excludes it or some truck could not reach its rest. It is released like any other node.
"""

from collections.abc import Iterable, Iterator

from pendula.fleet.driving.params import TrafficParams, node_reach_um
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.track import track_of
from pendula.fleet.driving.uses import Ground, left_um
from pendula.fleet.health.places import STANDING_UM_S
from pendula.fleet.traffic.grants import Rule, take_beside
from pendula.fleet.traffic.lock_state import LockState


def lock_nodes(
    records: Iterable[Record], locks: LockState, ground: Ground, params: TrafficParams, rule: Rule
) -> set[int]:
    """Lock the nodes of trucks that stand in one. Returns the trucks that hold more than before."""
    taken = set()
    for record in records:
        for place in _nodes(record, params):
            if _take(record, place, locks, ground, rule):
                taken.add(record.number)
    return taken


def _nodes(record: Record, params: TrafficParams) -> Iterator[int]:
    """Indexes of the segments at whose end nodes a truck stands: near the node, or anywhere in its zone if stopped."""
    track = record.track
    if track is None or record.pose is None or record.v_um_s >= STANDING_UM_S or record.doubt is not None:
        return
    if record.retraction is not None:
        return
    reach = node_reach_um(record.profile, params)
    for place, segment in enumerate(track.segments[:-1]):
        end = segment.route_s0_um + segment.length_um
        if abs(record.at_um - end) <= reach or (record.stop_code is not None and _is_in_window(record, place)):
            yield place


def _is_in_window(record: Record, place: int) -> bool:
    """Whether the envelope of a truck overlaps the zone of the node at the end of a segment."""
    assert record.track is not None
    site, segments = record.site, record.track.segments
    node = site.network.edges[segments[place].edge].end
    return any(
        segment.route_s0_um + window.s0 <= record.at_um <= segment.route_s0_um + window.s1
        for segment in segments[place : place + 2]
        for window in site.zones.by_node[node]
        if window.edge == segment.edge
    )


def _take(record: Record, place: int, locks: LockState, ground: Ground, rule: Rule) -> bool:
    track, site = record.track, record.site
    assert track is not None
    node = site.network.edges[track.segments[place].edge].end
    zone = site.zone(node)
    if zone in record.held or locks.truck(record.number).frozen:
        return False
    held = {**record.held, zone: left_um(site, track.segments, place + 1, node, record.short_um)}
    fresh = track_of(ground, track.plan, record.short_um, record.grant_um, held)
    if not take_beside(locks, record.number, fresh.demand, zone, rule=rule):
        return False
    record.go_on_with(fresh, held)
    return True
