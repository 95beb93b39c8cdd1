"""The sizes of the halls used for measurements."""

from pendula.fleet import examine
from pendula.fleet.compiler.samples import FL_STD, grid, large, reference_hall, warehouse
from tests.fleet.sites import scene


def test_the_reference_hall_has_twelve_nodes_and_no_warnings() -> None:
    assert len(reference_hall().nodes) == 12
    assert scene("reference-hall").findings == ()


def test_the_warehouse_has_three_hundred_nodes_and_six_hundred_edges() -> None:
    report = examine(warehouse(), [FL_STD])

    assert report.compiled is not None
    assert len(report.compiled.network.nodes) == 300
    assert len(report.compiled.network.edges) == 600


def test_the_large_map_has_a_thousand_nodes() -> None:
    assert (len(large().nodes), len(large().edges)) == (1000, 2000)


def test_a_grid_has_its_lanes() -> None:
    assert len(grid(4, 3).edges) == 2 * (4 * 2 + 3 * 3)
