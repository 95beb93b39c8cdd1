"""The bytes of a journal segment: frames, records and headers, and how damage is detected.

A frame is `length u32 | crc32 u32 | chain 32 bytes | body`, little-endian. The CRC-32 covers chain and body;
`chain(n) = sha256(chain(n-1) ‖ body)`, and `chain(-1)` is the digest of the configuration. The first frame of a
segment holds its header, every further one a record. Golden bytes are in the tests; a change of the format raises
`FORMAT`. The bodies of records are canonical JSON:

input     {"answers": [{"answer", "name", "question"}], "command", "meta": {"at", "by", "request_id"}}
outcome   {"answer", "count", "digest", "events", "of", "refusal"}; the digest covers answer, events and refusal
snapshot  {"decisions", "state"}
"""

import re
import struct
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

import pendula
from pendula.kernel.canonical import Json, Reader, decode, encode
from pendula.kernel.engine import Answer, Outcome
from pendula.kernel.errors import WorldBroken
from pendula.kernel.limits import RECORD_BYTES

FORMAT = 1
OVERHEAD = 40
_PREFIX = struct.Struct("<II")
_START_OF_RECORD = re.compile(rb'\{"body":')

Kind = Literal["input", "outcome", "snapshot", "note"]


class JournalCorrupt(WorldBroken):
    """The middle of a journal is damaged. Facts: `file`, `offset`."""

    code = "journal_corrupt"


class JournalFormat(WorldBroken):
    """The journal has a format that this version does not read. Facts: `file`, `format`, `supported`."""

    code = "journal_format"


class Gap(Struct, frozen=True):
    """Records lost before a segment: from this number on, after this time."""

    first_n: int
    t: int


class Header(Struct, frozen=True):
    """First frame of every segment, so that old segments can be removed. With a `gap` the segment begins with a
    snapshot, and the segments before it are a separate journal."""

    format: int
    scheduler: str
    decisions: int
    time_unit: str
    package: str
    config: Json
    config_digest: str
    segment: int
    first_n: int
    chain: str
    gap: Gap | UnsetType = UNSET


class _Origin(Struct, frozen=True):
    """The header fields common to all formats, so that an unreadable format can be reported with its writer."""

    format: int
    package: Json = None


class Record(Struct, frozen=True):
    """One journal record; `t` is engine time after the command, never wall-clock time."""

    n: int
    t: int
    kind: Kind
    body: Raw


class Frame(NamedTuple):
    """A frame with a valid checksum, and its offsets in the segment."""

    start: int
    end: int
    chain: bytes
    body: bytes


_read_record = msgspec.json.Decoder(Record).decode
_read_header: Reader[Header] = Reader(Header)
_read_origin: Reader[_Origin] = Reader(_Origin)


# Upper bound of a record's bytes besides its body: braces, names, kind, number and time.
RECORD_OVERHEAD = 128


def check_size(body: bytes) -> None:
    """Raise `LimitExceeded` if the record of this body would be too large."""
    RECORD_BYTES.check(len(body) + RECORD_OVERHEAD)


def record_parts(n: int, t: int, kind: str, body: bytes) -> tuple[bytes, bytes, bytes]:
    """The canonical JSON of a record, in parts, so that a large snapshot is copied only once."""
    return b'{"body":', body, b',"kind":"%b","n":%d,"t":%d}' % (kind.encode(), n, t)


def record_body(n: int, t: int, kind: str, body: bytes) -> bytes:
    """The canonical JSON of a record, given the canonical JSON of its inner body."""
    return b"".join(record_parts(n, t, kind, body))


def seal_parts(previous: bytes, parts: Sequence[bytes]) -> tuple[bytes, bytes]:
    """The frame head for a body of these parts after the chain digest `previous`, and the next chain digest."""
    length, link = 0, sha256(previous)
    for part in parts:
        length += len(part)
        link.update(part)
    RECORD_BYTES.check(length)
    chain = link.digest()
    checksum = crc32(chain)
    for part in parts:
        checksum = crc32(part, checksum)
    return _PREFIX.pack(length, checksum) + chain, chain


def seal(previous: bytes, body: bytes) -> tuple[bytes, bytes]:
    """The frame of `body` after the chain digest `previous`, and the next chain digest."""
    head, chain = seal_parts(previous, (body,))
    return head + body, chain


def seal_header(header: Header) -> bytes:
    """The frame of a header. It is checked like a record's, but is not part of the chain of records."""
    return seal(bytes.fromhex(header.chain), encode(header))[0]


def frame_at(data: bytes, start: int) -> Frame | None:
    """The frame that begins at `start`, or None if its length or checksum is invalid."""
    if start + OVERHEAD > len(data):
        return None
    length, checksum = _PREFIX.unpack_from(data, start)
    end = start + OVERHEAD + length
    if end > len(data) or crc32(data[start + 8 : end]) != checksum:
        return None
    return Frame(start, end, data[start + 8 : start + OVERHEAD], data[start + OVERHEAD : end])


def read_record(frame: Frame, file: str) -> Record:
    """The record in a frame. The checksum is valid, so anything else in it is corruption."""
    try:
        return _read_record(frame.body)
    except msgspec.DecodeError:
        raise corrupt(file, frame.start, "a frame does not contain a record") from None


def read_header(data: bytes, file: str) -> tuple[Header, int]:
    """The header of a segment and the offset of its first record."""
    frame = frame_at(data, 0)
    if frame is None:
        raise corrupt(file, 0, "the header is damaged")
    try:
        origin = _read_origin(frame.body)
        if origin.format > FORMAT:
            raise _newer(origin, file)
        header = _read_header(frame.body)
    except msgspec.DecodeError:
        raise corrupt(file, 0, "the first frame does not contain a header") from None
    if header.format != FORMAT:
        raise corrupt(file, 0, f"format {header.format} never existed; this version reads format {FORMAT}")
    try:
        chain = bytes.fromhex(header.chain)
    except ValueError:
        raise corrupt(file, 0, "the chain digest in the header is invalid") from None
    if sha256(chain + frame.body).digest() != frame.chain:
        raise corrupt(file, 0, "the header does not match its digest")
    return header, frame.end


def _newer(origin: _Origin, file: str) -> JournalFormat:
    writer = f"pendula {origin.package}" if isinstance(origin.package, str) else "a newer pendula"
    return JournalFormat(
        f"The journal has format {origin.format} and was written by {writer}; pendula {pendula.__version__} reads "
        f"format {FORMAT}. It is not damaged and was not changed: open it with the version that wrote it or a "
        f"later one ({file})",
        file=file,
        format=origin.format,
        supported=FORMAT,
    )


def records(
    data: bytes, start: int, chain: bytes, n: int, file: str, *, before: int = 0
) -> Iterator[tuple[Frame, Record]]:
    """All records from `start`, checked: consecutive numbers, chained digests. Ends before the first invalid frame.

    `data` may be a part of the file that begins at offset `before`.
    """
    while (frame := frame_at(data, start)) is not None:
        record = read_record(frame, file)
        if record.n != n:
            raise corrupt(file, before + start, f"expected record {n}, found record {record.n}")
        chain = sha256(chain + frame.body).digest()
        if chain != frame.chain:
            raise corrupt(file, before + start, f"the digest chain is broken at record {n}")
        yield frame, record
        start, n = frame.end, n + 1


def bytes_wanted(data: bytes, start: int) -> int:
    """Bytes needed from `start` to decode the frame there: its head first, then the whole frame."""
    if start + OVERHEAD > len(data):
        return OVERHEAD
    return OVERHEAD + int(_PREFIX.unpack_from(data, start)[0])


def follows(data: bytes, start: int, n: int) -> int | None:
    """Offset of a valid frame with number `n` or more: proof that the invalid one at `start` was once complete."""
    for match in _START_OF_RECORD.finditer(data, start + OVERHEAD):
        frame = frame_at(data, match.start() - OVERHEAD)
        if frame is not None and read_record(frame, "").n >= n:
            return frame.start
    return None


def corrupt(file: str, offset: int, what: str) -> JournalCorrupt:
    return JournalCorrupt(
        f"The journal is corrupt: {what} ({file}, offset {offset}). Nothing was changed; restore it from a backup",
        file=file,
        offset=offset,
    )


class Meta(Struct, frozen=True):
    """Caller, wall-clock time and request id of an input. No decision uses them."""

    by: str
    at: str | None = None
    request_id: str | None = None


class InputBody(Struct, frozen=True):
    answers: Raw
    command: Raw
    meta: Meta

    def stored_answers(self) -> tuple[Answer, ...]:
        return _read_answers(self.answers)


class OutcomeBody(Struct, frozen=True):
    count: int
    digest: str
    of: int
    answer: Raw = Raw(b"null")
    events: Raw = Raw()  # empty when the events were not kept
    refusal: Raw = Raw(b"null")


class SnapshotBody(Struct, frozen=True):
    decisions: int
    state: Raw


class OutcomeBytes(NamedTuple):
    """An outcome as canonical bytes; events are separate because they are streamed one by one."""

    answer: bytes
    events: tuple[bytes, ...]
    refusal: bytes

    def whole(self) -> bytes:
        return b'{"answer":%b,"events":[%b],"refusal":%b}' % (self.answer, b",".join(self.events), self.refusal)

    def digest(self) -> str:
        return sha256(self.whole()).hexdigest()

    def body(self, of: int, *, keep_events: bool = True) -> bytes:
        """The body of the outcome record. Without events, which a replay computes again, the digest represents them."""
        events = b'"events":[%b],' % b",".join(self.events) if keep_events else b""
        return b'{"answer":%b,"count":%d,"digest":"%b",%b"of":%d,"refusal":%b}' % (
            self.answer,
            len(self.events),
            self.digest().encode(),
            events,
            of,
            self.refusal,
        )


def outcome_bytes(outcome: Outcome[Any]) -> OutcomeBytes:
    return OutcomeBytes(
        b"null" if outcome.answer is None else encode(outcome.answer),
        tuple(map(encode, outcome.events)),
        b"null" if outcome.refusal is None else encode(outcome.refusal),
    )


def recorded_outcome(body: OutcomeBody) -> Json:
    """The recorded outcome as a value, to show a difference."""
    if not bytes(body.events):
        return {"count": body.count, "digest": body.digest}
    return {
        "answer": decode(bytes(body.answer)),
        "events": decode(bytes(body.events)),
        "refusal": decode(bytes(body.refusal)),
    }


def input_body(command: bytes, answers: Sequence[Answer], meta: bytes) -> bytes:
    return b'{"answers":%b,"command":%b,"meta":%b}' % (encode(list(answers)) if answers else b"[]", command, meta)


def snapshot_body(decisions: int, state: bytes) -> bytes:
    return b'{"decisions":%d,"state":%b}' % (decisions, state)


read_input = msgspec.json.Decoder(InputBody).decode
read_outcome = msgspec.json.Decoder(OutcomeBody).decode
read_snapshot = msgspec.json.Decoder(SnapshotBody).decode
_read_answers: Reader[tuple[Answer, ...]] = Reader(tuple[Answer, ...])
