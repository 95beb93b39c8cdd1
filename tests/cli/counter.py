"""A counter as an engine to record, and variants with other decisions to replay."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from msgspec import Struct

from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver, new_journal
from pendula.kernel.engine import Outcome, Outside, Reason
from pendula.kernel.limits import SEGMENT_BYTES


class Add(Struct, frozen=True, tag="add"):
    amount: int


class Added(Struct, frozen=True, tag="added"):
    total: int


class Counter:
    scheduler: ClassVar[str] = "counter"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "tick"
    commands: ClassVar[Any] = Add
    events: ClassVar[Any] = Added
    outside: Outside

    def __init__(self, total: int = 0) -> None:
        self.total = total

    @classmethod
    def create(cls, config: Json) -> Self:
        return cls()

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        total = decode(state)
        assert isinstance(total, int)
        return cls(total)

    def state(self) -> bytes:
        return encode(self.total)

    def apply(self, command: Add) -> Outcome[Added]:
        self.total += command.amount
        return Outcome((Added(self.total),))

    def now(self) -> int:
        return 0

    def next_due(self) -> int | None:
        return None

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        return code

    def why(self, question: Json) -> Reason:
        return Reason("counted", "It was counted.")

    def broken(self) -> Iterable[str]:
        return ()


class Recounter(Counter):
    """Counts 13 twice, with another number of decisions."""

    decisions: ClassVar[int] = 2

    def apply(self, command: Add) -> Outcome[Added]:
        return super().apply(Add(26) if command.amount == 13 else command)


class Miscounter(Recounter):
    """Counts 13 twice, with the same number of decisions."""

    decisions: ClassVar[int] = 1


def record(
    directory: Path,
    amounts: Iterable[int],
    *,
    snapshot_every: int = 1000,
    segment_bytes: int = SEGMENT_BYTES.default,
) -> None:
    """The journal of a counter after these amounts and a clean stop."""
    journal = new_journal(Counter, {}, RealDisk(directory), segment_bytes=segment_bytes, min_free_bytes=0)
    driver = Driver(Counter.create({}), journal, snapshot_every=snapshot_every)
    for amount in amounts:
        driver.submit(Add(amount), "test")
        driver.flush()
    driver.close()
