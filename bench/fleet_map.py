"""Compiled maps: the time for warehouses of 300 and 1000 nodes, the cost of a change, a load and a route, and the
growth.

The yardstick is the bare query of shapely's tree over the same rectangles: it only finds pairs of rectangles, while the
compiler also samples curves, cuts cells, decides on integers, names conflicts, validates and writes.
Times are processor times, as nothing waits; one thread does all the work.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measuring.cpu_time import Rounds
from pendula.cli.benchmarks import Progress, Row, Target, compared, measured

if TYPE_CHECKING:
    from pendula.fleet import CompiledMap, Report, SourceMap

# The scheduler's own libraries: without them nothing compiles.
PEERS: tuple[str, ...] = ("numpy", "shapely")

AT_MOST = Target("<=", Decimal(1))
GROWTH = Target("<=", Decimal("1.3"))
SMALL, MIDDLE, BIG = 100, 300, 1000
COMPILED_S = {MIDDLE: 6, BIG: 25}
CHANGED_S, LOADED_S, QUERY_MS, MEMORY_MIB = 1, 0.5, 1, 500
ROUNDS, QUICK_ROUNDS = 7, 3
QUERIES, QUICK_QUERIES = 20_000, 4_000
ALLOWED, TREE = "allowed", "bare STRtree"


def run(quick: bool, progress: Progress) -> list[Row]:
    # Imported only now: the program names missing libraries before it imports the scheduler.
    from bench.fleet_map_loads import MAPS, TRUCKS
    from pendula.fleet import examine

    rounds = QUICK_ROUNDS if quick else ROUNDS
    sources = {count: make() for count, make in MAPS.items()}
    reports: dict[int, Report] = {}
    for count, source in sources.items():
        progress(f"{count} nodes")
        reports[count] = examine(source, TRUCKS)
    found = compiling(sources, reports, rounds, progress)
    progress("one changed edge, loading")
    found += changing(sources[BIG], reports[BIG], rounds)
    progress("routes")
    found += asking(reports[BIG], QUICK_QUERIES if quick else QUERIES, rounds)
    progress("memory")
    return [*found, memory(MIDDLE), memory(BIG)]


def compiling(
    sources: "Mapping[int, SourceMap]", reports: "Mapping[int, Report]", rounds: int, progress: Progress
) -> list[Row]:
    """All sizes and the yardstick take turns, so that other load on the machine affects all of them."""
    from bench.fleet_map_loads import TRUCKS, bare_tree
    from pendula.fleet import examine
    from pendula.fleet.compiler.overlaps import overlapping

    sites = {count: _site(report) for count, report in reports.items()}
    big = sites[BIG].cells
    progress(f"compiling, {rounds} rounds")
    turns = Rounds(
        {
            **{f"{count}": partial(examine, source, TRUCKS) for count, source in sources.items()},
            "pairs": lambda: overlapping(big),
            **{f"tree {count}": partial(bare_tree, sites[count].cells) for count in COMPILED_S},
        },
        rounds,
    )
    rows = []
    for count, allowed in COMPILED_S.items():
        name = f"compile {count:,} nodes"
        cells, quads = len(sites[count].cells), len(sites[count].cells.quads)
        work = f"{len(sites[count].network.edges):,} edges, {cells:,} cells of {quads:,} rectangles"
        rows.append(_within(name, turns.seconds(f"{count}"), allowed, "s", work))
        rows.append(_beside_tree(name, turns, f"{count}", f"tree {count}", "the tree finds pairs and nothing else"))
    twice = (
        f"ours finds {len(overlapping(big)[0]):,} pairs of cells, the tree {bare_tree(big):,}: each twice, own ones too"
    )
    rows.append(_beside_tree(f"cells that meet, {BIG:,} nodes", turns, "pairs", f"tree {BIG}", twice))
    per_cell = {count: turns.seconds(f"{count}") / len(sites[count].cells) * 1e6 for count in (SMALL, BIG)}
    rows.append(
        compared(
            f"a cell, compiled among {BIG:,} nodes",
            per_cell[BIG],
            per_cell[SMALL],
            "us",
            against=f"among {SMALL}",
            ratio=turns.share(f"{BIG}", f"{SMALL}") * len(sites[SMALL].cells) / len(sites[BIG].cells),
            target=GROWTH,
            fairness=f"warehouses of the same parts, {len(sites[BIG].cells):,} and {len(sites[SMALL].cells):,} cells",
        )
    )
    return rows


def changing(source: "SourceMap", report: "Report", rounds: int) -> list[Row]:
    """A changed edge on top of a map loaded from its file, and the loading itself."""
    from bench.fleet_map_loads import TRUCKS, with_one_edge_changed
    from pendula.fleet import examine, from_bytes

    data = _data(report)
    loaded, changed = from_bytes(data), with_one_edge_changed(source)
    assert examine(changed, TRUCKS, previous=loaded).data == examine(changed, TRUCKS).data != data
    turns = Rounds(
        {
            "changed": lambda: examine(changed, TRUCKS, previous=loaded),
            "whole": lambda: examine(changed, TRUCKS),
            "loaded": lambda: from_bytes(data),
        },
        rounds,
    )
    return [
        _within(f"one changed edge of {BIG:,} nodes", turns.seconds("changed"), CHANGED_S, "s", "bytes of a full one"),
        compared(
            f"one changed edge of {BIG:,} nodes, beside all of it",
            turns.seconds("changed"),
            turns.seconds("whole"),
            "s",
            against="full compilation",
            ratio=turns.share("changed", "whole"),
            fairness="both end with the same bytes; both recompute shapes, windows and findings",
        ),
        _within(f"load {BIG:,} nodes", turns.seconds("loaded"), LOADED_S, "s", f"{len(data):,} bytes, hash checked"),
    ]


def asking(report: "Report", count: int, rounds: int) -> list[Row]:
    """Other load on the machine affects other queries in every round: the minimum of each query counts."""
    from bench.fleet_map_loads import TRUCKS, destinations, query_costs, questions
    from pendula.fleet import Planner

    site = _site(report)
    goals, queries = destinations(site), questions(site, count)
    planner = Planner(site, TRUCKS[0])
    trees = Rounds({"trees": lambda: Planner(site, TRUCKS[0]).prepare(goals)}, rounds)
    planner.prepare(goals)
    costs = sorted(map(min, zip(*(query_costs(planner, queries) for _ in range(rounds)), strict=True)))
    p99 = costs[len(costs) * 99 // 100] / 1e6
    work = f"{count:,} queries, of each the least of {rounds}; trees of the {len(goals)} destinations are there"
    return [
        _within(f"route on {BIG:,} nodes, 99th percentile", p99, QUERY_MS, "ms", work),
        measured(f"route on {BIG:,} nodes, median", costs[len(costs) // 2] / 1e6, "ms"),
        measured(
            f"the tree of a destination, {BIG:,} nodes",
            trees.seconds("trees") / len(goals) * 1e3,
            "ms",
            fairness=f"the mean of {len(goals)}, with what the planner prepares once",
        ),
    ]


def memory(count: int) -> Row:
    """The peak memory of an interpreter that only compiles."""
    root = Path(__file__).resolve().parents[1]
    name = f"memory to compile {count:,} nodes"
    child = subprocess.run(
        [sys.executable, "-m", "bench.fleet_map_child", str(count)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode:
        return measured(name, 0, "MiB", sentence=f"not measured: {child.stderr.strip().splitlines()[-1]}")
    before, peak = map(int, child.stdout.split())
    return _within(name, peak / 1024, MEMORY_MIB, "MiB", f"the whole process, {before // 1024} MiB of it modules")


def _within(name: str, ours: float, allowed: float, unit: str, fairness: str) -> Row:
    return compared(name, ours, allowed, unit, against=ALLOWED, target=AT_MOST, fairness=fairness)


def _beside_tree(name: str, turns: Rounds, ours: str, theirs: str, fairness: str) -> Row:
    return compared(
        f"{name}, beside a tree",
        turns.seconds(ours),
        turns.seconds(theirs),
        "s",
        against=TREE,
        ratio=turns.share(ours, theirs),
        fairness=fairness,
    )


def _site(report: "Report") -> "CompiledMap":
    assert report.compiled is not None
    return report.compiled


def _data(report: "Report") -> bytes:
    assert report.data is not None
    return report.data
