"""The journal: golden bytes, numbering, rotation, pruning, torn tails, corruption, failing disks."""

import errno
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.kernel.canonical import encode
from pendula.kernel.disk import RealDisk, replace
from pendula.kernel.frames import JournalCorrupt, JournalFormat, Kind, frame_at, seal
from pendula.kernel.journal import FileJournal, JournalBroken, JournalExists, JournalMissing
from pendula.testing import Crashed, FaultyDisk
from tests.kernel.journals import new_journal

FIRST = "00000000.journal"
Rows = list[tuple[int, int, str, bytes]]


def rows(journal: FileJournal, start: int = 0) -> Rows:
    return [(record.n, record.t, record.kind, bytes(record.body)) for record in journal.read(start)]


def filled(disk: FaultyDisk, count: int, *, flush_every: int = 1, **options: int) -> FileJournal:
    journal = new_journal(disk, **options)
    for n in range(count):
        kind: Kind = "snapshot" if n % 10 == 9 else "input"
        journal.append(kind, n * 2, b'{"x":%d}' % n)
        if (n + 1) % flush_every == 0:
            journal.flush()
    journal.flush()
    return journal


def damaged(disk: FaultyDisk, name: str, change: bytes) -> FaultyDisk:
    replace(disk, name, change)
    return disk


def test_a_frame_has_these_bytes() -> None:
    frame, chain = seal(bytes(32), b'{"body":{"x":1},"kind":"input","n":0,"t":5}')

    assert frame.hex() == (
        "2b000000"
        "99fc738e"
        "5fa8b50131fc235efb8117bc1a5ffa7a5d7b440dea4914d3bc46a26240349bfe"
        "7b22626f6479223a7b2278223a317d2c226b696e64223a22696e707574222c226e223a302c2274223a357d"
    )
    assert chain.hex() == frame[8:40].hex()


def test_records_come_back_with_number_time_and_kind() -> None:
    disk = FaultyDisk()
    filled(disk, 12)

    journal = FileJournal.open(disk)

    assert rows(journal, 9) == [
        (9, 18, "snapshot", b'{"x":9}'),
        (10, 20, "input", b'{"x":10}'),
        (11, 22, "input", b'{"x":11}'),
    ]
    assert journal.snapshots() == ((9, 18),)
    assert (journal.first_n, journal.durable_n) == (0, 11)


def test_nothing_is_readable_before_it_is_durable() -> None:
    journal = new_journal(FaultyDisk())
    journal.append("input", 0, b"1")

    assert rows(journal) == []
    assert journal.flush() == 0
    assert len(rows(journal)) == 1


def test_many_appends_share_one_write_and_one_sync() -> None:
    disk = FaultyDisk()
    journal = new_journal(disk)
    before = len(disk.calls)

    for _ in range(100):
        journal.append("input", 0, b"1")
    journal.flush()

    assert [call.operation for call in disk.calls[before:]] == ["append", "sync", "free_bytes"]


def test_a_flush_of_nothing_touches_no_disk() -> None:
    disk = FaultyDisk()
    journal = new_journal(disk)
    before = len(disk.calls)

    assert journal.flush() == -1
    assert len(disk.calls) == before


def test_segments_rotate_and_numbers_continue() -> None:
    disk = FaultyDisk()
    filled(disk, 60, segment_bytes=1000)

    journal = FileJournal.open(disk, segment_bytes=1000)

    assert len([name for name in disk.list() if name.endswith(".journal")]) > 4
    assert [row[0] for row in rows(journal)] == list(range(60))
    assert [row[0] for row in rows(journal, 37)] == list(range(37, 60))
    assert journal.append("input", 0, b"1") == 60


def test_pruning_keeps_everything_from_the_second_newest_snapshot() -> None:
    disk = FaultyDisk()
    journal = filled(disk, 60, segment_bytes=500)

    removed = journal.prune(keep_bytes=0)

    assert removed > 0
    assert journal.first_n <= 49 < journal.first_n + 20
    assert rows(FileJournal.open(disk)) == rows(journal)
    assert FileJournal.open(disk).snapshots() == journal.snapshots()
    assert {49, 59} <= {n for n, _ in journal.snapshots()}


def test_pruning_stops_when_few_enough_bytes_are_left() -> None:
    journal = filled(FaultyDisk(), 60, segment_bytes=500)
    total = journal.total_bytes

    assert journal.prune(keep_bytes=total) == 0
    assert journal.prune(keep_bytes=total - 1) == 1


def test_a_journal_is_not_created_over_another() -> None:
    disk = FaultyDisk()
    new_journal(disk)

    with pytest.raises(JournalExists):
        new_journal(disk)


def test_an_empty_directory_has_no_journal() -> None:
    with pytest.raises(JournalMissing):
        FileJournal.open(FaultyDisk())


@pytest.mark.parametrize("cut", [1, 20, 39, 40, 45])
def test_a_torn_tail_is_saved_and_cut_off(cut: int) -> None:
    disk = FaultyDisk()
    filled(disk, 5)
    whole = disk.read(FIRST)
    last = whole.rindex(b'{"body"') - 40
    damaged(disk, FIRST, whole[: last + cut])

    journal = FileJournal.open(disk)

    assert journal.durable_n == 3
    assert journal.cut_tail_bytes == cut
    assert disk.read(f"00000000-{last}.cut") == whole[last : last + cut]
    assert disk.read(FIRST) == whole[:last]
    assert journal.append("input", 0, b"1") == 4


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda last: last[:45] + bytes([last[45] ^ 1]) + last[46:], "is complete but has a wrong checksum"),
        (lambda last: last[:-1], "ends in the middle of record 4"),
        (lambda last: bytes([last[0] ^ 128]) + last[1:], "ends in the middle of record 4"),
    ],
    ids=["a byte is flipped", "a byte is missing", "its length is damaged"],
)
def test_a_tail_that_is_cut_off_is_reported(
    change: Callable[[bytes], bytes], sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FaultyDisk()
    filled(disk, 5)
    whole = disk.read(FIRST)
    last = whole.rindex(b'{"body"') - 40
    damaged(disk, FIRST, whole[:last] + change(whole[last:]))

    journal = FileJournal.open(disk)

    assert journal.tail_note is not None
    assert sentence in journal.tail_note
    assert f"saved in 00000000-{last}.cut" in journal.tail_note
    assert "acknowledged" in journal.tail_note
    assert caplog.messages == [journal.tail_note]
    assert FileJournal.open(disk).tail_note is None


def test_a_read_only_journal_reports_the_tail_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    disk = FaultyDisk()
    filled(disk, 5)
    damaged(disk, FIRST, disk.read(FIRST)[:-1] + b"!")

    journal = FileJournal.open(disk, read_only=True)

    assert journal.tail_note is not None
    assert "are ignored" in journal.tail_note
    assert caplog.messages == []


def in_format(number: int, **members: object) -> bytes:
    """The first frame of a segment as a version with another format might write it."""
    return seal(bytes(32), encode({"format": number, **members}))[0]


@pytest.mark.parametrize("members", [{}, {"package": "9.1.0"}, {"package": 3, "scheduler": "tally"}])
def test_a_journal_of_a_newer_format_is_refused_with_what_to_do(members: dict[str, object]) -> None:
    disk = FaultyDisk()
    replace(disk, FIRST, in_format(2, **members))

    with pytest.raises(JournalFormat) as caught:
        FileJournal.open(disk)

    said = caught.value.message
    assert "format 2" in said
    assert "reads format 1" in said
    assert "was not changed" in said
    assert "backup" not in said
    assert f"pendula {members.get('package') if members.get('package') == '9.1.0' else ''}".strip() in said
    assert caught.value.details == {"file": FIRST, "format": 2, "supported": 1}
    assert disk.list() == [FIRST]


@pytest.mark.parametrize("chain", ["zz" * 32, "abc", "\u0661" * 64])
def test_a_header_with_an_invalid_digest_is_corruption(chain: str) -> None:
    disk = FaultyDisk()
    filled(disk, 1)
    frame = frame_at(disk.read(FIRST), 0)
    assert frame is not None
    header = msgspec.json.decode(frame.body, type=dict[str, object])
    damaged(disk, FIRST, seal(bytes(32), encode({**header, "chain": chain}))[0])

    with pytest.raises(JournalCorrupt, match="the chain digest in the header is invalid"):
        FileJournal.open(disk)


def test_a_tail_of_zeros_is_a_torn_tail() -> None:
    disk = FaultyDisk()
    filled(disk, 5)
    damaged(disk, FIRST, disk.read(FIRST) + bytes(4096))

    assert FileJournal.open(disk).cut_tail_bytes == 4096


def test_opening_read_only_repairs_nothing() -> None:
    disk = FaultyDisk()
    filled(disk, 5)
    torn = disk.read(FIRST)[:-3]
    damaged(disk, FIRST, torn)

    journal = FileJournal.open(disk, read_only=True)

    assert journal.cut_tail_bytes > 0
    assert disk.read(FIRST) == torn
    with pytest.raises(JournalBroken, match="opened read-only"):
        journal.append("input", 0, b"1")


def test_damage_before_valid_records_is_corruption_with_its_place() -> None:
    disk = FaultyDisk()
    filled(disk, 5)
    whole = bytearray(disk.read(FIRST))
    at = whole.index(b'{"x":2}')
    whole[at + 5] ^= 1
    damaged(disk, FIRST, bytes(whole))

    with pytest.raises(JournalCorrupt, match="record 2 is damaged") as caught:
        FileJournal.open(disk)

    assert caught.value.file == FIRST
    assert caught.value.offset == whole.rindex(b'{"body"', 0, at + 1) - 40
    assert disk.list() == [FIRST]


def test_a_torn_segment_before_another_is_corruption() -> None:
    disk = FaultyDisk()
    filled(disk, 60, segment_bytes=1000)
    damaged(disk, FIRST, disk.read(FIRST)[:-3])

    with pytest.raises(JournalCorrupt):
        FileJournal.open(disk)


def test_a_missing_segment_in_the_middle_is_corruption() -> None:
    disk = FaultyDisk()
    filled(disk, 60, segment_bytes=1000)
    disk.remove("00000001.journal")

    with pytest.raises(JournalCorrupt, match="does not continue"):
        FileJournal.open(disk)


def test_an_inserted_record_with_a_valid_checksum_breaks_the_chain() -> None:
    disk = FaultyDisk()
    journal = filled(disk, 3)
    forged, _ = seal(bytes(32), b'{"body":{"x":3},"kind":"input","n":3,"t":6}')
    damaged(disk, FIRST, disk.read(FIRST) + forged)

    with pytest.raises(JournalCorrupt, match="digest chain is broken at record 3"):
        FileJournal.open(disk)
    assert journal.durable_n == 2


def test_another_configuration_under_the_same_records_is_corruption() -> None:
    disk, other = FaultyDisk(), FaultyDisk()
    filled(disk, 3)
    foreign = FileJournal.create(other, scheduler="tally", decisions=1, time_unit="tick", config={"seed": 8})
    header = other.read(FIRST)
    own = disk.read(FIRST)
    damaged(disk, FIRST, header + own[own.index(b'{"body"') - 40 :])

    with pytest.raises(JournalCorrupt, match="digest chain is broken at record 0"):
        FileJournal.open(disk)
    assert foreign.durable_n == -1


HELPS = {"no_space": "Free space on the disk, then open it again", "io_error": "Check the disk, then open it again"}


@pytest.mark.parametrize("operation", ["append", "sync"])
@pytest.mark.parametrize("failure", ["no_space", "io_error"])
def test_a_failed_write_or_sync_breaks_the_journal_with_what_to_do(operation: str, failure: str) -> None:
    trial = FaultyDisk()
    filled(trial, 3)
    at = [n for n, call in enumerate(trial.calls) if call.operation == operation][-1]
    disk = FaultyDisk({at: failure})  # type: ignore[dict-item]

    with pytest.raises(JournalBroken, match=HELPS[failure]):
        filled(disk, 3)

    left = disk.after_crash(1)
    assert FileJournal.open(left).durable_n >= 1


def test_a_broken_journal_never_tries_again() -> None:
    trial = FaultyDisk()
    new_journal(trial)
    disk = FaultyDisk({len(trial.calls) + 1: "io_error"})
    journal = new_journal(disk)
    journal.append("input", 0, b"1")
    with pytest.raises(JournalBroken):
        journal.flush()
    calls = len(disk.calls)

    with pytest.raises(JournalBroken):
        journal.flush()
    with pytest.raises(JournalBroken):
        journal.append("input", 0, b"1")

    assert len(disk.calls) == calls


def test_low_space_is_noticed_after_a_flush_and_ends() -> None:
    disk = FaultyDisk(free_bytes=1000)
    journal = new_journal(disk, min_free_bytes=500)
    assert not journal.disk_low

    disk.free = 499
    journal.append("input", 0, b"1")
    journal.flush()
    assert journal.disk_low

    disk.free = 500
    assert not journal.disk_low


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(0, 10_000), st.data())
def test_after_a_crash_the_journal_is_a_prefix_that_holds_every_flushed_record(
    batches: list[int], seed: int, data: st.DataObject
) -> None:
    def work(disk: FaultyDisk) -> list[int]:
        flushed = [-1]
        try:
            journal = new_journal(disk, segment_bytes=300)
            flushed.append(-1)
            for batch in batches:
                for _ in range(batch):
                    journal.append("input", 0, b'{"n":%d}' % journal._next_n)
                flushed.append(journal.flush())
        except Crashed:
            pass
        return flushed

    trial = FaultyDisk()
    work(trial)
    disk = FaultyDisk({data.draw(st.integers(0, len(trial.calls) - 1)): "crash"})
    flushed = work(disk)

    left = disk.after_crash(seed)
    if len(flushed) == 1:
        return  # the crash came before the journal was made
    kept = rows(FileJournal.open(left))

    assert len(kept) - 1 >= flushed[-1]
    assert len(kept) <= sum(batches)
    assert [(n, body) for n, _, _, body in kept] == [(n, b'{"n":%d}' % n) for n in range(len(kept))]


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3), st.booleans())
def test_any_damage_is_refused_or_leaves_a_prefix(changes: list[tuple[int, int]], shorten: bool) -> None:
    disk = FaultyDisk()
    before = rows(filled(disk, 4))
    raw = bytearray(disk.read(FIRST))
    for offset, value in changes:
        raw[-1 - offset % len(raw)] = value
    damaged(disk, FIRST, bytes(raw[: -changes[0][0] or None] if shorten else raw))

    try:
        kept = rows(FileJournal.open(disk))
    except JournalCorrupt:
        return

    assert kept == before[: len(kept)]


def test_a_crash_while_pruning_leaves_a_journal_that_opens_with_the_same_end() -> None:
    trial = FaultyDisk()
    journal = filled(trial, 60, segment_bytes=300)
    first_call = len(trial.calls)
    journal.prune(keep_bytes=0)
    last_call = len(trial.calls)
    expected = rows(journal)
    assert last_call - first_call > 10

    for call in range(first_call, last_call):
        disk = FaultyDisk({call: "crash"})
        with pytest.raises(Crashed):
            filled(disk, 60, segment_bytes=300).prune(keep_bytes=0)
        for seed in range(6):
            assert rows(FileJournal.open(disk.after_crash(seed)))[-len(expected) :] == expected


def test_a_journal_whose_last_write_fails_closes_its_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(tmp_path)
    assert disk.claim()
    journal = FileJournal.create(disk, scheduler="tally", decisions=1, time_unit="tick", config={})
    journal.append("input", 0, b"0")
    monkeypatch.setattr(disk, "append", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))

    with pytest.raises(JournalBroken, match="No space left"):
        journal.close()

    assert RealDisk(tmp_path).claim()
