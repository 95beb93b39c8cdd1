"""What a served run leaves in its directory, while it runs and when it has ended.

The files are those of a run without a server (`runs.artifacts`); the lines are the events as they were streamed, and
notes. The writer of lines never holds a run up: where the disk is too slow, lines are dropped and counted.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from queue import Full
from typing import Any

import msgspec

from pendula.credit.events import Ticked
from pendula.credit.runs.artifacts import BUNDLE, EVENTS, LAST_TICK, NAMES, STATUS, SUMMARY, Lines, bundle
from pendula.credit.served.store import Artifact
from pendula.kernel.canonical import Json, encode
from pendula.kernel.disk import RealDisk, replace

CONTENT_TYPES = {".ndjson": "application/x-ndjson", ".json": "application/json", ".zip": "application/zip"}
NOTHING: Mapping[str, Any] = {"tick_index": None, "sim_time_ms": 0}


class ServedArtifacts:
    """The files of one run; what a disk refuses is counted in `dropped` and kept in `trouble`, never raised."""

    def __init__(self, directory: Path, clock: Callable[[], int], tick_every_us: int) -> None:
        self._disk = RealDisk(directory)
        self._clock = clock
        self._tick_every_us = tick_every_us
        self._tick_written = 0
        self._last: Ticked | None = None
        self.dropped = 0
        self.trouble: OSError | None = None
        for name in self._disk.list():
            self._disk.remove(name)
        self._lines = Lines(self._disk, EVENTS)

    def status(self, facts: Mapping[str, Any]) -> None:
        """Write anew where the run stands."""
        self._file(STATUS, facts)

    def write(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                self._lines.put(line, wait=False)
            except Full:
                self.dropped += 1
            except OSError as trouble:
                self.dropped += 1
                self.trouble = trouble

    def tick(self, last: Ticked) -> None:
        self._last = last
        now = self._clock()
        if 0 < self._tick_every_us <= now - self._tick_written:
            self._tick_written = now
            self._tick_file()

    def finish(self, status: Mapping[str, Any], summary: Mapping[str, Any], repeat: Mapping[str, Json]) -> None:
        """All lines on the disk, the final files, those of `repeat` by name, and the archive of them."""
        try:
            self._lines.close()
        except OSError as trouble:
            self.trouble = trouble
        self._tick_file()
        self._file(STATUS, status)
        self._file(SUMMARY, {**summary, "dropped_lines": self.dropped})
        for name, value in repeat.items():
            self._file(name, value)
        try:
            bundle(self._disk)
        except OSError as trouble:
            self.trouble = trouble
        finally:
            self._disk.close()

    def _tick_file(self) -> None:
        self._file(LAST_TICK, NOTHING if self._last is None else self._last)

    def _file(self, name: str, value: object) -> None:
        try:
            replace(self._disk, name, msgspec.json.format(encode(value), indent=2) + b"\n")
        except OSError as trouble:
            self.trouble = trouble


def index(directory: Path, url: Callable[[str], str], hashed_most: int) -> list[Artifact]:
    """The files that are there, in the order of their names; only those of at most so many bytes are hashed."""
    found = []
    for name in sorted(NAMES):
        path = directory / name
        with suppress(OSError):
            size = path.stat().st_size
            digest = sha256(path.read_bytes()).hexdigest() if size <= hashed_most else None
            found.append(Artifact(name, url(name), CONTENT_TYPES[path.suffix], size, digest))
    return found


def has_bundle(found: Iterable[Artifact]) -> bool:
    return any(one.name == BUNDLE for one in found)
