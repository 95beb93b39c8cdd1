"""The anchor of a pose: on an edge or in a node, never simply the nearest node."""

from collections.abc import Collection

from msgspec import Struct

from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.routing.planner import Anchor, AtNode, OnEdge
from pendula.fleet.routing.route_plan import Pose
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import root

_BUCKET_UM = 4_000_000
# The last position selects among passages of one edge that are farther apart than this.
_WINDOW_UM = 3_000_000


class SnapParams(Struct, frozen=True):
    node_snap_um: int = 150_000
    heading_urad: int = 500_000
    # Beyond this the truck would leave the swept area of its cells.
    lateral_um: int = 200_000


USUAL = SnapParams()


class Snapper:
    """Find anchors on one map, with a grid index of edges and nodes."""

    def __init__(self, site: CompiledMap, params: SnapParams = USUAL) -> None:
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
