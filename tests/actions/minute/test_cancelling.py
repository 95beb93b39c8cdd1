"""Cancelling a submission before it is admitted."""

from typing import Any

import pytest

from pendula.actions import LiveWorld
from tests.actions.worlds import EPOCH, codes, day, diagnostic_rows, does, lasting, lines, of, outcome

DEFS = {"nap": lasting(10)}
CONFIG: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS}


@pytest.mark.req("ACT-USE-4", "ACT-LOCK-8")
@pytest.mark.parametrize("at", [5, 50])
def test_a_submission_for_later_is_cancelled_before_it_is_admitted(at: int) -> None:
    result = day(DEFS, does("A", 50, "nap"), does("B", 50, "nap"), commands=[{"t": at, "cancel": "A"}])

    assert codes(result) == {"A": "Cancelled"}
    assert lines(result) == ["50 start B", "60 end B"]
    assert of(result, "start", "B").meta["admission"] == 0


@pytest.mark.req("ACT-USE-4")
def test_a_cancelled_submission_is_not_deferred_and_its_id_stays_used() -> None:
    result = outcome(
        DEFS, does("A", 1500, "nap"), does("B", 1500, "nap"), does("A", 1600, "nap"),
        commands=[{"t": 5, "cancel": "A"}, {"t": 6, "cancel": "A"}], epochs=2,
    )  # fmt: skip

    assert codes(result.epochs[0]) == {"A": "Cancelled"} | {"A": "Cancelled"}
    assert [one["id"] for one in result.epochs[0].deferred] == ["B"]
    assert diagnostic_rows(result.epochs[0]) == [(6, "NotCancellable", "A")]


@pytest.mark.req("ACT-USE-4")
def test_a_process_receives_the_cancellation_of_its_submission() -> None:
    received: list[Any] = []

    def patient() -> Any:
        received.append((yield {"actor": "bo", "verb": "nap", "t": 50}))

    world = LiveWorld(CONFIG)
    world.run(patient(), "bo")
    world.cancel("bo-0", t=20)
    world.advance_to(100)

    assert received == [{"rejected": "Cancelled", "t": 20}]
