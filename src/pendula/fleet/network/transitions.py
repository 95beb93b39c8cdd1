"""Transitions from one edge to the next: tangent, or with a turn on the spot."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.model import MoveStyle
from pendula.fleet.network.graph import Network
from pendula.fleet.units import PI_URAD, wrapped_urad

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Transitions:
    """All pairs (edge in, edge out) of every node, sorted; pairs with a turn in a node without turning are excluded.
    `first[e]` is the first transition out of edge e."""

    first: Ints
    out: Ints
    tangent: NDArray[np.bool_]
    turn_urad: Ints

    def of(self, edge: int) -> range:
        return range(int(self.first[edge]), int(self.first[edge + 1]))


def truck_yaw(tangent_urad: int, style: MoveStyle) -> int:
    """The yaw of the truck: along the tangent, or against it when the edge is driven backward."""
    if style is MoveStyle.FORWARD:
        return tangent_urad
    # Twice `PI_URAD` is one microradian more than a whole turn.
    return 0 if tangent_urad == PI_URAD else wrapped_urad(tangent_urad + PI_URAD)


def transitions_of(network: Network, tangent_eps_urad: int) -> Transitions:
    first = [0]
    out: list[int] = []
    tangent: list[bool] = []
    turns: list[int] = []
    for edge in network.edges:
        arriving = edge.path.yaws[-1][1]
        for after in network.outgoing[edge.end]:
            onward = network.edges[after]
            leaving = onward.path.yaws[0][0]
            turn = turn_urad(truck_yaw(arriving, edge.style), truck_yaw(leaving, onward.style))
            if abs(turn) > tangent_eps_urad and not network.nodes[edge.end].turning:
                continue
            out.append(after)
            bend = abs(turn_urad(arriving, leaving))
            tangent.append(bend <= tangent_eps_urad and edge.style is onward.style)
            turns.append(turn)
        first.append(len(out))
    return Transitions(
        np.array(first, dtype=np.int64),
        np.array(out, dtype=np.int64),
        np.array(tangent, dtype=np.bool_),
        np.array(turns, dtype=np.int64),
    )
