"""The journal: segments of framed, checksummed, chained records, with group commit.

`append` numbers and buffers a record; `flush` makes everything appended so far durable with one write and one sync, so
that many waiters share it; `hand_over` writes without the sync, for those who must not wait. A write or sync that fails
breaks the journal: nothing is retried on the same file, because after a failed sync nobody knows what the disk holds.
`mend` goes on with a new file, for those who still have what was not durable.

Opening reads and checks every segment. A torn tail, what a crash leaves of the last unsynced write, is copied to a
`.cut` file, cut off and reported, for damage to the last record looks the same. Anything else that does not fit is
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
    segment_names,
    segment_records,
    set_aside,
    write_anew,
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

_THEN = "then open it again, which a server does when it is restarted: what was acknowledged is kept"


class FileJournal:
    """The journal on a `Disk`. Safe for threads; appends do not wait for a flush under way."""

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
        """A new, empty, durable journal; refused where one exists."""
        if segment_names(disk):
            raise JournalExists(f"There is a journal already: {getattr(disk, 'directory', disk)}")
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
        """Check every record; cut a torn tail off (unless `read_only`); ready to append."""
        contents = read_contents(disk)
        journal = cls(disk, contents, segment_bytes=segment_bytes, min_free_bytes=min_free_bytes)
        if contents.cut is not None:
            journal.tail_note = contents.cut.note(is_cut=not read_only)
        if read_only:
            journal._broken = "it was opened for reading only"
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
        """Where it lies."""
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
            # While it is low nothing is written that would look; whoever asks finds out that there is room again. A
            # disk that does not even say how full it is stays low.
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
            # What was handed over before is synced first, and nobody who hands over more waits for it.
            handed = self._sync()
            with self._writing:
                frames, before, last_n = self._taken()
                if (frames or handed) and self._is_full:
                    # A segment begins only after one that is whole on the disk.
                    self._sync()
                    self._begin_segment_or_break(before)
                self._write(frames, last_n)
            self._sync()
            return self._durable_n

    def hand_over(self) -> int:
        """Give what was appended to the operating system: the end of this process does not take it away, a power cut
        does, until `flush`. Does not wait for a sync under way, but where a segment begins; returns the last number."""
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
        """Flush, if anything waits and the journal is well, and let go of the disk, also where that fails."""
        try:
            if self._broken is None:
                self.flush()
                self._broken = "it was closed"
        finally:
            self._disk.close()

    def mend(self) -> int:
        """Go on after a failed write or sync, with all that is whole on the disk, which is durable then; returns its
        last number, and what came after that has to be appended again. Raises `JournalBroken` where the disk still
        fails, and `journal_corrupt` where it does not hold what was durable."""
        with self._flushing, self._writing, self._appending:
            try:
                end = write_anew(self._disk, self._segments, self._left)
                self._look_at_free_space()
            except OSError as trouble:
                self._break(trouble)
            if end.n <= self._durable_n:
                raise corrupt(self._segments[-1].name, end.size, f"record {end.n} was durable and is not there")
            self._segments[-1].size = end.size
            self._snapshots.extend(one for one in self._new_snapshots if one[0] < end.n)
            self._new_snapshots, self._frames = [], []
            self._next_n, self._chain, self._chain_before_frames = end.n, end.chain, end.chain
            self._written_n = self._durable_n = end.n - 1
            self._broken, self._remedy = None, ""
            return self._durable_n

    def begin_after(self, begin: Record, t: int) -> None:
        """Go on with a snapshot, durable at once, though what came after the last durable record, of time `t`, is lost;
        what was written so far is a journal of its own from now on."""
        with self._flushing, self._writing, self._appending:
            before = Contents(self.header, self._segments, [], self._next_n, self._chain, None, left=self._left)
            try:
                self._take(after_gap(self._disk, before, begin, t))
            except OSError as trouble:
                self._break(trouble)

    def rotate(self) -> None:
        """Let the next flush begin a new segment, so that what is before it can be pruned."""
        self._segment_is_full = True

    def _taken(self) -> tuple[list[bytes], bytes, int]:
        """What was appended and not written, in parts of frames; the chain before it, and the number of the last."""
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
        """Make durable what is written; false where there is nothing to do."""
        written = self._written_n
        if written == self._durable_n:
            return False
        try:
            self._disk.sync(self._segments[-1].name)
            self._look_at_free_space()
        except OSError as trouble:
            self._break(trouble)
        with self._appending:
            self._snapshots.extend(one for one in self._new_snapshots if one[0] <= written)
            self._new_snapshots = [one for one in self._new_snapshots if one[0] > written]
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
        words = f"The journal takes no more records: {self._broken}{self._remedy}"
        raise JournalBroken(words, reason=self._broken) from cause
