"""The map as GeoJSON: every part once, in metres, at the place that shapely computes."""

import json
from typing import Any

import numpy as np
import pytest
import shapely

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler.samples import FL_STD, hall_demo
from pendula.fleet.pictures.geojson import map_geojson
from pendula.fleet.pictures.map import Layer
from tests.fleet.sites import SCENES, scene

SITES = ("hall-demo", "tail-swing-bend", "reference-hall", "small-warehouse")


def features(site: CompiledMap, kind: str) -> dict[str, Any]:
    every = json.loads(map_geojson(site))["features"]
    return {feature["properties"]["id"]: feature for feature in every if feature["properties"]["kind"] == kind}


def shape(feature: dict[str, Any]) -> Any:
    return shapely.from_geojson(json.dumps(feature["geometry"]))


@pytest.mark.req("FLT-MAP-21")
@pytest.mark.parametrize("name", SCENES)
def test_every_part_of_a_map_is_there_once(name: str) -> None:
    site = scene(name)

    whole = json.loads(map_geojson(site))
    kinds = [feature["properties"]["kind"] for feature in whole["features"]]

    assert {kind: kinds.count(kind) for kind in ("node", "edge", "cell", "zone", "window", "conflict")} == {
        "node": len(site.network.nodes),
        "edge": len(site.network.edges),
        "cell": len(site.cells),
        "zone": len(site.network.nodes),
        "window": len(site.zones.windows),
        "conflict": len(site.named),
    }
    assert len({feature["id"] for feature in whole["features"]}) == len(kinds)
    assert whole["compiledMapHash"] == site.compiled_hash


@pytest.mark.req("FLT-MAP-21")
@pytest.mark.parametrize("name", SITES)
def test_swept_areas_meet_exactly_where_cells_conflict(name: str) -> None:
    site = scene(name)
    shapes = {key: shape(feature) for key, feature in features(site, "cell").items()}
    draw = np.random.default_rng(5)

    for a, b in draw.integers(0, len(site.cells), (300, 2)).tolist():
        first, second = (site.network.edges[int(site.cells.edge[cell])] for cell in (a, b))
        if first.group_key == second.group_key and first.key != second.key:
            continue
        apart = shapely.distance(shapes[site.cell_name(a)], shapes[site.cell_name(b)])
        assert bool(apart <= 1e-9) is site.conflicts.holds(a, b)


@pytest.mark.req("FLT-MAP-21")
def test_discs_are_as_wide_as_a_truck_turns_and_windows_lie_on_their_edges() -> None:
    site = scene("hall-demo")
    zones, edges = features(site, "zone"), features(site, "edge")
    radius = site.zones.radius_um / 1e6

    for node in site.network.nodes:
        ring = shape(zones[node.id])
        middle = shapely.Point(node.at.x_um / 1e6, node.at.y_um / 1e6)
        assert ring.is_valid
        assert ring.exterior.is_ccw
        assert shapely.hausdorff_distance(ring.exterior, middle) == pytest.approx(radius, abs=2e-6)
        assert shapely.distance(ring.exterior, middle) == pytest.approx(radius, rel=0.005)
    for feature in features(site, "window").values():
        line = shape(edges[feature["properties"]["edgeKey"]])
        assert line.buffer(1e-5).covers(shape(feature))
        assert shape(feature).length == pytest.approx(
            feature["properties"]["s1M"] - feature["properties"]["s0M"], abs=1e-5
        )


@pytest.mark.req("FLT-MAP-21")
def test_a_conflict_shows_the_windows_on_both_lanes() -> None:
    conflict = features(scene("hall-demo"), "conflict")["C-8fb4d134b8ed"]

    assert {conflict["properties"]["a"], conflict["properties"]["b"]} == {"LM1<->LM2", "LM7<->LM8"}
    assert {line.coords[0][1] for line in shape(conflict).geoms} == {0.0, 1.7}


@pytest.mark.req("FLT-MAP-21")
def test_the_same_map_gives_the_same_bytes_and_layers_choose() -> None:
    again = compile_map(hall_demo(), [FL_STD])

    assert map_geojson(again) == map_geojson(scene("hall-demo"))
    assert map_geojson(again, [Layer.CELLS]) != map_geojson(again)
    assert json.loads(map_geojson(again, [Layer.LABELS]))["features"] == []
