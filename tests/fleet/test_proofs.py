"""How this scheduler is proven: small tests, no shared state, asserted premises, planted mistakes that are caught."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tick import invariants
from scripts import traceability
from tests.fleet.runs import test_chaos as chaos
from tests.fleet.runs import test_restart as restart
from tests.fleet.scenarios import test_files as files
from tests.fleet.scenarios import test_random_faults as faults
from tests.fleet.scenarios import test_troubles as troubles
from tests.fleet.tasks import test_preemption as preemption
from tests.fleet.traffic import test_grants_exhaustive as grants
from tests.mutations import run as mutations

ROOT = Path(__file__).parents[2]
FLEET = ROOT / "tests/fleet"
# Folders of whole runs, and of planner, locks and targets together on small maps; the rest are units.
SCENARIOS = ("runs", "scenarios")
INTEGRATION = ("simulator", "tasks", "tick")
# In these folders, the tests of driving, targets, turns and views have one part alone, without a fleet.
UNITS = (
    *("adoption", "detours", "params", "track"),
    *("hold_points", "rolling_target", "sequence", "speed_limits"),
    *("directions", "queueing", "ranks", "reservations"),
    *("blockers", "snapshot_once", "swings", "disc_index"),
)
REQUIRED = (
    "fleet-nodes-without-windows",
    "fleet-spacing-without-the-trailing-end",
    "fleet-node-released-by-the-pivot",
    "fleet-locks-that-expire",
    "fleet-opposite-directions-at-once",
    "fleet-backward-leads-with-its-front",
)
PLANTED = {
    mistake.name: mistake for mistake in mutations.read_mistakes((ROOT / "tests/mutations/mutations.toml").read_text())
}


@cache
def named() -> frozenset[str | None]:
    """Every requirement that a test of the project names."""
    return frozenset(mark.requirement for mark in traceability.marks_of(ROOT))


def count_of(*folders: str) -> int:
    """The number of test functions in some folders of this scheduler; in all if none is named."""
    return _functions(file for folder in folders or (".",) for file in (FLEET / folder).rglob("test_*.py"))


def _functions(files: Iterable[Path]) -> int:
    trees = [ast.parse(file.read_text()) for file in files]
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for tree in trees for node in ast.walk(tree)
    )


@pytest.mark.campaign
@pytest.mark.req("FLT-TEST-1")
def test_unit_tests_outnumber_integration_tests_and_those_outnumber_runs() -> None:
    runs = count_of(*SCENARIOS)
    together = count_of(*INTEGRATION) - _functions(FLEET / "tick" / f"test_{name}.py" for name in UNITS)
    units = count_of() - runs - together

    assert units > together > runs
    assert units > runs + together


@pytest.mark.req("FLT-TEST-3")
def test_fleets_in_one_process_are_independent() -> None:
    names = ("crossing", "triangle-12", "crossing")
    alone = [Run(shipped(name)).run(12_000).form["digest"] for name in names]
    runs = [Run(shipped(name)) for name in names]
    for _ in range(120):
        for run in reversed(runs):
            run.step()

    assert [run.result().form["digest"] for run in runs] == alone


@pytest.mark.req("FLT-TEST-3")
def test_no_module_of_the_scheduler_has_mutable_globals() -> None:
    modules = (ROOT / "src/pendula/fleet").rglob("*.py")
    changing = {
        str(module.relative_to(ROOT))
        for module in modules
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Global)
    }

    assert changing == set()


@pytest.mark.req("FLT-PERF-5")
def test_the_long_campaign_uses_ten_times_the_maps_and_twenty_seeds() -> None:
    assert (grants.MAPS, grants.MANY_MAPS) == (200, 2_000)
    assert (faults.RUNS, faults.MANY_RUNS) == (200, 2_000)
    seeds = (chaos.SEEDS, restart.MANY_SEEDS, troubles.SEEDS, preemption.SEEDS)
    assert {len(files.MORE_SEEDS) + 1, *map(len, seeds)} == {20}
    assert (chaos.SHORT_MS, chaos.LONG_MS, restart.KILLS) == (600_000, 28_800_000, 50)


@pytest.mark.long
@pytest.mark.req("FLT-TEST-7")
@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_mistake_is_caught(name: str) -> None:
    assert mutations.judge(PLANTED[name]) == "red"


@pytest.mark.req("FLT-EVO-22")
def test_each_premise_of_the_guarantees_is_asserted_somewhere() -> None:
    sheet = (ROOT / "docs/explanation/guarantees-of-a-fleet.md").read_text()
    numbers = {int(number) for number in re.findall(r"\bI-(\d+)", sheet)}
    # The list of FLT-TEST ends with I-12; I-13 stands in FLT-LIVE-13.
    premises = {f"FLT-TEST-{39 + number}" if number < 13 else "FLT-LIVE-13" for number in numbers}
    asserted = set(re.findall(r'"(I-\d+)"', Path(invariants.__file__).read_text()))

    assert len(premises) >= 8
    assert premises <= named()
    assert {"I-1", "I-3", "I-5", "I-6", "I-8", "I-12", "I-13"} <= asserted
