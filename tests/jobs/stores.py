"""Schedulers for the tests: a store in a temporary folder, and a clock that the test moves."""

from pathlib import Path

from pendula.jobs.calls import Calls
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.time import format_utc, parse_utc

NOON = parse_utc("2026-02-20T12:00:00Z")


class Clock:
    """Microseconds since 1970; each reading is one microsecond later, so that no two changes share a time."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        self.now += 1
        return self.now

    def pass_by(self, seconds: int) -> None:
        self.now += seconds * 1_000_000

    def text(self, seconds: int = 0) -> str:
        """The time `seconds` from now, as text."""
        return format_utc(self.now + seconds * 1_000_000)


def opened(folder: Path, policy: Policy | None = None, clock: Clock | None = None) -> tuple[Scheduler, Clock]:
    time = clock or Clock()
    return Scheduler(Calls(SqliteStore(folder / "jobs.db"), policy or Policy(), time)), time
