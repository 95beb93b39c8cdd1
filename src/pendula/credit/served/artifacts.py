"""The output directory of a served run, during the run and after its end.

The files are those of a run without a server (`runs.artifacts`); the lines are the streamed events and notes. Writing
lines never blocks a run: if the disk is too slow, lines are dropped and counted.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from queue import Full
from typing import Any

import msgspec
from msgspec import Struct

from pendula.credit.events import Ticked
from pendula.credit.runs.artifacts import BUNDLE, EVENTS, LAST_TICK, NAMES, STATUS, SUMMARY, Lines, bundle
from pendula.credit.served.store import Artifact
from pendula.kernel.cancellation import check
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.disk import RealDisk, replace

CONTENT_TYPES = {".ndjson": "application/x-ndjson", ".json": "application/json", ".zip": "application/zip"}
LINES_READ = 5000  # of the newest lines, to find a few
NOTHING: Mapping[str, Any] = {"tick_index": None, "sim_time_ms": 0}
BLOCK = 1 << 20


class _Line(Struct):
    tick_index: int


_read_line = msgspec.json.Decoder(_Line).decode


class ServedArtifacts:
    """The files of one run; disk errors are never raised, but counted in `dropped` and stored in `error`."""

    def __init__(self, directory: Path, clock: Callable[[], int], tick_every_us: int) -> None:
        self._disk = RealDisk(directory)
        self._clock = clock
        self._tick_every_us = tick_every_us
        self._tick_written = 0
        self._last: Ticked | None = None
        self.dropped = 0
        self.error: OSError | None = None
        for name in self._disk.list():
            self._disk.remove(name)
        self._lines = Lines(self._disk, EVENTS)

    def status(self, facts: Mapping[str, Any]) -> None:
        """Replace the status file."""
        self._file(STATUS, facts)

    def write(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                self._lines.put(line, wait=False)
            except Full:
                self.dropped += 1
            except OSError as error:
                self.dropped += 1
                self.error = error

    def tick(self, last: Ticked) -> None:
        self._last = last
        now = self._clock()
        if 0 < self._tick_every_us <= now - self._tick_written:
            self._tick_written = now
            self._tick_file()

    def finish(self, status: Mapping[str, Any], summary: Mapping[str, Any], repeat: Mapping[str, Json]) -> None:
        """Sync all lines and write the final files, those of `repeat` by name, and the archive."""
        try:
            self._lines.close()
        except OSError as error:
            self.error = error
        try:
            final = {STATUS: status, SUMMARY: {**summary, "dropped_lines": self.dropped}, **repeat}
            _write_final(self._disk, self._last, final)
        except OSError as error:
            self.error = error
        finally:
            self._disk.close()

    def _tick_file(self) -> None:
        self._file(LAST_TICK, NOTHING if self._last is None else self._last)

    def _file(self, name: str, value: object) -> None:
        try:
            _write(self._disk, name, value)
        except OSError as error:
            self.error = error


class UnfinishedLines:
    """The lines of a run of a killed process: the last ones may be missing or incomplete."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / EVENTS
        self._end = 0
        self.last_tick: int | None = None
        """The tick of the last line; None without lines."""
        for end, line in _backwards(self._path):
            self.last_tick = _tick_of(line)
            if self.last_tick is not None:
                self._end = end
                break

    def missing(self, bodies: list[bytes], first_tick: int) -> int:
        """The number of `bodies`, which start at the tick `first_tick`, that the file already has."""
        present = []
        for end, line in _backwards(self._path):
            tick = _tick_of(line)
            if end <= self._end and (tick is None or tick < first_tick):
                break
            if end <= self._end:
                present.append(_identity(line))
        present.reverse()
        identities = [_identity(body) for body in bodies]
        # Lines of the first tick may be older than the first body.
        for older in range(len(present)):
            rest = present[older:]
            if rest == identities[: len(rest)]:
                return len(rest)
        if present and present[-1] in identities:
            # Dropped lines leave gaps; the lines after the last one are missing nevertheless.
            return len(identities) - identities[::-1].index(present[-1])
        return 0

    def append(self, lines: Iterable[bytes]) -> None:
        """Truncate an incomplete line and append these; raises `OSError`."""
        with self._path.open("r+b" if self._path.exists() else "w+b") as file:
            file.truncate(self._end)
            file.seek(self._end)
            file.writelines(line + b"\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())


def finish_files(
    directory: Path,
    last: Ticked | None,
    status: Mapping[str, Any],
    summary: Mapping[str, Any],
    repeat: Mapping[str, Json],
) -> None:
    """Write the final files of a run whose lines are complete; raises `OSError`."""
    disk = RealDisk(directory)
    try:
        _write_final(disk, last, {STATUS: status, SUMMARY: summary, **repeat})
    finally:
        disk.close()


def _write_final(disk: RealDisk, last: Ticked | None, files: Mapping[str, Any]) -> None:
    _write(disk, LAST_TICK, NOTHING if last is None else last)
    for name, value in files.items():
        _write(disk, name, value)
    bundle(disk)


def _write(disk: RealDisk, name: str, value: object) -> None:
    replace(disk, name, msgspec.json.format(encode(value), indent=2) + b"\n")


def _backwards(path: Path) -> Iterator[tuple[int, bytes]]:
    """The complete lines of a file, last one first, each with its end position."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        place = end = file.seek(0, os.SEEK_END)
        rest = b""
        torn = True
        while place > 0:
            place -= (length := min(BLOCK, place))
            file.seek(place)
            first, *lines = (file.read(length) + rest).split(b"\n")
            rest = first
            if torn and lines:
                # The rest after the last newline is an incomplete line, or empty.
                torn = False
                end -= len(lines.pop())
                lines = [*lines]
            for line in reversed(lines):
                yield end, line
                end -= len(line) + 1
        if not torn:
            yield end, rest


def _tick_of(line: bytes) -> int | None:
    try:
        return _read_line(line).tick_index
    except msgspec.DecodeError:
        return None


def _identity(line: bytes) -> bytes:
    """A line without everything that depends on the time of writing: number, times, display keys."""
    facts: Any = decode(line)
    for name in ("event_id", "ts", "node_patch", "edge_patch"):
        facts.pop(name, None)
    for part, name in (("error", "at"), ("payload", "edge_patch")):
        if isinstance(facts.get(part), dict):
            facts[part].pop(name, None)
    return encode(facts)


class _EventLine(Struct):
    event_id: str
    equivalent: str | None = None


_read_event = msgspec.json.Decoder(_EventLine).decode


def last_events(directory: Path, equivalent: str, most: int, known: Collection[str]) -> list[bytes]:
    """The newest events in the file of a run, as JSON, oldest first: of one equivalent and of all, without the `known`
    ids. Empty without a file."""
    events: list[bytes] = []
    with suppress(OSError):
        for _, line in islice(_backwards(directory / EVENTS), LINES_READ):
            check()
            if len(events) == most:
                break
            with suppress(msgspec.DecodeError):  # notes
                read = _read_event(line)
                if read.event_id not in known and read.equivalent in (None, equivalent):
                    events.append(line)
    return events[::-1]


def index(directory: Path, url: Callable[[str], str], hashed_most: int) -> list[Artifact]:
    """The existing files in the order of their names; only those of at most `hashed_most` bytes are hashed."""
    artifacts = []
    for name in sorted(NAMES):
        path = directory / name
        with suppress(OSError):
            size = path.stat().st_size
            digest = sha256(path.read_bytes()).hexdigest() if size <= hashed_most else None
            artifacts.append(Artifact(name, url(name), CONTENT_TYPES[path.suffix], size, digest))
    return artifacts


def has_bundle(artifacts: Iterable[Artifact]) -> bool:
    return any(entry.name == BUNDLE for entry in artifacts)
