"""Random maps that are LIVE by construction, with tasks, noise, losses and trucks that stop by themselves."""

from dataclasses import replace
from pathlib import Path

import pytest

from pendula.documents import Format, read_bytes
from pendula.fleet.scenarios import Run
from pendula.fleet.scenarios.reading import read_scenario
from pendula.fleet.tick import granting
from pendula.fleet.traffic.grants import Blocked, Wait
from tests.campaigns import campaign_after
from tests.fleet.scenarios.random_runs import Case, drawn, failures, report, shrunk, site
from tests.fleet.scenarios.watching import watched

MINUTE_MS = 60_000
RUNS, MANY_RUNS = 200, 5_000


def reports(seeds: range, most_trucks: int, duration_ms: int) -> str:
    """Nothing, or the first fault with the smallest run that shows it. Every tenth run is watched closely."""
    for seed in seeds:
        failure = report(drawn(seed, most_trucks, duration_ms), watched if seed % 10 == 0 else None)
        if failure:
            return failure
    return ""


@pytest.mark.req(
    "FLT-TEST-40", "FLT-TEST-41", "FLT-TEST-42", "FLT-TEST-44", "FLT-TEST-45", "FLT-TEST-48", "FLT-TEST-51"
)
@pytest.mark.req("FLT-TEST-46", "FLT-TEST-47", "FLT-LIVE-6", "FLT-GEO-11")
@pytest.mark.parametrize("part", campaign_after(1, range(RUNS // 10)))
def test_nothing_goes_wrong_on_random_maps(part: int) -> None:
    assert reports(range(10 * part, 10 * part + 10), 5, MINUTE_MS) == ""


@pytest.mark.long
@pytest.mark.req(
    "FLT-TEST-40", "FLT-TEST-41", "FLT-TEST-42", "FLT-TEST-44", "FLT-TEST-45", "FLT-TEST-48", "FLT-TEST-51"
)
@pytest.mark.parametrize("part", range(MANY_RUNS // 10))
def test_nothing_goes_wrong_on_many_random_maps(part: int) -> None:
    assert reports(range(1_000 + 10 * part, 1_010 + 10 * part), 20, 10 * MINUTE_MS) == ""


def test_a_failing_run_shrinks_to_what_makes_it_fail() -> None:
    case = drawn(23, 5, MINUTE_MS)
    culprit, task = case.trucks[1], case.tasks[3]

    smallest = shrunk(
        case, lambda smaller: culprit in smaller.trucks and task in smaller.tasks and smaller.duration_ms > 9_000
    )

    assert smallest == replace(case, trucks=(culprit,), tasks=(task,), stands=(), noisy=False, duration_ms=9_700)


@pytest.mark.req("FLT-LIVE-13")
def test_a_run_that_withholds_the_first_move_of_the_witness_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(granting, "extend", lambda *_, **__: Blocked(Wait.POSTPONED))

    found = failures(drawn(8, 5, 5_000), watched)

    # Traffic reports it, and so does the watcher of the tests with independent code.
    assert [sentence for sentence in found if "the witness begins with" in sentence]
    assert [sentence for sentence in found if "begins the witness" in sentence]


@pytest.mark.req("FLT-TEST-5")
def test_the_file_of_a_run_gives_the_same_run() -> None:
    case = drawn(8, 5, 5_000)
    read = read_scenario(read_bytes(case.file().encode(), Format.YAML, "case.yaml"), Path())

    assert digest_of(case) == Run(read).run().form["digest"]


def digest_of(case: Case) -> object:
    return Run(case.scenario(), site(case.map_seed, case.parks)).run().form["digest"]
