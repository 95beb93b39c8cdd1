"""Random histories of governed objects, compared with a model in memory that shares no code with the package."""

from pathlib import Path
from random import Random

import pytest

from tests.campaigns import campaign_after
from tests.governance.object_histories import Differs, Pair, play_history, shrunk
from tests.governance.object_history_steps import Choices

LIVES, STEPS = 300, 25
LIVES_LONG, STEPS_LONG = 5000, 50


def _live(seeds: range, steps: int, folder: Path) -> None:
    for seed in seeds:
        place = folder / f"{seed}"
        place.mkdir()
        play_history(seed, place, steps)


@pytest.mark.req(
    "JOB-SM-1",
    "JOB-SM-2",
    "JOB-SM-3",
    "JOB-SM-4",
    "JOB-SM-5",
    "JOB-SM-6",
    "JOB-SM-7",
    "JOB-SM-9",
    "JOB-SM-11",
    "JOB-SM-13",
    "JOB-SM-14",
    "JOB-SM-15",
    "JOB-GATE-1",
    "JOB-GATE-3",
    "JOB-GATE-4",
    "JOB-GATE-5",
    "JOB-GATE-7",
    "JOB-GATE-8",
    "JOB-GATE-10",
    "JOB-GATE-11",
    "JOB-GATE-12",
    "JOB-GATE-13",
    "JOB-AUD-1",
    "JOB-AUD-6",
)
@pytest.mark.parametrize("part", campaign_after(1, range(6)))
def test_random_histories_match_the_model(part: int, tmp_path: Path) -> None:
    share = LIVES // 6
    _live(range(part * share, (part + 1) * share), STEPS, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_random_histories_match_the_model(part: int, tmp_path: Path) -> None:
    share = LIVES_LONG // 10
    _live(range(LIVES + part * share, LIVES + (part + 1) * share), STEPS_LONG, tmp_path)


@pytest.mark.long
def test_the_histories_cover_the_required_cases(tmp_path: Path) -> None:
    ways, outcomes, decided = set(), set(), set()
    for seed in range(60):
        place = tmp_path / f"{seed}"
        place.mkdir()
        pair = Pair(place)
        choices = Choices(Random(seed), pair.model)
        for step in choices.steps(STEPS_LONG):
            before = {key: obj["place"] for key, obj in pair.model.objects.items()}
            pair.play(step)
            choices.tokens = list(pair.leases)
            after = {key: pair.model.objects[key]["place"] for key in before}
            ways |= {(key[0], before[key], after[key]) for key in before if before[key] != after[key]}
            decided |= {log[-1] for log in pair.model.log if log[0] == "trace"}
        outcomes |= {job.outcome for job in pair.model.jobs}
        pair.close()

    assert len(ways) >= 25
    assert outcomes >= {"transitioned", "noop", "budget_exhausted", "ontic_closed", "deferred"}
    assert decided == {"executed", "limited", "blocked", "escalated", "abstained"}


def test_a_difference_is_reported_with_its_minimal_steps(tmp_path: Path) -> None:
    steps = [
        ("move", (1,)),
        ("create", ("memory", "m1", "candidate", ())),
        ("move", (2,)),
        ("refill", ("memory", "m1", 1)),
    ]
    pair = Pair(tmp_path)
    for step in steps[:-1]:
        pair.play(step)
    pair.model.objects["memory", "m1"]["verify_budget_left"] = 7  # a planted mistake of the model
    with pytest.raises(Differs, match="verify_budget_left of memory m1: package 2, model 7"):
        pair.play(("move", (1,)))
    pair.close()

    assert shrunk(steps, tmp_path) == steps  # both sides agree, so there is no difference to shorten
