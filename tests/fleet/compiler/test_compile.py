"""From sources to compiled maps: independent of order, machine and history; hashes change only with meaning."""

import os
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from msgspec.structs import replace

from pendula.fleet import CompiledMap, CompileParams, SourceMap, compile_map, examine, from_bytes, to_bytes
from pendula.fleet.compiler.compile import source_form
from pendula.fleet.compiler.generated_maps import random_map
from pendula.fleet.compiler.overlaps import overlapping
from pendula.fleet.compiler.samples import FL_STD, Sketch, hall_demo, warehouse
from pendula.fleet.map.exclusion import Cells, Ints
from pendula.fleet.map.trucks import hash_of
from pendula.fleet.model import Granularity, Point, SourceMember, SourceSection
from tests.fleet.sites import random_site, scene, sketched


@pytest.mark.req("FLT-MAP-18")
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_a_curve_with_the_same_polyline_but_another_sweep_is_compiled_again(before: int, after: int) -> None:
    def made(k: int) -> SourceMap:
        sketch = sketched(("A", 0, 0), ("B", 0.02, 0), ("L1", -5, 2.717193), ("L2", 5, 2.717193))
        sketch.bezier("A", "B", (0.002 * k, 0.0004 * k), (0.02 - 0.002 * k, 0.0004 * k), back=False)
        sketch.lane("L1", "L2", back=False)
        return sketch.done()

    nimble = [replace(FL_STD, min_turn_radius_um=0)]
    assert (
        examine(made(after), nimble, previous=compile_map(made(before), nimble)).data
        == examine(made(after), nimble).data
    )


SOURCE = Path(__file__).parents[3] / "src"
PRINT_HASHES = """
from pendula.fleet import compile_map
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.generated_maps import random_map
maps = [samples.hall_demo(), samples.tail_swing_bend(), samples.near_lanes()]
maps += [samples.reference_hall(), samples.warehouse(4, 6, 2)]
for source in [*maps, *(random_map(seed) for seed in range(6))]:
    print(compile_map(source, [samples.FL_STD]).compiled_hash)
"""


def shuffled(source: SourceMap, seed: int) -> SourceMap:
    draw = random.Random(seed)
    nodes, edges = list(source.nodes), list(source.edges)
    draw.shuffle(nodes)
    draw.shuffle(edges)
    return replace(source, nodes=tuple(nodes), edges=tuple(edges))


def hashes(**environment: str) -> list[str]:
    """The hashes of a few maps, computed by another interpreter."""
    child = subprocess.run(
        [sys.executable, "-c", PRINT_HASHES],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
    )
    return child.stdout.split()


def cpu_features() -> str:
    """All optional features of this processor that numpy can be configured to skip."""
    umath = import_module("numpy._core._multiarray_umath")
    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name))


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
    """A lane across the aisle from LM3 to PK1, whose name comes before all others: every number changes, no name."""
    source, before = hall_demo(), scene("hall-demo")
    names = (("AA1", 6_000_000, -18_000_000), ("AA2", 6_000_000, -8_000_000))
    nodes = tuple(replace(source.nodes[0], id=name, at=Point(x, y)) for name, x, y in names)
    lane = replace(source.edges[0], id="e00000", start="AA1", end="AA2")

    after = compile_map(replace(source, nodes=(*nodes, *source.nodes), edges=(lane, *source.edges)), [FL_STD])

    def conflicts(site: CompiledMap) -> dict[str, tuple[str, str]]:
        groups = site.network.groups
        return {conflict.id: (groups[conflict.a].key, groups[conflict.b].key) for conflict in site.named}

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
    assert {corridor.id for corridor in before.corridors} < {corridor.id for corridor in after.corridors}
    assert before.edge_number["LM1->LM2"] != after.edge_number["LM1->LM2"]
    assert named_cells(before) == named_cells(after)


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
def test_only_pairs_with_a_changed_edge_are_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = warehouse(4, 6, 2)
    before = compile_map(source, [FL_STD])
    queries: list[int] = []

    def counting(cells: Cells, among: Ints | None = None) -> tuple[Ints, Ints]:
        queries.append(len(cells) if among is None else len(among))
        return overlapping(cells, among)

    monkeypatch.setattr("pendula.fleet.compiler.compile.overlapping", counting)
    first = replace(source.nodes[0], at=Point(source.nodes[0].at.x_um, -100_000))
    compile_map(replace(source, nodes=(first, *source.nodes[1:])), [FL_STD], previous=before)

    (count,) = queries
    assert 0 < count < len(before.cells) / 8


@pytest.mark.req("FLT-MAP-19")
def test_the_hash_of_a_map_does_not_move_without_meaning() -> None:
    plain = hall_demo()
    places = {node.id: node.at for node in plain.nodes}
    edges = tuple(replace(edge, start_at=places[edge.start], end_at=places[edge.end]) for edge in plain.edges)
    section = SourceSection("S", 1, (SourceMember("LM1<->LM2"),))
    from_zero = SourceSection("S", 1, (SourceMember("LM1<->LM2", 0),))

    repeated = replace(plain, edges=edges, stations=("AP1", "AP1"), parking=("PK1",))

    assert compile_map(repeated, [FL_STD]).map_hash == compile_map(plain, [FL_STD]).map_hash
    assert source_form(replace(plain, sections=(section,))) == source_form(replace(plain, sections=(from_zero,)))


@pytest.mark.req("FLT-MAP-19")
def test_the_hash_of_a_map_moves_with_its_meaning() -> None:
    plain = hall_demo()
    moved = replace(plain.edges[0], start_at=Point(0, 1))

    hashes = {
        compile_map(variant, [FL_STD]).map_hash
        for variant in (
            plain,
            replace(plain, stations=("LM3",)),
            replace(plain, parking=("AP1",)),
            replace(plain, edges=(moved, *plain.edges[1:])),
        )
    }

    assert len(hashes) == 4
