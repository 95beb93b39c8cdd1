"""The journal: segments of framed, checksummed, chained records, with group commit.

`append` numbers and buffers a record; `flush` makes everything appended so far durable with one write and one sync,
shared by all waiting callers; `write` writes without a sync, for callers that must not wait. A failed write or sync
breaks the journal: it is not retried on the same file, because after a failed sync the file contents are unknown.
`repair` continues in a new file, for callers that still have the records that were not durable.

Opening reads and checks every segment. A torn tail (the part of the last unsynced write that a crash leaves) is copied
to a `.cut` file, cut off and reported, since damage to the last record looks the same. Any other damage is
`journal_corrupt`, and nothing is opened for writing.
"""

import logging
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NoReturn

from pendula.kernel.cancellation import check
from pendula.kernel.canonical import Json
from pendula.kernel.disk import Disk, remedy
from pendula.kernel.frames import Header, Kind, Record, corrupt, record_parts, seal_parts
from pendula.kernel.journal_protocol import Journal
from pendula.kernel.limits import MIN_FREE_BYTES, SEGMENT_BYTES
from pendula.kernel.segments import (
    Contents,
    JournalBroken,
    JournalExists,
    JournalMissing,
    RecordsPruned,
    after_gap,
    begin_segment,
    cut_off,
    first_header,
    number_of,
    read_contents,
    remove_drafts,
    rewrite_last_segment,
    segment_names,
    segment_records,
    set_aside,
)

__all__ = [
    "FileJournal",
    "Header",
    "Journal",
    "JournalBroken",
    "JournalExists",
    "JournalMissing",
    "Kind",
    "Record",
    "RecordsPruned",
]


log = logging.getLogger("pendula.journal")

_THEN = "then open it again (a server does so when it restarts); acknowledged records are kept"


class FileJournal:
    """The journal on a `Disk`. Thread-safe; an append does not wait for a running flush."""

    goes_on_when_full = False

    def __init__(self, disk: Disk, contents: Contents, *, segment_bytes: int, min_free_bytes: int) -> None:
        self.cut_tail_bytes = len(contents.cut.data) if contents.cut else 0
        self.tail_note: str | None = None
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._min_free_bytes = min_free_bytes
        self._frames: list[bytes] = []
        self._new_snapshots: list[tuple[int, int]] = []
        self._take(contents)
        self._broken: str | None = None
        self._remedy = ""
        self._appending = threading.Lock()
        self._writing = threading.Lock()
        self._flushing = threading.Lock()
        self._disk_low = False
        self._segment_is_full = False

    def _take(self, contents: Contents) -> None:
        self.header, self._left = contents.header, contents.left
        self._segments, self._snapshots = contents.segments, contents.snapshots
        self._chain = self._chain_before_frames = contents.chain
        self._next_n = contents.next_n
        self._written_n = self._durable_n = contents.next_n - 1

    @classmethod
    def create(
        cls,
        disk: Disk,
        *,
        scheduler: str,
        decisions: int,
        time_unit: str,
        config: Json,
        segment_bytes: int = SEGMENT_BYTES.default,
        min_free_bytes: int = MIN_FREE_BYTES.default,
    ) -> "FileJournal":
        """A new, empty, durable journal; raises `JournalExists`."""
        if segment_names(disk):
            raise JournalExists(f"A journal already exists: {getattr(disk, 'directory', disk)}")
        header = first_header(scheduler, decisions, time_unit, config)
        chain = bytes.fromhex(header.chain)
        contents = Contents(header, [], [], 0, chain, None)
        journal = cls(disk, contents, segment_bytes=segment_bytes, min_free_bytes=min_free_bytes)
        try:
            journal._begin_segment(0, chain)
            journal._look_at_free_space()
        except OSError as trouble:
            journal._break(trouble)
        return journal

    @classmethod
    def open(
        cls,
        disk: Disk,
        *,
        segment_bytes: int = SEGMENT_BYTES.default,
        min_free_bytes: int = MIN_FREE_BYTES.default,
        read_only: bool = False,
    ) -> "FileJournal":
        """Check every record, cut off a torn tail (unless `read_only`), and prepare to append."""
        contents = read_contents(disk)
        journal = cls(disk, contents, segment_bytes=segment_bytes, min_free_bytes=min_free_bytes)
        if contents.cut is not None:
            journal.tail_note = contents.cut.note(is_cut=not read_only)
        if read_only:
            journal._broken = "it was opened read-only"
            return journal
        try:
            remove_drafts(disk)
            if contents.cut is not None:
                cut_off(disk, contents.cut)
                log.warning("%s", journal.tail_note)
            journal._left = set_aside(disk, contents.left)
            journal._look_at_free_space()
        except OSError as trouble:
            journal._break(trouble)
        return journal

    @property
    def disk(self) -> Disk:
        return self._disk

    @property
    def first_n(self) -> int:
        return self._segments[0].first_n

    @property
    def next_n(self) -> int:
        return self._next_n

    @property
    def durable_n(self) -> int:
        return self._durable_n

    @property
    def total_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def disk_low(self) -> bool:
        if self._disk_low and self._broken is None:
            # While the disk is low nothing is written, so check here whether there is space again. If the disk does
            # not report its free space, it stays low.
            with suppress(OSError):
                self._look_at_free_space()
        return self._disk_low

    def append(self, kind: Kind, t: int, body: bytes) -> int:
        with self._appending:
            if self._broken is not None:
                self._refuse()
            n = self._next_n
            parts = record_parts(n, t, kind, body)
            head, chain = seal_parts(self._chain, parts)
            if kind == "snapshot":
                self._new_snapshots.append((n, t))
            self._frames += (head, *parts)
            self._chain = chain
            self._next_n = n + 1
            return n

    def flush(self) -> int:
        with self._flushing:
            if self._broken is not None:
                self._refuse()
            # Sync what was written before first, without blocking further writes.
            synced = self._sync()
            with self._writing:
                frames, before, last_n = self._taken()
                if (frames or synced) and self._is_full:
                    # A new segment begins only when the previous one is durable.
                    self._sync()
                    self._begin_segment_or_break(before)
                self._write(frames, last_n)
            self._sync()
            return self._durable_n

    def write(self) -> int:
        """Write the appended records without a sync: they survive the end of this process, and a power cut only after
        `flush`. Waits for a running sync only where a segment begins; returns the last number written."""
        with self._writing:
            frames, _, last_n = self._taken()
            self._write(frames, last_n)
            return self._written_n

    def read(self, start: int = 0) -> Iterator[Record]:
        last = self._durable_n
        segments = list(self._segments)
        first = max(0, bisect_right(segments, start, key=lambda segment: segment.first_n) - 1)
        for segment in segments[first:]:
            if segment.first_n > last:
                return
            try:
                for record in segment_records(self._disk, segment):
                    if record.n > last:
                        return
                    if record.n >= start:
                        check()
                        yield record
            except FileNotFoundError:
                if segment in self._segments:
                    raise
                raise RecordsPruned(
                    f"Records from {segment.first_n} on were pruned; the journal begins with {self.first_n}",
                    first_n=self.first_n,
                ) from None

    def snapshots(self) -> Sequence[tuple[int, int]]:
        return tuple(self._snapshots)

    def prune(self, keep_bytes: int) -> int:
        removed = 0
        with self._flushing:
            if len(self._snapshots) < 2:
                return 0
            needed = self._snapshots[-2][0]
            while self.total_bytes > keep_bytes and len(self._segments) > 1 and self._segments[1].first_n <= needed:
                gone, self._segments = self._segments[0], self._segments[1:]
                self._snapshots = [entry for entry in self._snapshots if entry[0] >= self.first_n]
                try:
                    self._disk.remove(gone.name)
                    # One by one: a later segment must never be gone while an earlier one is still there.
                    self._disk.sync_dir()
                except OSError as trouble:
                    self._break(trouble)
                removed += 1
        return removed

    def close(self) -> None:
        """Flush pending records unless the journal is broken, then close the disk in any case."""
        try:
            if self._broken is None:
                self.flush()
                self._broken = "it was closed"
        finally:
            self._disk.close()

    def repair(self) -> int:
        """Continue after a failed write or sync with the valid records on the disk, made durable. Returns the last
        number; later records must be appended again. Raises `JournalBroken` if the disk still fails, and
        `journal_corrupt` if durable records are missing."""
        with self._flushing, self._writing, self._appending:
            try:
                end = rewrite_last_segment(self._disk, self._segments, self._left)
                self._look_at_free_space()
            except OSError as trouble:
                self._break(trouble)
            if end.n <= self._durable_n:
                raise corrupt(self._segments[-1].name, end.size, f"durable record {end.n} is missing")
            self._segments[-1].size = end.size
            self._snapshots.extend(entry for entry in self._new_snapshots if entry[0] < end.n)
            self._new_snapshots, self._frames = [], []
            self._next_n, self._chain, self._chain_before_frames = end.n, end.chain, end.chain
            self._written_n = self._durable_n = end.n - 1
            self._broken, self._remedy = None, ""
            return self._durable_n

    def begin_after(self, begin: Record, t: int) -> None:
        """Continue with a snapshot, durable at once, after records were lost since the last durable one, of time `t`.
        The segments so far become a separate journal."""
        with self._flushing, self._writing, self._appending:
            before = Contents(self.header, self._segments, [], self._next_n, self._chain, None, left=self._left)
            try:
                self._take(after_gap(self._disk, before, begin, t))
            except OSError as trouble:
                self._break(trouble)

    def rotate(self) -> None:
        """Begin a new segment at the next flush, so that the records before it can be pruned."""
        self._segment_is_full = True

    def _taken(self) -> tuple[list[bytes], bytes, int]:
        """Take the appended, unwritten frames, with the chain digest before them and the last number."""
        with self._appending:
            if self._broken is not None:
                self._refuse()
            frames, self._frames = self._frames, []
            before, self._chain_before_frames = self._chain_before_frames, self._chain
            return frames, before, self._next_n - 1

    @property
    def _is_full(self) -> bool:
        return self._segment_is_full or self._segments[-1].size >= self._segment_bytes

    def _write(self, frames: list[bytes], last_n: int) -> None:
        if not frames:
            return
        segment = self._segments[-1]
        data = b"".join(frames)
        try:
            self._disk.append(segment.name, data)
        except OSError as trouble:
            self._break(trouble)
        segment.size += len(data)
        self._written_n = last_n

    def _sync(self) -> bool:
        """Make written records durable; false if there are none."""
        written = self._written_n
        if written == self._durable_n:
            return False
        try:
            self._disk.sync(self._segments[-1].name)
            self._look_at_free_space()
        except OSError as trouble:
            self._break(trouble)
        with self._appending:
            self._snapshots.extend(entry for entry in self._new_snapshots if entry[0] <= written)
            self._new_snapshots = [entry for entry in self._new_snapshots if entry[0] > written]
        self._durable_n = written
        return True

    def _begin_segment_or_break(self, chain: bytes) -> None:
        self._segment_is_full = False
        try:
            self._begin_segment(self._written_n + 1, chain)
        except OSError as trouble:
            self._break(trouble)

    def _begin_segment(self, first_n: int, chain: bytes) -> None:
        number = number_of(self._segments[-1]) + 1 if self._segments else 0
        self._segments.append(begin_segment(self._disk, self.header, number, first_n, chain))

    def _look_at_free_space(self) -> None:
        self._disk_low = self._disk.free_bytes() < self._min_free_bytes

    def _break(self, trouble: OSError) -> NoReturn:
        self._broken = str(trouble)
        self._remedy = f". {remedy(trouble)}, {_THEN}"
        self._refuse(trouble)

    def _refuse(self, cause: BaseException | None = None) -> NoReturn:
        words = f"The journal accepts no more records: {self._broken}{self._remedy}"
        raise JournalBroken(words, reason=self._broken) from cause
