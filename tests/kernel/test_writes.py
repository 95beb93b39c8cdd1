"""Records that are handed to the operating system: they survive the end of the process, and wait for no sync."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.kernel.disk import RealDisk
from pendula.kernel.journal import FileJournal, JournalBroken
from pendula.testing.faulty_disk import Crashed, FaultyDisk
from tests.kernel.journals import new_journal


def test_written_records_are_in_the_file_but_not_durable(tmp_path: Path) -> None:
    journal = new_journal(RealDisk(tmp_path))
    journal.append("input", 0, b"1")

    assert journal.write() == 0

    assert journal.durable_n == -1
    # Another process, after this one was killed.
    assert [record.n for record in FileJournal.open(RealDisk(tmp_path), read_only=True).read()] == [0]
    assert journal.flush() == 0


def test_a_write_does_not_sync() -> None:
    disk = FaultyDisk()
    journal = new_journal(disk)
    before = len(disk.calls)
    journal.append("input", 0, b"1")

    journal.write()

    assert [call.operation for call in disk.calls[before:]] == ["append"]


def test_a_flush_after_a_write_syncs_once_and_writes_nothing() -> None:
    disk = FaultyDisk()
    journal = new_journal(disk)
    journal.append("input", 0, b"1")
    journal.write()
    before = len(disk.calls)

    assert journal.flush() == 0

    assert [call.operation for call in disk.calls[before:] if call.operation in ("append", "sync")] == ["sync"]
    assert [bytes(record.body) for record in journal.read()] == [b"1"]


class _SlowDisk(FaultyDisk):
    """A disk whose sync of the journal takes until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.syncing, self.go_on = threading.Event(), threading.Event()

    def sync(self, name: str) -> None:
        if name.endswith(".journal"):
            self.syncing.set()
            assert self.go_on.wait(120)
        super().sync(name)


def test_a_write_does_not_wait_for_a_running_sync() -> None:
    disk = _SlowDisk()
    journal = new_journal(disk)
    journal.append("input", 0, b"1")
    journal.write()
    flushing = threading.Thread(target=journal.flush)
    flushing.start()
    assert disk.syncing.wait(120)

    journal.append("input", 1, b"2")
    handed = journal.write()
    durable = journal.durable_n
    disk.go_on.set()
    flushing.join()

    assert (handed, durable) == (1, -1)
    assert journal.flush() == 1


def test_a_full_segment_ends_even_if_everything_was_written() -> None:
    disk = FaultyDisk()
    journal = new_journal(disk, segment_bytes=400)
    for n in range(12):
        journal.append("input", n, b'"a record of some length"')
        journal.write()
        journal.flush()

    assert len([name for name in disk.list() if name.endswith(".journal")]) > 2
    assert [record.n for record in FileJournal.open(disk, read_only=True).read()] == list(range(12))


class _BusyDisk(FaultyDisk):
    """A disk during whose first sync of the journal another caller writes one more record."""

    journal: FileJournal | None = None

    def sync(self, name: str) -> None:
        super().sync(name)
        journal, self.journal = self.journal, None
        if journal is not None:
            journal.append("input", 1, b"2")
            journal.write()


def test_a_segment_begins_only_after_the_previous_one_is_durable() -> None:
    disk = _BusyDisk()
    journal = new_journal(disk)
    journal.append("input", 0, b"1")
    journal.write()
    journal.rotate()
    disk.journal = journal
    before = len(disk.calls)

    journal.flush()

    calls = [(call.operation, call.name) for call in disk.calls[before:]]
    begun = calls.index(("create", "00000001.journal.tmp"))
    late = calls.index(("append", "00000000.journal"))
    assert ("sync", "00000000.journal") in calls[late:begun]


@pytest.mark.parametrize("failure", ["no_space", "io_error"])
def test_a_failed_write_breaks_the_journal(failure: str) -> None:
    trial = FaultyDisk()
    new_journal(trial)
    disk = FaultyDisk({len(trial.calls): failure})  # type: ignore[dict-item]
    journal = new_journal(disk)
    journal.append("input", 0, b"1")

    with pytest.raises(JournalBroken):
        journal.write()
    with pytest.raises(JournalBroken):
        journal.flush()


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=8), st.integers(0, 10_000), st.data())
def test_after_a_crash_the_journal_is_a_prefix_with_every_flushed_record_despite_writes(
    batches: list[tuple[int, bool]], seed: int, data: st.DataObject
) -> None:
    def work(disk: FaultyDisk) -> int:
        flushed = -2
        try:
            journal = new_journal(disk, segment_bytes=300)
            flushed = -1
            for count, durable in batches:
                for _ in range(count):
                    journal.append("input", 0, b'{"n":%d}' % journal.next_n)
                    journal.write()
                if durable:
                    flushed = journal.flush()
        except Crashed:
            pass
        return flushed

    whole = FaultyDisk()
    work(whole)
    crash = data.draw(st.integers(0, max(0, len(whole.calls) - 1)))
    disk = FaultyDisk({crash: "crash"})
    flushed = work(disk)
    if flushed == -2:
        return

    kept = [bytes(record.body) for record in FileJournal.open(disk.after_crash(seed)).read()]

    assert len(kept) > flushed
    assert kept == [b'{"n":%d}' % n for n in range(len(kept))]
