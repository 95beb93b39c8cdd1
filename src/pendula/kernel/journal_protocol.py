"""What a driver and a replay need of a journal, on a disk or before one."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from pendula.kernel.frames import Header, Kind, Record


class Journal(Protocol):
    """What a driver and a replay need of a journal."""

    header: Header
    # Whether more bytes than are allowed keep nobody from going on: scheduler is made when it can be.
    goes_on_when_full: bool

    def append(self, kind: Kind, t: int, body: bytes) -> int:
        """Number and buffer a record whose inner body is canonical JSON; never blocks on the disk."""
        ...

    def flush(self) -> int:
        """All up to the returned number is durable."""
        ...

    def read(self, start: int = 0) -> Iterator[Record]:
        """The durable records from number `start` on."""
        ...

    def snapshots(self) -> Sequence[tuple[int, int]]:
        """(n, t) ascending: the index of the time slider."""
        ...

    def rotate(self) -> None:
        """Let the next flush begin a new segment."""
        ...

    def prune(self, keep_bytes: int) -> int:
        """Remove whole segments before the newest snapshot but one; returns how many."""
        ...

    def close(self) -> None: ...

    @property
    def first_n(self) -> int: ...

    @property
    def next_n(self) -> int:
        """The number that the next record gets."""
        ...

    @property
    def durable_n(self) -> int:
        """Number of the last durable record, -1 when there is none."""
        ...

    @property
    def total_bytes(self) -> int: ...

    @property
    def disk_low(self) -> bool:
        """True while the disk has less free space than allowed; looked at after each flush, and again while low."""
        ...
