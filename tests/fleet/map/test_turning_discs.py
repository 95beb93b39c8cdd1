"""Turning discs as resources: which overlap, and which cells exclude them."""

import pytest

from pendula.fleet import compile_map
from pendula.fleet.compiler.samples import FL_STD, Sketch
from tests.fleet.sites import scene


@pytest.mark.req("FLT-MAP-11")
@pytest.mark.parametrize(
    ("apart", "overlap"), [(4.90, True), (4.93, True), (4.939, True), (4.9397, False), (5.00, False)]
)
def test_discs_overlap_when_nodes_are_closer_than_two_radii(apart: float, overlap: bool) -> None:
    sketch = Sketch("pair")
    sketch.node("A", 0, 0)
    sketch.node("B", apart, 0)
    sketch.lane("A", "B")
    site = compile_map(sketch.done(), [FL_STD])

    assert site.zones.overlaps == (((1,), (0,)) if overlap else ((), ()))
    assert site.conflicts.holds(site.zone(0), site.zone(1)) is overlap


@pytest.mark.req("FLT-GEO-11")
def test_cells_in_a_window_exclude_the_zone() -> None:
    site = scene("hall-demo")
    zone = site.zone(site.node_number["LM2"])
    edge = site.edge_number["LM1->LM2"]

    closed = [c - int(site.cells.first[edge]) for c in site.cells.of_edge(edge) if site.conflicts.holds(zone, c)]

    assert closed == list(range(10, 20))
