"""Cells: half a metre of an edge each, numbered along it."""

import numpy as np
import pytest

from pendula.fleet.map.exclusion import SLIVER_UM, boundaries
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


@pytest.mark.req("FLT-EVO-1")
@pytest.mark.parametrize("length_mm", [30, 499, 500, 549, 550, 700, 749, 750, 3_549, 3_550, 3_650, 3_700, 3_750, 4_000])
def test_cells_fill_their_edge_and_none_is_longer_than_a_cell_and_a_sliver(length_mm: int) -> None:
    bounds = boundaries(length_mm * 1000, 500_000)

    lengths = np.diff(bounds)
    assert (bounds[0], bounds[-1]) == (0, length_mm * 1000)
    assert lengths.min() > 0
    assert lengths.max() < 500_000 + SLIVER_UM


@pytest.mark.req("FLT-EVO-1", "FLT-LIVE-2")
def test_a_truck_at_the_end_of_an_edge_keeps_no_more_than_a_cell_and_a_sliver() -> None:
    """A release bound 0.2 m before the end leaves one cell, independent of where cells begin."""
    for length_um in range(600_000, 5_000_000, 10_000):
        bounds = boundaries(length_um, 500_000)
        kept = bounds[:-1][bounds[1:] > length_um - 200_000]

        assert length_um - int(kept[0]) < 500_000 + SLIVER_UM
