"""Critical sections: authored ones, and a generated one for every dead end with a station or parking."""

import pytest
from msgspec.structs import replace

from pendula.fleet import CompiledMap, MapRefused, compile_map, examine
from pendula.fleet.compiler.samples import FL_STD, Sketch, hall_demo
from pendula.fleet.model import Code, Origin, SourceMember, SourceSection
from tests.fleet.sites import scene, sketched


def stands(site: CompiledMap, key: str) -> str:
    """One letter for every cell of an edge."""
    return "".join(site.stand(cell).value[1] for cell in site.cells.of_edge(site.edge_number[key]))


@pytest.mark.req("FLT-DCL-19", "FLT-MAP-13")
def test_dead_ends_with_a_purpose_become_sections() -> None:
    site = scene("hall-demo")

    assert {section.id: (section.capacity, section.origin) for section in site.sections} == {
        "SPUR-AP1": (1, Origin.GENERATED),
        "SPUR-PK1": (1, Origin.GENERATED),
        "SPUR-PK2": (1, Origin.GENERATED),
    }
    assert stands(site, "LM2->AP1") == "o" * 12


@pytest.mark.req("FLT-DCL-19")
def test_on_a_line_without_branches_each_end_is_a_section_of_its_own() -> None:
    sketch = Sketch("line")
    for name, x, kind in (("A", 0, "ActionPoint"), ("B", 12, ""), ("C", 24, ""), ("D", 36, "ParkPoint")):
        sketch.node(name, x, 0, kind)
    sketch.chain("A", "B", "C", "D")
    site = compile_map(sketch.done(), [FL_STD])

    members = {
        section.id: [site.network.groups[part.group].key for part in section.members] for section in site.sections
    }

    assert members == {"SPUR-A": ["A<->B"], "SPUR-D": ["C<->D"]}


@pytest.mark.req("FLT-DCL-19")
def test_a_spur_reaches_to_the_next_branch() -> None:
    sketch = Sketch("long-spur")
    for name, x, y in (("W", -20, 0), ("M", 0, 0), ("E", 20, 0), ("S1", 0, 10), ("S2", 0, 20)):
        sketch.node(name, x, y)
    sketch.node("P", 0, 30, "ParkPoint")
    sketch.chain("W", "M", "E")
    sketch.chain("M", "S1", "S2", "P")
    site = compile_map(sketch.done(), [FL_STD])

    (section,) = site.sections

    assert [site.network.groups[part.group].key for part in section.members] == ["M<->S1", "P<->S2", "S1<->S2"]


@pytest.mark.req("FLT-MAP-12", "FLT-MAP-13")
def test_an_authored_section_replaces_the_generated_one() -> None:
    drawn = SourceSection("SPUR-AP1", 2, (SourceMember("AP1<->LM2"),))
    site = compile_map(replace(hall_demo(), sections=(drawn,)), [FL_STD])

    (section,) = (section for section in site.sections if section.id == "SPUR-AP1")

    assert (section.capacity, section.origin) == (2, Origin.AUTHORED)


@pytest.mark.req("FLT-MAP-13")
def test_an_interval_of_a_section_is_mirrored_on_the_way_back() -> None:
    part = SourceSection("NECK", 1, (SourceMember("LM1<->LM2", 2_000_000, 4_000_000),))
    site = compile_map(replace(hall_demo(), sections=(part,)), [FL_STD])

    inside = {
        site.cell_name(cell)
        for cell in site.sections_of_cell
        if site.sections[site.sections_of_cell[cell][0]].id == "NECK"
    }

    assert inside == {f"LM1->LM2#{i}" for i in range(4, 8)} | {f"LM2->LM1#{i}" for i in range(12, 16)}


@pytest.mark.req("FLT-MAP-12")
@pytest.mark.parametrize(
    "member", [SourceMember("LM2<->LM1"), SourceMember("X<->Y"), SourceMember("LM1<->LM2", 5_000_000, 5_000_000)]
)
def test_a_section_of_an_unknown_group_is_rejected(member: SourceMember) -> None:
    report = examine(replace(hall_demo(), sections=(SourceSection("S", 1, (member,)),)), [FL_STD])

    assert report.compiled is None
    assert [finding.code for finding in report.findings if finding.severity.value == "ERROR"] == [Code.MAP_PARSE_ERROR]


def test_a_section_that_ends_inside_an_edge_has_exit_room_there() -> None:
    sketch = sketched(("A", 0, 0), ("B", 30, 0), ("C", 31, 0))
    sketch.chain("A", "B", "C", back=False)
    neck = SourceSection("N", 1, (SourceMember("A<->B", 2_000_000, 4_000_000),))
    found = examine(replace(sketch.done(), sections=(neck,)), [FL_STD]).findings
    assert "CS_WITHOUT_EXIT_ROOM" not in {f.code.value for f in found}


@pytest.mark.req("FLT-DCL-19")
def test_a_section_over_a_part_of_a_spur_does_not_replace_its_token() -> None:
    part = SourceSection("X", 1, (SourceMember("LM3<->PK1", 0, 100_000),))
    site = compile_map(replace(hall_demo(), sections=(part,)), [FL_STD])
    assert "SPUR-PK1" in {section.id for section in site.sections}


@pytest.mark.req("FLT-DCL-19")
def test_the_name_of_a_generated_section_cannot_be_taken() -> None:
    taken = SourceSection("SPUR-PK1", 1, (SourceMember("LM1<->LM2"),))
    with pytest.raises(MapRefused):
        compile_map(replace(hall_demo(), sections=(taken,)), [FL_STD])
