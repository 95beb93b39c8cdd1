"""Turning discs: the windows on edges in which an envelope meets the disc of a node, and which discs overlap.

The compiler computes the windows (`compiler/disc_windows`). Overlaps follow from the positions of the nodes, so files
do not contain them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.exclusion.relation import Triples
from pendula.fleet.network.graph import Network
from pendula.fleet.network.limits import MAP_OVERLAPS

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """Positions `s0 .. s1` of an edge at which the envelope meets the disc of a node, and the cells of these
    positions."""

    node: int
    edge: int
    s0: int
    s1: int
    cell0: int
    cell1: int


@dataclass(frozen=True, slots=True)
class Zones:
    radius_um: int
    # Sorted by node, edge and position.
    windows: tuple[Window, ...]
    overlaps: tuple[tuple[int, ...], ...]
    by_node: tuple[tuple[Window, ...], ...]

    def inside(self, node: int, count: int) -> Bools:
        """For each of `count` cells whether it touches the window of the node."""
        marks = np.zeros(count, dtype=np.bool_)
        for window in self.by_node[node]:
            marks[window.cell0 : window.cell1 + 1] = True
        return marks


def zones_of_windows(network: Network, radius_um: int, windows: tuple[Window, ...]) -> Zones:
    """Zones from given windows."""
    by_node: list[list[Window]] = [[] for _ in network.nodes]
    for window in windows:
        by_node[window.node].append(window)
    return Zones(radius_um, windows, _overlaps(network, radius_um), tuple(map(tuple, by_node)))


def without_turnless_nodes(network: Network, zones: Zones) -> Zones:
    """The zones without the windows of nodes with `turning: false`."""
    windows = tuple(window for window in zones.windows if network.nodes[window.node].turning)
    return zones if len(windows) == len(zones.windows) else zones_of_windows(network, zones.radius_um, windows)


def _overlaps(network: Network, radius: int) -> tuple[tuple[int, ...], ...]:
    if not network.nodes:
        return ()
    # Nodes without turning need no free disc.
    turning = np.array([node.turning for node in network.nodes], dtype=np.bool_)
    x = np.array([node.at.x_um for node in network.nodes], dtype=np.int64)
    y = np.array([node.at.y_um for node in network.nodes], dtype=np.int64)
    far = 2 * radius + 2
    order = np.argsort(x, kind="stable")
    result: list[list[int]] = [[] for _ in network.nodes]
    ordered = x[order]
    total = 0
    for place, node in enumerate(order.tolist()):
        stop = int(np.searchsorted(ordered, ordered[place] + far, side="right"))
        others = order[place + 1 : stop]
        others = others[turning[others] & turning[node]]
        dx, dy = x[others] - x[node], y[others] - y[node]
        close = (np.abs(dy) <= far) & (dx * dx + np.where(np.abs(dy) <= far, dy * dy, 0) <= far * far)
        total += int(np.count_nonzero(close))
        MAP_OVERLAPS.check(total)
        for other in others[close].tolist():
            result[node].append(other)
            result[other].append(node)
    return tuple(tuple(sorted(nodes)) for nodes in result)


def zone_triples(zones: Zones, count: int) -> list[Triples]:
    """Relations of the zones, numbered `count + node`: to the cells in their windows, to overlapping zones, to
    themselves."""
    rows: list[int] = []
    low: list[int] = []
    high: list[int] = []
    for window in zones.windows:
        rows.append(count + window.node)
        low.append(window.cell0)
        high.append(window.cell1)
        for cell in range(window.cell0, window.cell1 + 1):
            rows.append(cell)
            low.append(count + window.node)
            high.append(count + window.node)
    for node, others in enumerate(zones.overlaps):
        for other in (node, *others):
            rows.append(count + node)
            low.append(count + other)
            high.append(count + other)
    return [Triples(np.array(rows, dtype=np.int64), np.array(low, dtype=np.int64), np.array(high, dtype=np.int64))]
