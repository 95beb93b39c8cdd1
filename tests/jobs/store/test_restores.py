"""A store restored from a copy: no earlier job number and no earlier fence is ever used again."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.external_transaction import defer_within
from pendula.jobs.model import Policy, seq_of
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.file.opening import connect
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from tests.jobs.stores import Clock

JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}
RESTORED: dict[str, Any] = {"object_type": "scheduler_job", "object_id": "store"}


def opened(path: Path, clock: Clock) -> Scheduler:
    return Scheduler(Calls(SqliteStore(path), Policy(), clock))


def back_up(scheduler: Scheduler, target: Path) -> None:
    store = scheduler.calls.store
    assert isinstance(store, SqliteStore)
    store.backup(target)


def deliver(scheduler: Scheduler, keeper: dict[str, int]) -> int:
    """Deliver and release all due jobs, recording fences as an external resource would; returns their number."""
    jobs = scheduler.pull(worker_id="w").jobs
    for job in jobs:
        assert job.delivery_count > keeper.get(job.job_id, 0), "the fence went back"
        keeper[job.job_id] = job.delivery_count
        scheduler.release(job.job_id, worker_id="w", lease_token=job.lease_token)
    return len(jobs)


@pytest.mark.req("JOB-V2-8", "JOB-STO-12", "JOB-STO-11", "JOB-OBJ-3")
def test_no_fence_or_job_number_repeats_however_often_a_copy_is_restored(tmp_path: Path) -> None:
    clock = Clock()
    keeper: dict[str, int] = {}
    path, copy = tmp_path / "jobs.db", tmp_path / "copy.db"
    ids: list[str] = []
    with opened(path, clock) as scheduler:
        ids.append(scheduler.enqueue(**JOB, idempotency_key="first").job.job_id)
        assert deliver(scheduler, keeper) == 1
        back_up(scheduler, copy)
        for number in range(3):
            ids.append(scheduler.enqueue(**JOB, idempotency_key=f"forgotten{number}").job.job_id)
        assert deliver(scheduler, keeper) == 4
    with opened(copy, clock) as looked_at:
        assert looked_at.count().count == 1

    for restored in range(3):
        shutil.copy(copy, path)
        with opened(path, clock) as scheduler:
            assert deliver(scheduler, keeper) == 1
            for number in range(2):
                made = scheduler.enqueue(**JOB, idempotency_key=f"after{restored} {number}").job
                ids.append(made.job_id)
            assert deliver(scheduler, keeper) == 3
            assert check(scheduler.calls.store) == []
            [event] = scheduler.audit(**RESTORED).events
            assert event.after["fences_from"] >= (event.before or {})["next_job"]

    assert len(set(ids)) == len(ids)
    numbers = [seq_of(job_id) or 0 for job_id in ids]
    assert numbers == sorted(numbers)
    assert keeper[ids[-1]] == 1, "a job that was made after the restore counts from one"


@pytest.mark.req("JOB-STO-12")
def test_a_restored_store_continues_after_a_restart_and_can_be_restored_again(tmp_path: Path) -> None:
    clock = Clock()
    keeper: dict[str, int] = {}
    first, second, third = (tmp_path / f"{name}.db" for name in ("first", "second", "third"))
    with opened(first, clock) as scheduler:
        scheduler.enqueue(**JOB)
        back_up(scheduler, second)
    for _ in range(3):
        with opened(second, clock) as scheduler:
            assert deliver(scheduler, keeper) == 1
            assert len(scheduler.audit(**RESTORED).events) == 1
    with opened(second, clock) as scheduler:
        back_up(scheduler, third)
    with opened(third, clock) as scheduler:
        assert deliver(scheduler, keeper) == 1
        assert len(scheduler.audit(**RESTORED).events) == 2


@pytest.mark.req("JOB-STO-12")
def test_an_external_transaction_begins_the_epoch_too(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path / "jobs.db", clock) as scheduler:
        before = scheduler.enqueue(**JOB).job.job_id
        back_up(scheduler, tmp_path / "copy.db")
        given = [scheduler.enqueue(**JOB, idempotency_key=f"{n}").job.job_id for n in range(3)]
    with opened(tmp_path / "copy.db", clock) as scheduler:
        connection = connect(tmp_path / "copy.db", scheduler.calls.policy.durability, 5)
        connection.execute("BEGIN IMMEDIATE")
        job = defer_within(connection, scheduler, "memory", "m", "verify", idempotency_key="joined")
        connection.execute("COMMIT")
        connection.close()
        assert job.job_id > max(before, *given)
        assert check(scheduler.calls.store) == []
