"""The segment files of a journal: listed, read, checked, and cut after a crash.

A crash may leave part of the last unsynced write after the last valid record of the last segment (a torn tail). Any
other damage is `journal_corrupt`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import msgspec
from msgspec import UNSET, Struct, UnsetType

import pendula
from pendula.kernel.canonical import Json, digest
from pendula.kernel.disk import Disk, replace
from pendula.kernel.errors import InputRefused, WorldBroken
from pendula.kernel.frames import (
    FORMAT,
    OVERHEAD,
    Gap,
    Header,
    Record,
    bytes_wanted,
    corrupt,
    follows,
    read_header,
    record_body,
    records,
    seal,
    seal_header,
)

SUFFIX = ".journal"
# Bytes of a segment that one reader holds in memory at a time.
PIECE_BYTES = 256 * 1024


class JournalMissing(WorldBroken):
    code = "journal_missing"


class JournalBroken(WorldBroken):
    """A write or sync failed; the journal accepts no more records. Reopen it to continue from the durable ones."""

    code = "journal_broken"


class JournalExists(InputRefused):
    code = "journal_exists"


class RecordsPruned(InputRefused):
    """The records were pruned while they were being read; start again at `first_n`."""

    code = "records_pruned"


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
