"""Costs that must stay small: jobs of other queues, of a busy object, expired leases, finished jobs."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.jobs_loads import Desk, ack_entries, assert_all, filled, granted
from bench.measuring.wall_time import Turns
from pendula.cli.benchmarks import Progress, Row, Target, compared
from pendula.jobs.calls import queries
from pendula.jobs.model import Durability, Policy
from pendula.jobs.upkeep.retention import DAY_SEC, retain

FEW = 100
MANY, QUICK_MANY = 100_000, 20_000
LEASES, QUICK_LEASES = 10_000, 2000
REMOVED, QUICK_REMOVED = 10_000, 2000
AT_ONCE = 1000
ROUNDS, QUICK_ROUNDS = 21, 7
TIMES = 20  # repeats in a round: one call takes a fraction of a millisecond
TWICE, A_QUARTER = Target("<=", Decimal(2)), Target("<=", Decimal("0.25"))
STEP_MS = 100
ONE = Policy(one_running_per_object=True)
WHO = "bench"


def rows(place: Path, quick: bool, progress: Progress, unfair: str | None) -> list[Row]:
    many, rounds = (QUICK_MANY, QUICK_ROUNDS) if quick else (MANY, ROUNDS)
    progress("what others wait for")
    return [
        _beside(place, f"pull of nothing, {many:,} due in another queue", "others", many, rounds, Policy(), _empty),
        _beside(place, f"pull of nothing, {many:,} due of one busy object", "busy", many, rounds, ONE, _nothing),
        _beside(place, f"list of dead letters, {many:,} succeeded", "done", many, rounds, Policy(), _dead_letters),
        _reclaimed(place, QUICK_LEASES if quick else LEASES, progress, unfair),
        _kept(place, QUICK_REMOVED if quick else REMOVED, progress),
    ]


def _beside(
    place: Path, name: str, kind: str, many: int, rounds: int, policy: Policy, call: Callable[[Desk], object]
) -> Row:
    """The same call with many and with few other jobs."""
    turns = Turns()
    with ExitStack() as stack:
        desks = {
            count: stack.enter_context(closing(_desk(place / f"{kind}-{count}.db", kind, count, policy)))
            for count in (FEW, many)
        }
        for _ in turns.rounds(rounds):
            for count, desk in desks.items():
                turns.take(str(count), partial(_often, call, desk))
    return compared(
        name,
        turns.seconds(str(many)) * 1_000_000 / TIMES,
        turns.seconds(str(FEW)) * 1_000_000 / TIMES,
        "us a call",
        against=f"{FEW} of them",
        ratio=turns.share(str(many), str(FEW)),
        target=TWICE,
    )


def _often(call: Callable[[Desk], object], desk: Desk) -> None:
    for _ in range(TIMES):
        call(desk)


_AS_KIND: Mapping[str, str] = {
    "others": "UPDATE jobs SET queue = 'others'",
    "busy": "UPDATE jobs SET object_id = 'busy'",
    "done": "UPDATE jobs SET status = 'succeeded'",
}


def _desk(path: Path, kind: str, count: int, policy: Policy) -> Desk:
    filled(path, waiting=count, in_order=count)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(_AS_KIND[kind])
    desk = Desk(path, policy=policy)
    if kind == "busy":
        desk.pulls(1)
        _nothing(desk)
    return desk


def _empty(desk: Desk) -> None:
    assert _pulled(desk, queues=["own"]) == 0


def _nothing(desk: Desk) -> None:
    assert _pulled(desk) == 0


def _pulled(desk: Desk, **asked: Any) -> int:
    count: int = granted(desk.calls.pull({"worker_id": WHO, **asked}))["count"]
    return count


def _dead_letters(desk: Desk) -> None:
    assert granted(queries.listed(desk.store, desk.calls.policy, {"status": "dead_letter"}))["jobs"] == []


def _reclaimed(place: Path, leases: int, progress: Progress, unfair: str | None) -> Row:
    """The longest time for which other writers are blocked while many leases are reclaimed."""
    progress(f"{leases:,} leases run out")
    path = place / "leases.db"
    filled(path, waiting=leases, in_order=leases)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE jobs SET status = 'running', worker_id = 'gone', lease = x'00', lease_expires_at = 1, "
            "delivery_count = 1"
        )
    with closing(Desk(path)) as desk:
        longest = _longest_write(desk, partial(desk.pulls, 1))
    return compared(
        f"longest transaction, {leases:,} leases come back with one pull",
        longest * 1000,
        STEP_MS,
        "ms",
        against="the longest that is allowed",
        target=Target("<=", Decimal(1)),
        unfair=unfair,
        fairness="waiting for the flush counted in",
    )


def _longest_write(desk: Desk, call: Callable[[], object]) -> float:
    """Seconds of each write of a call."""
    longest, plain = 0.0, desk.store.write

    def write(*given: Any, **options: Any) -> Any:
        nonlocal longest
        begin = perf_counter()
        try:
            return plain(*given, **options)
        finally:
            longest = max(longest, perf_counter() - begin)

    desk.store.write = write  # type: ignore[method-assign]
    call()
    return longest


def _kept(place: Path, jobs: int, progress: Progress) -> Row:
    """Bytes that a removed job leaves in the file."""
    progress(f"{jobs:,} jobs are removed")
    path = place / "kept.db"
    with closing(Desk(path, Durability.NORMAL)) as desk:
        empty = _used(path)
        for _ in range(jobs // AT_ONCE):
            assert_all(201, desk.enqueues(desk.bodies(AT_ONCE, due_in=0)))
            assert_all(200, desk.acks(ack_entries(desk.pulls(AT_ONCE))))
        before = _used(path)
        now = desk.calls.clock
        desk.calls.clock = lambda: now() + 2 * DAY_SEC * 1_000_000
        retain(desk.calls, days=1)
        after = _used(path)
    return compared(
        "what a removed job keeps: its key, its object, its trail",
        (after - empty) / jobs,
        (before - empty) / jobs,
        "bytes",
        against="before",
        target=A_QUARTER,
    )


def _used(path: Path) -> int:
    """Bytes of pages in use."""
    with closing(sqlite3.connect(path)) as connection:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    return int((pages - free) * size)
