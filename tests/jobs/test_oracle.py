"""The scheduler and the model in memory give the same answers for the same histories."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.campaigns import campaign_after
from tests.jobs.history_player import Play

SEEDED, SEEDED_LONG = 200, 5000


def run_seeds(folder: Path, seeds: range) -> None:
    for seed in seeds:
        try:
            Play(folder / f"{seed}.db", random.Random(seed).randrange).run(steps=32)
        except Exception as difference:
            difference.add_note(f"the history of seed {seed}")
            raise
        for file in folder.glob(f"{seed}.db*"):
            file.unlink()


@pytest.mark.req("JOB-API-4")
@pytest.mark.req("JOB-STO-10")
@pytest.mark.parametrize("part", campaign_after(1, range(4)))
def test_seeded_histories_match_the_model(tmp_path: Path, part: int) -> None:
    share = SEEDED // 4

    run_seeds(tmp_path, range(part * share, (part + 1) * share))


@pytest.mark.req("JOB-OBJ-6")
@pytest.mark.req("JOB-OBJ-7")
@pytest.mark.req("JOB-OBJ-8")
@given(data=st.data())
def test_any_history_matches_the_model(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("history") / "jobs.db"

    Play(path, lambda n: data.draw(st.integers(0, n - 1))).run(steps=12)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_thousands_of_seeded_histories_match_the_model(tmp_path: Path, part: int) -> None:
    share = SEEDED_LONG // 10

    run_seeds(tmp_path, range(SEEDED + part * share, SEEDED + (part + 1) * share))
