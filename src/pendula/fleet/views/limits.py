"""Explanation of the end of a grant: limits before rounding to the cells of the relation (FLT-EVO-8)."""

from pendula.fleet.driving.records import Record
from pendula.fleet.driving.track import Track
from pendula.fleet.model import MoveStyle
from pendula.fleet.targets.hold_points import Components
from pendula.fleet.trucks.envelope import spacing_um


def components(record: Record, records: list[Record]) -> Components:
    """The limits up to the next node in which the truck acts."""
    track = record.track
    assert track is not None
    act = record.act
    end = track.end_um if act is None else act.s_um
    return Components(
        grants_um=record.grant_um,
        following_um=_following_um(record, track, end, records),
        node_um=_node_um(record, track, end),
        section_um=_section_um(record, track, end),
    )


def place_of(record: Record) -> tuple[int, int] | None:
    """The edge of a truck and its position on it; in a node, the edge it came by, if any."""
    track = record.track
    if track is None or not track.segments or record.at_um < 0:
        return None
    segment = track.segments[track.segment_at(record.at_um)]
    return segment.edge, record.at_um - segment.route_s0_um


def _following_um(record: Record, track: Track, end_um: int, records: list[Record]) -> int | None:
    """The nearest truck ahead on the route, less the spacing of the two: the trailing end of the leader's type, the
    leading end of the follower's, and the follower's gap (FLT-RES-15). Cells are sized for the largest type of the
    map."""
    edges = record.site.network.edges
    begins = {segment.edge: segment.route_s0_um for segment in reversed(track.segments) if segment.route_s0_um < end_um}
    nearest: tuple[int, str, MoveStyle, int] | None = None
    for other in records:
        place = place_of(other)
        if other is record or place is None or place[0] not in begins:
            continue
        at = begins[place[0]] + place[1]
        leader = (at, other.robot_id, edges[place[0]].style, other.number)
        if at > record.at_um and (nearest is None or leader < nearest):
            nearest = leader
    if nearest is None:
        return None
    own = edges[track.segments[track.segment_at(record.at_um + 1)].edge].style
    return nearest[0] - spacing_um(records[nearest[3]].profile, nearest[2], record.profile, own)


def _node_um(record: Record, track: Track, end_um: int) -> int | None:
    """The start of the window of the first node whose lock is needed and not granted."""
    site = record.site
    first, beyond = len(site.cells), site.token(0)
    for use in track.taken(record.grant_um, end_um):
        if not first <= use.resource < beyond or use.resource in record.held:
            continue
        segment = track.segments[track.segment_at(use.need_um + 1)]
        windows = [window.s0 for window in site.zones.by_node[use.resource - first] if window.edge == segment.edge]
        begin = segment.route_s0_um
        return max((begin + s0 for s0 in windows), default=use.need_um)
    return None


def _section_um(record: Record, track: Track, end_um: int) -> int | None:
    tokens = record.site.token(0)
    return next(
        (
            use.need_um
            for use in track.taken(record.grant_um, end_um)
            if use.resource >= tokens and use.resource not in record.held
        ),
        None,
    )
