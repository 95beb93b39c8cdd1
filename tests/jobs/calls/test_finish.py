"""Corners of the calls: two readings of the clock, waiting for the file, odd texts, the end of time."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pendula.jobs import JobRefused, Policy, Scheduler
from pendula.jobs.calls import Calls
from pendula.jobs.model import AuditCheck, Durability, PullClock
from pendula.jobs.store.protocol import Writer
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc, parse_utc
from tests.jobs.stores import Clock, opened

T = TypeVar("T")
JOB = {"object_type": "memory", "object_id": "m", "action": "verify"}


class SlowStore(SqliteStore):
    """A store whose file others hold for two seconds before each write."""

    clock: Clock | None = None

    def write(self, work: Callable[[Writer], T], *, metadata: Mapping[str, Json] | None = None, own: bool = False) -> T:
        if self.clock is not None:
            self.clock.pass_by(2)
        return super().write(work, metadata=metadata, own=own)


@pytest.mark.req("JOB-PULL-9")
def test_waiting_for_the_file_does_not_eat_into_a_lease(tmp_path: Path) -> None:
    clock = Clock()
    store = SlowStore(tmp_path / "jobs.db")
    scheduler = Scheduler(Calls(store, Policy(), clock))
    scheduler.enqueue(**JOB)
    store.clock = clock

    [job] = scheduler.pull(worker_id="w", lease_sec=1)["jobs"]
    store.clock = None

    assert parse_utc(job["lease_expires_at"]) > clock.now
    assert scheduler.ack(job["job_id"], result="succeeded")["already_acked"] is False
    scheduler.close()


@pytest.mark.req("JOB-ACK-7", "JOB-ACK-4")
def test_a_next_action_at_that_is_accepted_always_gets_its_job(tmp_path: Path) -> None:
    """The clock of the tests moves with each reading, as every clock does: equality holds for one reading only."""
    scheduler, clock = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB)["job"]["job_id"]
    scheduler.pull(worker_id="w")

    answer = scheduler.ack(job_id, result="succeeded", next_action_at=format_utc(clock.now + 1))

    assert answer["followup_job_id"] is not None
    scheduler.close()


@pytest.mark.req("JOB-ACK-7")
def test_the_clients_own_enqueue_of_the_follow_up_is_a_duplicate(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB)["job"]["job_id"]
    scheduler.pull(worker_id="w")
    at = clock.text(3600)
    answer = scheduler.ack(job_id, result="succeeded", next_action_at=at, next_action="decay")

    own = scheduler.enqueue(**{**JOB, "action": "decay"}, run_at=at)

    assert (own["deduplicated"], own["job"]["job_id"]) == (True, answer["followup_job_id"])
    scheduler.close()


@pytest.mark.req("JOB-ENQ-7")
def test_a_time_in_the_past_is_among_all_the_faults(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    faulty = {**JOB, "priority": "urgent", "run_at": "2026-01-01T00:00:00Z"}

    with pytest.raises(JobRefused) as alone:
        scheduler.enqueue(**faulty)
    batch = scheduler.enqueue_batch([faulty])["results"][0]["error"]

    assert alone.value.code == batch["code"] == "validation_failed"
    for details in (alone.value.refused.details, batch["details"]):
        fields: Any = details["fields"]
        assert [(one["field"], one["code"]) for one in fields] == [
            ("priority", "invalid_enum"),
            ("run_at", "run_at_in_past"),
        ]
    scheduler.close()


@pytest.mark.req("JOB-FAIL-9")
def test_a_repeated_fail_of_a_job_that_is_out_again_still_says_retry(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    scheduler.enqueue(**JOB)
    [job] = scheduler.pull(worker_id="w1")["jobs"]
    proof = {"job_id": job["job_id"], "lease_token": job["lease_token"]}
    first = scheduler.fail(**proof, error="x", retry_delay_sec=0)
    clock.pass_by(1)
    scheduler.pull(worker_id="w2")

    again = scheduler.fail(**proof, error="x", retry_delay_sec=0)

    assert (first["retry"], again["retry"], again["already_failed"]) == (True, True, True)
    assert (again["job"]["status"], again["job"]["attempt"]) == ("running", 1)
    scheduler.close()


@pytest.mark.req("JOB-API-12", "JOB-API-4")
def test_a_second_cancel_is_refused_by_the_state(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB)["job"]["job_id"]
    scheduler.cancel(job_id, reason="x")

    with pytest.raises(JobRefused) as again:
        scheduler.cancel(job_id, reason="x")

    assert (again.value.code, again.value.status) == ("job_not_queued", 409)
    scheduler.close()


@pytest.mark.req("JOB-FAIL-1")
def test_an_error_with_half_a_character_does_not_keep_a_job_from_failing(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    job_id = scheduler.enqueue(**JOB)["job"]["job_id"]
    scheduler.pull(worker_id="w")

    failed = scheduler.fail(job_id, error="cannot open \udcff")

    assert failed["job"]["last_error"] == "cannot open ?"
    assert check(scheduler.calls.store) == []
    scheduler.close()


def test_texts_with_half_a_character_are_refused_not_stored(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    for field in ("object_id", "idempotency_key", "correlation_id"):
        with pytest.raises(JobRefused) as refused:
            scheduler.enqueue(**{**JOB, field: "a\ud800"})
        assert refused.value.code == "invalid_field"
    scheduler.close()


def test_a_job_at_the_end_of_time_can_fail(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    end = "9999-12-31T23:59:59.999999Z"
    job_id = scheduler.enqueue(**JOB, run_at=end)["job"]["job_id"]
    scheduler.pull(worker_id="w", now=end)

    failed = scheduler.fail(job_id, error="x", retry_delay_sec=300)

    assert (failed["retry"], failed["job"]["run_at"]) == (True, end)
    scheduler.close()


@pytest.mark.req("JOB-PULL-2")
def test_leases_and_times_of_a_pull_are_the_servers_whatever_now_says(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    scheduler.enqueue(**JOB, run_at=clock.text(86_400))

    reply = scheduler.pull(worker_id="w", now=clock.text(90_000), lease_sec=10)

    [job] = reply["jobs"]
    assert parse_utc(job["lease_expires_at"]) - parse_utc(job["updated_at"]) == 10_000_000
    assert abs(parse_utc(job["updated_at"]) - clock.now) < 100
    scheduler.close()


@pytest.mark.req("JOB-PULL-2")
def test_with_the_servers_clock_a_later_now_is_refused(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, Policy(pull_clock=PullClock.SERVER))

    with pytest.raises(JobRefused) as refused:
        scheduler.pull(worker_id="w", now=clock.text(1))

    assert (refused.value.code, refused.value.status) == ("now_in_future", 422)
    scheduler.close()


@pytest.mark.req("JOB-ACK-3")
def test_a_strict_link_must_name_an_event_of_the_job_or_its_object(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path, Policy(audit_event_check=AuditCheck.STRICT))
    own = scheduler.enqueue(**JOB)["job"]["job_id"]
    scheduler.enqueue(**{**JOB, "object_id": "other"})
    events = scheduler.audit()["events"]
    [mine] = [event["id"] for event in events if event["job_id"] == own]
    [others] = [event["id"] for event in events if event["job_id"] != own]
    scheduler.pull(worker_id="w")

    for unknown in (others, "aud_elsewhere", "aud_000000009999"):
        with pytest.raises(JobRefused) as refused:
            scheduler.ack(own, result="succeeded", audit_event_id=unknown)
        assert refused.value.code == "audit_event_unknown"
    assert scheduler.ack(own, result="succeeded", audit_event_id=mine)["job"]["audit_event_id"] == mine
    scheduler.close()


@pytest.mark.req("JOB-FAIL-10", "JOB-POL-5")
def test_a_thousand_poisoned_jobs_do_not_hold_up_a_good_one(tmp_path: Path) -> None:
    clock = Clock()
    scheduler = Scheduler(Calls(SqliteStore(tmp_path / "jobs.db", durability=Durability.NORMAL), Policy(), clock))
    scheduler.enqueue_batch([{**JOB, "object_id": f"bad{number}"} for number in range(1000)])
    good = scheduler.enqueue(**JOB)["job"]["job_id"]
    for _ in range(3):
        for job in scheduler.pull(worker_id="w", limit=1000)["jobs"]:
            if job["job_id"] == good:
                scheduler.ack(good, result="succeeded")
            else:
                scheduler.fail(job["job_id"], error="poison", retry_delay_sec=0)
        clock.pass_by(1)

    assert scheduler.show(good)["job"]["status"] == "succeeded"
    scheduler.close()


@pytest.mark.req("JOB-MET-1", "JOB-MET-2")
def test_the_worked_example_of_the_metrics(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    for name in ("at once", "after one retry", "dies"):
        scheduler.enqueue(**{**JOB, "object_id": name})
    tries = 0
    while jobs := scheduler.pull(worker_id="w")["jobs"]:
        tries += 1
        for job in jobs:
            if job["object_id"] == "at once" or (job["object_id"] == "after one retry" and tries == 2):
                scheduler.ack(job["job_id"], result="succeeded")
            else:
                scheduler.fail(job["job_id"], error="x", retry_delay_sec=0)
        clock.pass_by(1)

    found = scheduler.metrics()

    assert (found["job_retry_rate"], found["job_success_rate"]) == (Decimal("0.5"), Decimal("0.666666667"))
    assert (found["dead_letter_count"], found["jobs_due_count"], found["jobs_lag_seconds"]) == (1, 0, 0)
    clock.pass_by(3601)
    later = scheduler.metrics()
    assert (later["job_retry_rate"], later["job_success_rate"], later["dead_letter_count"]) == (None, None, 1)
    scheduler.close()


@pytest.mark.req("JOB-ACK-7")
def test_the_follow_up_of_an_object_is_made_though_another_one_has_its_key(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    due = clock.text(600)
    made = []
    for kind in ("memory", "cognition"):
        scheduler.enqueue(object_type=kind, object_id="x", action="verify", idempotency_key=kind)
        [job] = scheduler.pull(worker_id="w")["jobs"]
        made.append(scheduler.ack(job["job_id"], result="succeeded", next_action_at=due)["followup_job_id"])
    jobs = [scheduler.show(job_id)["job"] for job_id in made]

    assert [(job["object_type"], job["status"], job["run_at"]) for job in jobs] == [
        ("memory", "queued", due),
        ("cognition", "queued", due),
    ]
    scheduler.close()


@pytest.mark.req("JOB-ACK-7")
def test_a_cancelled_job_is_no_follow_up(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    due = clock.text(600)
    cancelled = scheduler.enqueue(object_type="memory", object_id="x", action="verify", run_at=due)["job"]["job_id"]
    scheduler.cancel(cancelled, reason="not wanted")
    scheduler.enqueue(object_type="memory", object_id="x", action="verify")
    [job] = scheduler.pull(worker_id="w")["jobs"]

    followup = scheduler.ack(job["job_id"], result="succeeded", next_action_at=due)["followup_job_id"]

    assert followup not in (None, cancelled)
    assert scheduler.show(followup)["job"]["status"] == "queued"
    scheduler.close()
