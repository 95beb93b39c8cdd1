"""One planned job waits for each object, at the date of the object; a new date replaces the job."""

from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.messages import plain
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import WHOLE, VerifierRig, proof


@pytest.fixture
def rig(tmp_path: Path) -> VerifierRig:
    return VerifierRig(tmp_path)


def _waiting(rig: VerifierRig, name: str) -> list[dict[str, Any]]:
    return [plain(job) for job in rig.scheduler.list(object_id=name, status="queued").jobs]


def _blocked(rig: VerifierRig, name: str) -> dict[str, Any]:
    """The planned job of the object meets a blocking gate."""
    rig.open_gates(risk_gate="block")
    ended = rig.begun(rig.pulled(1))
    assert ended["outcome"] == "gate_blocked"
    return dict(rig.user.show("memory", name)["object"])


def test_evidence_and_a_refill_leave_an_object_with_one_job(rig: VerifierRig) -> None:
    rig.user.create("cognition", "cg", **WHOLE, unknown_type="multipath")
    rig.clock.pass_by(60)

    rig.user.attach_evidence("cognition", "cg", "ev_9")
    rig.clock.pass_by(60)
    refilled = rig.user.refill("cognition", "cg", "a new method", budget=5)

    [job] = _waiting(rig, "cg")
    assert (job["job_id"], job["run_at"]) == (refilled["followup_job_id"], refilled["object"]["next_action_at"])


@pytest.mark.req("JOB-MET-7")
def test_replaced_jobs_are_counted_apart_from_failed_jobs(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    rig.clock.pass_by(60)
    rig.user.attach_evidence("memory", "m", "ev_9")
    rig.clock.pass_by(60)
    rig.user.decide("memory", "m", "verify", "passed", reason="seen")
    failed = rig.scheduler.list(status="failed").jobs

    [counted] = [one for one in rig.user.figures()["counts"] if one["kind"] == "superseded"]

    assert all((job.last_error or "").startswith("superseded: ") for job in failed)
    assert counted == {"kind": "superseded", "word": "memory", "count": len(failed)}
    assert len(failed) > 0
    assert rig.scheduler.metrics().job_success_rate is None, "a replaced job is neither a success nor a failure"


@pytest.mark.req("JOB-MET-1")
def test_a_cancelled_job_counts_in_the_success_rate(rig: VerifierRig) -> None:
    first = rig.user.create("memory", "m", evidence_refs=["ev_1"])["followup_job_id"]

    rig.scheduler.cancel(first, reason="superseded: no")

    assert rig.scheduler.metrics().job_success_rate == 0


def test_a_replaced_job_names_its_replacement(rig: VerifierRig) -> None:
    first = rig.user.create("memory", "m", evidence_refs=["ev_1"])["followup_job_id"]
    rig.clock.pass_by(60)

    second = rig.user.attach_evidence("memory", "m", "ev_2")["followup_job_id"]

    job = rig.scheduler.show(first).job
    assert (job.status, job.last_error) == ("failed", f"superseded: {second}")


def test_work_requested_early_replaces_the_planned_job(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    rig.scheduler.defer("memory", "m", "verify")

    ended = rig.verified("passed")

    assert [job["job_id"] for job in _waiting(rig, "m")] == [ended["followup_job_id"]]


def test_an_object_in_a_final_state_has_no_waiting_job(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", status="rejected_poisoned")
    rig.user.rollback_finished("memory", "m")
    rig.scheduler.defer("memory", "m", "archive")
    job = rig.pulled()

    governed(rig.scheduler).settle(job["job_id"], **proof(job))

    assert _waiting(rig, "m") == []
    superseded = rig.scheduler.list(object_id="m", error_code="superseded").jobs
    assert superseded[0].last_error == "superseded: nothing_left"


def test_a_manually_enqueued_job_is_not_replaced(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    asked = rig.scheduler.defer("memory", "m", "verify", in_sec=1000).job_id

    rig.user.attach_evidence("memory", "m", "ev_2")

    assert asked in [job["job_id"] for job in _waiting(rig, "m")]


def test_a_replacement_is_audited_and_the_trail_stays_intact(rig: VerifierRig) -> None:
    from pendula.jobs.upkeep import replay

    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    rig.clock.pass_by(60)
    rig.user.attach_evidence("memory", "m", "ev_2")

    reasons = [event.reason for event in rig.scheduler.audit(event_type="scheduler_job").events]
    assert [reason.partition(":")[0] for reason in reasons] == ["enqueued", "enqueued", "superseded"]
    assert replay(rig.scheduler.calls.store).findings == ()


@pytest.mark.req("JOB-GATE-9", "JOB-GATE-4")
def test_after_a_block_the_next_job_comes_after_the_usual_interval(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])

    blocked = _blocked(rig, "m")

    [job] = _waiting(rig, "m")
    assert blocked["status"] == "candidate"
    assert job["run_at"] == blocked["next_action_at"]
    assert job["run_at"].startswith("2026-02-22T12:00:00")


@pytest.mark.req("JOB-GATE-4", "JOB-GATE-5")
def test_a_block_that_moves_a_date_emits_both_events(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])

    _blocked(rig, "m")

    gate, date = [event for event in rig.events("memory", "m") if "decision_trace_id" in event]
    assert (gate["event_type"], gate["after"]["outcome"]) == ("decision_gate", "blocked")
    assert (date["event_type"], date["after"]["transitioned"]) == ("state_transition", False)


@pytest.mark.req("JOB-GATE-9")
def test_a_block_does_not_move_the_end_of_an_uncertainty(rig: VerifierRig) -> None:
    rig.open_gates(risk_gate="block")
    rig.user.create("cognition", "cg", **WHOLE, unknown_type="multipath", risk_tier="high", uncertainty_ttl="PT30H")

    rig.begun(rig.pulled(1))

    [job] = _waiting(rig, "cg")
    assert job["run_at"].startswith("2026-02-21T18:00:00")


def test_a_block_of_work_requested_early_keeps_the_date_of_the_object(rig: VerifierRig) -> None:
    rig.open_gates(risk_gate="block")
    planned = rig.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])
    rig.scheduler.defer("memory", "m", "verify")

    rig.begun(rig.pulled())

    [job] = _waiting(rig, "m")
    assert (job["job_id"], job["run_at"]) == (planned["followup_job_id"], planned["object"]["next_action_at"])


def test_work_forbidden_by_evidence_under_inquiry_is_retried_later(rig: VerifierRig) -> None:
    rig.user.create("memory", "doubtful", status="quarantine")
    rig.user.create("memory", "m", evidence_refs=["memory:doubtful"])
    rig.clock.pass_by(86_400)
    [job] = [plain(one) for one in rig.scheduler.pull(worker_id="w").jobs if one.object_id == "m"]
    rig.begun(job)

    ended = rig.finished(job, "passed")

    assert (ended["outcome"], ended["job"]["status"]) == ("illegal_transition", "failed")
    [waiting] = _waiting(rig, "m")
    assert waiting["run_at"] > job["run_at"]
