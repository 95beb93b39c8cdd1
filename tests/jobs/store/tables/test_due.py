"""A pull reads only the jobs it selects, whatever the number of jobs in other queues or of a busy object."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pendula.jobs import messages
from pendula.jobs.calls.pull import RECLAIM_MOST
from pendula.jobs.decide import ASIDE_MOST
from pendula.jobs.model import SECOND, Job, Policy, PriorityWord, PullOrder
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.upkeep.verification import check
from tests.jobs.store.test_sqlite_plans import sample, steps_of, stored
from tests.jobs.stores import NOON, Clock, opened
from tests.jobs.watched_connections import watched

__all__ = ["watched"]

FEW, MANY = 50, 20_000
TYPES, ACTIONS, QUEUES = ("memory", "experience"), ("verify", "decay", "archive"), ("a", "b", "c")
ONE = Policy(one_running_per_object=True)


def due(count: int, **members: Any) -> Iterator[Job]:
    for seq in range(1, count + 1):
        yield replace(sample(seq, NOON - 3600 * SECOND + seq), **members)


def beside(folder: Path, count: int, policy: Policy | None = None, **members: Any) -> tuple[Scheduler, Clock]:
    """A scheduler with `count` other due jobs."""
    folder.mkdir()
    scheduler, clock = opened(folder, policy)
    stored(folder / "jobs.db", due(count, **members))
    return scheduler, clock


def steps_of_pull(scheduler: Scheduler, **members: Any) -> int:
    return steps_of(lambda: scheduler.pull(worker_id="w", **members))


@pytest.mark.req("JOB-POL-1", "JOB-PULL-11")
@pytest.mark.parametrize(
    "asked",
    [{"queues": ["mine"]}, {"actions": ["archive"]}, {"object_types": ["cognition"]}, {"queues": ["mine", "default"]}],
    ids=["queue", "action", "type", "queues"],
)
@pytest.mark.usefixtures("watched")
def test_a_pull_is_not_slowed_by_due_jobs_it_does_not_select(tmp_path: Path, asked: dict[str, Any]) -> None:
    few, _ = beside(tmp_path / "few", FEW, queue="others")
    many, _ = beside(tmp_path / "many", MANY, queue="others")

    assert steps_of_pull(many, **asked) == steps_of_pull(few, **asked)

    for scheduler in (few, many):
        scheduler.close()


def rows() -> st.SearchStrategy[list[tuple[int, int, str, str, str]]]:
    row = st.tuples(
        st.integers(0, 5), st.integers(0, 2), st.sampled_from(TYPES), st.sampled_from(ACTIONS), st.sampled_from(QUEUES)
    )
    return st.lists(row, max_size=25)


def some(words: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), max_size=len(words), unique=True)


@pytest.mark.req("JOB-PULL-6", "JOB-PULL-11")
@given(rows(), some(TYPES), some(ACTIONS), some(QUEUES), st.integers(1, 12))
@settings(max_examples=30)
def test_a_filtered_pull_takes_the_jobs_that_a_full_sort_gives(
    tmp_path_factory: pytest.TempPathFactory,
    given_rows: list[tuple[int, int, str, str, str]],
    types: list[str],
    actions: list[str],
    queues: list[str],
    limit: int,
) -> None:
    scheduler, _ = opened(folder := tmp_path_factory.mktemp("due"))
    jobs = [
        replace(sample(seq, NOON - 10 + at), priority=priority, object_type=kind, action=action, queue=queue)
        for seq, (at, priority, kind, action, queue) in enumerate(given_rows, 1)
    ]
    stored(folder / "jobs.db", iter(jobs))
    asked: dict[str, Any] = {
        name: words for name, words in (("object_types", types), ("actions", actions), ("queues", queues)) if words
    }

    got = [job.job_id for job in scheduler.pull(worker_id="w", limit=limit, **asked).jobs]
    scheduler.close()

    fit = [job for job in jobs if job.object_type in (types or TYPES) and job.action in (actions or ACTIONS)]
    fit = [job for job in fit if job.queue in (queues or QUEUES)]
    fit.sort(key=lambda job: (queues.index(job.queue) if queues else 0, job.run_at, job.priority, job.seq))
    assert got == [job.job_id for job in fit[:limit]]


# One job an object


@pytest.mark.req("JOB-POL-1", "JOB-POL-6")
@pytest.mark.usefixtures("watched")
def test_jobs_of_a_busy_object_are_read_once(tmp_path: Path) -> None:
    steps = []
    for count in (FEW, MANY):
        scheduler, _ = beside(tmp_path / str(count), count, ONE, object_id="busy")
        scheduler.pull(worker_id="w", limit=1)
        scheduler.pull(worker_id="w")
        steps.append([steps_of_pull(scheduler), steps_of_pull(scheduler, queues=["default"])])
        scheduler.close()

    assert steps[0] == steps[1]


@pytest.mark.req("JOB-POL-6", "JOB-PULL-7")
def test_the_next_job_is_found_behind_any_number_of_jobs_of_a_busy_object(tmp_path: Path) -> None:
    scheduler, _ = beside(tmp_path / "store", 2 * ASIDE_MOST + 7, ONE, object_id="busy")
    scheduler.pull(worker_id="w", limit=1)
    other = scheduler.enqueue(object_type="memory", object_id="free", action="verify").job.job_id

    assert [job.job_id for job in scheduler.pull(worker_id="w").jobs] == [other]
    assert scheduler.metrics().jobs_due_count == 2 * ASIDE_MOST + 6
    scheduler.close()


def ended(scheduler: Scheduler, job: messages.Job, how: str) -> None:
    proof: dict[str, Any] = {"worker_id": job.worker_id, "lease_token": job.lease_token}
    match how:
        case "ack":
            scheduler.ack(job.job_id, **proof, result="succeeded")
        case "fail":
            scheduler.fail(job.job_id, **proof, error="x", retryable=False)
        case "release":
            scheduler.release(job.job_id, **proof)
            scheduler.cancel(job.job_id)


@pytest.mark.req("JOB-POL-6", "JOB-PULL-7")
@pytest.mark.parametrize("how", ["ack", "fail", "release"])
@pytest.mark.parametrize("order", list(PullOrder))
def test_jobs_set_aside_return_in_order_when_the_object_is_free(tmp_path: Path, how: str, order: PullOrder) -> None:
    plain, _ = opened(tmp_path, replace(ONE, pull_order=order))
    both: tuple[PriorityWord, ...] = ("low", "high")
    wished = [(action, priority) for action in ACTIONS for priority in both]
    ids = [
        plain.enqueue(
            object_type="memory",
            object_id="m",
            action=action,
            priority=priority,
            idempotency_key=f"{action} {priority}",
        ).job.job_id
        for action, priority in wished
    ]
    came = []
    for _ in ids:
        [job] = plain.pull(worker_id="w").jobs
        assert plain.pull(worker_id="w").jobs == []
        came.append(job.job_id)
        ended(plain, job, how)

    high = [job_id for job_id, (_, priority) in zip(ids, wished, strict=True) if priority == "high"]
    assert came == (ids if order is PullOrder.RUN_AT else high + [job_id for job_id in ids if job_id not in high])
    plain.close()


@pytest.mark.req("JOB-POL-6")
def test_a_job_set_aside_is_found_by_a_filter_when_its_object_is_free(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path, ONE)
    for number, action in enumerate(("verify", "verify", "decay")):
        scheduler.enqueue(object_type="memory", object_id="m", action=action, idempotency_key=str(number))
    [first] = scheduler.pull(worker_id="w").jobs
    assert scheduler.pull(worker_id="w").jobs == []

    ended(scheduler, first, "ack")

    assert [job.action for job in scheduler.pull(worker_id="w", actions=["decay"]).jobs] == ["decay"]
    scheduler.close()


@pytest.mark.req("JOB-POL-6", "JOB-PULL-7")
def test_jobs_set_aside_return_at_once_when_objects_can_be_busy(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, ONE)
    for number in range(5):
        scheduler.enqueue(object_type="memory", object_id="m", action="verify", idempotency_key=str(number))
    scheduler.pull(worker_id="w", lease_sec=1000)
    scheduler.pull(worker_id="w")
    scheduler.close()

    again, _ = opened(tmp_path, Policy(), clock)

    assert again.pull(worker_id="w").count == 4
    assert check(again.calls.store) == []
    again.close()


@pytest.mark.req("JOB-POL-6")
def test_a_cancelled_job_is_no_longer_set_aside(tmp_path: Path) -> None:
    """A job put back into the queue by any call is found there."""
    scheduler, _ = opened(tmp_path, ONE)
    for number in range(2):
        scheduler.enqueue(object_type="memory", object_id="m", action="verify", idempotency_key=str(number))
    scheduler.pull(worker_id="w")
    scheduler.pull(worker_id="w")
    [waiting] = scheduler.list(status="queued").jobs

    scheduler.cancel(waiting.job_id)
    scheduler.close()

    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        assert connection.execute("SELECT max(aside) FROM jobs").fetchone() == (0,)


# Expired leases


@pytest.mark.req("JOB-PULL-10", "JOB-FAIL-12")
@pytest.mark.usefixtures("watched")
def test_one_pull_reclaims_any_number_of_leases_in_small_transactions(tmp_path: Path) -> None:
    count = 2 * RECLAIM_MOST + 9
    scheduler, clock = opened(tmp_path, Policy(pull_max_limit=1000))
    scheduler.enqueue_batch(
        [{"object_type": "memory", "object_id": f"m{number}", "action": "verify"} for number in range(count)]
    )
    scheduler.pull(worker_id="gone", limit=1000, lease_sec=1)
    clock.pass_by(2)
    before = scheduler.calls.store.commits  # type: ignore[attr-defined]

    reply = scheduler.pull(worker_id="w", limit=1)

    assert (reply.reclaimed, reply.count) == (count, 1)
    assert scheduler.calls.store.commits - before == 3  # type: ignore[attr-defined]
    scheduler.close()


@pytest.mark.req("JOB-V2-8")
def test_reclaiming_without_a_pull_returns_all_leases_in_small_transactions(tmp_path: Path) -> None:
    count = 2 * RECLAIM_MOST
    scheduler, clock = opened(tmp_path, Policy(pull_max_limit=1000))
    scheduler.enqueue_batch(
        [{"object_type": "memory", "object_id": f"m{number}", "action": "verify"} for number in range(count)]
    )
    scheduler.pull(worker_id="gone", limit=1000, lease_sec=1)
    clock.pass_by(2)
    before = scheduler.calls.store.commits  # type: ignore[attr-defined]

    assert scheduler.calls.reclaim() == count
    assert scheduler.calls.store.commits - before == 2  # type: ignore[attr-defined]
    assert scheduler.calls.reclaim() == 0
    scheduler.close()
