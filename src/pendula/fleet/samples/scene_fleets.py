"""Fleets that can run for ever on the small scenes: who rests where, and one stream of goods.

A bend that is driven one way only has none: nobody would come back.
"""

from collections.abc import Mapping

from pendula.fleet.model import Fleet, Stream, Truck


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
    "spur": _fleet(("W", "E"), "P", "P"),
    "straight-lane": _fleet(("A",), "B", "A"),
}
