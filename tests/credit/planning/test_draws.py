"""Cached first draws for further runs of one seed: equal results with fewer generators."""

from math import isnan
from typing import Any

import pytest

from pendula.credit.authoring.villages import village
from pendula.credit.planning.planner import Draws
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.credit.studies.comparison import compare
from pendula.credit.studies.figures import figures_of
from pendula.documents import from_value
from pendula.kernel import rng
from tests.credit.conftest import headless


def outcome_of(seed: int, draws: Draws | None, **settings: str) -> tuple[Any, ...]:
    run = headless(village(25, 4), seed=seed, intensity=70, **{"amount_cap": "200", **settings})
    if draws is not None:
        run.run.network.share(draws)
    events: list[Any] = []
    run.step(25, events.extend)
    return tuple(events)


@pytest.mark.req("SIM-DET-6")
@pytest.mark.req("SIM-DET-1")
def test_runs_with_shared_draws_equal_runs_with_their_own() -> None:
    draws = Draws()

    for seed in (1, 2, 1):
        for settings in ({}, {"clearing_policy": "adaptive"}, {"amount_cap": "7", "actions_per_tick_max": "90"}):
            assert outcome_of(seed, draws, **settings) == outcome_of(seed, None, **settings)


def test_a_second_run_of_a_seed_seeds_generators_only_for_accepted_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeded = 0

    def counted() -> Any:
        draw, reseed = rng.reseedable()

        def seed(number: int) -> None:
            nonlocal seeded
            seeded += 1
            reseed(number)

        return draw, seed

    monkeypatch.setattr("pendula.credit.planning.planner.reseedable", counted)
    draws = Draws()
    outcome_of(1, draws)
    first, seeded = seeded, 0
    outcome_of(1, draws)

    assert seeded < first / 2


def test_plans_stay_equal_beyond_the_memory_limit_of_draws() -> None:
    small = Draws(most=0)

    assert outcome_of(3, small) == outcome_of(3, None)
    assert all(isnan(draw) for draw in small.first(3, 0, 10)), "nothing is cached"


def test_counting_alone_gives_the_same_figures() -> None:
    document, settings = from_value(village(30, 2)), change_settings(Settings(), {"amount_cap": "500"})
    run = Headless(plan_run(document, seed=1, settings=settings))
    run.step(40)

    counted = figures_of(document, settings, 1, 40)

    digests = run.run.digests()
    assert (counted.plan, counted.ledger) == (digests["plan"], digests["ledger"])
    assert (counted.attempts, counted.rejected) == (run.run.counters.attempts_total, run.run.counters.rejected_total)


@pytest.mark.campaign
def test_a_comparison_gives_equal_bytes_with_one_and_two_processes() -> None:
    document = from_value(village(8, 7))
    sides = Settings(), change_settings(Settings(), {"clearing_policy": "adaptive"})

    by_one, by_two = (compare(document, *sides, range(1, 6), 34, workers) for workers in (1, 2))

    assert by_one == by_two
