"""The picture of a map: well-formed, the same bytes every time, and every part at its place on the site."""

import os
import subprocess
import sys
from re import findall
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from pendula.fleet import compile_map
from pendula.fleet.compiler.samples import FL_STD, Sketch, hall_demo, plus_crossing
from pendula.fleet.model import SourceMap
from pendula.fleet.pictures.map import Layer, map_svg
from tests.fleet.sites import SCENES, random_site, scene

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in parsed(picture).iter(f"{SVG}text")]


def tooltips(picture: str, layer: str) -> list[str]:
    return [
        title.text or ""
        for group in parsed(picture).iter(f"{SVG}g")
        if group.get("id") == layer
        for title in group.iter(f"{SVG}title")
    ]


def layers(picture: str) -> list[str]:
    return [group.get("id", "") for group in parsed(picture) if group.get("id")]


@pytest.mark.parametrize("name", list(SCENES))
def test_every_scene_is_a_well_formed_picture_with_its_title_and_hash(name: str) -> None:
    site = scene(name)

    labels = texts(map_svg(site))

    assert labels[0] == site.map_id
    assert site.compiled_hash in labels


@pytest.mark.parametrize("name", ["hall-demo", "reference-hall", "tail-swing-bend"])
def test_all_coordinates_lie_on_the_sheet(name: str) -> None:
    picture = map_svg(scene(name))
    width, height = (float(parsed(picture).get(side, "0")) for side in ("width", "height"))

    for path in (element.get("d", "") for element in parsed(picture).iter(f"{SVG}path")):
        for x, y in findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path):
            assert -20 <= float(x) <= width
            assert -20 <= float(y) <= height


def test_the_same_map_gives_the_same_bytes_under_any_hash_seed() -> None:
    code = (
        "import sys; from tests.fleet.sites import scene; from pendula.fleet.pictures.map import map_svg;"
        "sys.stdout.write(map_svg(scene('hall-demo'), highlight=['LM2', 'LM7->LM8#20']))"
    )

    def drawn(seed: str) -> bytes:
        environ = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environ).stdout

    assert drawn("1") == drawn("2") == map_svg(scene("hall-demo"), highlight=["LM2", "LM7->LM8#20"]).encode()


def test_tooltips_of_cells_have_marks_and_reasons() -> None:
    site = scene("hall-demo")

    titles = tooltips(map_svg(site), "cells")

    assert "LM3->PK2#0 to #15, 0 to 8 m: forbidden (CS:SPUR-PK2)" in titles
    assert "LM2->LM3#10 to #13, 5 to 7 m: free" in titles
    assert sum("CONFLICT:C-773d3caa9eea" in text for text in titles) == 3


def test_every_cell_is_in_one_strip() -> None:
    site = scene("small-warehouse")

    titles = tooltips(map_svg(site), "cells")

    counts = [
        int(last or first) - int(first) + 1
        for text in titles
        for first, last in findall(r"^\S+#(\d+)(?: to #(\d+))?,", text)
    ]
    assert sum(counts) == len(site.cells)


def test_nodes_stations_and_parking_have_signs_and_names() -> None:
    picture = map_svg(scene("reference-hall"))

    assert {"A1", "B2", "WEST", "EAST", "P1", "P4"} <= set(texts(picture))
    assert "WEST (-9, 0): ActionPoint, station; 1 lane" in tooltips(picture, "nodes")
    assert "P3 (0, 22): ParkPoint, parking; 1 lane" in tooltips(picture, "nodes")
    assert [element.get("class") for element in parsed(picture).iter(f"{SVG}circle")].count("parking") == 5
    assert [element.get("class") for element in parsed(picture).iter(f"{SVG}rect")].count("station") == 3


def test_places_to_wait_name_the_corridors_they_are_for() -> None:
    site = scene("spur")
    places = {cell for mouth in site.standing.mouths for cell in mouth.waiting}

    titles = tooltips(map_svg(site), "stands")

    assert len(titles) == len(places)
    assert all(": wait here, pivot at " in text and " m, for C:" in text for text in titles)


def test_conflicts_are_hatched_and_listed() -> None:
    picture = map_svg(scene("hall-demo"))

    assert "C-8fb4d134b8ed: LM1<->LM2 and LM7<->LM8" in texts(picture)
    assert "CONFLICT:C-8fb4d134b8ed: LM1<->LM2 and LM7<->LM8 exclude each other" in tooltips(picture, "conflicts")


def test_only_the_selected_layers_are_drawn() -> None:
    every = layers(map_svg(scene("hall-demo")))
    some = layers(map_svg(scene("hall-demo"), [Layer.ZONES, Layer.LABELS]))

    assert every == ["floor", "zones", "conflicts", "cells", "stands", "arrows", "nodes", "labels"]
    assert some == ["zones", "nodes", "labels"]


def test_without_cells_edges_are_lines() -> None:
    site = scene("hall-demo")

    picture = map_svg(site, [Layer.EDGES])

    assert [element.get("class") for element in parsed(picture).iter(f"{SVG}path")].count("lane") == 11
    assert "LM2->AP1, 6 m, driven backward" in tooltips(picture, "lanes")


def test_the_legend_explains_only_signs_that_occur() -> None:
    plain = texts(map_svg(scene("plus-crossing")))
    rich = texts(map_svg(scene("hall-demo")))

    assert not {"parking", "station", "driven backward", "conflict of two lanes"} & set(plain)
    assert {"parking", "station", "driven backward", "conflict of two lanes"} <= set(rich)


def test_the_picture_is_to_scale() -> None:
    site = compile_map(plus_crossing(), [FL_STD])
    nodes = {
        (group.findtext(f"{SVG}title") or "").split(" ")[0]: group.find(f"{SVG}circle")
        for layer in parsed(map_svg(site))
        if layer.get("id") == "nodes"
        for group in layer
    }
    at = {
        name: (float(node.get("cx", 0)), float(node.get("cy", 0))) for name, node in nodes.items() if node is not None
    }

    assert at["E"][0] - at["X"][0] == pytest.approx(at["X"][0] - at["W"][0], abs=0.11)
    assert at["X"][1] - at["N"][1] == pytest.approx(at["E"][0] - at["X"][0], abs=0.11)
    assert at["S"][1] > at["N"][1]


def test_names_from_a_file_cannot_break_the_picture() -> None:
    sketch = Sketch("<script>&\u202e\u0007")
    sketch.node("<b>&\"'", 0, 0)
    sketch.node("B", 9, 0)
    sketch.lane("<b>&\"'", "B")

    picture = map_svg(compile_map(sketch.done(), [FL_STD]))

    assert "<b>&\"'" in texts(picture)
    assert "<script>" not in picture
    assert "\u202e" not in picture


@pytest.mark.parametrize("nodes", [0, 1])
def test_a_map_without_lanes_is_an_empty_sheet(nodes: int) -> None:
    whole = hall_demo()
    source = SourceMap("bare", whole.nodes[:nodes], ())

    picture = map_svg(compile_map(source, [FL_STD]))

    assert texts(picture)[0] == "bare"


def test_a_map_of_many_kilometres_fits_on_a_sheet() -> None:
    sketch = Sketch("far")
    sketch.node("A", 0, 0)
    sketch.node("B", 9000, 0)
    sketch.lane("A", "B")

    picture = parsed(map_svg(compile_map(sketch.done(), [FL_STD])))

    assert float(picture.get("width", "0")) <= 20_100


@pytest.mark.parametrize("seed", range(6))
def test_random_maps_can_be_drawn(seed: int) -> None:
    site = random_site(seed)

    assert len(tooltips(map_svg(site), "nodes")) == len(site.network.nodes)


def test_a_margin_between_lanes_is_part_of_the_floor() -> None:
    from pendula.fleet.compiler.compile import DEFAULT_PARAMS

    site = compile_map(plus_crossing(), [FL_STD], replace(DEFAULT_PARAMS, conflict_margin_um=200_000))

    assert layers(map_svg(site))[0] == "floor"


def dots(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


def spread(found: list[tuple[float, float]]) -> tuple[float, float]:
    x, y = [point[0] for point in found], [point[1] for point in found]
    return max(x) - min(x), max(y) - min(y)


def test_the_floor_of_an_edge_is_as_long_and_wide_as_its_cells() -> None:
    site = scene("straight-lane")
    frame = site.cells.boxes()[site.cells.first[0] : site.cells.first[1]]
    wide, tall = (frame[:, 2].max() - frame[:, 0].min()) / 1e6, (frame[:, 3].max() - frame[:, 1].min()) / 1e6
    picture = map_svg(site, highlight=["A->B"])
    (group,) = (layer for layer in parsed(picture) if layer.get("id") == "highlight")
    (area,) = group.iter(f"{SVG}path")
    scale = spread(dots(area.get("d", "")))[0] / wide

    assert spread(dots(area.get("d", "")))[1] == pytest.approx(tall * scale, abs=0.2)
    assert area.get("d", "").count("M") == 1
    assert wide == pytest.approx(64.4, abs=0.001)


def test_each_direction_of_a_lane_is_drawn_on_its_right() -> None:
    picture = parsed(map_svg(scene("straight-lane"), [Layer.CELLS]))
    heights: dict[str, float] = {}
    for group in (element for layer in picture if layer.get("id") == "cells" for element in layer):
        name = (group.findtext(f"{SVG}title") or "").partition("#")[0]
        (strip,) = group.iter(f"{SVG}path")
        heights[name] = dots(strip.get("d", ""))[0][1]

    # East is to the right of the sheet: a truck driving east has the south, further down, on its right.
    assert heights["A->B"] > heights["B->A"]
