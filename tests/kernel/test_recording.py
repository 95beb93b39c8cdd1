"""An engine with a journal of its own: what its header says, what is durable, and who lets go of the disk."""

from pathlib import Path

import pytest

from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver, begin_recording, new_journal, send
from pendula.kernel.journal import FileJournal, JournalExists
from pendula.kernel.replay import WrongJournal, replay
from pendula.testing.faulty_disk import FaultyDisk
from pendula.testing.tally import Add, Ask, Tally
from tests.kernel.journals import CONFIG, Generous


class Borrowed(RealDisk):
    """A disk that tells whether it was let go of."""

    closed = False

    def close(self) -> None:
        self.closed = True
        super().close()


def test_the_header_of_a_new_journal_describes_the_engine() -> None:
    header = new_journal(Tally, CONFIG, FaultyDisk()).header

    assert (header.scheduler, header.decisions, header.time_unit, header.config) == ("tally", 1, "tick", CONFIG)


def test_a_sent_command_is_in_the_journal_and_replays(tmp_path: Path) -> None:
    driver = begin_recording(Tally.create(CONFIG), CONFIG, RealDisk(tmp_path), outside=Generous())
    send(driver, Add(10), "test")
    send(driver, Ask("rain"), "test")
    driver.close()

    report = replay(FileJournal.open(RealDisk(tmp_path), read_only=True), lambda _: Tally)
    assert (report.commands, report.first_difference) == (2, None)


def test_a_command_is_durable_when_its_outcome_comes_back() -> None:
    driver = begin_recording(Tally.create(CONFIG), CONFIG, FaultyDisk())

    outcome = send(driver, Add(10), "test")

    assert outcome == Tally.create(CONFIG).apply(Add(10))
    assert driver.journal.durable_n == driver.journal.next_n - 1


def test_the_disk_of_a_recording_that_cannot_begin_is_closed(tmp_path: Path) -> None:
    begin_recording(Tally.create(CONFIG), CONFIG, RealDisk(tmp_path)).close()
    disk = Borrowed(tmp_path)

    with pytest.raises(JournalExists):
        begin_recording(Tally.create(CONFIG), CONFIG, disk)

    assert disk.closed


def test_other_options_reach_the_driver() -> None:
    driver = begin_recording(Tally.create(CONFIG), CONFIG, FaultyDisk(), snapshot_every=1)
    send(driver, Add(1), "test")

    assert len(driver.journal.snapshots()) == 1


class OtherTally(Tally):
    scheduler = "other"


def test_an_engine_refuses_the_journal_of_another_scheduler(tmp_path: Path) -> None:
    begin_recording(Tally.create(CONFIG), CONFIG, RealDisk(tmp_path)).close()
    journal = FileJournal.open(RealDisk(tmp_path), read_only=True)

    sentence = "This is a journal of scheduler 'tally', not of 'other'; name the folder of a journal that 'other'"
    with pytest.raises(WrongJournal, match=sentence):
        Driver.recover(journal, lambda _: OtherTally)
    with pytest.raises(WrongJournal, match=sentence):
        replay(journal, lambda _: OtherTally)
