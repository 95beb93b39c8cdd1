"""Where a truck is: its progress on a route, and the anchor of a pose on the map."""

from collections.abc import Collection

from msgspec import Struct

from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.planner import Anchor, AtNode, OnEdge
from pendula.fleet.map.routes import Pose
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.units import root

# Progress of a truck: one value that only grows, to extend reservations, and a lower bound, to release them.
# Noise neither moves the first back nor the second ahead. A change that the truck cannot have driven is a pose jump.


class ProgressParams(Struct, frozen=True):
    window: int = 5
    regress_um: int = 300_000
    jump_um: int = 500_000


USUAL = ProgressParams()


class Progress(Struct, frozen=True, gc=False):
    """The state of the estimator: `extend_um` is monotone, `raw_um` are the last samples, newest last."""

    at_ms: int
    extend_um: int
    raw_um: tuple[int, ...]

    def release_um(self, uncertainty_um: int) -> int:
        """`sReleaseM`: the position that the truck has certainly passed."""
        return min(self.raw_um) - uncertainty_um

    def shifted(self, back_um: int) -> "Progress":
        """The same progress on a route that begins `back_um` later."""
        return Progress(self.at_ms, self.extend_um - back_um, tuple(raw - back_um for raw in self.raw_um))


class PoseJump(Struct, frozen=True):
    """A sample that moved farther than possible."""

    moved_um: int
    possible_um: int


def started(at_ms: int, s_um: int) -> Progress:
    return Progress(at_ms, s_um, (s_um,))


def advanced(
    before: Progress, at_ms: int, s_um: int, profile: RobotProfile, params: ProgressParams = USUAL
) -> Progress | PoseJump:
    """Progress after the next sample, or a `PoseJump` that leaves the state unchanged."""
    passed_ms = max(0, at_ms - before.at_ms)
    driven = profile.v_max_um_s * passed_ms // 1000
    error = profile.localization_error.value_um
    moved = s_um - before.raw_um[-1]
    possible = max(params.jump_um, driven + apart_um(profile))
    extend = before.extend_um
    if s_um < extend - params.regress_um or abs(moved) > possible:
        return PoseJump(moved, possible)
    if s_um > extend:
        extend = min(s_um, extend + driven + error)
    return Progress(at_ms, extend, (*before.raw_um, s_um)[-params.window :])


def apart_um(profile: RobotProfile) -> int:
    """The largest difference of two reports of a healthy truck beyond the distance driven between their stamps: twice
    the localization error, the tracking error, and the distance driven within the stamp jitter."""
    jitter = profile.v_max_um_s * profile.stamp_jitter_ms // 1000
    return jitter + 2 * profile.localization_error.value_um + profile.tracking_error.value_um


def uncertainty_um(profile: RobotProfile, v_um_s: int, age_ms: int) -> int:
    """`sUncertaintyM`: the localization error and the distance the truck may have driven since its report."""
    return profile.localization_error.value_um + v_um_s * max(0, age_ms) // 1000


# The anchor of a pose: on an edge or in a node, never simply the nearest node.

_BUCKET_UM = 4_000_000
# The last position selects among passages of one edge that are farther apart than this.
_WINDOW_UM = 3_000_000


class SnapParams(Struct, frozen=True):
    node_snap_um: int = 150_000
    heading_urad: int = 500_000
    # Beyond this the truck would leave the swept area of its cells.
    lateral_um: int = 200_000


USUAL_SNAP = SnapParams()


class Snapper:
    """Find anchors on one map, with a grid index of edges and nodes."""

    def __init__(self, site: CompiledMap, params: SnapParams = USUAL_SNAP) -> None:
        self.site = site
        self.params = params
        self._edges: dict[tuple[int, int], list[int]] = {}
        self._nodes: dict[tuple[int, int], list[int]] = {}
        for number, edge in enumerate(site.network.edges):
            path = edge.path
            buckets: set[tuple[int, int]] = set()
            for leg in range(len(path.s) - 1):
                buckets |= _buckets(path.x[leg], path.y[leg], path.x[leg + 1], path.y[leg + 1])
            for bucket in buckets:
                self._edges.setdefault(bucket, []).append(number)
        for number, node in enumerate(site.network.nodes):
            bucket = (node.at.x_um // _BUCKET_UM, node.at.y_um // _BUCKET_UM)
            self._nodes.setdefault(bucket, []).append(number)

    def anchor(
        self,
        pose: Pose,
        previous_edge: int | None = None,
        route_edges: Collection[int] = (),
        previous_s_um: int | None = None,
    ) -> Anchor | None:
        """The anchor of a pose; None if the truck is off the map or its heading matches no edge near it.

        Near a node it is the node. Otherwise, among edges whose heading matches: the edge of the last progress, then an
        edge of the route, then the smallest distance, then the edge key. On an edge that crosses itself the passage
        around `previous_s_um` wins, then the closest one whose heading matches.
        """
        node = self._node(pose)
        if node is not None:
            return AtNode(node, pose.yaw_urad)
        best: tuple[tuple[bool, bool, int, int], OnEdge] | None = None
        for number in self._near(self._edges, pose.x_um, pose.y_um, self.params.lateral_um):
            place = self._place(number, pose, previous_s_um if number == previous_edge else None)
            if place is None:
                continue
            s_um, square = place
            order = (number != previous_edge, number not in route_edges, root(square), number)
            if best is None or order < best[0]:
                best = (order, OnEdge(number, s_um))
        return None if best is None else best[1]

    def on_edge(self, pose: Pose, number: int) -> OnEdge | None:
        """The position of a pose on an edge, also near a node; None beyond its ends, or if no heading matches."""
        place = self._place(number, pose, None)
        if place is None or not 0 < place[0] < self.site.network.edges[number].path.length_um:
            return None
        return OnEdge(number, place[0])

    def _place(self, number: int, pose: Pose, previous_s_um: int | None) -> tuple[int, int] | None:
        """The position of a pose on an edge and its squared distance; None if no heading matches."""
        edge = self.site.network.edges[number]
        matches = [
            (s_um, square)
            for s_um, square in edge.path.places(pose.x_um, pose.y_um, self.params.lateral_um)
            if abs(turn_urad(truck_yaw(edge.path.heading(s_um), edge.style), pose.yaw_urad)) <= self.params.heading_urad
        ]
        if previous_s_um is not None:
            matches = [match for match in matches if abs(match[0] - previous_s_um) <= _WINDOW_UM] or matches
        return min(matches, key=lambda match: (match[1], match[0]), default=None)

    def _node(self, pose: Pose) -> int | None:
        reach = self.params.node_snap_um
        best: tuple[int, int] | None = None
        for node in self._near(self._nodes, pose.x_um, pose.y_um, reach):
            at = self.site.network.nodes[node].at
            dx, dy = pose.x_um - at.x_um, pose.y_um - at.y_um
            square = dx * dx + dy * dy
            if square <= reach * reach and (best is None or (square, node) < best):
                best = (square, node)
        return None if best is None else best[1]

    def _near(self, table: dict[tuple[int, int], list[int]], x: int, y: int, reach: int) -> list[int]:
        numbers: set[int] = set()
        for column in range((x - reach) // _BUCKET_UM, (x + reach) // _BUCKET_UM + 1):
            for row in range((y - reach) // _BUCKET_UM, (y + reach) // _BUCKET_UM + 1):
                numbers.update(table.get((column, row), ()))
        return sorted(numbers)


def _buckets(ax: int, ay: int, bx: int, by: int) -> set[tuple[int, int]]:
    """The buckets a leg passes through, in pieces of one bucket: a long diagonal must not fill its bounding box."""
    pieces = max(abs(bx - ax), abs(by - ay)) // _BUCKET_UM + 1
    buckets = set()
    for piece in range(pieces):
        x0, x1 = sorted((ax + (bx - ax) * piece // pieces, ax + (bx - ax) * (piece + 1) // pieces))
        y0, y1 = sorted((ay + (by - ay) * piece // pieces, ay + (by - ay) * (piece + 1) // pieces))
        for column in range(x0 // _BUCKET_UM, x1 // _BUCKET_UM + 1):
            for row in range(y0 // _BUCKET_UM, y1 // _BUCKET_UM + 1):
                buckets.add((column, row))
    return buckets
