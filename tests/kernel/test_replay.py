"""Replay: equal journals pass, and a difference names the first record and the first field."""

import pytest

from pendula.kernel.driver import Driver
from pendula.kernel.engine import Outcome
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import OtherDecisions, ReplayReport, replay
from pendula.testing import FaultyDisk
from pendula.testing.tally import Add, Changed, Command, Tally
from tests.kernel.journals import COMMANDS, CONFIG, Generous, do, new_driver, new_journal


def test_a_journal_replays_equal_with_its_snapshots() -> None:
    disk = FaultyDisk()
    driver = new_driver(disk, snapshot_every=5)
    do(driver, *COMMANDS)
    driver.close()

    report = replay(FileJournal.open(disk, read_only=True), lambda _: Tally)

    assert report == ReplayReport(len(COMMANDS), 3, None, 0)


def test_a_changed_rule_is_found_at_its_first_record_and_field() -> None:
    class Dearer(Tally):
        def _take(self, amount: int) -> Outcome[Changed]:
            return super()._take(amount + 1)

    driver = new_driver(FaultyDisk())
    do(driver, *COMMANDS)

    difference = replay(driver.journal, lambda _: Dearer).first_difference

    assert difference is not None
    assert (difference.n, difference.path) == (2, "$.answer.total")
    assert difference.command == {"type": "take", "amount": 3}
    assert isinstance(difference.recorded, dict)
    assert isinstance(difference.computed, dict)
    assert (difference.recorded["answer"], difference.computed["answer"]) == ({"total": 7}, {"total": 6})


def test_a_silently_drifting_state_is_found_at_the_next_snapshot() -> None:
    class Forgetful(Tally):
        def _add(self, amount: int, at: int | None) -> Outcome[Changed]:
            outcome = super()._add(amount, at)
            self._state.number += 1
            return outcome

    driver = new_driver(FaultyDisk(), snapshot_every=3)
    do(driver, Add(1), Add(2), Add(3))

    difference = replay(driver.journal, lambda _: Forgetful).first_difference

    assert difference is not None
    assert (difference.n, difference.path) == (6, "$.number")


def test_another_question_than_the_one_asked_is_a_difference() -> None:
    class Nosy(Tally):
        def _ask(self, topic: str) -> Outcome[Changed]:
            return super()._ask(topic + "?")

    driver = new_driver(FaultyDisk())
    do(driver, *COMMANDS)

    difference = replay(driver.journal, lambda _: Nosy).first_difference

    assert difference is not None
    assert difference.n == 8
    assert "how_much" in str(difference.computed)


def test_an_unused_answer_is_a_difference() -> None:
    class Indifferent(Tally):
        def _ask(self, topic: str) -> Outcome[Changed]:
            self._state.asked += 5
            return self._change(5, "ask")

    driver = new_driver(FaultyDisk())
    do(driver, *COMMANDS)

    difference = replay(driver.journal, lambda _: Indifferent).first_difference

    assert difference is not None
    assert difference.n == 8
    assert "was not used" in str(difference.computed)


@pytest.mark.parametrize("present", [0, 2], ids=["the journal is newer", "the journal is older"])
def test_a_journal_of_other_decisions_is_not_continued(present: int) -> None:
    class Other(Tally):
        decisions = present

    disk = FaultyDisk()
    driver = new_driver(disk, snapshot_every=5)
    do(driver, *COMMANDS)
    driver.close()

    with pytest.raises(OtherDecisions, match="or move its folder away") as caught:
        Driver.recover(FileJournal.open(disk), lambda _: Other)

    assert caught.value.details == {"recorded": 1, "present": present}
    assert replay(FileJournal.open(disk), lambda _: Tally).first_difference is None


def test_other_decisions_are_refused_unless_forced() -> None:
    class Next(Tally):
        decisions = 2

        def _draw(self, below: int) -> Outcome[Changed]:
            return super()._draw(below * 2)

    driver = new_driver(FaultyDisk())
    do(driver, *COMMANDS)

    with pytest.raises(OtherDecisions):
        replay(driver.journal, lambda _: Next)
    difference = replay(driver.journal, lambda _: Next, force=True).first_difference

    assert difference is not None
    assert difference.n == 6


def test_a_replay_stops_at_a_given_record() -> None:
    driver = new_driver(FaultyDisk())
    do(driver, *COMMANDS)

    assert replay(driver.journal, lambda _: Tally, upto=5).commands == 3


def test_a_pruned_journal_is_replayed_from_its_first_snapshot() -> None:
    driver = new_driver(FaultyDisk(), {"segment_bytes": 1_000}, journal_bytes=20_000)
    for _ in range(300):
        do(driver, Add(1))
    assert driver.journal.first_n > 0

    report = replay(driver.journal, lambda _: Tally)

    assert report.first_difference is None
    assert 0 < report.commands < 300


def test_a_defect_on_replay_is_the_difference() -> None:
    class Fragile(Tally):
        def _add(self, amount: int, at: int | None) -> Outcome[Changed]:
            raise ZeroDivisionError

    journal = new_journal(FaultyDisk())
    driver: Driver[Command, Changed] = Driver(Tally.create(CONFIG), journal, outside=Generous())
    do(driver, *COMMANDS)

    difference = replay(journal, lambda _: Fragile).first_difference

    assert difference is not None
    assert difference.computed == {"defect": "ZeroDivisionError: "}
