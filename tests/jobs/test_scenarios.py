"""The acceptance scenarios of the requirement document that need no governed objects."""

from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused
from pendula.jobs.upkeep.verification import check
from pendula.kernel.time import parse_utc
from tests.jobs.stores import opened

JOB: dict[str, Any] = {"object_type": "cognition", "object_id": "cg_1", "action": "revalidate"}


@pytest.mark.req("JOB-ACK-1")
@pytest.mark.req("JOB-ACK-7")
@pytest.mark.req("JOB-PULL-3")
def test_a1_an_ordinary_round_succeeds(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    due = "2026-02-21T00:00:00Z"
    clock.now = parse_utc("2026-02-20T23:59:00Z")
    job_id = scheduler.enqueue(**JOB, run_at=due).job.job_id
    before = scheduler.pull(worker_id="w1", now="2026-02-20T23:59:59.999999Z")
    [job] = scheduler.pull(worker_id="w1", now=due).jobs
    next_at = "2026-02-28T00:00:00Z"
    answer = scheduler.ack(job_id, result="succeeded", next_action_at=next_at, lease_token=job.lease_token)
    events = scheduler.history(job_id).events

    assert (before.count, before.jobs) == (0, [])
    assert answer.job.status == "succeeded"
    assert answer.object.next_action_at == next_at
    assert scheduler.show(str(answer.followup_job_id)).job.run_at == next_at
    assert [event.event_type for event in events] == ["scheduler_job"] * 3 + ["state_transition"]
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-ENQ-2")
@pytest.mark.req("JOB-FAIL-9")
def test_a2_calls_with_lost_replies_can_be_repeated(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    first = scheduler.enqueue(**JOB, run_at=clock.text(10))
    clock.pass_by(60)
    again = scheduler.enqueue(**JOB, run_at=first.job.run_at)
    [job] = scheduler.pull(worker_id="w1").jobs
    failed = scheduler.fail(job.job_id, error="x", lease_token=job.lease_token, retry_delay_sec=0)
    failed_again = scheduler.fail(job.job_id, error="x", lease_token=job.lease_token)

    assert (again.deduplicated, again.job.job_id) == (True, job.job_id)
    assert (failed.already_failed, failed_again.already_failed) == (False, True)
    assert failed_again.job.attempt == 1
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-FAIL-2")
@pytest.mark.req("JOB-ACK-6")
def test_a3_a_job_that_fails_three_times_becomes_a_dead_letter(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    scheduler.enqueue(**JOB)
    seen = []
    for _ in range(3):
        [job] = scheduler.pull(worker_id="w1").jobs
        answer = scheduler.fail(job.job_id, error="x", retry_delay_sec=300)
        seen.append((answer.job.status, answer.job.attempt, answer.retry))
        clock.pass_by(300)

    assert seen == [("queued", 1, True), ("queued", 2, True), ("dead_letter", 3, False)]
    assert scheduler.metrics().dead_letter_count == 1
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-ACK-8")
@pytest.mark.req("JOB-FAIL-12")
def test_a4_a_worker_with_a_lost_lease_changes_nothing(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    scheduler.enqueue(**JOB)
    [first] = scheduler.pull(worker_id="w1", lease_sec=60).jobs
    clock.pass_by(61)
    reply = scheduler.pull(worker_id="w2")
    [second] = reply.jobs

    assert (reply.reclaimed, second.delivery_count, second.attempt) == (1, 2, 1)
    with pytest.raises(JobRefused) as late:
        scheduler.ack(first.job_id, result="succeeded", lease_token=first.lease_token)
    assert (late.value.code, late.value.status) == ("lease_lost", 409)
    assert scheduler.ack(second.job_id, result="succeeded", lease_token=second.lease_token).already_acked is False
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-POL-7")
def test_no_text_promises_that_a_job_is_delivered_once() -> None:
    root = Path(__file__).parents[2]
    pages = [*(root / "docs").rglob("*.md"), *(root / "src/pendula/jobs").rglob("*.py"), root / "README.md"]
    texts = {page: " ".join(page.read_text(encoding="utf-8").lower().split()) for page in pages}

    promised = [
        (page.name, words)
        for page, text in texts.items()
        for words in (
            "exactly-once delivery",
            "exactly once delivery",
            "delivered exactly once",
            "delivers exactly once",
        )
        if words in text and f"no {words}" not in text and f"not {words}" not in text
    ]

    assert promised == []
    assert any("at least once" in text for text in texts.values())
