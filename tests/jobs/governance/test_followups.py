"""One planned job waits for each object, at the date of the object; a new date replaces the job."""

from pathlib import Path
from typing import Any

import pytest

from tests.jobs.governance.living import WHOLE, Town, proof


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def _waiting(town: Town, name: str) -> list[dict[str, Any]]:
    return list(town.scheduler.list(object_id=name, status="queued")["jobs"])


def _blocked(town: Town, name: str) -> dict[str, Any]:
    """The planned job of the object meets a blocking gate."""
    town.open_gates(risk_gate="block")
    ended = town.begun(town.pulled(1))
    assert ended["outcome"] == "gate_blocked"
    return dict(town.user.show("memory", name)["object"])


def test_evidence_and_a_refill_leave_an_object_with_one_job(town: Town) -> None:
    town.user.create("cognition", "cg", **WHOLE, unknown_type="multipath")
    town.clock.pass_by(60)

    town.user.attach_evidence("cognition", "cg", "ev_9")
    town.clock.pass_by(60)
    refilled = town.user.refill("cognition", "cg", "a new method", budget=5)

    [job] = _waiting(town, "cg")
    assert (job["job_id"], job["run_at"]) == (refilled["followup_job_id"], refilled["object"]["next_action_at"])


@pytest.mark.req("JOB-MET-7")
def test_replaced_jobs_are_counted_apart_from_failed_jobs(town: Town) -> None:
    town.user.create("memory", "m", evidence_refs=["ev_1"])
    town.clock.pass_by(60)
    town.user.attach_evidence("memory", "m", "ev_9")
    town.clock.pass_by(60)
    town.user.decide("memory", "m", "verify", "passed", reason="seen")
    failed = town.scheduler.list(status="failed")["jobs"]

    [counted] = [one for one in town.user.figures()["counts"] if one["kind"] == "superseded"]

    assert all(job["last_error"].startswith("superseded: ") for job in failed)
    assert counted == {"kind": "superseded", "word": "memory", "count": len(failed)}
    assert len(failed) > 0
    assert town.scheduler.metrics()["job_success_rate"] is None, "a replaced job is neither a success nor a failure"


@pytest.mark.req("JOB-MET-1")
def test_a_cancelled_job_counts_in_the_success_rate(town: Town) -> None:
    first = town.user.create("memory", "m", evidence_refs=["ev_1"])["followup_job_id"]

    town.scheduler.cancel(first, reason="superseded: no")

    assert town.scheduler.metrics()["job_success_rate"] == 0


def test_a_replaced_job_names_its_replacement(town: Town) -> None:
    first = town.user.create("memory", "m", evidence_refs=["ev_1"])["followup_job_id"]
    town.clock.pass_by(60)

    second = town.user.attach_evidence("memory", "m", "ev_2")["followup_job_id"]

    job = town.scheduler.show(first)["job"]
    assert (job["status"], job["last_error"]) == ("failed", f"superseded: {second}")


def test_work_requested_early_replaces_the_planned_job(town: Town) -> None:
    town.user.create("memory", "m", evidence_refs=["ev_1"])
    town.scheduler.defer("memory", "m", "verify")

    ended = town.verified("passed")

    assert [job["job_id"] for job in _waiting(town, "m")] == [ended["followup_job_id"]]


def test_an_object_in_a_final_state_has_no_waiting_job(town: Town) -> None:
    town.user.create("memory", "m", status="rejected_poisoned")
    town.user.rollback_finished("memory", "m")
    town.scheduler.defer("memory", "m", "archive")
    job = town.pulled()

    town.scheduler.objects.settle(job["job_id"], **proof(job))

    assert _waiting(town, "m") == []
    superseded = town.scheduler.list(object_id="m", error_code="superseded")["jobs"]
    assert superseded[0]["last_error"] == "superseded: nothing_left"


def test_a_manually_enqueued_job_is_not_replaced(town: Town) -> None:
    town.user.create("memory", "m", evidence_refs=["ev_1"])
    asked = town.scheduler.defer("memory", "m", "verify", in_sec=1000)["job_id"]

    town.user.attach_evidence("memory", "m", "ev_2")

    assert asked in [job["job_id"] for job in _waiting(town, "m")]


def test_a_replacement_is_audited_and_the_trail_stays_intact(town: Town) -> None:
    from pendula.jobs.upkeep import replay

    town.user.create("memory", "m", evidence_refs=["ev_1"])
    town.clock.pass_by(60)
    town.user.attach_evidence("memory", "m", "ev_2")

    reasons = [event["reason"] for event in town.scheduler.audit(event_type="scheduler_job")["events"]]
    assert [reason.partition(":")[0] for reason in reasons] == ["enqueued", "enqueued", "superseded"]
    assert replay(town.scheduler.calls.store).findings == ()


@pytest.mark.req("JOB-GATE-9", "JOB-GATE-4")
def test_after_a_block_the_next_job_comes_after_the_usual_interval(town: Town) -> None:
    town.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])

    blocked = _blocked(town, "m")

    [job] = _waiting(town, "m")
    assert blocked["status"] == "candidate"
    assert job["run_at"] == blocked["next_action_at"]
    assert job["run_at"].startswith("2026-02-22T12:00:00")


@pytest.mark.req("JOB-GATE-4", "JOB-GATE-5")
def test_a_block_that_moves_a_date_emits_both_events(town: Town) -> None:
    town.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])

    _blocked(town, "m")

    gate, date = [event for event in town.events("memory", "m") if "decision_trace_id" in event]
    assert (gate["event_type"], gate["after"]["outcome"]) == ("decision_gate", "blocked")
    assert (date["event_type"], date["after"]["transitioned"]) == ("state_transition", False)


@pytest.mark.req("JOB-GATE-9")
def test_a_block_does_not_move_the_end_of_an_uncertainty(town: Town) -> None:
    town.open_gates(risk_gate="block")
    town.user.create("cognition", "cg", **WHOLE, unknown_type="multipath", risk_tier="high", uncertainty_ttl="PT30H")

    town.begun(town.pulled(1))

    [job] = _waiting(town, "cg")
    assert job["run_at"].startswith("2026-02-21T18:00:00")


def test_a_block_of_work_requested_early_keeps_the_date_of_the_object(town: Town) -> None:
    town.open_gates(risk_gate="block")
    planned = town.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])
    town.scheduler.defer("memory", "m", "verify")

    town.begun(town.pulled())

    [job] = _waiting(town, "m")
    assert (job["job_id"], job["run_at"]) == (planned["followup_job_id"], planned["object"]["next_action_at"])


def test_work_forbidden_by_evidence_under_inquiry_is_retried_later(town: Town) -> None:
    town.user.create("memory", "doubtful", status="quarantine")
    town.user.create("memory", "m", evidence_refs=["memory:doubtful"])
    town.clock.pass_by(86_400)
    [job] = [one for one in town.scheduler.pull(worker_id="w")["jobs"] if one["object_id"] == "m"]
    town.begun(job)

    ended = town.finished(job, "passed")

    assert (ended["outcome"], ended["job"]["status"]) == ("illegal_transition", "failed")
    [waiting] = _waiting(town, "m")
    assert waiting["run_at"] > job["run_at"]
