"""Explanations are correct: weights, credits, pool and draws equal those of the oracle at that moment."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from pendula.kernel.engine import Reason
from pendula.playback.explain import by_ordinal, why
from pendula.playback.model import Item
from tests.playback.histories import Comparison, play
from tests.playback.oracle import Shown

HISTORIES, MANY_HISTORIES = 120, 2000


def sure(value: object) -> Mapping[str, object]:
    assert isinstance(value, Mapping)
    return value


def check_draw(reason: Reason, shown: Shown) -> None:
    """The pool before the step, its chance, and the drawn number."""
    seen = shown.seen
    pool = [{"id": id, "number": number, "priority_64": priority} for id, number, priority in seen.pool]
    if seen.draw is None:
        assert (reason.code, reason.facts) == ("no_new_artwork", {"pool": []})
        return
    chance = min(64, sum(priority for _, _, priority in seen.pool))
    hit = seen.draw < chance * 2**26
    assert reason.code == ("new_artwork_drawn" if hit else "new_artwork_not_drawn")
    assert reason.facts == {"draw": seen.draw, "probability_64": chance, "pool": pool}
    assert hit == (shown.origin != "base")


def check_turn(reason: Reason, shown: Shown, names: Sequence[str]) -> None:
    """The step that chose the channel: weights and credits before, when choosing, after."""
    seen = shown.seen
    passed = [names[index] for index in seen.unreadable]
    if seen.step is None:
        assert (reason.code, reason.facts) == ("first_readable", {"unreadable": passed})
        return
    if reason.code == "credits_forgotten":
        # A viewer control changed the turns since: only the step is known.
        assert reason.facts == {"step": seen.step, "unreadable": passed}
        return
    earned = [credit + weight for credit, weight in zip(seen.credits, seen.weights, strict=True)]
    assert shown.channel_index is not None
    assert reason.code == "largest_credit"
    assert reason.facts == {
        "step": seen.step,
        "weights": dict(zip(names, seen.weights, strict=True)),
        "credits_before": dict(zip(names, seen.credits, strict=True)),
        "credits_at_choice": dict(zip(names, earned, strict=True)),
        "credit_after": earned[shown.channel_index] - 65536,
        "unreadable": passed,
    }
    assert earned[shown.channel_index] == max(e for e, weight in zip(earned, seen.weights, strict=True) if weight)


def check_record(reason: Reason, shown: Shown, pick: str) -> None:
    seen = shown.seen
    assert reason.code == ("next_by_age" if pick == "recency" else "drawn_at_random")
    assert reason.facts == {
        "at": shown.at,
        "skipped": seen.skipped,
        "damaged": seen.damaged,
        "drawn": seen.drawn,
    }


def check(comparison: Comparison, item: Item, shown: Shown) -> str:
    reason = why(comparison.programme, item)
    identity = {"id": shown.work.id, "ordinal": shown.ordinal, "epoch_id": shown.epoch}
    if shown.epoch != comparison.oracle.epoch:
        assert reason.code == "earlier_epoch"
        assert reason.facts == {**identity, "origin": shown.origin}
        return reason.code
    if shown.origin == "pinned":
        assert (reason.code, reason.facts, reason.because) == ("pinned", identity, ())
        return reason.code
    codes = {"nae": "new_artwork", "nae_fallback": "new_artwork_just_shown", "base": "turn_of_channel"}
    assert reason.code == codes[shown.origin]
    assert reason.facts == identity
    assert by_ordinal(comparison.programme, shown.ordinal) == item
    check_draw(reason.because[0], shown)
    if shown.origin == "nae":
        assert len(reason.because) == 1
        return reason.code
    _, turn, record = reason.because
    check_turn(turn, shown, [channel.name for channel in comparison.oracle.channels])
    check_record(record, shown, comparison.oracle.settings.pick)
    return f"{reason.code} {turn.code}"


def check_all(comparison: Comparison) -> Counter[str]:
    found: Counter[str] = Counter()
    for items, wanted in (
        (comparison.programme.history, comparison.oracle.history),
        (comparison.programme.lookahead, comparison.oracle.lookahead),
    ):
        for item, shown in zip(items, wanted, strict=True):
            found[check(comparison, item, shown)] += 1
    return found


def explain_histories(numbers: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for number in numbers:
        random = Random(number)
        comparison = Comparison.drawn(random)
        play(comparison, random, 25)
        found += check_all(comparison)
        # A restored programme knows the pool of each item by number and id alone.
        comparison.restore()
        found += check_all(comparison)
    return found


def test_every_held_item_is_explained_by_the_state_at_its_generation() -> None:
    found = explain_histories(range(HISTORIES))

    assert set(found) >= {
        "new_artwork",
        "turn_of_channel largest_credit",
        "turn_of_channel first_readable",
        "new_artwork_just_shown largest_credit",
        "earlier_epoch",
    }


@pytest.mark.long
def test_many_more_items_are_explained_by_the_state_at_their_generation() -> None:
    explain_histories(range(HISTORIES, MANY_HISTORIES))
