"""Many jobs at once: lists and counts by any filter, each served by an index; cancel and requeue step by step."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import Policy, Scheduler, cancel_all, requeue_all
from pendula.jobs.scheduler_calls import Changed
from tests.jobs.interfaces import INTERFACES, Recorder
from tests.jobs.stores import opened
from tests.jobs.watched_connections import watched, watching

__all__ = ["watched"]

JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}


@pytest.fixture(params=list(INTERFACES))
def call(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Recorder]:
    with INTERFACES[request.param](tmp_path, Policy()) as (interface, clock):
        yield Recorder(interface, clock)


SIX: list[dict[str, Any]] = [
    {"max_attempts": 1},
    {"action": "decay", "correlation_id": "c-7"},
    {"queue": "slow"},
    {"queue": "slow", "correlation_id": "c-7"},
    {"object_type": "cognition"},
    {"object_id": "m3"},
]


def filled(call: Recorder) -> None:
    """Six jobs: a dead letter, a permanent failure, four that wait."""
    for number, members in enumerate(SIX):
        call("enqueue", **{**JOB, "object_id": f"m{number}", **members})
        call.clock.pass_by(10)
    dead, failed = call("pull", worker_id="w1", limit=2)["jobs"]
    call("fail", dead["job_id"], error="timeout: too slow", lease_token=dead["lease_token"])
    call("fail", failed["job_id"], error="ValueError: no", retryable=False, lease_token=failed["lease_token"])


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({"status": "dead_letter"}, [0]),
    ({"status": "queued"}, [5, 4, 3, 2]),
    ({"queue": "slow"}, [3, 2]),
    ({"action": "decay"}, [1]),
    ({"object_type": "cognition"}, [4]),
    ({"object_id": "m3"}, [5, 3]),
    ({"correlation_id": "c-7"}, [3, 1]),
    ({"correlation_id": "c-7", "queue": "slow"}, [3]),
    ({"error_code": "timeout"}, [0]),
    ({"error_code": "ValueError", "status": "failed"}, [1]),
    ({"error_code": "ValueError", "status": "queued"}, []),
    ({"created_before": "2026-02-20T12:00:20Z"}, [1, 0]),
    ({"created_after": "2026-02-20T12:00:20Z", "queue": "default"}, [5, 4]),
    ({"queue": "empty"}, []),
]


@pytest.mark.req("JOB-USE-5")
@pytest.mark.parametrize(("query", "expected"), FILTERS, ids=[str(query) for query, _ in FILTERS])
def test_lists_and_counts_take_every_filter(call: Recorder, query: dict[str, Any], expected: list[int]) -> None:
    filled(call)
    listed = [int(job["job_id"][4:]) - 1 for job in call("list", **query)["jobs"]]

    assert listed == expected
    assert call("count", **query) == {"count": len(expected)}


@pytest.mark.req("JOB-USE-5")
def test_a_filtered_list_is_paged_like_any_other(call: Recorder) -> None:
    filled(call)
    first = call("list", queue="default", limit=2)
    second = call("list", queue="default", limit=2, cursor=first["next_cursor"])

    assert [job["job_id"][-1] for page in (first, second) for job in page["jobs"]] == ["6", "5", "2", "1"]
    assert second["next_cursor"] is None


@pytest.mark.req("JOB-USE-5")
def test_every_job_cancelled_by_a_filter_is_audited(call: Recorder) -> None:
    filled(call)
    first = call("cancel_batch", filter={"queue": "slow"}, reason="wrong file", limit=1)
    second = call("cancel_batch", filter={"queue": "slow"}, reason="wrong file", limit=1, cursor=first["next_cursor"])

    assert (first["matched"], first["changed"], second["next_cursor"]) == (1, 1, None)
    gone = call("list", error_code="cancelled")["jobs"]
    assert [(job["status"], job["last_error"]) for job in gone] == [("failed", "cancelled: wrong file")] * 2
    for job in gone:
        assert call("history", job["job_id"])["events"][-1]["reason"] == "cancelled: wrong file"


@pytest.mark.req("JOB-USE-5")
def test_a_requeue_by_a_filter_takes_dead_letters_by_default(call: Recorder) -> None:
    filled(call)
    dead = call("requeue_batch", filter={"object_type": "memory"})
    failed = call("requeue_batch", filter={"status": "failed"}, reason="mended")

    assert (dead["changed"], failed["changed"]) == (1, 1)
    assert call("count", status="queued") == {"count": 6}


@pytest.mark.req("JOB-USE-5", "JOB-USE-3")
def test_a_running_job_gets_one_cancel_request(call: Recorder) -> None:
    call("enqueue", **JOB)
    call("pull", worker_id="w1")
    replies = [call("cancel_batch", filter={"status": "running"}) for _ in range(2)]

    assert [(reply["matched"], reply["changed"]) for reply in replies] == [(1, 1), (1, 0)]


@pytest.mark.req("JOB-USE-5")
@pytest.mark.parametrize(
    ("members", "field", "code"),
    [
        ({}, "filter", "missing_field"),
        ({"filter": {}}, "filter", "invalid_field"),
        ({"filter": {"status": "succeeded"}}, "filter.status", "invalid_enum"),
        ({"filter": {"statuss": "queued"}}, "filter.statuss", "unknown_field"),
        ({"filter": {"queue": "slow"}, "limit": 1001}, "limit", "invalid_limit"),
        ({"filter": {"queue": "slow"}, "cursor": "x"}, "cursor", "invalid_field"),
    ],
)
def test_an_empty_filter_changes_nothing(call: Recorder, members: dict[str, Any], field: str, code: str) -> None:
    filled(call)

    for name in ("cancel_batch", "requeue_batch"):
        assert call(name, **members) == (422, code)
        assert [fault["field"] for fault in call.transcript[-1][1][3]["fields"]] == [field]
    assert call("count", status="queued") == {"count": 4}


@pytest.mark.req("JOB-USE-5")
def test_a_bulk_change_runs_in_steps_and_skips_jobs_enqueued_meanwhile(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.enqueue_batch([{**JOB, "object_id": f"m{number}"} for number in range(25)])
    seen: list[int] = []

    def progress(done: int) -> None:
        seen.append(done)
        scheduler.enqueue(**{**JOB, "object_id": f"new{done}"})

    done = cancel_all(scheduler, {"action": "verify"}, reason="x", step=10, progress=progress)
    again = requeue_all(scheduler, {"status": "failed"}, step=1000)

    assert (done, seen) == (Changed(matched=25, changed=25, steps=3), [10, 20, 25])
    assert again == Changed(matched=25, changed=25, steps=1)
    scheduler.close()


QUERIES: list[dict[str, Any]] = [
    {"status": "dead_letter"},
    {"status": "failed"},
    {"status": "failed", "queue": "rare"},
    {"status": "running"},
    {"status": "queued"},
    {"queue": "rare"},
    {"action": "archive"},
    {"object_type": "cognition"},
    {"object_id": "rare"},
    {"correlation_id": "rare"},
    {"error_code": "rare"},
    {"created_before": "2026-02-20T12:00:00.1Z", "queue": "rare"},
]


def crowd(folder: Path, many: int) -> Scheduler:
    """A few jobs of a rare kind, then `count` ordinary ones, half of them done."""
    folder.mkdir()
    scheduler, clock = opened(folder, Policy(pull_max_limit=10_000))
    rare: dict[str, Any] = {
        "object_type": "cognition",
        "object_id": "rare",
        "action": "archive",
        "correlation_id": "rare",
    }
    for number in range(3):
        scheduler.enqueue(**rare, queue="rare", max_attempts=1, idempotency_key=f"rare{number}")
    for job, retryable in zip(scheduler.pull(worker_id="w").jobs, (True, False), strict=False):
        scheduler.fail(job.job_id, error="rare: x", retryable=retryable)
    clock.pass_by(1)
    for first in range(0, many, 500):
        bodies = [{**JOB, "object_id": f"m{first + number}"} for number in range(500)]
        scheduler.enqueue_batch(bodies)
        jobs = scheduler.pull(worker_id="w", limit=500).jobs
        scheduler.ack_batch([{"job_id": job.job_id, "result": "succeeded"} for job in jobs])
    scheduler.enqueue_batch([{**rare, "queue": "rare", "idempotency_key": f"late{number}"} for number in range(2)])
    return scheduler


def steps_of(scheduler: Scheduler, call: str, query: dict[str, Any]) -> int:
    steps = 0

    def tick() -> None:
        nonlocal steps
        steps += 1

    def watcher(connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        connection.set_progress_handler(tick, 1)

    with watching(watcher):
        getattr(scheduler, call)(**query)
    return steps


@pytest.mark.req("JOB-USE-5")
@pytest.mark.usefixtures("watched")
def test_the_cost_of_a_filter_does_not_depend_on_jobs_that_do_not_match(tmp_path: Path) -> None:
    with closing(crowd(tmp_path / "few", 500)) as few, closing(crowd(tmp_path / "many", 5000)) as many:
        dearer = {}
        for call in ("list", "count"):
            for query in QUERIES:
                before, after = steps_of(few, call, query), steps_of(many, call, query)
                if after > before * 1.2 + 60:
                    dearer[call, str(query)] = (before, after)

    assert dearer == {}
