"""Fleets for which scenes and halls are LIVE: trucks with rest nodes, and one stream of goods.

The one-way bend has no stream, since trucks cannot come back: they start at the nodes in `SCENE_STARTS` and drive to
their rest nodes.
"""

from collections.abc import Mapping

from pendula.fleet.model import Fleet, Stream, Truck
from pendula.fleet.samples.halls import reference_fleet

_CARRIERS = 5


def _warehouse(aisles: int) -> Fleet:
    """Trucks in the first parking spurs, goods from the first station to the last."""
    parks = [f"P{aisle:03}" for aisle in range(_CARRIERS)]
    trucks = tuple(Truck(f"R{number}", "FL-STD", park) for number, park in enumerate(parks, 1))
    return Fleet(trucks, (Stream("S1", ("T000", "T001"), (f"T{aisles - 1:03}",)),))


def _fleet(rests: tuple[str, ...], pick: str, drop: str) -> Fleet:
    trucks = tuple(Truck(f"R{number}", "FL-STD", rest) for number, rest in enumerate(rests, 1))
    return Fleet(trucks, (Stream("S1", (pick,), (drop,)),))


SCENE_FLEETS: Mapping[str, Fleet] = {
    "hall-demo": _fleet(("PK1", "PK2"), "AP1", "LM1"),
    "head-on-lane": _fleet(("W1", "E2"), "E1", "W2"),
    "plus-crossing": _fleet(("W", "S"), "E", "N"),
    "triangle": _fleet(("AS", "BS"), "CS", "C"),
    "ring-with-bypass": _fleet(("A",), "C", "D"),
    "near-lanes": _fleet(("A1",), "A2", "A1"),
    "spur": _fleet(("W", "E"), "P", "M"),
    "straight-lane": _fleet(("A",), "B", "A"),
    "tail-swing-bend": Fleet((Truck("R1", "FL-STD", "D"), Truck("R2", "FL-STD", "L2"))),
    "hall": reference_fleet(),
    "warehouse": _warehouse(13),
    "large": _warehouse(25),
}

# Start nodes of trucks that do not start at rest.
SCENE_STARTS: Mapping[str, Mapping[str, str]] = {"tail-swing-bend": {"R1": "A", "R2": "L1"}}
