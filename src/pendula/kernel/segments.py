"""The segments of a journal as they lie on a disk: found, read, checked, and freed of a torn tail.

A torn tail, what a crash leaves of the last unsynced write, is what may follow the last whole record of the last
segment. Anything else that does not fit is `journal_corrupt`.
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
# What a reader of the past holds of a segment, however long that is; as many read at a time as may.
PIECE_BYTES = 256 * 1024


class JournalMissing(WorldBroken):
    code = "journal_missing"


class JournalBroken(WorldBroken):
    """A write or sync failed once; this journal takes nothing more. Reopen it to go on from what is durable."""

    code = "journal_broken"


class JournalExists(InputRefused):
    code = "journal_exists"


class RecordsPruned(InputRefused):
    """The records that were to be read were pruned meanwhile; begin again at `first_n`."""

    code = "records_pruned"


class Segment(Struct):
    """One file of the journal: records first_n … first_n + k, in `size` valid bytes."""

    name: str
    first_n: int
    size: int
    chain: bytes


class Cut(Struct, frozen=True):
    """What follows the last whole record: bytes from `offset` on, where record `n` should be.

    A crash leaves a part of an unacknowledged record there. Where `is_whole`, the record has its length and a checksum
    that does not hold: a write whose pages came to the disk in another order, or damage to an acknowledged record.
    """

    name: str
    offset: int
    data: bytes
    n: int
    is_whole: bool

    @property
    def kept_in(self) -> str:
        """The file beside the segment that has these bytes once they are cut off."""
        return f"{self.name.removesuffix(SUFFIX)}-{self.offset}.cut"

    def note(self, *, is_cut: bool) -> str:
        """What was found, for logs and people."""
        if self.is_whole:
            found = f"record {self.n}, the last one of {self.name}, has all its bytes and a checksum that does not hold"
            cause = "If it was acknowledged, it was damaged since: restore it from a backup or another copy"
        else:
            found = f"{self.name} ends in the middle of record {self.n}"
            cause = "A crash leaves that of a record that was not acknowledged; damage to its length looks the same"
        done = f"were cut off and are kept in {self.kept_in}" if is_cut else "are left out"
        return f"Journal: {found}. Its {len(self.data)} bytes from offset {self.offset} on {done}. {cause}."


class Contents(Struct):
    """What is in a journal: enough to go on writing where it ends."""

    header: Header
    segments: list[Segment]
    snapshots: list[tuple[int, int]]
    next_n: int
    chain: bytes
    cut: Cut | None
    # Segments before a gap, which no longer belong to this journal, each with the record that it goes on with after it.
    left: list[tuple[str, int]] = []


def segment_names(disk: Disk) -> list[str]:
    return [name for name in disk.list() if name.endswith(SUFFIX)]


def first_header(scheduler: str, decisions: int, time_unit: str, config: Json) -> Header:
    """What the first segment of a new journal says."""
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
    """A new segment with a header like that of the first one, and its first frame where that must not be without it,
    durable."""
    header = msgspec.structs.replace(
        header, package=pendula.__version__, segment=number, first_n=first_n, chain=chain.hex(), gap=gap
    )
    name = f"{number:08d}{SUFFIX}"
    data = seal_header(header) + first
    # By way of a draft: a segment that exists has a whole header, whatever the crash.
    replace(disk, name, data)
    return Segment(name, first_n, len(data), chain)


def remove_drafts(disk: Disk) -> None:
    """What a crash left of a segment that was to begin."""
    drafts = [name for name in disk.list() if name.endswith(f"{SUFFIX}.tmp")]
    for name in drafts:
        disk.remove(name)
    if drafts:
        disk.sync_dir()


def read_contents(disk: Disk) -> Contents:
    """Read and check every segment; raises `JournalMissing`, and `journal_corrupt` for all but a torn tail."""
    names = segment_names(disk)
    if not names:
        raise JournalMissing(f"There is no journal: {getattr(disk, 'directory', disk)}")
    first, _ = read_header(disk.read(names[0]), names[0])
    contents = Contents(first, [], [], first.first_n, bytes.fromhex(first.chain), None)
    for name in names:
        _read_segment(disk, name, contents, is_last=name == names[-1])
    return contents


def _read_segment(disk: Disk, name: str, contents: Contents, is_last: bool) -> None:
    data = disk.read(name)
    header, offset = read_header(data, name)
    if header.gap is not UNSET and contents.segments:
        _begin_anew(header, header.gap, name, contents)
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
            raise corrupt(name, segment.size, f"record {contents.next_n} is damaged and later ones are whole")
        is_whole = segment.size + bytes_wanted(data, segment.size) <= len(data)
        contents.cut = Cut(name, segment.size, data[segment.size :], contents.next_n, is_whole)


def _begin_anew(header: Header, gap: Gap, name: str, contents: Contents) -> None:
    """A segment after a gap: what was read before it is another journal, which ends where the gap begins."""
    if (gap.first_n, header.chain) != (contents.next_n, contents.chain.hex()):
        raise corrupt(name, 0, "the gap does not begin where the segment before it ends")
    contents.left += [(one.name, header.first_n) for one in contents.segments]
    contents.header, contents.segments, contents.snapshots = header, [], []
    contents.next_n = header.first_n


def after_gap(disk: Disk, before: Contents, begin: Record, t: int) -> Contents:
    """A journal that goes on with a snapshot though what came between is lost: a new segment, after which nobody reads
    the old ones, and then they are set aside."""
    number, chain = number_of(before.segments[-1]) + 1, before.chain
    gap = Gap(before.next_n, t)
    first, after = seal(chain, record_body(begin.n, begin.t, begin.kind, bytes(begin.body)))
    segment = begin_segment(disk, before.header, number, begin.n, chain, gap=gap, first=first)
    header = msgspec.structs.replace(before.header, segment=number, first_n=begin.n, chain=chain.hex(), gap=gap)
    left = set_aside(disk, [*before.left, *((one.name, begin.n) for one in before.segments)])
    return Contents(header, [segment], [(begin.n, begin.t)], begin.n + 1, after, None, left=left)


def set_aside(disk: Disk, left: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Put the segments before a gap into a folder of their own, where they are a journal; on a disk without folders
    under names that are none of a journal. Oldest first; returns those for which the disk did not do it."""
    into: Callable[[str, str], None] | None = getattr(disk, "move_into", None)
    moved = 0
    with suppress(OSError):
        for name, first_n in left:
            if into is not None:
                into(before_gap(first_n), name)
            else:
                disk.rename(name, f"{name.removesuffix(SUFFIX)}-{before_gap(first_n)}")
            moved += 1
        if left:
            disk.sync_dir()
    return left[moved:]


def before_gap(first_n: int) -> str:
    """The folder of what was written before the gap after which a journal goes on with this record."""
    return f"before-{first_n}"


def missing_of(header: Header) -> str | None:
    """What a journal that begins after a gap lost before it, in words; None where it begins otherwise."""
    if header.gap is UNSET:
        return None
    lost = f"records {header.gap.first_n} to {header.first_n - 1}, after {header.gap.t} {header.time_unit}"
    return f"{lost}; what was written before them is the journal in {before_gap(header.first_n)}"


def segment_records(disk: Disk, segment: Segment) -> Iterator[Record]:
    """The records of a segment that was read before, checked again; a piece of the file is held at a time.

    Raises `FileNotFoundError` where it is gone. A disk that cannot read parts gives it as a whole.
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
        # All of it is there and it is not a frame, or the file ends.
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
        raise corrupt(name, 0, "the configuration does not have the digest that the header names")


def cut_off(disk: Disk, cut: Cut) -> None:
    """Keep what is cut in a file of its own, then put the valid part in the segment's place."""
    whole = disk.read(cut.name)
    replace(disk, cut.kept_in, cut.data)
    replace(disk, cut.name, whole[: cut.offset])


class End(Struct, frozen=True):
    """Where a journal ends: `n` is the number that its next record gets."""

    size: int
    n: int
    chain: bytes


def write_anew(disk: Disk, segments: list[Segment], left: Iterable[tuple[str, int]] = ()) -> End:
    """After a failed write or sync: all that is whole in the last segment, in a file of its own, durable.

    The old file is not trusted: after a failed sync later ones may succeed and save nothing. Segments that are not
    among `segments`, or `left` before a gap, are what is left of one that was to begin, or to be pruned; they go.
    """
    remove_drafts(disk)
    known = {*(name for name, _ in left), *(one.name for one in segments)}
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
