"""Halls for benchmarks: the reference hall of twelve nodes, warehouses of any size, and plain grids."""

from pendula.fleet.model import Fleet, SourceMap, Stream, Truck
from pendula.fleet.samples.scenes import Sketch

_AISLE_M = 6.0
_SLOT_M = 6.0
_SPUR_M = 8.0


def reference_hall() -> SourceMap:
    """Six junctions, two stations and four parking spurs: twelve nodes."""
    sketch = Sketch("reference-hall")
    for name, x, y in (("A1", 0, 0), ("A2", 14, 0), ("A3", 28, 0), ("B1", 0, 14), ("B2", 14, 14), ("B3", 28, 14)):
        sketch.node(name, x, y)
    sketch.node("WEST", -9, 0, "ActionPoint")
    sketch.node("EAST", 37, 14, "ActionPoint")
    for name, x, y in (("P1", 14, -8), ("P2", 28, -8), ("P3", 0, 22), ("P4", 14, 22)):
        sketch.node(name, x, y, "ParkPoint")
    sketch.chain("A1", "A2", "A3")
    sketch.chain("B1", "B2", "B3")
    for start, end in (("A1", "B1"), ("A2", "B2"), ("A3", "B3"), ("A1", "WEST"), ("B3", "EAST")):
        sketch.lane(start, end)
    for start, end in (("A2", "P1"), ("A3", "P2"), ("B1", "P3"), ("B2", "P4")):
        sketch.lane(start, end)
    return sketch.done()


def reference_fleet(trucks: int = 3) -> Fleet:
    """Up to four trucks of the reference hall, and its two streams."""
    return Fleet(
        tuple(Truck(f"R{i}", "FL-STD", f"P{i}") for i in range(1, trucks + 1)),
        (Stream("S-OUT", ("WEST",), ("EAST",)), Stream("S-BACK", ("EAST",), ("WEST",))),
    )


def warehouse(aisles: int = 13, slots: int = 20, side_spurs: int = 7) -> SourceMap:
    """Storage aisles between two cross aisles that are one-way except for their last piece; parking spurs below,
    stations above, and curved spurs at the sides. With the defaults 300 nodes and 600 edges."""
    sketch = Sketch(f"warehouse-{aisles}x{slots}")
    for aisle in range(aisles):
        for slot in range(slots):
            sketch.node(_slot(aisle, slot), aisle * _AISLE_M, slot * _SLOT_M)
        sketch.chain(*(_slot(aisle, slot) for slot in range(slots)))
    for aisle in range(aisles - 1):
        last = aisle == aisles - 2
        sketch.lane(_slot(aisle, 0), _slot(aisle + 1, 0), back=last)
        sketch.lane(_slot(aisle + 1, slots - 1), _slot(aisle, slots - 1), back=last)
    for aisle in range(aisles):
        x = aisle * _AISLE_M
        sketch.node(f"P{aisle:03}", x, -_SPUR_M, "ParkPoint")
        sketch.lane(_slot(aisle, 0), f"P{aisle:03}")
        sketch.node(f"T{aisle:03}", x, (slots - 1) * _SLOT_M + _SPUR_M, "ActionPoint")
        sketch.lane(_slot(aisle, slots - 1), f"T{aisle:03}")
    for spur in range(side_spurs):
        _side_spurs(sketch, spur, aisles)
    return sketch.done()


def large() -> SourceMap:
    """A warehouse of 1000 nodes."""
    return warehouse(25, 38, 0)


def _slot(aisle: int, slot: int) -> str:
    return f"S{aisle:03}-{slot:03}"


def _side_spurs(sketch: Sketch, spur: int, aisles: int) -> None:
    """A curved parking spur to the west and a curved station to the east."""
    slot = 2 * spur + 2
    y, east = slot * _SLOT_M, (aisles - 1) * _AISLE_M
    sketch.node(f"W{spur:03}", -10, y + 1.5, "ParkPoint")
    sketch.bezier(_slot(0, slot), f"W{spur:03}", (-5, y), (-5, y + 1.5))
    sketch.node(f"E{spur:03}", east + 10, y + 1.5, "ActionPoint")
    sketch.bezier(_slot(aisles - 1, slot), f"E{spur:03}", (east + 5, y), (east + 5, y + 1.5))


def grid(columns: int, rows: int, spacing: float = 8.0) -> SourceMap:
    """A plain grid of two-way lanes."""
    sketch = Sketch(f"grid-{columns}x{rows}")
    for column in range(columns):
        for row in range(rows):
            sketch.node(_slot(column, row), column * spacing, row * spacing)
    for column in range(columns):
        sketch.chain(*(_slot(column, row) for row in range(rows)))
    for row in range(rows):
        sketch.chain(*(_slot(column, row) for column in range(columns)))
    return sketch.done()
