"""Parts of a map by their ids: highlighted cells and sentences."""

from xml.etree import ElementTree

import pytest

from pendula.fleet.pictures.map import Reasons, UnknownPart, highlight_of, map_svg
from tests.fleet.sites import scene

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in parsed(picture).iter(f"{SVG}text")]


def layers(picture: str) -> list[str]:
    return [group.get("id", "") for group in parsed(picture) if group.get("id")]


@pytest.mark.parametrize("name", ["hall-demo", "small-warehouse", "near-lanes"])
def test_reasons_of_a_cell_are_those_of_the_map(name: str) -> None:
    site, reasons = scene(name), Reasons(scene(name))

    for cell in range(0, len(site.cells), 7):
        words = reasons.words(cell, cell).partition(f": {site.stand(cell).value}")[2]
        every = site.stand_reasons(cell)
        # A section forbids everything that is unwanted there.
        mentioned = [text for text in every if text.startswith("CS:")] or every
        assert words == (f" ({', '.join(mentioned)})" if mentioned else "")


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("LM2", "node LM2: what must be free while a truck turns there"),
        ("NODE:LM2", "node LM2: what must be free while a truck turns there"),
        ("LM1->LM2", "edge LM1->LM2, 10 m: the floor its envelope sweeps"),
        ("LM1<->LM2", "group LM1<->LM2, 10 m"),
        ("EDGE_GROUP:LM1<->LM2", "group LM1<->LM2, 10 m"),
        ("C-8fb4d134b8ed", "conflict C-8fb4d134b8ed: LM1<->LM2 and LM7<->LM8"),
        ("CONFLICT:C-8fb4d134b8ed", "conflict C-8fb4d134b8ed: LM1<->LM2 and LM7<->LM8"),
        ("CS:SPUR-PK1", "section SPUR-PK1: at most 1 truck at a time"),
        ("LM1->LM2#3", "cell LM1->LM2#3: its swept area, what it excludes, and what keeps the following gap"),
    ],
)
def test_every_kind_of_part_can_be_highlighted(part: str, sentence: str) -> None:
    picture = map_svg(scene("hall-demo"), highlight=[part])

    assert sentence in texts(picture)
    assert "highlight" in layers(picture)


def test_a_corridor_is_highlighted_with_its_length() -> None:
    site = scene("ring-with-bypass")

    found = highlight_of(site, site.corridors[0].id)

    assert found.sentence.startswith(f"corridor {site.corridors[0].id}, ")
    assert found.nodes == site.corridors[0].ends


def test_a_highlighted_cell_shows_its_conflict_set() -> None:
    site = scene("hall-demo")
    cell = site.cells.of_edge(site.edge_number["LM7->LM8"])[30]

    found = highlight_of(site, "LM7->LM8#30")

    shown = {number for low, high in found.excluded for number in range(low, high + 1)}
    assert found.chosen == ((cell, cell),)
    assert shown == {number for number in site.conflicts.members(cell) if number < len(site.cells)}


@pytest.mark.parametrize("part", ["", "LM9", "LM1->LM2#20", "LM1->LM2#", "LM1->LM2#²", "NODE:", "CS:LM1", "#3"])
def test_an_unknown_part_is_refused(part: str) -> None:
    with pytest.raises(UnknownPart, match="has no node, edge, group"):
        highlight_of(scene("hall-demo"), part)
