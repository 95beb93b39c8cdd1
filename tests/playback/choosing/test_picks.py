"""Random picks: the range of records, retries, and no draw without a choice."""

from collections import Counter

import pytest

from pendula.playback.choosing.programme import Programme
from pendula.playback.settings import Pick, PickMode, Settings
from tests.playback.shelves import ids


class Noted:
    """Draws that always return the same place, and record the range."""

    def __init__(self, place: int = 0) -> None:
        self.spans: list[int] = []
        self._place = place

    def bounded(self, n: int) -> int:
        self.spans.append(n)
        return self._place


def drawn(records: int, r: int, last_id: int | None = None) -> tuple[list[int], tuple[int, ...], int]:
    """The ranges of the draws, the drawn places, and the accepted id."""
    programme = Programme((ids("a", *range(1, records + 1)),), Settings(pick=Pick(PickMode.RANDOM, r)), seed=1)
    noted = Noted()
    programme.generator.pick_draws = noted  # type: ignore[assignment]
    programme.generator.last_id = last_id
    [item], _ = programme.generator.generate(1, 1)
    return noted.spans, item.trace.picked if item.trace else (), item.id


@pytest.mark.req("PLAY-PICK-2")
def test_a_repeated_draw_is_retried_five_times_and_then_accepted() -> None:
    assert drawn(3, 64, last_id=1) == ([3] * 6, (0,) * 6, 1)
    assert drawn(3, 64, last_id=2) == ([3], (0,), 1)


@pytest.mark.req("PLAY-PICK-2")
@pytest.mark.parametrize(("records", "r", "span"), [(8, 4, 4), (3, 64, 3), (64, 64, 64), (100, 2, 2)])
def test_a_record_is_drawn_among_the_newest_r_or_all_if_fewer(records: int, r: int, span: int) -> None:
    assert drawn(records, r)[0] == [span]


@pytest.mark.req("PLAY-PICK-2")
@pytest.mark.parametrize(("records", "r"), [(1, 64), (9, 1)])
def test_without_a_choice_no_number_is_drawn_and_nothing_is_skipped(records: int, r: int) -> None:
    programme = Programme((ids("a", *range(1, records + 1)),), Settings(pick=Pick(PickMode.RANDOM, r)), seed=1)
    before = programme.generator.pick_draws.state

    items = programme.take(9)

    assert {item.id for item in items} == {1}
    assert programme.generator.pick_draws.state == before


@pytest.mark.req("PLAY-PICK-2")
def test_the_newest_are_equally_likely_and_older_ones_never_drawn() -> None:
    settings = Settings(pick=Pick(PickMode.RANDOM, 8))
    programme = Programme((ids("a", *range(1, 33)), ids("b", *range(101, 133))), settings, seed=11)

    counts = Counter(item.id for item in programme.take(32_000))

    assert set(counts) == {*range(1, 9), *range(101, 109)}
    assert 1800 < min(counts.values()) <= max(counts.values()) < 2200
