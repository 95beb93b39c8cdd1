"""The acceptance scenarios of governed objects, through the library."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pendula.jobs import JobRefused
from pendula.jobs.upkeep.verification import check
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import DAY, WHOLE, VerifierRig, proof


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[VerifierRig]:
    rig = VerifierRig(tmp_path)
    yield rig
    assert check(rig.scheduler.calls.store) == []
    rig.scheduler.close()


def _doubted(rig: VerifierRig, **members: object) -> None:
    uncertain = {"status": "needs_revalidate", "epistemic_state": "uncertain", "unknown_type": "out_of_scope"}
    rig.user.create("cognition", "cg", **{**WHOLE, **uncertain, **members})


@pytest.mark.req("JOB-GATE-6", "JOB-GATE-7", "JOB-GATE-9", "JOB-GATE-10")
def test_an_uncertain_object_with_a_budget_of_two_goes_stale_at_the_end_of_its_week(rig: VerifierRig) -> None:
    _doubted(rig)

    assert [rig.verified("inconclusive", 1)["outcome"] for _ in range(2)] == ["noop", "noop"]
    last = rig.verified("inconclusive", 5)

    assert (last["outcome"], last["entered"], rig.entered) == ("budget_exhausted", False, 2)
    assert (last["object"]["status"], last["object"]["epistemic_state"]) == ("stale", "uncertain")
    assert (last["object"]["decision_mode"], last["escalated"]) == ("conservative", False)
    assert last["followup_job_id"] is not None


@pytest.mark.req("JOB-GATE-12", "JOB-GATE-13", "JOB-ENQ-12")
def test_an_unknowable_object_is_verified_once_and_then_closed_to_verification(rig: VerifierRig) -> None:
    _doubted(rig, unknown_type="ontic_unknowable")
    waiting = rig.scheduler.enqueue(
        object_type="cognition", object_id="cg", action="verify", run_at=rig.clock.text(40 * 86_400)
    ).job.job_id

    closed = rig.verified("inconclusive", 1)

    assert (closed["outcome"], closed["object"]["closed"]) == ("ontic_closed", "cannot be known")
    assert rig.scheduler.show(waiting).job.last_error == "ontic_limit_reached"
    with pytest.raises(JobRefused) as refused:
        rig.scheduler.enqueue(object_type="cognition", object_id="cg", action="revalidate")
    assert (refused.value.code, refused.value.status) == ("ontic_verification_closed", 409)
    assert rig.scheduler.enqueue(object_type="cognition", object_id="cg", action="archive").job.status == "queued"


@pytest.mark.req("JOB-GATE-13")
def test_evidence_that_makes_an_object_knowable_reopens_it(rig: VerifierRig) -> None:
    _doubted(rig, unknown_type="ontic_unknowable")
    rig.verified("inconclusive", 1)

    rig.user.attach_evidence("cognition", "cg", "ev_9", unknown_type="out_of_scope")

    rig.scheduler.enqueue(object_type="cognition", object_id="cg", action="revalidate")


@pytest.mark.req("JOB-GATE-1", "JOB-GATE-2", "JOB-GATE-4", "JOB-GATE-5")
@pytest.mark.parametrize("moment", ["before the lease", "after the lease", "after begin"])
def test_a_gate_that_blocks_at_any_step_stops_a_risky_change(rig: VerifierRig, moment: str) -> None:
    rig.open_gates()
    rig.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])
    if moment == "before the lease":
        rig.open_gates(persona_conflict_gate="block")
    job = rig.pulled(1)
    if moment == "after the lease":
        rig.open_gates(persona_conflict_gate="block")
    answer = rig.begun(job)
    if moment == "after begin":
        rig.open_gates(persona_conflict_gate="block")
        answer = rig.finished(job, "passed", gates=answer["gates"])
        assert answer["gates_moved"] is True

    assert (answer["job"]["status"], answer["job"]["last_error"]) == ("failed", "gate_blocked: persona_conflict_gate")
    assert (answer["object"]["status"], answer["executed"], answer["escalated"]) == ("candidate", "blocked", True)
    [event] = [event for event in rig.events("memory", "m") if event["event_type"] == "decision_gate"]
    assert event["decision_trace_id"] == answer["decision_trace_id"]
    alerts = rig.scheduler.calls.store.read(lambda look: look.alerts_waiting(0, 10))
    assert [body["alert"] for _, body in alerts] == ["governance.escalation"]


@pytest.mark.req("JOB-GATE-8", "JOB-SM-6")
def test_a_stale_cognition_is_reinstated_with_new_evidence(rig: VerifierRig) -> None:
    _doubted(rig, auto_verify_budget=0)
    rig.verified("inconclusive", 7)

    back = rig.verified("new_evidence", 7)

    assert (back["object"]["status"], back["object"]["epistemic_state"]) == ("active", "supported")
    assert back["object"]["verify_budget_left"] == 0  # its budget is 0, so a refill gives 0
    assert back["object"]["review_due_at"] is not None
    assert rig.events("cognition", "cg")[-1]["after"]["transitioned"] is True


@pytest.mark.req("JOB-SM-15", "JOB-SM-8")
def test_a_forged_memory_waits_for_its_rollback_and_is_never_reinstated(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    rig.verified("suspicious", 1)
    forged = rig.verified("forged", 1)
    assert forged["object"]["status"] == "rejected_poisoned"
    [rollback] = rig.user.rollbacks()["rollbacks"]

    again = rig.scheduler.enqueue(object_type="memory", object_id="m", action="reinstate-check").job.job_id
    ended = rig.begun(rig.pulled())
    assert (ended["job"]["job_id"], ended["job"]["status"]) == (again, "failed")
    assert ended["job"]["last_error"].startswith("illegal_transition")

    job = rig.pulled(1)
    waited = governed(rig.scheduler).settle(job["job_id"], **proof(job))
    assert (waited["outcome"], waited["object"]["status"]) == ("noop", "rejected_poisoned")

    rig.user.rollback_finished("memory", "m", reason="all of it is taken back")
    job = rig.pulled(2)
    archived = governed(rig.scheduler).settle(job["job_id"], **proof(job))
    assert (archived["object"]["status"], archived["object"]["next_action_at"]) == ("archived", None)
    assert rollback["object_id"] == "m"


@pytest.mark.req("JOB-SM-4")
def test_a_verdict_on_an_older_version_is_retried(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    job = rig.pulled(1)
    begun = rig.begun(job)
    rig.user.attach_evidence("memory", "m", "ev_7")

    ended = rig.finished(job, "passed", version=begun["version"])

    assert (ended["job"]["status"], ended["job"]["attempt"]) == ("queued", 1)
    assert ended["job"]["last_error"].startswith("state_conflict")
    assert governed(rig.scheduler).show("memory", "m")["object"]["status"] == "candidate"


@pytest.mark.req("JOB-GATE-6")
def test_a_repeated_begin_takes_one_unit_of_budget_and_a_redelivery_another(rig: VerifierRig) -> None:
    _doubted(rig)
    job = rig.pulled(1)
    first, again = (governed(rig.scheduler).begin(job["job_id"], **proof(job)) for _ in range(2))
    assert first["object"]["verify_budget_left"] == again["object"]["verify_budget_left"] == 1

    rig.clock.pass_by(120)
    redelivered = rig.begun(rig.pulled())

    assert redelivered["object"]["verify_budget_left"] == 0


@pytest.mark.req("JOB-WRK-3")
def test_only_its_machine_changes_a_governed_object(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    job = rig.pulled(1)

    at = rig.clock.text(60)
    acked = rig.scheduler.ack(job["job_id"], result="succeeded", next_action_at=at, **proof(job))

    assert (acked.job.status, acked.object.next_action_at) == ("succeeded", at)
    shown = rig.user.show("memory", "m")["object"]
    assert (shown["status"], shown["next_action"]) == ("candidate", "verify")
    assert rig.scheduler.show(str(acked.followup_job_id)).job.run_at == at


@pytest.mark.req("JOB-ACK-1", "JOB-WRK-3", "JOB-GATE-9")
def test_an_ack_of_an_objects_planned_job_gives_it_the_next_date_of_the_policy(rig: VerifierRig) -> None:
    rig.user.create("cognition", "c", **WHOLE)
    job = rig.pulled(1)

    acked = rig.scheduler.ack(job["job_id"], result="succeeded", **proof(job))

    at = acked.object.next_action_at
    followup = rig.scheduler.show(str(acked.followup_job_id)).job
    assert (followup.status, followup.action, followup.run_at) == ("queued", "verify", at)
    assert str(at) > rig.clock.text(DAY - 1)


@pytest.mark.req("JOB-ACK-1", "JOB-ACK-4")
def test_a_custom_action_on_a_governed_object_leaves_its_date_unchanged(rig: VerifierRig) -> None:
    own = rig.user.create("memory", "m", evidence_refs=["ev_1"])
    rig.scheduler.enqueue(object_type="memory", object_id="m", action="decay")
    job = rig.pulled()

    acked = rig.scheduler.ack(job["job_id"], result="succeeded", **proof(job))

    assert acked.job.status == "succeeded"
    assert acked.object.next_action_at == own["object"]["next_action_at"]
    assert acked.followup_job_id == own["followup_job_id"]


@pytest.mark.req("JOB-GATE-4")
def test_a_deferral_uses_no_attempt_and_the_job_fails_after_ten(rig: VerifierRig) -> None:
    rig.open_gates()
    rig.user.set_gate("social_gate", "defer", "not while they sleep")
    rig.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])
    rig.clock.pass_by(86_400)
    for _ in range(10):
        answer = rig.begun(rig.pulled())
        assert (answer["outcome"], answer["job"]["status"], answer["job"]["attempt"]) == ("deferred", "queued", 0)
        rig.clock.pass_by(3600)

    assert rig.begun(rig.pulled())["job"]["last_error"] == "gate_blocked: social_gate"


@pytest.mark.req("JOB-GATE-8", "JOB-AUD-2")
def test_a_refill_of_a_budget_is_recorded_with_its_user(rig: VerifierRig) -> None:
    _doubted(rig, auto_verify_budget=1)
    rig.verified("inconclusive", 1)

    filled = rig.user.refill("cognition", "cg", "worth another look", budget=3)

    assert filled["object"]["verify_budget_left"] == 3
    assert rig.events("cognition", "cg")[-1]["actor"] == {"type": "user", "id": "mia"}
    with pytest.raises(JobRefused, match="named user"):
        governed(rig.scheduler).refill("cognition", "cg", "by nobody")


def test_why_explains_state_and_next_action_in_one_sentence(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"], reason="met today")

    explanation = governed(rig.scheduler).why("memory", "m")

    assert explanation["sentence"].startswith("memory m has been candidate since ")
    assert "because met today; next comes verify at " in explanation["sentence"]
    assert explanation["in_the_way"] is None


def test_why_finds_the_last_state_change_before_a_thousand_other_events(
    rig: VerifierRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pendula.governance.why.EVENTS_AT_ONCE", 2)
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    for n in range(5):
        rig.user.attach_evidence("memory", "m", f"ev_{n}")
    rig.user.decide("memory", "m", "verify", "passed", reason="seen by eye")
    for n in range(5):
        rig.user.attach_evidence("memory", "m", f"more_{n}")

    assert governed(rig.scheduler).why("memory", "m")["because"]["reason"] == "seen by eye"
