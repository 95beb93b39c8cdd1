"""Windows of turning discs: those of the examples; no position is missed."""

import numpy as np
import pytest
from msgspec.structs import replace
from shapely.geometry import Point

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.model import MoveStyle
from tests.fleet.judge import RADIUS, envelope
from tests.fleet.sites import any_site, names, scene


def windows(site: CompiledMap, node: str) -> dict[str, tuple[float, float]]:
    return {
        site.network.edges[window.edge].key: (window.s0 / 1e6, window.s1 / 1e6)
        for window in site.zones.by_node[site.node_number[node]]
    }


def single_edge(style: MoveStyle) -> CompiledMap:
    sketch = Sketch("edge")
    sketch.node("M", 0, 0)
    sketch.node("N", 10, 0)
    sketch.lane("M", "N", back=False, style=style)
    return compile_map(sketch.done(), [FL_STD])


@pytest.mark.req("FLT-MAP-11", "FLT-GEO-11")
@pytest.mark.parametrize(("style", "start"), [(MoveStyle.FORWARD, 5.430), (MoveStyle.BACKWARD, 5.230)])
def test_a_truck_stops_before_the_disc_of_a_locked_node(style: MoveStyle, start: float) -> None:
    low, high = windows(single_edge(style), "N")["M->N"]

    assert start - 0.10 <= low <= start + 0.0003
    assert high == 10.0


@pytest.mark.req("FLT-MAP-11")
def test_edges_that_only_pass_by_have_windows_too() -> None:
    assert windows(scene("hall-demo"), "LM1")["LM7->LM8"] == pytest.approx((5.563, 14.637), abs=0.001)


@pytest.mark.req("FLT-MAP-11", "FLT-GEO-11")
@pytest.mark.parametrize("name", names(8))
def test_every_position_whose_envelope_meets_a_disc_is_in_its_window(name: str) -> None:
    site = any_site(name)
    draw = np.random.default_rng(100 + len(site.cells))
    discs = [Point(node.at.x_um / 1e6, node.at.y_um / 1e6) for node in site.network.nodes]
    for _ in range(150):
        edge = int(draw.integers(len(site.network.edges)))
        entry = site.network.edges[edge]
        s = int(draw.integers(entry.path.length_um + 1))
        x, y = entry.path.point(s)
        yaw = entry.path.heading(s) / 1e6 + (np.pi if entry.style is MoveStyle.BACKWARD else 0.0)
        shape = envelope((x / 1e6, y / 1e6, yaw))
        for node, centre in enumerate(discs):
            inside = any(w.edge == edge and w.s0 <= s <= w.s1 for w in site.zones.by_node[node])
            if shape.distance(centre) <= RADIUS:
                assert inside, (entry.key, s, site.network.nodes[node].id)
                assert site.conflicts.holds(site.zone(node), site.cells.at(edge, s))
            elif shape.distance(centre) > RADIUS + 0.12:
                assert not inside


def test_the_radius_follows_the_truck() -> None:
    long = compile_map(SINGLE, [replace(FL_STD, tail_um=3_000_000)])

    assert long.zones.radius_um == 3_710_796


@pytest.mark.req("FLT-MAP-11", "FLT-EVO-1")
def test_a_window_that_begins_on_a_border_of_cells_excludes_the_cell_before_it_too() -> None:
    """A pivot at the very end of a cell is at the start of the next."""
    reach = scene("hall-demo").zones.radius_um + 1 + scene("hall-demo").envelope.front_um + 1
    sketch = Sketch("border")
    sketch.node("M", 0, 0)
    sketch.node("N", (5_000_000 + reach) / 1e6, 0)
    sketch.lane("M", "N", back=False)
    site = compile_map(sketch.done(), [FL_STD])
    node = site.node_number["N"]
    (window,) = site.zones.by_node[node]

    assert window.s0 == 5_000_000
    assert window.cell0 == site.cells.at(window.edge, 4_999_999)
    assert site.conflicts.holds(site.zone(node), site.cells.at(window.edge, 4_999_999))


def _single() -> Sketch:
    sketch = Sketch("edge")
    sketch.node("M", 0, 0)
    sketch.node("N", 10, 0)
    sketch.lane("M", "N")
    return sketch


SINGLE = _single().done()
