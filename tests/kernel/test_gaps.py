"""A journal that lost records goes on after a gap with a snapshot; whatever the disk does, one part is there."""

from pathlib import Path

import pytest
from msgspec import UNSET, Raw

from pendula.kernel.disk import Disk, RealDisk
from pendula.kernel.frames import Gap, Record
from pendula.kernel.journal import FileJournal, JournalBroken, missing_of
from pendula.testing.faulty_disk import Crashed, Failure, FaultyDisk
from tests.kernel.journals import new_journal

BEFORE, AFTER = list(range(6)), list(range(20, 26))
CRASHES = 8


def written(disk: Disk) -> FileJournal:
    """Six records in two segments."""
    journal = new_journal(disk, segment_bytes=700)
    for n in BEFORE:
        journal.append("input", 10 * n, b"%d" % n)
        journal.flush()
    return journal


def gone_on(journal: FileJournal) -> None:
    """The journal after its gap: a snapshot and five more."""
    journal.begin_after(Record(AFTER[0], 200, "snapshot", Raw(b"%d" % AFTER[0])), 50)
    for n in AFTER[1:]:
        journal.append("input", 10 * n, b"%d" % n)
        journal.flush()


def numbers(disk: Disk, *, read_only: bool = True) -> list[int]:
    journal = FileJournal.open(disk, read_only=read_only)
    found = list(journal.read())
    assert [one.n for one in found] == [int(bytes(one.body)) for one in found]
    # A journal that does not begin at 0 begins with a state to go on from.
    assert journal.first_n == 0 or found[0].kind == "snapshot"
    return [one.n for one in found]


def calls() -> tuple[int, int]:
    disk = FaultyDisk()
    journal = written(disk)
    begun = len(disk.calls)
    gone_on(journal)
    return begun, len(disk.calls)


BEGUN, ENDED = calls()


def test_a_journal_with_a_gap_begins_with_its_snapshot_and_says_what_is_missing() -> None:
    disk = FaultyDisk()
    journal = written(disk)
    gone_on(journal)
    journal.rotate()
    journal.append("input", 260, b"26")
    journal.flush()
    opened = FileJournal.open(disk, read_only=True)

    assert (opened.header.gap, journal.header.gap) == (Gap(6, 50), Gap(6, 50))
    assert (opened.first_n, opened.snapshots(), journal.snapshots()) == (20, ((20, 200),), ((20, 200),))
    assert numbers(disk) == [*AFTER, 26]
    said = "records 6 to 19, after 50 tick; the records before them are in the journal before-20"
    assert missing_of(opened.header) == said
    assert missing_of(new_journal(FaultyDisk()).header) is None


def test_a_journal_without_gap_has_the_golden_bytes() -> None:
    assert new_journal(FaultyDisk()).header.gap is UNSET


@pytest.mark.parametrize("at", range(BEGUN, ENDED))
def test_after_a_power_cut_one_of_both_parts_can_be_continued(at: int) -> None:
    disk = FaultyDisk({at: "crash"})
    journal = written(disk)
    with pytest.raises(Crashed):
        gone_on(journal)

    for seed in range(CRASHES):
        left = disk.after_crash(seed)
        found = numbers(left)
        assert found == BEFORE or found == AFTER[: len(found)] != []
        # Opened for writing, it is the same, once the other part is set aside.
        assert numbers(left, read_only=False) == found == numbers(left)


@pytest.mark.parametrize("failure", ["io_error", "no_space"])
@pytest.mark.parametrize("at", range(BEGUN, ENDED))
def test_the_journal_is_repaired_and_continues_whichever_call_fails(at: int, failure: Failure) -> None:
    disk = FaultyDisk({at: failure})
    journal = written(disk)
    try:
        gone_on(journal)
    except JournalBroken:
        journal.repair()
        if journal.next_n <= AFTER[0]:
            gone_on(journal)
        for n in range(journal.next_n, AFTER[-1] + 1):
            journal.append("input", 10 * n, b"%d" % n)
        journal.flush()

    assert numbers(disk) == AFTER
    assert all(numbers(disk.after_crash(seed)) == AFTER for seed in range(CRASHES))


class Stubborn(RealDisk):
    """A disk that moves nothing into folders as long as it does not want to."""

    unwilling = True

    def move_into(self, folder: str, name: str) -> None:
        if self.unwilling:
            raise OSError("not now")
        super().move_into(folder, name)


@pytest.mark.parametrize("opened_between", [False, True])
def test_two_gaps_leave_two_journals_even_if_the_first_could_not_be_moved(tmp_path: Path, opened_between: bool) -> None:
    disk = Stubborn(tmp_path)
    journal = written(disk)
    gone_on(journal)
    if opened_between:
        journal.close()
        disk = Stubborn(tmp_path)
        journal = FileJournal.open(disk)
    disk.unwilling = False
    journal.begin_after(Record(40, 400, "snapshot", Raw(b"40")), 250)
    journal.close()

    assert numbers(RealDisk(tmp_path / "before-20", make=False)) == BEFORE
    assert numbers(RealDisk(tmp_path / "before-40", make=False)) == AFTER
    assert numbers(RealDisk(tmp_path)) == [40]
