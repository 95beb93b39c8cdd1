"""Queries of a compiled map: names, exclusions, capacities."""

import pytest
from msgspec.structs import replace

from pendula.fleet import compile_map
from pendula.fleet.compiler.samples import FL_STD, hall_demo
from pendula.fleet.model import SourceMember, SourceSection
from tests.fleet.sites import scene


def test_resources_have_names() -> None:
    site = scene("hall-demo")

    assert site.resource_name(0) == "AP1->LM2#0"
    assert site.resource_name(site.zone(site.node_number["LM1"])) == "NODE:LM1"
    assert site.resource_name(site.token(0)) == "CS:SPUR-AP1"


@pytest.mark.req("FLT-MAP-13", "FLT-LIVE-3")
def test_cells_zones_and_sections_share_one_interface() -> None:
    site = scene("hall-demo")
    token = site.token(0)
    last = site.token(len(site.sections))

    assert site.excluded(token) == [(token, token)]
    assert [site.excluded(resource) for resource in range(len(site.conflicts))] == [
        site.conflicts.ranges(resource) for resource in range(len(site.conflicts))
    ]
    assert {site.capacity(resource) for resource in range(last)} == {1}
    for nothing in (-1, last):
        with pytest.raises(IndexError, match=f"there is no resource {nothing}"):
            site.excluded(nothing)


@pytest.mark.req("FLT-MAP-12", "FLT-MAP-13")
def test_a_section_has_its_capacity() -> None:
    wide = replace(hall_demo(), sections=(SourceSection("WIDE", 3, (SourceMember("LM1<->LM2"),)),))
    site = compile_map(wide, [FL_STD])

    tokens = {site.resource_name(site.token(k)): site.capacity(site.token(k)) for k in range(len(site.sections))}

    assert tokens["CS:WIDE"] == 3
    assert {capacity for name, capacity in tokens.items() if name != "CS:WIDE"} == {1}


@pytest.mark.req("FLT-LIVE-3", "FLT-RES-3")
def test_what_blocks_a_cell_is_what_it_excludes_and_what_the_following_gap_adds() -> None:
    site = scene("reference-hall")
    for resource in range(0, site.token(len(site.sections)), 7):
        rows = {number for low, high in site.excluded(resource) for number in range(low, high + 1)}
        if resource < len(site.cells):
            rows |= set(site.following.members(resource))

        assert site.blocking(resource) == sorted(rows)
