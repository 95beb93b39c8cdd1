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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import NoReturn, Protocol

import msgspec
from msgspec import UNSET, Struct, UnsetType

import pendula
from pendula.kernel.cancellation import check
from pendula.kernel.canonical import Json, digest
from pendula.kernel.disk import Disk, RealDisk, remedy, replace
from pendula.kernel.errors import InputRefused, WorldBroken
from pendula.kernel.frames import (
    FORMAT,
    OVERHEAD,
    Gap,
    Header,
    Kind,
    Record,
    bytes_wanted,
    corrupt,
    follows,
    read_header,
    record_body,
    record_parts,
    records,
    seal,
    seal_header,
    seal_parts,
)
from pendula.kernel.limits import MIN_FREE_BYTES, SEGMENT_BYTES

log = logging.getLogger("pendula.journal")

OTHERS = "this program or another one has it open"
SUFFIX = ".journal"
# Bytes of a segment that one reader holds in memory at a time.
PIECE_BYTES = 256 * 1024

_THEN = "then open it again (a server does so when it restarts); acknowledged records are kept"


class JournalMissing(WorldBroken):
    code = "journal_missing"


class JournalBroken(WorldBroken):
    """A write or sync failed; the journal accepts no more records. Reopen it to continue from the durable ones."""

    code = "journal_broken"


class JournalExists(InputRefused):
    code = "journal_exists"


class JournalInUse(WorldBroken):
    """Another writer has this journal open; two writers would corrupt it. Facts: `path`."""

    code = "journal_in_use"


class RecordsPruned(InputRefused):
    """The records were pruned while they were being read; start again at `first_n`."""

    code = "records_pruned"


class Journal(Protocol):
    """The journal as a driver and a replay use it; its records may be on a disk or in memory."""

    header: Header
    # Whether commands continue over the size limit; pruning then happens when possible.
    goes_on_when_full: bool

    def append(self, kind: Kind, t: int, body: bytes) -> int:
        """Number and buffer a record with a canonical JSON body; never blocks on the disk."""
        ...

    def flush(self) -> int:
        """Make all appended records durable; returns the last number."""
        ...

    def read(self, start: int = 0) -> Iterator[Record]:
        """The durable records from number `start` on."""
        ...

    def snapshots(self) -> Sequence[tuple[int, int]]:
        """(n, t) of the snapshots, ascending."""
        ...

    def rotate(self) -> None:
        """Begin a new segment at the next flush."""
        ...

    def prune(self, keep_bytes: int) -> int:
        """Remove whole segments before the second newest snapshot; returns how many."""
        ...

    def close(self) -> None: ...

    @property
    def first_n(self) -> int: ...

    @property
    def next_n(self) -> int:
        """The number of the next record."""
        ...

    @property
    def durable_n(self) -> int:
        """The number of the last durable record, or -1."""
        ...

    @property
    def total_bytes(self) -> int: ...

    @property
    def disk_low(self) -> bool:
        """Whether free disk space is below the limit; checked after each flush, and on each call while low."""
        ...


class Segment(Struct):
    """One file of the journal: records from `first_n` on, in `size` valid bytes."""

    name: str
    first_n: int
    size: int
    chain: bytes


class Cut(Struct, frozen=True):
    """The bytes after the last valid record: from `offset` on, where record `n` should be.

    A crash leaves part of an unacknowledged record there. With `is_whole`, the record has its full length and a wrong
    checksum: its pages reached the disk in another order, or an acknowledged record was damaged.
    """

    name: str
    offset: int
    data: bytes
    n: int
    is_whole: bool

    @property
    def kept_in(self) -> str:
        """The file beside the segment that keeps these bytes after the cut."""
        return f"{self.name.removesuffix(SUFFIX)}-{self.offset}.cut"

    def note(self, *, is_cut: bool) -> str:
        """The finding and its possible cause, for logs and users."""
        if self.is_whole:
            damage = f"record {self.n}, the last one of {self.name}, is complete but has a wrong checksum"
            cause = "If it was acknowledged, it was damaged later: restore it from a backup or another copy"
        else:
            damage = f"{self.name} ends in the middle of record {self.n}"
            cause = "A crash leaves this of an unacknowledged record; a damaged length looks the same"
        action = f"were cut off and saved in {self.kept_in}" if is_cut else "are ignored"
        return f"Journal: {damage}. Its {len(self.data)} bytes from offset {self.offset} on {action}. {cause}."


class Contents(Struct):
    """The contents of a journal: enough to continue writing at its end."""

    header: Header
    segments: list[Segment]
    snapshots: list[tuple[int, int]]
    next_n: int
    chain: bytes
    cut: Cut | None
    # Segments before a gap, which no longer belong to this journal, each with the first record after the gap.
    left: list[tuple[str, int]] = []


def segment_names(disk: Disk) -> list[str]:
    return [name for name in disk.list() if name.endswith(SUFFIX)]


def first_header(scheduler: str, decisions: int, time_unit: str, config: Json) -> Header:
    """The header of the first segment of a new journal."""
    config_digest = digest(config)
    return Header(
        format=FORMAT,
        scheduler=scheduler,
        decisions=decisions,
        time_unit=time_unit,
        package=pendula.__version__,
        config=config,
        config_digest=config_digest,
        segment=0,
        first_n=0,
        chain=config_digest,
    )


def number_of(segment: Segment) -> int:
    return int(segment.name.removesuffix(SUFFIX))


def begin_segment(
    disk: Disk,
    header: Header,
    number: int,
    first_n: int,
    chain: bytes,
    gap: Gap | UnsetType = UNSET,
    first: bytes = b"",
) -> Segment:
    """Create a durable segment with a header like that of the first one, and optionally with a first frame."""
    header = msgspec.structs.replace(
        header, package=pendula.__version__, segment=number, first_n=first_n, chain=chain.hex(), gap=gap
    )
    name = f"{number:08d}{SUFFIX}"
    data = seal_header(header) + first
    # Written as a draft and renamed: an existing segment always has a complete header.
    replace(disk, name, data)
    return Segment(name, first_n, len(data), chain)


def remove_drafts(disk: Disk) -> None:
    """Remove drafts of segments that a crash left."""
    drafts = [name for name in disk.list() if name.endswith(f"{SUFFIX}.tmp")]
    for name in drafts:
        disk.remove(name)
    if drafts:
        disk.sync_dir()


def read_contents(disk: Disk) -> Contents:
    """Read and check every segment; raises `JournalMissing`, and `journal_corrupt` for all damage but a torn tail."""
    names = segment_names(disk)
    if not names:
        raise JournalMissing(f"No journal found: {getattr(disk, 'directory', disk)}")
    first, _ = read_header(disk.read(names[0]), names[0])
    contents = Contents(first, [], [], first.first_n, bytes.fromhex(first.chain), None)
    for name in names:
        _read_segment(disk, name, contents, is_last=name == names[-1])
    return contents


def _read_segment(disk: Disk, name: str, contents: Contents, is_last: bool) -> None:
    data = disk.read(name)
    header, offset = read_header(data, name)
    if header.gap is not UNSET and contents.segments:
        _begin_after_gap(header, header.gap, name, contents)
    _check_header(header, name, contents)
    segment = Segment(name, header.first_n, offset, contents.chain)
    for frame, record in records(data, offset, contents.chain, contents.next_n, name):
        contents.chain, contents.next_n = frame.chain, record.n + 1
        segment.size = frame.end
        if record.kind == "snapshot":
            contents.snapshots.append((record.n, record.t))
    contents.segments.append(segment)
    if segment.size < len(data):
        if not is_last or follows(data, segment.size, contents.next_n) is not None:
            raise corrupt(name, segment.size, f"record {contents.next_n} is damaged and later ones are valid")
        is_whole = segment.size + bytes_wanted(data, segment.size) <= len(data)
        contents.cut = Cut(name, segment.size, data[segment.size :], contents.next_n, is_whole)


def _begin_after_gap(header: Header, gap: Gap, name: str, contents: Contents) -> None:
    """Start over at a segment after a gap: the segments before it are a separate journal."""
    if (gap.first_n, header.chain) != (contents.next_n, contents.chain.hex()):
        raise corrupt(name, 0, "the gap does not begin where the segment before it ends")
    contents.left += [(segment.name, header.first_n) for segment in contents.segments]
    contents.header, contents.segments, contents.snapshots = header, [], []
    contents.next_n = header.first_n


def after_gap(disk: Disk, before: Contents, begin: Record, t: int) -> Contents:
    """Continue a journal with a snapshot after lost records: write a new segment, then move the old ones away."""
    number, chain = number_of(before.segments[-1]) + 1, before.chain
    gap = Gap(before.next_n, t)
    first, after = seal(chain, record_body(begin.n, begin.t, begin.kind, bytes(begin.body)))
    segment = begin_segment(disk, before.header, number, begin.n, chain, gap=gap, first=first)
    header = msgspec.structs.replace(before.header, segment=number, first_n=begin.n, chain=chain.hex(), gap=gap)
    left = set_aside(disk, [*before.left, *((segment.name, begin.n) for segment in before.segments)])
    return Contents(header, [segment], [(begin.n, begin.t)], begin.n + 1, after, None, left=left)


def set_aside(disk: Disk, left: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Move the segments before a gap into a folder, where they are a separate journal; on a disk without folders,
    rename them. Oldest first; returns those that could not be moved."""
    move_into: Callable[[str, str], None] | None = getattr(disk, "move_into", None)
    moved = 0
    with suppress(OSError):
        for name, first_n in left:
            if move_into is not None:
                move_into(before_gap(first_n), name)
            else:
                disk.rename(name, f"{name.removesuffix(SUFFIX)}-{before_gap(first_n)}")
            moved += 1
        if left:
            disk.sync_dir()
    return left[moved:]


def before_gap(first_n: int) -> str:
    """The folder of the segments before the gap that record `first_n` follows."""
    return f"before-{first_n}"


def missing_of(header: Header) -> str | None:
    """A sentence about the records lost before a journal that begins after a gap; None for other journals."""
    if header.gap is UNSET:
        return None
    lost = f"records {header.gap.first_n} to {header.first_n - 1}, after {header.gap.t} {header.time_unit}"
    return f"{lost}; the records before them are in the journal {before_gap(header.first_n)}"


def segment_records(disk: Disk, segment: Segment) -> Iterator[Record]:
    """The records of a segment, checked again, with one piece of the file in memory at a time.

    Raises `FileNotFoundError` if the file is gone. A disk without `read_part` is read as a whole.
    """
    read_part: Callable[[str, int, int], bytes] | None = getattr(disk, "read_part", None)
    whole = b"" if read_part is not None else disk.read(segment.name)

    def piece(start: int, length: int) -> bytes:
        return whole[start : start + length] if read_part is None else read_part(segment.name, start, length)

    before, asked = 0, max(PIECE_BYTES, OVERHEAD)
    data = piece(0, asked)
    if bytes_wanted(data, 0) > len(data):
        asked = bytes_wanted(data, 0)
        data = piece(0, asked)
    _, at = read_header(data, segment.name)
    chain, n = segment.chain, segment.first_n
    while True:
        for frame, record in records(data, at, chain, n, segment.name, before=before):
            at, chain, n = frame.end, frame.chain, record.n + 1
            yield record
        wanted = bytes_wanted(data, at)
        # The bytes are there but are no valid frame, or the file ends.
        if at + wanted <= len(data) or len(data) < asked:
            return
        before, asked = before + at, max(PIECE_BYTES, wanted)
        data, at = piece(before, asked), 0


def _check_header(header: Header, name: str, contents: Contents) -> None:
    first = contents.header
    expected = msgspec.structs.replace(
        first,
        package=header.package,
        segment=first.segment + len(contents.segments),
        first_n=contents.next_n,
        chain=contents.chain.hex(),
        gap=UNSET if contents.segments else first.gap,
    )
    if header != expected or name != f"{header.segment:08d}{SUFFIX}":
        raise corrupt(name, 0, "the header does not continue the segment before it")
    if header.config_digest != digest(header.config):
        raise corrupt(name, 0, "the configuration does not match its digest in the header")


def cut_off(disk: Disk, cut: Cut) -> None:
    """Save the cut bytes in a separate file, then replace the segment by its valid part."""
    whole = disk.read(cut.name)
    replace(disk, cut.kept_in, cut.data)
    replace(disk, cut.name, whole[: cut.offset])


class End(Struct, frozen=True):
    """The end of a journal; `n` is the number of the next record."""

    size: int
    n: int
    chain: bytes


def rewrite_last_segment(disk: Disk, segments: list[Segment], left: Iterable[tuple[str, int]] = ()) -> End:
    """After a failed write or sync, write the valid part of the last segment to a new file, durably.

    The old file is not trusted: after a failed sync, later syncs may succeed without saving anything. Segments that are
    in neither `segments` nor `left` are remains of a segment being created or pruned; they are removed.
    """
    remove_drafts(disk)
    known = {*(name for name, _ in left), *(segment.name for segment in segments)}
    for name in segment_names(disk):
        if name not in known:
            disk.remove(name)
    last = segments[-1]
    data = disk.read(last.name)
    _, size = read_header(data, last.name)
    n, chain = last.first_n, last.chain
    for frame, record in records(data, size, chain, n, last.name):
        size, n, chain = frame.end, record.n + 1, frame.chain
    replace(disk, last.name, data[:size])
    return End(size, n, chain)


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


def opened(directory: Path) -> FileJournal:
    """The journal in a directory, to be read and closed; raises `JournalMissing`."""
    if not directory.is_dir():
        what = "is a file, not the directory of a journal" if directory.exists() else "does not exist"
        raise JournalMissing(f"No journal found: {directory} {what}", path=str(directory))
    disk = RealDisk(directory, make=False)
    try:
        return FileJournal.open(disk, read_only=True)
    except JournalMissing:
        disk.close()
        raise JournalMissing(f"No journal found in {directory}", path=str(directory)) from None
    except BaseException:
        disk.close()
        raise


def claimed(directory: str | PathLike[str], others: str = OTHERS) -> RealDisk:
    """The directory of a journal, locked for one writer until it is closed.

    Raises `JournalInUse`, with `others` as the explanation, and `JournalBroken` for a path that cannot be a directory.
    """
    try:
        disk = RealDisk(directory)
    except OSError as trouble:
        path = str(directory)
        raise JournalBroken(f"The journal {path} cannot be used: {trouble.strerror}", path=path) from trouble
    if not disk.claim():
        disk.close()
        raise JournalInUse(f"{directory} is in use: {others}", path=str(directory))
    return disk
