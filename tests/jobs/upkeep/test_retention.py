"""Old finished jobs are removed in small steps; keys stay used until they are freed; the trail keeps everything."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from pendula.jobs import JobRefused, Policy, Scheduler, messages
from pendula.jobs.calls import Caller
from pendula.jobs.messages import Freed, plain, status_of
from pendula.jobs.model import Actor, Code, Refused, Status
from pendula.jobs.store.protocol import Effect, Store, Writer
from pendula.jobs.store.tables.reader import SqliteReader
from pendula.jobs.upkeep.retention import STEP_NS, RetentionService, retain
from pendula.jobs.upkeep.verification import check, replay
from pendula.kernel.errors import WrongUsage
from tests.governance.plain_replies import governed
from tests.jobs.stores import Clock, opened

DAY = 86_400
OPERATOR = Caller(Actor("user", "ada"), "req-1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Scheduler, Clock]]:
    scheduler, clock = opened(tmp_path)
    yield scheduler, clock
    scheduler.close()


def enqueue(scheduler: Scheduler, count: int, **members: Any) -> list[str]:
    jobs = [
        {"object_type": "memory", "object_id": f"mem_{number}", "action": "verify", **members}
        for number in range(count)
    ]
    ids = []
    for first in range(0, count, 1000):
        results = scheduler.enqueue_batch(jobs[first : first + 1000]).results
        ids += [result.job.job_id for result in results if result.job is not None]
    return ids


def finish(scheduler: Scheduler) -> None:
    """Ack every due job."""
    while jobs := scheduler.pull(worker_id="w", limit=1000).jobs:
        scheduler.ack_batch([{"job_id": job.job_id, "result": "succeeded"} for job in jobs])


def die(scheduler: Scheduler) -> str:
    """Make one dead letter."""
    scheduler.enqueue(object_type="memory", object_id="poison", action="decay", max_attempts=1)
    [job] = scheduler.pull(worker_id="w").jobs
    scheduler.fail(job.job_id, error="x")
    return str(job.job_id)


def statuses(scheduler: Scheduler) -> dict[str, int]:
    return {status: number for status, number in plain(scheduler.metrics().jobs).items() if number}


@pytest.mark.req("JOB-STO-13")
def test_governance_data_of_a_removed_job_is_removed_with_it(store: tuple[Scheduler, Clock], tmp_path: Path) -> None:
    scheduler, clock = store
    governed(scheduler).create("memory", "m", evidence_refs=["ev_1"])
    clock.pass_by(DAY)
    [job] = scheduler.pull(worker_id="w").jobs
    governed(scheduler).begin(job.job_id, lease_token=job.lease_token)
    verdict: Any = {"finding": "passed", "reason": "looked into"}
    governed(scheduler).finish(job.job_id, lease_token=job.lease_token, **verdict)
    clock.pass_by(31 * DAY)
    retain(scheduler.calls)

    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        assert connection.execute("SELECT count(*) FROM governed_jobs").fetchone() == (0,)
    assert check(scheduler.calls.store) == []


@pytest.mark.req("JOB-STO-13")
def test_jobs_finished_longer_than_the_configured_days_are_removed(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    [old] = enqueue(scheduler, 1)
    finish(scheduler)
    clock.pass_by(29 * DAY)
    [young] = enqueue(scheduler, 1, action="decay")
    finish(scheduler)
    clock.pass_by(DAY + 1)

    done = retain(scheduler.calls)

    assert (done.removed, done.steps) == ({"succeeded": 1, "failed": 0}, 1)
    assert [job.job_id for job in scheduler.list().jobs] == [young]
    with pytest.raises(JobRefused, match=old):
        scheduler.show(old)


@pytest.mark.req("JOB-STO-13")
def test_the_days_can_be_given_and_cancelled_jobs_are_included(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    [job] = enqueue(scheduler, 1)
    scheduler.cancel(job)
    clock.pass_by(2 * DAY)

    kept, gone = retain(scheduler.calls, days=3), retain(scheduler.calls, days=1)

    assert (kept.removed, gone.removed) == ({"succeeded": 0, "failed": 0}, {"succeeded": 0, "failed": 1})


@pytest.mark.parametrize("days", [0, 3651, -1])
def test_days_out_of_range_are_rejected(store: tuple[Scheduler, Clock], days: int) -> None:
    with pytest.raises(WrongUsage, match="1 to 3650 days"):
        retain(store[0].calls, days=days)


@pytest.mark.req("JOB-STO-13")
def test_waiting_running_and_dead_letter_jobs_are_never_removed_by_age(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    dead = die(scheduler)
    running, _ = enqueue(scheduler, 2)
    scheduler.pull(worker_id="w", limit=1, lease_sec=43_200)
    clock.pass_by(4000 * DAY)

    done = retain(scheduler.calls, days=1)

    assert sum(done.removed.values()) == 0
    assert statuses(scheduler) == {"queued": 1, "running": 1, "dead_letter": 1}
    assert scheduler.show(running).job.status == "running"
    assert scheduler.show(dead).job.status == "dead_letter"


@pytest.mark.req("JOB-STO-13")
def test_dead_letters_are_deleted_only_on_request(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    die(scheduler)
    clock.pass_by(31 * DAY)

    done = retain(scheduler.calls, dead_letters=True)

    assert done.removed == {"succeeded": 0, "failed": 0, "dead_letter": 1}
    assert (statuses(scheduler), check(scheduler.calls.store)) == ({}, [])


@pytest.mark.req("JOB-STO-13")
@pytest.mark.req("JOB-AUD-4")
def test_counts_are_right_after_a_removal_and_the_trail_is_intact(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    enqueue(scheduler, 30)
    finish(scheduler)
    events = scheduler.audit(limit=1000).events
    clock.pass_by(31 * DAY)
    enqueue(scheduler, 3, action="decay")

    retain(scheduler.calls)

    assert statuses(scheduler) == {"queued": 3}
    assert scheduler.audit(limit=1000).events[: len(events)] == events
    assert check(scheduler.calls.store) == []
    assert replay(scheduler.calls.store).jobs == 33


@pytest.mark.req("JOB-STO-13")
def test_the_key_of_a_removed_job_stays_used(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    enqueue(scheduler, 1, idempotency_key="k-1")
    finish(scheduler)
    clock.pass_by(31 * DAY)
    retain(scheduler.calls)

    with pytest.raises(JobRefused) as refused:
        scheduler.enqueue(object_type="memory", object_id="mem_0", action="verify", idempotency_key="k-1")
    again = scheduler.enqueue_batch(
        [
            {"object_type": "memory", "object_id": "mem_0", "action": "verify", "idempotency_key": key}
            for key in ("k-1", "k-2")
        ]
    ).results

    assert (refused.value.code, refused.value.status, refused.value.reason) == (
        "idempotency_key_conflict",
        409,
        "job_removed",
    )
    assert [result.status for result in again] == [409, 201]


def test_only_the_hash_of_a_key_is_kept(store: tuple[Scheduler, Clock], tmp_path: Path) -> None:
    scheduler, clock = store
    enqueue(scheduler, 1, idempotency_key="k-1")
    finish(scheduler)
    clock.pass_by(31 * DAY)
    retain(scheduler.calls)

    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        rows = connection.execute("SELECT hash FROM used_keys").fetchall()

    assert rows == [(sha256(b"k-1").digest(),)]


class Watching:
    """A store that counts the removed jobs of each transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.steps: list[int] = []

    def write(self, work: Callable[[Writer], Any], **options: Any) -> Any:
        def watched(tx: Writer) -> Any:
            before = tx.figures(0, 0).counts
            result = work(tx)
            left = {job.job_id for status in Status for job in tx.over(status, 1 << 62, 10_000)}
            self.steps.append(sum(row[-1] for row in before) - len(left))
            return result

        return self._store.write(watched, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.req("JOB-STO-13")
def test_a_step_removes_at_most_a_thousand_jobs_and_all_steps_remove_all(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    enqueue(scheduler, 3001)
    finish(scheduler)
    clock.pass_by(31 * DAY)
    watching = Watching(scheduler.calls.store)
    scheduler.calls.store = watching
    heard: list[int] = []

    done = retain(scheduler.calls, progress=heard.append, steady=lambda: 0)

    assert watching.steps == [250, 500, 1000, 1000, 251, 0]
    assert (done.removed["succeeded"], done.steps) == (3001, 5)
    assert heard == [250, 750, 1750, 2750, 3001, 3001]


@pytest.mark.req("JOB-STO-13")
def test_steps_shrink_when_they_hold_the_lock_too_long(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    enqueue(scheduler, 500)
    finish(scheduler)
    clock.pass_by(31 * DAY)
    watching = Watching(scheduler.calls.store)
    scheduler.calls.store = watching
    slow = iter(range(0, 1 << 62, STEP_NS + 1))

    retain(scheduler.calls, steady=lambda: next(slow))

    assert watching.steps == [250, 125, 62, 31, 15, 10, 7, 0]


def test_a_step_finds_its_jobs_by_an_index(store: tuple[Scheduler, Clock], tmp_path: Path) -> None:
    scheduler, _ = store
    asked: list[str] = []
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        connection.set_trace_callback(asked.append)
        SqliteReader(connection).over(Status.SUCCEEDED, 1, 1000)
        connection.set_trace_callback(None)
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + asked[0])]

    assert plan == ["SEARCH jobs USING INDEX jobs_over (status=? AND updated_at<?)"]
    assert scheduler.list().jobs == []


def test_the_effect_record_of_a_removed_job_is_removed_with_it(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    enqueue(scheduler, 1, idempotency_key="k-1")
    scheduler.calls.store.write(lambda tx: tx.put_effect(Effect("k-1", 1, 1, {"done": True}, clock.now)))
    finish(scheduler)
    clock.pass_by(31 * DAY)

    retain(scheduler.calls)

    assert scheduler.calls.store.read(lambda look: look.effect("k-1")) is None


@pytest.mark.req("JOB-STO-13")
def test_a_freed_key_can_be_used_again_and_the_trail_names_the_user(store: tuple[Scheduler, Clock]) -> None:
    scheduler, clock = store
    enqueue(scheduler, 1, idempotency_key="k-1")
    finish(scheduler)
    clock.pass_by(31 * DAY)
    retain(scheduler.calls)

    first = scheduler.calls.free_key({"idempotency_key": "k-1", "reason": "do it again"}, OPERATOR)
    second = scheduler.calls.free_key({"idempotency_key": "k-1", "reason": "do it again"}, OPERATOR)
    [event] = scheduler.audit(event_type="policy_override").events
    [again] = enqueue(scheduler, 1, idempotency_key="k-1")

    assert first == Freed(freed=True, idempotency_key="k-1")
    assert second == Freed(freed=False, idempotency_key="k-1")
    assert (event.actor, event.reason, event.job_id) == (messages.Actor("user", "ada"), "do it again", None)
    assert ((event.before or {})["used"], event.after["used"]) == (True, False)
    assert event.evidence_refs == [f"used_key:{sha256(b'k-1').hexdigest()}"]
    assert event.metadata == {"request_id": "req-1"}
    assert scheduler.show(again).job.status == "queued"
    assert check(scheduler.calls.store) == []


def test_the_key_of_a_stored_job_cannot_be_freed(store: tuple[Scheduler, Clock]) -> None:
    scheduler, _ = store
    [job] = enqueue(scheduler, 1, idempotency_key="k-1")

    answer = scheduler.calls.free_key({"idempotency_key": "k-1", "reason": "x"})

    assert isinstance(answer, Refused)
    assert (answer.code, status_of(answer), answer.details["job_id"]) == (Code.IDEMPOTENCY_KEY_CONFLICT, 409, job)


def test_all_faults_of_a_body_are_reported_at_once(store: tuple[Scheduler, Clock]) -> None:
    answer = store[0].calls.free_key({"idempotency_key": "", "why": "x"})

    assert isinstance(answer, Refused)
    found = [(fault["field"], fault["code"]) for fault in answer.details["fields"]]  # type: ignore[index,union-attr,call-overload]
    assert found == [("why", "unknown_field"), ("idempotency_key", "invalid_field"), ("reason", "missing_field")]


def test_the_background_retention_repeats_until_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, clock = opened(tmp_path, Policy(retention_days=1))
    enqueue(scheduler, 1)
    finish(scheduler)
    clock.pass_by(2 * DAY)
    looked, rounds = Event(), []

    def seen(*_: Any, **options: Any) -> Any:
        rounds.append(retain(*_, **options).steps)
        if len(rounds) == 2:
            looked.set()
        return retain(*_, **options)

    monkeypatch.setattr("pendula.jobs.upkeep.retention.retain", seen)
    retaining = RetentionService(scheduler.calls, every_sec=0.001)
    retaining.start()

    assert looked.wait(240)
    retaining.close()
    assert rounds[:2] == [1, 0]
    assert statuses(scheduler) == {}
    scheduler.close()
