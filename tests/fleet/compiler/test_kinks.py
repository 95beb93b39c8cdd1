"""Bends in nodes that are passed without stopping: the cells contain the area a truck covers there."""

from math import atan2, pi

import pytest
from shapely.geometry import Polygon
from shapely.ops import unary_union

from pendula.fleet import compile_map
from pendula.fleet.compiler.samples import FL_STD
from tests.fleet.judge import envelope
from tests.fleet.sites import sketched


@pytest.mark.req("FLT-GEO-12", "FLT-EVO-5")
def test_a_truck_that_passes_a_kink_stays_in_its_cells() -> None:
    sketch = sketched(("A", 0, 0), ("B", 10, 0), ("C", 20, 0.86), ("V1", 6.84, -20), ("V2", 6.84, -3.02))
    sketch.chain("A", "B", "C")
    sketch.lane("V1", "V2")
    site = compile_map(sketch.done(), [FL_STD])
    first = site.cells.first
    waiting = int(first[site.edge_number["V1->V2"] + 1]) - 1
    through = int(first[site.edge_number["A->B"] + 1]) - 1, int(first[site.edge_number["B->C"]])
    bend = atan2(0.86, 10)
    stands = envelope((6.84, -3.02, pi / 2))
    assert any(envelope((10, 0, bend * k / 100)).intersects(stands) for k in range(101))
    assert any(site.conflicts.holds(waiting, cell) for cell in through)


@pytest.mark.req("FLT-GEO-12", "FLT-EVO-5")
@pytest.mark.parametrize("key", ["A->B", "B->C"])
def test_both_cells_at_a_kink_hold_all_of_its_headings(key: str) -> None:
    sketch = sketched(("A", 0, 0), ("B", 10, 0), ("C", 20, 0.86))
    sketch.chain("A", "B", "C", back=False)
    site = compile_map(sketch.done(), [FL_STD])
    own = site.cells.of_edge(site.edge_number[key])
    cell = own.stop - 1 if key == "A->B" else own.start
    quads = site.cells.quads[int(site.cells.quad_first[cell]) : int(site.cells.quad_first[cell + 1])]
    area = unary_union([Polygon(quad / 1e6) for quad in quads])

    bend = atan2(0.86, 10)
    assert all(area.covers(envelope((10, 0, bend * k / 20))) for k in range(21))
