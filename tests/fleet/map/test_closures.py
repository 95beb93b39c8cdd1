"""Closures by trucks at rest, compared with an independent computation by shapely, without cells."""

import dataclasses
from functools import cache

import pytest
from shapely import Point, Polygon, unary_union
from shapely.geometry.base import BaseGeometry

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.map.resting import Rest, closed_by, rests_of
from pendula.fleet.model import MoveStyle
from pendula.fleet.scenarios import Run
from pendula.fleet.scenarios.model import AllAtRest, Robot, Scenario, TasksDone
from pendula.fleet.simulator.truck import WorldSettings
from pendula.fleet.tasks import TaskOrder
from tests.fleet.map.test_remedies import spurred


@cache
def swept(site: CompiledMap, edge: int) -> BaseGeometry:
    """The area of a whole straight edge."""
    return _box(site, edge, 0, site.network.edges[edge].path.length_um)


def _box(site: CompiledMap, edge: int, low: int, high: int) -> BaseGeometry:
    """The area of the envelope of pivots between two places of a straight edge."""
    entry, envelope = site.network.edges[edge], site.envelope
    front, rear = envelope.front_um, envelope.rear_um
    if entry.style is MoveStyle.BACKWARD:
        front, rear = rear, front
    x, y = float(entry.path.x[0]), float(entry.path.y[0])
    dx, dy = float(entry.path.x[-1]) - x, float(entry.path.y[-1]) - y
    size = (dx * dx + dy * dy) ** 0.5
    dx, dy, side = dx / size, dy / size, envelope.side_um
    corners = ((low - rear, -side), (high + front, -side), (high + front, side), (low - rear, side))
    return Polygon([(x + dx * along - dy * aside, y + dy * along + dx * aside) for along, aside in corners])


def standing(site: CompiledMap, node: int, short_um: int) -> BaseGeometry:
    """The turning disc, and the envelope of a truck that stands up to `short_um` before its node."""
    at = site.network.nodes[node].at
    parts: list[BaseGeometry] = [Point(at.x_um, at.y_um).buffer(site.zones.radius_um, quad_segs=90)]
    for edge in site.network.incoming[node]:
        length = site.network.edges[edge].path.length_um
        parts.append(_box(site, edge, max(0, length - short_um), length))
    return unary_union(parts)


def closed(site: CompiledMap, node: int, short_um: int) -> set[str]:
    """The edges that a truck at rest touches, except those that lead to it."""
    own = {*site.network.incoming[node], *site.network.outgoing[node]}
    area = standing(site, node, short_um)
    edges = range(len(site.network.edges))
    return {site.network.edges[e].key for e in edges if e not in own and swept(site, e).intersects(area)}


def closed_edges(site: CompiledMap, rest: Rest) -> set[str]:
    """Closures for the other trucks, without sections."""
    own = {*site.network.incoming[rest.node], *site.network.outgoing[rest.node]}
    bare = dataclasses.replace(site, sections=())
    return {site.network.edges[edge].key for edge in closed_by(bare, [rest]).edges if edge not in own}


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("seed", [*range(8), 37, 46, 65, 72])
def test_a_truck_at_rest_closes_what_it_touches_and_nothing_beyond_a_cell(seed: int) -> None:
    source, fleet = spurred(seed)
    site = compile_map(source, [FL_STD])

    for rest in rests_of(site, fleet, {"FL-STD": FL_STD}).values():
        least, most = closed(site, rest.node, rest.short_um), closed(site, rest.node, 549_000)
        assert least <= closed_edges(site, rest) <= most


def passing(length: float) -> Scenario:
    """A truck rests in a spur of a length while another drives past its mouth, with all errors its profile allows."""
    sketch = Sketch("passing")
    for name, x, y in (("W", -15.0, 0.0), ("M", 0.0, 0.0), ("E", 15.0, 0.0)):
        sketch.node(name, x, y)
    sketch.node("P", 0, length, "ParkPoint")
    sketch.chain("W", "M", "E")
    sketch.lane("M", "P")
    task = TaskOrder("T", "E", "W", robot_ids=("R2",), pick_ms=0, drop_ms=0)
    return Scenario(
        name="passing",
        title="",
        source=sketch.done(),
        profiles=(FL_STD,),
        robots=(Robot("R1", "P"), Robot("R2", "W")),
        duration_ms=200_000,
        tasks=(task,),
        world=WorldSettings(localization_permille=1000, tracking_permille=1000),
        expect=(TasksDone(None), AllAtRest()),
    )


@pytest.mark.req("FLT-LIVE-7", "FLT-GEO-17")
def test_trucks_pass_a_truck_that_rests_in_the_shortest_spur_that_is_live() -> None:
    assert Run(passing(3.55)).run().unmet == ()
