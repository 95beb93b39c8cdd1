"""Merge the records of a source into a cache, by id; the file is written only if its bytes change.

The delays after failures are milliseconds with seeded jitter; no clock is read here.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from msgspec import Struct

from pendula.kernel.disk import Disk
from pendula.kernel.errors import WorldBroken
from pendula.kernel.rng import Pcg32, stream
from pendula.playback.cache.shelf import (
    Header,
    channel_hash,
    checked_k,
    corrupt,
    file_bytes,
    next_generation,
    offset_of,
    read_file,
    read_header,
    replace_file,
    set_aside,
)
from pendula.playback.choosing.records import BLOCK_BYTES, newest_first, pack, sound
from pendula.playback.model import RECORD_BYTES, RECORDS_DEFAULT, Diagnostic, InvalidRecord, Record

FIRST_WAIT_MS = 30_000
LONGEST_WAIT_MS = 15 * 60_000
JITTER_STREAM = 0x4241434B


class SourceFailed(WorldBroken):
    """A source cannot list its records now."""

    code = "source_failed"


class Page(Struct, frozen=True):
    """The answer of a source: its newest records, its total count and its recent count.

    `complete`: these are all its records, so others are removed. `diagnostics` name what the source left out.
    """

    records: Sequence[Record]
    total_count: int
    recent_count: int = 0
    complete: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()


class Source(Protocol):
    """The source of a channel's records. `fetch` may be slow and may raise, preferably `SourceFailed`."""

    def fetch(self) -> Page: ...


class Refreshed(Struct, frozen=True):
    """The result of a refresh; `written` is False if the file did not change."""

    written: bool
    count: int
    generation: int
    diagnostics: tuple[Diagnostic, ...] = ()


class _Present(Struct, frozen=True):
    """The file before a refresh; empty if it is missing or corrupt."""

    data: bytes | None = None
    header: Header | None = None
    raws: tuple[bytes, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def merge(present: Iterable[bytes], incoming: Iterable[Record | bytes], k: int = RECORDS_DEFAULT) -> list[bytes]:
    """The newest `k` of both, sorted. Of two with one id the one modified later is kept; on ties the present one.

    Raises `InvalidParameter` for `k` and `InvalidRecord` for an incoming record that does not fit its fields.
    """
    checked_k(k)
    by_id: dict[bytes, bytes] = {}
    packed = (record if isinstance(record, bytes) else pack(record) for record in incoming)
    for raw in chain(present, packed):
        there = by_id.get(raw[:8])
        if there is None or _modified(raw) > _modified(there):
            by_id[raw[:8]] = raw
    return newest_first(by_id.values())[:k]


def _modified(raw: bytes) -> int:
    return int.from_bytes(raw[24:28], "little")


def refresh_cache(
    disk: Disk,
    name: str,
    channel: str,
    page: Page,
    *,
    k: int = RECORDS_DEFAULT,
    block_bytes: int = BLOCK_BYTES,
) -> Refreshed:
    """Merge a page into a channel's cache; the file is written, with the next generation, only if its bytes change.

    A corrupt file is set aside, damaged and invalid records are dropped, each with a diagnostic. Raises
    `InvalidParameter` and `CacheUnreachable`.
    """
    checked_k(k)
    there = _present(disk, name, channel)
    diagnostics = [*page.diagnostics, *there.diagnostics]
    incoming = list(_packed(page.records, channel, diagnostics))
    kept: Iterable[bytes] = there.raws
    if page.complete:
        listed = {raw[:8] for raw in incoming}
        kept = [raw for raw in there.raws if raw[:8] in listed]
    raws = merge(kept, incoming, k)
    hashed = channel_hash(channel)
    if there.header is not None:
        same = file_bytes(hashed, raws, k=k, block_bytes=block_bytes, generation=there.header.generation)
        if same == there.data:
            return Refreshed(False, len(raws), there.header.generation, tuple(diagnostics))
    generation = next_generation(there.header, raws)
    replace_file(disk, name, file_bytes(hashed, raws, k=k, block_bytes=block_bytes, generation=generation))
    return Refreshed(True, len(raws), generation, tuple(diagnostics))


def _present(disk: Disk, name: str, channel: str) -> _Present:
    data = read_file(disk, name)
    if data is None:
        return _Present()
    header = read_header(data, len(data), channel_hash(channel))
    if not isinstance(header, Header):
        fault = corrupt(name, channel, header)
        bad_name = set_aside(disk, name)
        facts = {**fault.facts, "set_aside": bad_name}
        return _Present(diagnostics=(Diagnostic(fault.code, fault.sentence, facts),))
    raws = [_record(data, at, header.block_bytes) for at in range(header.count)]
    bad = tuple(
        Diagnostic("BadRecord", "A record is damaged and is dropped.", {"channel": channel, "at": at})
        for at, raw in enumerate(raws)
        if not sound(raw)
    )
    return _Present(data, header, tuple(filter(sound, raws)), bad)


def _record(data: bytes, at: int, block_bytes: int) -> bytes:
    offset = offset_of(at, block_bytes)
    return data[offset : offset + RECORD_BYTES]


def _packed(records: Iterable[Record], channel: str, diagnostics: list[Diagnostic]) -> Iterator[bytes]:
    for record in records:
        try:
            yield pack(record)
        except InvalidRecord as refused:
            facts = {"channel": channel, "id": str(record.id), "field": refused.field}
            diagnostics.append(Diagnostic("InvalidRecord", f"A record was left out: {refused.message}.", facts))


class BackOff:
    """The delay after consecutive failures: doubling from `first_ms` to `most_ms`, with 20 % jitter from the draws."""

    def __init__(self, draws: Pcg32, *, first_ms: int, most_ms: int) -> None:
        self._draws = draws
        self._first_ms, self._most_ms = first_ms, most_ms
        self.failures = 0

    def failed(self) -> int:
        """Count a failure; returns the milliseconds to wait."""
        # 32 doublings exceed any sensible wait.
        plain = min(self._first_ms << min(self.failures, 32), self._most_ms)
        self.failures += 1
        spread = plain // 5
        return plain - spread + self._draws.bounded(2 * spread + 1)

    def succeeded(self) -> None:
        self.failures = 0


def back_off_of(seed: int, channel: str) -> BackOff:
    """The delays of a channel, from 30 s to 15 min."""
    draws = stream(seed, int.from_bytes(channel_hash(channel)[:8], "little"), JITTER_STREAM)
    return BackOff(draws, first_ms=FIRST_WAIT_MS, most_ms=LONGEST_WAIT_MS)
