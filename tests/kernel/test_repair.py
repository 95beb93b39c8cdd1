"""A journal whose disk failed goes on where the disk works again, whichever call it was that failed."""

import pytest

from pendula.kernel.frames import JournalCorrupt
from pendula.kernel.journal import FileJournal, JournalBroken
from pendula.testing.faulty_disk import Failure, FaultyDisk
from tests.kernel.journals import new_journal

RECORDS = 12
# Small segments, so that some of the calls begin one.
SEGMENT_BYTES = 900
CRASHES = 6


def numbers(disk: FaultyDisk) -> list[int]:
    return [int(bytes(record.body)) for record in FileJournal.open(disk, read_only=True).read()]


class Stubborn:
    """Writes so many records whatever the disk does: what is not durable is kept, and written when it works again."""

    def __init__(self, disk: FaultyDisk) -> None:
        self.journal = new_journal(disk, segment_bytes=SEGMENT_BYTES)
        self.mended = 0

    def write_all(self) -> None:
        while self.journal.durable_n < RECORDS - 1:
            try:
                if self.mended:
                    self.journal.repair()
                self._go_on()
            except JournalBroken:
                self.mended += 1

    def _go_on(self) -> None:
        for n in range(self.journal.next_n, RECORDS):
            self.journal.append("snapshot" if n % 4 == 0 else "input", n, b"%d" % n)
            if n % 3 == 0:
                self.journal.write()
            elif n % 3 == 2:
                # One record was handed over, two were not.
                self.journal.flush()
        self.journal.flush()


def undisturbed() -> tuple[int, int]:
    """The calls with which writing begins and ends."""
    disk = FaultyDisk()
    stubborn = Stubborn(disk)
    begun = len(disk.calls)
    stubborn.write_all()
    return begun, len(disk.calls)


BEGUN, ENDED = undisturbed()


@pytest.mark.parametrize("failure", ["io_error", "no_space"])
@pytest.mark.parametrize("again", [None, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("at", range(BEGUN, ENDED))
def test_nothing_is_lost_whichever_call_fails_and_fails_again(at: int, again: int | None, failure: Failure) -> None:
    disk = FaultyDisk({at: failure} if again is None else {at: failure, at + again: failure})
    stubborn = Stubborn(disk)
    stubborn.write_all()

    assert numbers(disk) == list(range(RECORDS))
    assert stubborn.journal.snapshots() == ((0, 0), (4, 4), (8, 8))
    # A sync that failed keeps lying about its file: what counts is what a power cut leaves.
    assert all(numbers(disk.after_crash(seed)) == list(range(RECORDS)) for seed in range(CRASHES))


@pytest.mark.parametrize("at", range(BEGUN, ENDED))
def test_records_written_after_a_repair_survive_the_process(at: int) -> None:
    disk = FaultyDisk({at: "io_error"})
    journal = new_journal(disk, segment_bytes=SEGMENT_BYTES)
    for n in range(RECORDS):
        try:
            journal.append("input", n, b"%d" % n)
            journal.flush()
        except JournalBroken:
            break
    journal.repair()
    for n in range(journal.next_n, RECORDS):
        journal.append("input", n, b"%d" % n)
        journal.write()

    assert numbers(disk) == list(range(RECORDS))


def test_a_journal_is_not_repaired_while_its_disk_fails() -> None:
    disk = FaultyDisk(dict.fromkeys(range(BEGUN, BEGUN + 40), "io_error"))
    journal = new_journal(disk, segment_bytes=SEGMENT_BYTES)
    journal.append("input", 0, b"0")
    with pytest.raises(JournalBroken):
        journal.write()

    with pytest.raises(JournalBroken, match="Input/output error"):
        journal.repair()
    with pytest.raises(JournalBroken):
        journal.append("input", 0, b"0")


def test_a_disk_that_lost_durable_records_is_not_written() -> None:
    disk = FaultyDisk()
    journal = new_journal(disk)
    journal.append("input", 0, b"0")
    journal.flush()
    empty = FaultyDisk()
    new_journal(empty)
    disk._names = empty._names

    with pytest.raises(JournalCorrupt, match="durable record 0 is missing"):
        journal.repair()


def test_a_disk_that_cannot_report_free_space_stays_low() -> None:
    disk = FaultyDisk(free_bytes=100)
    journal = new_journal(disk, min_free_bytes=500)
    asked = len(disk.calls)
    disk._failures = {asked: "io_error"}
    first = journal.disk_low
    disk.free = 1_000

    assert first
    assert not journal.disk_low
