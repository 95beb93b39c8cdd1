"""Bends in nodes that a truck passes without stopping: it turns on one point, and both cells must contain the turn."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.geometry.bezier import Poses
from pendula.fleet.geometry.curves import Curve, fan_poses
from pendula.fleet.model import CompileParams, MoveStyle
from pendula.fleet.network.graph import Network
from pendula.fleet.trucks.envelope import Envelope


@dataclass(frozen=True)
class Kink:
    """The headings between two edges in their node, and by how much the envelope grows at each."""

    poses: Poses
    slack: NDArray[np.float64]
    style: MoveStyle


@dataclass(frozen=True)
class Ends:
    """The kinks in the start node and in the end node of an edge."""

    start: list[Kink]
    end: list[Kink]


def kinks_of(network: Network, curves: tuple[Curve, ...], envelope: Envelope, params: CompileParams) -> list[Ends]:
    """For every edge the kinks at both ends whose bend is within `tangentEps`."""
    ends = [Ends([], []) for _ in network.edges]
    for i, edge in enumerate(network.edges):
        for j in network.outgoing[edge.end]:
            onward = network.edges[j]
            bend = abs(turn_urad(edge.path.yaws[-1][1], onward.path.yaws[0][0]))
            if onward.style is not edge.style or not 1 < bend <= params.tangent_eps_urad:
                continue
            at = network.nodes[edge.end].at
            poses = fan_poses(float(at.x_um), float(at.y_um), curves[i].end_direction, curves[j].start_direction)
            gap = envelope.turn_radius_um * poses.turn
            slack = np.maximum(np.concatenate([gap[:1], gap]), np.concatenate([gap, gap[-1:]])) + 1.0
            kink = Kink(poses, slack, edge.style)
            ends[i].end.append(kink)
            ends[j].start.append(kink)
    return ends
