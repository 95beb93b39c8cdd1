"""Cells: half a metre of an edge each, numbered along it."""

import pytest

from tests.fleet.sites import scene


@pytest.mark.req("FLT-EVO-1")
def test_cells_are_half_a_metre_and_numbered_along_their_edge() -> None:
    site = scene("hall-demo")
    edge = site.edge_number["LM1->LM2"]

    seventh = int(site.cells.first[edge]) + 7

    assert site.cell_name(seventh) == "LM1->LM2#7"
    assert (int(site.cells.s0[seventh]), int(site.cells.s1[seventh])) == (3_500_000, 4_000_000)
    assert len(site.cells.of_edge(edge)) == 20
    assert site.cells.at(edge, 10_000_000) == int(site.cells.first[edge]) + 19
