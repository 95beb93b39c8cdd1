"""The artifact: hashes, bytes that do not depend on order, machine or history, and what a damaged file is."""

import json
import os
import random
import subprocess
import sys
from decimal import Decimal
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from pendula.documents import read_bytes
from pendula.fleet import (
    CompiledMap,
    CompileParams,
    MapDamaged,
    SourceMap,
    compile_map,
    examine,
    from_bytes,
    read_source_map,
    to_bytes,
)
from pendula.fleet.compiler.overlaps import overlapping
from pendula.fleet.compiler.source_form import source_form
from pendula.fleet.exclusion.cells import Cells, Ints
from pendula.fleet.model import Granularity, Point, SourceMember, SourceSection
from pendula.fleet.samples.halls import warehouse
from pendula.fleet.samples.random_maps import random_map
from pendula.fleet.samples.scenes import FL_STD, Sketch, hall_demo
from pendula.fleet.site.file_names import cell_form
from pendula.fleet.trucks.profiles import hash_of
from pendula.kernel.canonical import encode
from tests.fleet.sites import SCENES, random_site, scene

GOLDEN = Path(__file__).parents[1] / "golden"
SOURCE = Path(__file__).parents[3] / "src"

PRINT_HASHES = """
from pendula.fleet import compile_map
from pendula.fleet.samples import halls, scenes
from pendula.fleet.samples.random_maps import random_map
maps = [scenes.hall_demo(), scenes.tail_swing_bend(), scenes.near_lanes()]
maps += [halls.reference_hall(), halls.warehouse(4, 6, 2)]
for source in [*maps, *(random_map(seed) for seed in range(6))]:
    print(compile_map(source, [scenes.FL_STD]).compiled_hash)
"""


def shuffled(source: SourceMap, seed: int) -> SourceMap:
    draw = random.Random(seed)
    nodes, edges = list(source.nodes), list(source.edges)
    draw.shuffle(nodes)
    draw.shuffle(edges)
    return replace(source, nodes=tuple(nodes), edges=tuple(edges))


def hashes(**environment: str) -> list[str]:
    """The hashes of a few maps, computed by another interpreter."""
    told = subprocess.run(
        [sys.executable, "-c", PRINT_HASHES],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
    )
    return told.stdout.split()


def cpu_features() -> str:
    """All optional features of this processor that numpy could be told to leave out."""
    umath = import_module("numpy._core._multiarray_umath")
    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name))


@pytest.mark.req("FLT-MAP-2", "FLT-MAP-11", "FLT-API-3")
def test_the_example_of_the_contract_comes_out_of_its_source() -> None:
    """13.2 compiled for FL-STD gives 13.3; windows of the example are without slack."""
    source = read_source_map(read_bytes((GOLDEN / "SourceMap.json").read_bytes()))
    wanted = json.loads((GOLDEN / "CompiledMap.json").read_text(), parse_float=Decimal)
    made = json.loads(to_bytes(compile_map(source, [FL_STD])), parse_float=Decimal)

    for part in ("mapId", "units", "edgeConflictGroups", "edgeGroups", "criticalSections", "contractVersion"):
        assert made[part] == wanted[part], part
    for part in ("nodes", "edges", "conflicts"):
        assert [{name: one[name] for name in two} for one, two in zip(made[part], wanted[part], strict=True)] == wanted[
            part
        ]
    for one, two in zip(made["nodeZones"], wanted["nodeZones"], strict=True):
        assert (one["nodeId"], one["radiusM"], one["overlapsNodes"]) == (
            two["nodeId"],
            two["radiusM"],
            two["overlapsNodes"],
        )
        assert [window["edgeKey"] for window in one["windows"]] == [window["edgeKey"] for window in two["windows"]]
        for window, other in zip(one["windows"], two["windows"], strict=True):
            assert float(window["s0M"]) == pytest.approx(float(other["s0M"]), abs=0.001)
            assert float(window["s1M"]) == pytest.approx(float(other["s1M"]), abs=0.001)
    found = {(one["code"], encode(one["details"])) for one in made["validation"]}
    for one in wanted["validation"]:
        details = [item for item in made["validation"] if item["code"] == one["code"]]
        assert any(one["details"].items() <= item["details"].items() for item in details), one
    assert len(found) == len(made["validation"])


@pytest.mark.req("FLT-EVO-1", "FLT-EVO-2", "FLT-EVO-4")
def test_the_cell_of_the_contract_comes_out_too() -> None:
    site = scene("hall-demo")
    wanted = json.loads((GOLDEN / "Cell.json").read_text(), parse_float=Decimal)

    made = cell_form(site, int(site.cells.first[site.edge_number["LM1->LM2"]]) + 7)

    for part in (
        "cellId",
        "edgeKey",
        "s0M",
        "s1M",
        "dir",
        "stand",
        "standReasons",
        "criticalSectionId",
        "followingSet",
    ):
        assert made[part] == wanted[part], part
    assert set(wanted["conflictSet"]) <= set(made["conflictSet"])
    assert sum(name.startswith("LM2->LM1#") for name in made["conflictSet"]) == 20


@pytest.mark.req("FLT-MAP-18")
@pytest.mark.parametrize("name", SCENES)
def test_a_map_is_read_back_byte_for_byte(name: str) -> None:
    data = to_bytes(scene(name))

    again = from_bytes(data)

    assert to_bytes(again) == data
    assert again.compiled_hash == scene(name).compiled_hash


@pytest.mark.req("FLT-MAP-9", "FLT-MAP-18")
@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_the_source_makes_no_difference(seed: int) -> None:
    source = random_map(seed, 4, 9)

    assert examine(shuffled(source, seed), [FL_STD]).data == examine(source, [FL_STD]).data


@pytest.mark.req("FLT-MAP-9", "FLT-MAP-18")
@pytest.mark.parametrize("order", range(6))
def test_neither_parallel_edges_nor_doubled_ids_depend_on_the_order(order: int) -> None:
    sketch = Sketch("lanes")
    sketch.node("A", 0, 0)
    sketch.node("B", 20, 0)
    for height in (3, -3, 6):
        sketch.bezier("A", "B", (7, height), (13, height))
    lanes = sketch.done()
    twice = replace(
        lanes, edges=(*lanes.edges, replace(lanes.edges[0], end="NOWHERE"), replace(lanes.edges[1], end="A"))
    )

    assert examine(shuffled(lanes, order), [FL_STD]).data == examine(lanes, [FL_STD]).data is not None
    assert examine(shuffled(twice, order), [FL_STD]).findings == examine(twice, [FL_STD]).findings


@pytest.mark.req("FLT-MAP-18")
def test_neither_hash_seed_nor_processor_makes_a_difference() -> None:
    here = hashes(PYTHONHASHSEED="1")

    assert hashes(PYTHONHASHSEED="2") == here
    assert hashes(NPY_DISABLE_CPU_FEATURES=cpu_features()) == here
    assert len(set(here)) == len(here) == 11


@pytest.mark.req("FLT-MAP-19")
def test_the_hash_is_that_of_the_bytes_without_it() -> None:
    data = to_bytes(scene("hall-demo"))
    form = json.loads(data, parse_float=Decimal)
    claimed = form.pop("compiledMapHash")

    assert claimed == "sha256:" + sha256(encode(form)).hexdigest()
    assert encode({**form, "compiledMapHash": claimed}) == data


@pytest.mark.req("FLT-MAP-19")
def test_hashes_move_when_and_only_when_meaning_moves() -> None:
    source, base = hall_demo(), scene("hall-demo")
    renamed = replace(source, map_id="other")
    moved = replace(source, nodes=tuple(replace(n, at=Point(n.at.x_um + 1, n.at.y_um)) for n in source.nodes))
    faster = replace(FL_STD, v_max_um_s=2_000_000)
    fatter = replace(FL_STD, width_um=1_000_002)

    def pair(site: CompiledMap) -> tuple[bool, bool, bool]:
        return (
            site.map_hash == base.map_hash,
            site.profile_hash == base.profile_hash,
            site.compiled_hash == base.compiled_hash,
        )

    assert pair(compile_map(shuffled(source, 3), [FL_STD])) == (True, True, True)
    assert pair(compile_map(source, [faster])) == (True, True, True)
    assert pair(compile_map(renamed, [FL_STD])) == (False, True, False)
    assert pair(compile_map(moved, [FL_STD])) == (False, True, False)
    assert pair(compile_map(source, [fatter])) == (True, False, False)
    assert pair(compile_map(source, [FL_STD], CompileParams(cell_len_um=600_000))) == (False, True, False)
    assert pair(compile_map(source, [FL_STD], CompileParams(granularity=Granularity.EDGE))) == (False, True, False)


@pytest.mark.req("FLT-MAP-19", "FLT-MAP-20")
def test_the_profile_hash_covers_all_types_in_any_order() -> None:
    other = replace(FL_STD, profile_id="OTHER")

    assert hash_of([FL_STD, other]) == hash_of([other, FL_STD]) != hash_of([FL_STD])


@pytest.mark.req("FLT-MAP-9")
def test_an_unchanged_part_keeps_its_ids() -> None:
    """A lane across the aisle from LM3 to PK1, whose name comes before all others: every number moves, no name does."""
    source, before = hall_demo(), scene("hall-demo")
    names = (("AA1", 6_000_000, -18_000_000), ("AA2", 6_000_000, -8_000_000))
    nodes = tuple(replace(source.nodes[0], id=name, at=Point(x, y)) for name, x, y in names)
    lane = replace(source.edges[0], id="e00000", start="AA1", end="AA2")

    after = compile_map(replace(source, nodes=(*nodes, *source.nodes), edges=(lane, *source.edges)), [FL_STD])

    def conflicts(site: CompiledMap) -> dict[str, tuple[str, str]]:
        groups = site.network.groups
        return {one.id: (groups[one.a].key, groups[one.b].key) for one in site.named}

    def named_cells(site: CompiledMap) -> dict[str, set[str]]:
        new = ("AA1", "NODE:AA")
        return {
            site.resource_name(row): {
                name for name in map(site.resource_name, site.conflicts.members(row)) if not name.startswith(new)
            }
            for row in range(len(site.conflicts))
            if not site.resource_name(row).startswith(new)
        }

    assert conflicts(before).items() < conflicts(after).items()
    assert ("AA1<->AA2", "LM3<->PK1") in conflicts(after).values()
    assert {one.id for one in before.corridors} < {one.id for one in after.corridors}
    assert before.edge_number["LM1->LM2"] != after.edge_number["LM1->LM2"]
    assert named_cells(before) == named_cells(after)


@pytest.mark.req("FLT-MAP-16")
def test_every_damaged_byte_is_noticed() -> None:
    data = to_bytes(scene("straight-lane"))
    draw = random.Random(5)

    for _ in range(200):
        at = draw.randrange(len(data))
        bad = data[:at] + bytes([data[at] ^ (1 << draw.randrange(7))]) + data[at + 1 :]
        with pytest.raises(MapDamaged):
            from_bytes(bad)
    for cut in (0, 1, 100, len(data) - 1):
        with pytest.raises(MapDamaged):
            from_bytes(data[:cut])


@pytest.mark.req("FLT-MAP-18")
@pytest.mark.parametrize("seed", range(8))
def test_a_changed_node_recompiled_on_top_gives_the_bytes_of_a_full_compilation(seed: int) -> None:
    source, before = random_map(seed), random_site(seed)
    draw = random.Random(seed)
    node, by = draw.randrange(len(source.nodes)), draw.randint(-400, 400)
    shift = replace(source.nodes[node], at=Point(source.nodes[node].at.x_um + by * 1000, source.nodes[node].at.y_um))
    changed = replace(source, nodes=(*source.nodes[:node], shift, *source.nodes[node + 1 :]))

    quick, whole = examine(changed, [FL_STD], previous=before), examine(changed, [FL_STD])

    assert quick.data == whole.data
    assert quick.findings == whole.findings


@pytest.mark.req("FLT-MAP-18")
@pytest.mark.parametrize("granularity", Granularity)
def test_edges_added_and_removed_recompiled_on_top_give_the_same_bytes(granularity: Granularity) -> None:
    params = CompileParams(granularity=granularity)
    source = warehouse(4, 6, 2)
    before = from_bytes(to_bytes(compile_map(source, [FL_STD], params)))
    fewer = replace(source, edges=source.edges[3:])

    assert examine(fewer, [FL_STD], params, before).data == examine(fewer, [FL_STD], params).data
    after = examine(fewer, [FL_STD], params).compiled
    assert examine(source, [FL_STD], params, after).data == examine(source, [FL_STD], params).data
    assert examine(source, [FL_STD], CompileParams(cell_len_um=700_000), before).data != to_bytes(before)


@pytest.mark.req("FLT-MAP-1")
def test_only_pairs_with_a_changed_edge_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = warehouse(4, 6, 2)
    before = compile_map(source, [FL_STD])
    asked: list[int] = []

    def counting(cells: Cells, among: Ints | None = None) -> tuple[Ints, Ints]:
        asked.append(len(cells) if among is None else len(among))
        return overlapping(cells, among)

    monkeypatch.setattr("pendula.fleet.compiler.compile.overlapping", counting)
    first = replace(source.nodes[0], at=Point(source.nodes[0].at.x_um, -100_000))
    compile_map(replace(source, nodes=(first, *source.nodes[1:])), [FL_STD], previous=before)

    (count,) = asked
    assert 0 < count < len(before.cells) / 8


def test_resources_have_names() -> None:
    site = scene("hall-demo")

    assert site.resource_name(0) == "AP1->LM2#0"
    assert site.resource_name(site.zone(site.node_number["LM1"])) == "NODE:LM1"
    assert site.resource_name(site.token(0)) == "CS:SPUR-AP1"


def test_the_loaded_map_answers_like_the_compiled_one() -> None:
    site = random_site(4)
    again = from_bytes(to_bytes(site))

    assert again.network == site.network
    assert np.array_equal(again.cells.quads, site.cells.quads)
    assert again.zones == site.zones
    assert again.named == site.named
    assert again.corridors == site.corridors
    assert again.standing == site.standing
    assert again.sections == site.sections
    assert (again.params, again.envelope, again.findings) == (site.params, site.envelope, site.findings)


@pytest.mark.req("FLT-MAP-13", "FLT-LIVE-3")
def test_cells_zones_and_sections_are_asked_in_the_same_way() -> None:
    site = scene("hall-demo")
    token = site.token(0)
    last = site.token(len(site.sections))

    assert site.excluded(token) == [(token, token)]
    assert [site.excluded(one) for one in range(len(site.conflicts))] == [
        site.conflicts.ranges(one) for one in range(len(site.conflicts))
    ]
    assert {site.capacity(one) for one in range(last)} == {1}
    for nothing in (-1, last):
        with pytest.raises(IndexError, match=f"there is no resource {nothing}"):
            site.excluded(nothing)


@pytest.mark.req("FLT-MAP-12", "FLT-MAP-13")
def test_a_section_with_room_for_three_says_so() -> None:
    wide = replace(hall_demo(), sections=(SourceSection("WIDE", 3, (SourceMember("LM1<->LM2"),)),))
    site = compile_map(wide, [FL_STD])

    tokens = {site.resource_name(site.token(k)): site.capacity(site.token(k)) for k in range(len(site.sections))}

    assert tokens["CS:WIDE"] == 3
    assert {capacity for name, capacity in tokens.items() if name != "CS:WIDE"} == {1}


@pytest.mark.req("FLT-MAP-19")
def test_the_hash_of_a_map_does_not_move_without_meaning() -> None:
    plain = hall_demo()
    places = {node.id: node.at for node in plain.nodes}
    edges = tuple(replace(one, start_at=places[one.start], end_at=places[one.end]) for one in plain.edges)
    section = SourceSection("S", 1, (SourceMember("LM1<->LM2"),))
    from_zero = SourceSection("S", 1, (SourceMember("LM1<->LM2", 0),))

    said_twice = replace(plain, edges=edges, stations=("AP1", "AP1"), parking=("PK1",))

    assert compile_map(said_twice, [FL_STD]).map_hash == compile_map(plain, [FL_STD]).map_hash
    assert source_form(replace(plain, sections=(section,))) == source_form(replace(plain, sections=(from_zero,)))


@pytest.mark.req("FLT-MAP-19")
def test_the_hash_of_a_map_moves_with_its_meaning() -> None:
    plain = hall_demo()
    moved = replace(plain.edges[0], start_at=Point(0, 1))

    hashes = {
        compile_map(one, [FL_STD]).map_hash
        for one in (
            plain,
            replace(plain, stations=("LM3",)),
            replace(plain, parking=("AP1",)),
            replace(plain, edges=(moved, *plain.edges[1:])),
        )
    }

    assert len(hashes) == 4
