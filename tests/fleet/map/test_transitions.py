"""Transitions between edges: tangent, or with a turn on the spot."""

import pytest

from pendula.fleet import compile_map
from pendula.fleet.compiler.samples import FL_STD, Sketch, quarter
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.model import MoveStyle
from tests.fleet.sites import scene


@pytest.mark.req("FLT-EVO-5")
def test_a_bend_that_continues_in_the_same_direction_is_tangent() -> None:
    site = scene("tail-swing-bend")
    edge = site.edge_number["A->B"]

    (move,) = site.transitions.of(edge)

    assert bool(site.transitions.tangent[move])
    assert abs(int(site.transitions.turn_urad[move])) <= 1


@pytest.mark.req("FLT-EVO-5")
def test_a_change_of_style_is_never_tangent() -> None:
    site = scene("hall-demo")
    into, out = site.edge_number["LM1->LM2"], site.edge_number["LM2->AP1"]

    move = next(k for k in site.transitions.of(into) if int(site.transitions.out[k]) == out)

    assert not bool(site.transitions.tangent[move])
    assert int(site.transitions.turn_urad[move]) == 3_141_593


@pytest.mark.req("FLT-EVO-5")
@pytest.mark.parametrize(("rise", "tangent"), [(0.86, True), (0.90, False)])
def test_tangents_may_differ_by_five_degrees(rise: float, tangent: bool) -> None:
    sketch = Sketch("kink")
    for name, x, y in (("A", 0, 0), ("B", 10, 0), ("C", 20, rise)):
        sketch.node(name, x, y)
    sketch.chain("A", "B", "C", back=False)
    site = compile_map(sketch.done(), [FL_STD])

    (move,) = site.transitions.of(site.edge_number["A->B"])

    assert bool(site.transitions.tangent[move]) is tangent


def test_a_quarter_bend_joins_two_lanes_tangentially_both_ways() -> None:
    sketch = Sketch("bend")
    for name, x, y in (("A", 0, 0), ("B", 10, 0), ("C", 13, 3), ("D", 13, 13)):
        sketch.node(name, x, y)
    sketch.lane("A", "B")
    quarter(sketch, "B", "C", (13, 0))
    sketch.lane("C", "D")
    site = compile_map(sketch.done(), [FL_STD])

    for into, out in (("A->B", "B->C"), ("B->C", "C->D"), ("D->C", "C->B"), ("C->B", "B->A")):
        edge = site.edge_number[into]
        move = next(k for k in site.transitions.of(edge) if int(site.transitions.out[k]) == site.edge_number[out])
        assert bool(site.transitions.tangent[move]), (into, out)
    assert all(edge.style is MoveStyle.FORWARD for edge in site.network.edges)


@pytest.mark.req("FLT-GEO-1", "FLT-GEO-3")
def test_backward_along_minus_x_a_truck_looks_along_x() -> None:
    assert truck_yaw(3_141_593, MoveStyle.BACKWARD) == 0
