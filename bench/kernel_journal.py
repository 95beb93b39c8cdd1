"""The journal on a real disk: many waiters on one flush, and batches, beside one flush per record.

Both sides write the same records with the same durability: nothing is acknowledged before a flush covers the record.
Not judged on a disk in memory, where a flush costs nothing.
"""

import asyncio
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from statistics import median
from time import perf_counter

from pendula.cli.benchmarks import Progress, Row, Target, compared, measured
from pendula.kernel.commit import GroupCommit
from pendula.kernel.disk import RealDisk
from pendula.kernel.journal import FileJournal

BODY = b'{"command":{"amount":17,"type":"add"},"meta":{"at":null,"by":"bench","request_id":null}}'
TWENTY = Target(">=", Decimal(20))
MEMORY = ("tmpfs", "ramfs")


def rows(quick: bool, progress: Progress) -> list[Row]:
    records = 4_000 if quick else 20_000
    rounds = 3 if quick else 7
    with tempfile.TemporaryDirectory(prefix="pendula-bench-", dir=Path.cwd()) as place:
        unfair = why_unfair(Path(place))
        progress("one flush")
        found = [measured("one flush of 100 bytes", _one_flush(Path(place)) * 1e6, "us", sentence=unfair or "")]
        cases: list[tuple[str, Target | None, Callable[[FileJournal], None]]] = [
            ("1 task awaiting its record", None, lambda journal: _tasks(journal, records // 20, 1)),
            ("16 tasks, each awaiting its record", None, lambda journal: _tasks(journal, records // 2, 16)),
            ("256 tasks, each awaiting its record", TWENTY, lambda journal: _tasks(journal, records, 256)),
            ("one writer, batches of 100", TWENTY, lambda journal: _batches(journal, records, 100)),
        ]
        for name, target, work in cases:
            progress(name)
            found.append(_compare(Path(place), name, work, target, unfair, rounds))
    return found


def _compare(
    place: Path, name: str, work: Callable[[FileJournal], None], target: Target | None, unfair: str | None, rounds: int
) -> Row:
    """Records a second; the sides take turns, and the ratio is the median over the rounds."""
    ours, yardstick = [], []
    for number in range(rounds):
        yardstick.append(_rate(place / f"{name}-{number}-single", lambda journal: _batches(journal, 500, 1)))
        ours.append(_rate(place / f"{name}-{number}", work))
    return compared(
        name,
        median(ours),
        median(yardstick),
        "records/s",
        against="one flush per record",
        ratio=median(left / right for left, right in zip(ours, yardstick, strict=True)),
        target=target,
        unfair=unfair,
        fairness="both sides frame, chain and checksum; the yardstick has no threads and no event loop",
    )


def _rate(directory: Path, work: Callable[[FileJournal], None]) -> float:
    journal = FileJournal.create(RealDisk(directory), scheduler="bench", decisions=1, time_unit="tick", config={})
    begin = perf_counter()
    work(journal)
    seconds = perf_counter() - begin
    count = journal.durable_n + 1
    journal.close()
    return count / seconds


def _batches(journal: FileJournal, records: int, size: int) -> None:
    for _ in range(records // size):
        for _ in range(size):
            journal.append("input", 0, BODY)
        journal.flush()


def _tasks(journal: FileJournal, records: int, tasks: int) -> None:
    commit: GroupCommit[bytes, int] = GroupCommit(lambda body: journal.append("input", 0, body), journal.flush)

    async def task() -> None:
        for _ in range(records // tasks):
            await commit.submit(BODY)

    async def all_tasks() -> None:
        await asyncio.gather(*(task() for _ in range(tasks)))

    asyncio.run(all_tasks())
    commit.close()


def _one_flush(place: Path) -> float:
    disk = RealDisk(place / "flush")
    disk.create("x")
    times = []
    for _ in range(200):
        disk.append("x", bytes(100))
        begin = perf_counter()
        disk.sync("x")
        times.append(perf_counter() - begin)
    disk.close()
    return median(times)


def why_unfair(place: Path) -> str | None:
    kind = _filesystem(place)
    return f"not judged: {kind} is memory, a flush costs nothing there" if kind in MEMORY else None


def _filesystem(place: Path) -> str:
    """The type of the file system, from the longest mount point above the place; unknown without a mount list."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    found = ("", "unknown")
    for line in mounts.read_text().splitlines():
        _, point, kind, *_ = line.split()
        if place.resolve().is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]
