"""The journal as a driver and a replay use it; its records may be on a disk or in memory."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from pendula.kernel.frames import Header, Kind, Record


class Journal(Protocol):
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
