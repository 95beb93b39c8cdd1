"""The cost of a call does not depend on the size of the store: query plans, and the steps of SQLite."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import astuple, replace

from pendula.jobs import decide, messages
from pendula.jobs.messages import Enqueue
from pendula.jobs.model import SECOND, Job, Policy, PullOrder
from pendula.jobs.scheduler import Scheduler
from tests.jobs.stores import NOON, Clock, opened
from tests.jobs.watched_connections import watched, watching

__all__ = ["watched"]

JOB: dict[str, Any] = {"object_type": "memory", "action": "verify"}
DAY = 86_400 * SECOND
FEW, MANY, VERY_MANY = 1000, 20_000, 1_000_000
POLICIES = {
    "by time": Policy(),
    "weighted": Policy(pull_order=PullOrder.WEIGHTED),
    "one an object": Policy(one_running_per_object=True),
}


def stored(path: Path, jobs: Iterator[Job]) -> None:
    """Insert rows directly into the file."""
    names = ", ".join(Job.__struct_fields__)
    places = ", ".join("?" * len(Job.__struct_fields__))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.executemany(f"INSERT INTO jobs ({names}) VALUES ({places})", map(astuple, jobs))


def sample(seq: int, run_at: int) -> Job:
    request = Enqueue("memory", f"old_{seq}", "verify", run_at, seq % 3, 3, None, None, "default")
    job = decide.new_job(request, seq, NOON - 30 * DAY)
    assert isinstance(job, Job)
    return job


def finished(count: int) -> Iterator[Job]:
    ways = ("succeeded", "failed", "dead_letter")
    for seq in range(1, count + 1):
        yield replace(sample(seq, NOON - DAY + seq), status=ways[seq % 3], updated_at=NOON - DAY + seq)


def future(count: int) -> Iterator[Job]:
    for seq in range(1, count + 1):
        yield sample(seq, NOON + DAY + seq * SECOND)


def used(folder: Path, rows: Iterator[Job], policy: Policy | None = None) -> tuple[Scheduler, Clock]:
    """A scheduler on a store with these rows, 120 due jobs and one job whose lease expires."""
    folder.mkdir(exist_ok=True)
    scheduler, clock = opened(folder, policy)
    stored(folder / "jobs.db", rows)
    scheduler.enqueue(**JOB, object_id="lost")
    scheduler.pull(worker_id="gone", lease_sec=1)
    scheduler.enqueue_batch([{**JOB, "object_id": f"due_{number}"} for number in range(120)])
    clock.pass_by(10)
    return scheduler, clock


def calls(scheduler: Scheduler, clock: Clock) -> dict[str, Callable[[], Any]]:
    """Every call whose cost must not depend on the number of stored jobs, in order."""
    held: list[messages.Job] = []

    def proof() -> dict[str, Any]:
        job = held.pop()
        return {"job_id": job.job_id, "lease_token": job.lease_token, "worker_id": job.worker_id}

    return {
        "pull with an expired lease": lambda: scheduler.pull(worker_id="w", limit=10, lease_sec=1000),
        "pull": lambda: held.extend(scheduler.pull(worker_id="w", limit=100, lease_sec=1000).jobs),
        "pull of nothing": lambda: scheduler.pull(worker_id="w", actions=["archive"]),
        "pull of an empty queue": lambda: scheduler.pull(worker_id="w", queues=["empty", "other"]),
        "pull of some": lambda: scheduler.pull(worker_id="w", limit=2, actions=["archive", "verify"], lease_sec=1),
        "ack": lambda: scheduler.ack(**proof(), result="succeeded", next_action_at=clock.text(3600)),
        "fail": lambda: scheduler.fail(**proof(), error="x"),
        "renew": lambda: scheduler.renew(**proof()),
        "release": lambda: scheduler.release(**proof()),
        "enqueue": lambda: scheduler.enqueue(**JOB, object_id="new"),
        "duplicate": lambda: [scheduler.enqueue(**JOB, object_id="k", idempotency_key="k") for _ in range(2)],
        "metrics": scheduler.metrics,
        "history": lambda: scheduler.history(held[0].job_id),
        "show": lambda: scheduler.show(held[0].job_id),
        "list": lambda: scheduler.list(limit=5),
        "list of dead letters": lambda: scheduler.list(status="dead_letter", limit=5),
        "list of running jobs": lambda: scheduler.list(status="running", limit=5),
        "list of an object": lambda: scheduler.list(object_type="memory", object_id="due_7"),
        "audit of a job": lambda: scheduler.audit(job_id=held[0].job_id),
        "reclaim": scheduler.calls.reclaim,
        "next time": lambda: scheduler.calls.store.read(lambda look: look.next_time()),
    }


def steps_of(call: Callable[[], Any]) -> int:
    """The number of steps of SQLite's virtual machine for a call."""
    steps = 0

    def tick() -> None:
        nonlocal steps
        steps += 1

    def watcher(connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        connection.set_progress_handler(tick, 1)

    with watching(watcher):
        call()
    return steps


def measured(folder: Path, rows: Iterator[Job], policy: Policy) -> dict[str, int]:
    scheduler, clock = used(folder, rows, policy)
    found = {name: steps_of(call) for name, call in calls(scheduler, clock).items()}
    scheduler.close()
    return found


def assert_no_dearer(few: dict[str, int], many: dict[str, int]) -> None:
    dearer = {name: (few[name], many[name]) for name in few if many[name] > few[name] * 1.1 + 50}

    assert dearer == {}


@pytest.mark.req("JOB-POL-1", "JOB-MET-4", "JOB-PULL-11")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
@pytest.mark.parametrize("rows", [finished, future])
@pytest.mark.usefixtures("watched")
def test_the_steps_of_a_call_do_not_grow_with_the_store(
    tmp_path: Path, rows: Callable[[int], Iterator[Job]], policy: Policy
) -> None:
    few = measured(tmp_path / "few", rows(FEW), policy)
    many = measured(tmp_path / "many", rows(MANY), policy)

    assert_no_dearer(few, many)


@pytest.mark.long
@pytest.mark.req("JOB-POL-1", "JOB-MET-4")
@pytest.mark.parametrize("rows", [finished, future])
@pytest.mark.usefixtures("watched")
def test_the_steps_of_a_call_do_not_grow_with_a_million_jobs(
    tmp_path: Path, rows: Callable[[int], Iterator[Job]]
) -> None:
    few = measured(tmp_path / "few", rows(FEW), Policy())
    many = measured(tmp_path / "many", rows(VERY_MANY), Policy())

    assert_no_dearer(few, many)


@pytest.mark.req("JOB-STO-2", "JOB-POL-1", "JOB-MET-4")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
@pytest.mark.usefixtures("watched")
def test_every_query_of_jobs_is_an_index_search_without_a_sort(tmp_path: Path, policy: Policy) -> None:
    scheduler, clock = used(tmp_path, finished(FEW), policy)
    statements: dict[str, Any] = {}

    def watcher(connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        if sql.startswith(("SELECT", "UPDATE")):
            many = isinstance(parameters, list) and parameters and isinstance(parameters[0], tuple)
            statements.setdefault(sql, parameters[0] if many else parameters)

    with watching(watcher):
        for call in calls(scheduler, clock).values():
            call()

    bad = [
        (sql, step) for sql, values in statements.items() for step in plan(scheduler, sql, values) if is_dear(sql, step)
    ]
    assert bad == []
    assert any(
        "jobs_due (status=? AND run_at<?)" in step
        for sql in statements
        for step in plan(scheduler, sql, statements[sql])
    )
    scheduler.close()


def plan(scheduler: Scheduler, sql: str, values: Any) -> list[str]:
    with closing(sqlite3.connect(scheduler.calls.store.path)) as connection:  # type: ignore[attr-defined]
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def is_dear(sql: str, step: str) -> bool:
    """Whether a step of a plan reads unneeded rows. Two indexes hold only running jobs, or jobs set aside."""
    if "TEMP B-TREE" in step:
        return "FROM counts" not in sql  # one row per kind of job, whatever the number of jobs
    if not step.startswith(("SCAN jobs", "SCAN audit", "SCAN ended", "SCAN objects", "SCAN effects")):
        return False
    return not ("jobs_leases" in step or "jobs_aside" in step or sql.endswith("LIMIT 1"))


@pytest.mark.req("JOB-STO-2")
@pytest.mark.usefixtures("watched")
def test_a_list_of_waiting_jobs_sorts_only_numbers_and_reads_only_the_newest_rows(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    over = [{"object_type": "memory", "object_id": f"over{n}", "action": "verify"} for n in range(60)]
    for entry in scheduler.enqueue_batch(over).results:
        assert entry.job is not None
        scheduler.cancel(entry.job.job_id)
    scheduler.enqueue_batch([{**one, "object_id": f"waits{n}"} for n, one in enumerate(over[:4])])
    statements: list[tuple[str, Any]] = []

    with watching(lambda connection, sql, parameters: statements.append((sql, parameters))):
        waiting = [job.object_id for job in scheduler.list(status="queued", limit=2).jobs]

    steps = [step for sql, values in statements if "status = 'queued'" in sql for step in plan(scheduler, sql, values)]
    assert waiting == ["waits3", "waits2"]
    assert "SEARCH jobs USING INDEX jobs_due (status=?)" in steps
    assert steps[0] == "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"
    scheduler.close()


@pytest.mark.req("JOB-AUD-7")
@pytest.mark.usefixtures("watched")
def test_events_of_an_object_are_found_by_their_index(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    statements: list[tuple[str, Any]] = []

    with watching(lambda connection, sql, parameters: statements.append((sql, parameters))):
        scheduler.audit(object_type="memory", object_id="m")

    [steps] = [plan(scheduler, sql, values) for sql, values in statements if "FROM audit " in sql]
    assert [step for step in steps if "audit_objects (object_type=? AND object_id=?" in step] == steps
    scheduler.close()


@pytest.mark.req("JOB-STO-1")
def test_the_index_of_due_jobs_starts_with_status_and_time(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.close()
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        columns = [row[2] for row in connection.execute("PRAGMA index_info(jobs_due)")]

    assert columns == ["status", "run_at", "priority", "seq"]
