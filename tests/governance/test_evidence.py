"""Evidence of a decision: fit for its purpose, of the verified version, and in the trail."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused
from pendula.jobs.upkeep.verification import check
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import WHOLE, VerifierRig, proof


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[VerifierRig]:
    rig = VerifierRig(tmp_path)
    yield rig
    assert check(rig.scheduler.calls.store) == []
    rig.scheduler.close()


def _unfit(rig: VerifierRig, kind: str) -> str:
    """An object that is not fit as evidence."""
    members: dict[str, Any] = {
        "memory:quarantine": {"status": "quarantine"},
        "memory:stale_uncertain": {"status": "stale_uncertain"},
        "cognition:stale/uncertain": {"status": "stale", **WHOLE},
    }[kind]
    object_type = kind.partition(":")[0]
    rig.user.create(object_type, "bad", **members)  # only its state matters here
    return f"{object_type}:bad"


@pytest.mark.req("JOB-SM-8", "JOB-GATE-10")
@pytest.mark.parametrize("kind", ["memory:quarantine", "memory:stale_uncertain", "cognition:stale/uncertain"])
@pytest.mark.parametrize("where", ["given", "carried"])
def test_an_unfit_reference_promotes_nothing_wherever_it_is_named(rig: VerifierRig, kind: str, where: str) -> None:
    bad = _unfit(rig, kind)
    rig.user.create("memory", "m", evidence_refs=[bad] if where == "carried" else ["ev_1"])
    rig.scheduler.enqueue(object_type="memory", object_id="m", action="verify")

    ended = rig.verified("passed", evidence_refs=[bad] if where == "given" else ["ev_2"])

    assert (ended["job"]["status"], ended["object"]["status"]) == ("failed", "candidate")
    assert ended["job"]["last_error"].startswith("illegal_transition")


@pytest.mark.req("JOB-SM-8")
def test_a_suspect_memory_can_be_evidence_for_lowering_trust(rig: VerifierRig) -> None:
    bad = _unfit(rig, "memory:quarantine")
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    rig.scheduler.enqueue(object_type="memory", object_id="m", action="verify")

    ended = rig.verified("suspicious", evidence_refs=[bad])
    assert (ended["object"]["object_id"], ended["object"]["status"]) == ("m", "quarantine")


@pytest.mark.req("JOB-SM-5")
def test_a_reference_to_an_object_outside_the_store_is_accepted(rig: VerifierRig) -> None:
    rig.user.create("memory", "m")

    passed = rig.verified("passed", 1, evidence_refs=["memory:of another store"])

    assert (passed["object"]["status"], passed["object"]["evidence_refs"]) == ("verified", ["memory:of another store"])


@pytest.mark.req("JOB-SM-10")
@pytest.mark.parametrize(("tier", "status"), [("medium", "verified"), ("critical", "candidate")])
def test_an_object_under_review_is_no_evidence_for_a_high_risk_decision(
    rig: VerifierRig, tier: str, status: str
) -> None:
    rig.open_gates()
    rig.user.create("experience", "e", status="needs_review", source_refs=["memory:none"])
    rig.user.create("memory", "m", evidence_refs=["experience:e"], impact_tier=tier)
    rig.scheduler.enqueue(object_type="memory", object_id="m", action="verify")

    assert rig.verified("passed")["object"]["status"] == status


@pytest.mark.req("JOB-SM-4")
def test_a_verdict_without_a_version_is_about_the_version_at_begin(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    job = rig.pulled(1)
    rig.begun(job)
    rig.user.decide("memory", "m", "verify", "suspicious", reason="seen by a person")

    ended = rig.finished(job, "passed")  # the job is about a candidate, which is now in quarantine

    assert (ended["object"]["status"], ended["job"]["status"]) == ("quarantine", "queued")
    assert ended["job"]["last_error"].startswith("state_conflict")


@pytest.mark.req("JOB-AUD-6")
@pytest.mark.parametrize(
    ("members", "given", "expected"),
    [
        ({"evidence_refs": ["ev_1"], "source_refs": ["memory:a"]}, ["ev_2"], ["ev_2"]),
        ({"evidence_refs": ["ev_1"], "source_refs": ["memory:a"]}, [], ["ev_1"]),
        ({"source_refs": ["memory:a"]}, [], ["memory:a"]),
        ({}, [], []),
    ],
)
def test_an_event_names_its_references_and_always_its_job(
    rig: VerifierRig, members: Any, given: Any, expected: Any
) -> None:
    rig.user.create("memory", "m", **members)
    ended = rig.verified("suspicious", 1, evidence_refs=given)

    event = rig.events("memory", "m")[-1]
    assert event["evidence_refs"] == [*expected, f"scheduler_job:{ended['job']['job_id']}"]


@pytest.mark.req("JOB-GATE-13")
def test_only_new_evidence_reopens_a_closed_object(rig: VerifierRig) -> None:
    unknowable = {"status": "needs_revalidate", "unknown_type": "ontic_unknowable"}
    rig.user.create("cognition", "cg", **{**WHOLE, **unknowable})
    rig.verified("inconclusive", 1)

    with pytest.raises(JobRefused, match="new evidence"):
        rig.user.attach_evidence("cognition", "cg", "ev_1", unknown_type="out_of_scope")

    opened = rig.user.attach_evidence("cognition", "cg", "ev_9", unknown_type="out_of_scope")["object"]
    assert (opened["closed"], opened["unknown_type"], opened["decision_mode"]) == (None, "out_of_scope", "collect")


@pytest.mark.req("JOB-GATE-13")
def test_a_verification_running_at_the_close_fails_at_its_next_begin(rig: VerifierRig) -> None:
    unknowable = {"status": "needs_revalidate", "unknown_type": "ontic_unknowable", "auto_verify_budget": 5}
    for n in range(2):  # both are delivered before the object is governed; afterwards only one at a time would be
        rig.scheduler.defer("cognition", "cg", "verify", idempotency_key=f"k{n}")
    closing, running = rig.pulled(), rig.pulled()
    rig.user.create("cognition", "cg", **{**WHOLE, **unknowable})
    rig.begun(closing)
    rig.finished(closing, "inconclusive")

    ended = rig.begun(running)

    assert (ended["entered"], ended["job"]["status"]) == (False, "failed")
    assert ended["job"]["last_error"] == "ontic_limit_reached"
    counts = {(one["kind"], one["word"]): one["count"] for one in governed(rig.scheduler).figures()["counts"]}
    assert (rig.entered, counts["ontic_closure", "cognition"]) == (1, 1)


@pytest.mark.req("JOB-GATE-5", "JOB-GATE-3")
@pytest.mark.parametrize("gate", ["deferred", "unavailable"])
def test_a_decision_trace_without_a_change_has_an_event(rig: VerifierRig, gate: str) -> None:
    if gate == "deferred":
        rig.open_gates()
        rig.user.set_gate("social_gate", "defer", "not now")
    rig.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])

    ended = rig.begun(rig.pulled(1))

    [event] = [one for one in rig.events("memory", "m") if one["event_type"] == "decision_gate"]
    assert (event["decision_trace_id"], event["after"]["outcome"]) == (ended["decision_trace_id"], "abstained")


@pytest.mark.req("JOB-FAIL-6")
@pytest.mark.parametrize(("tier", "severity"), [("low", "warning"), ("high", "critical")])
def test_a_dead_letter_about_a_high_risk_object_is_critical(rig: VerifierRig, tier: str, severity: str) -> None:
    rig.open_gates()
    rig.user.create("memory", "m", risk_tier=tier, evidence_refs=["ev_1"])
    for _ in range(3):
        job = rig.pulled(1)
        rig.scheduler.fail(job["job_id"], error="the verifier is down", retry_delay_sec=0, **proof(job))

    alerts = rig.scheduler.calls.store.read(lambda look: look.alerts_waiting(0, 10))
    assert [body["severity"] for _, body in alerts] == [severity]


@pytest.mark.req("JOB-SM-15")
def test_a_finished_rollback_leads_to_the_archive_even_if_the_first_job_is_gone(rig: VerifierRig) -> None:
    created = rig.user.create("memory", "m", status="rejected_poisoned")
    assert created["object"]["rollback_pending"] is True
    rig.scheduler.cancel(created["followup_job_id"], reason="by mistake")
    [_] = rig.user.rollbacks()["rollbacks"]

    rig.user.rollback_finished("memory", "m")

    job = rig.pulled(1)
    assert governed(rig.scheduler).settle(job["job_id"], **proof(job))["object"]["status"] == "archived"


@pytest.mark.req("JOB-SM-6", "JOB-SM-14")
def test_an_object_starts_with_the_dates_of_its_state(rig: VerifierRig) -> None:
    stale = rig.user.create("memory", "m", status="stale")["object"]
    active = rig.user.create("cognition", "cg", **{**WHOLE, "status": "active", "review_interval": "P2D"})["object"]

    assert stale["stale_since"] == stale["created_at"]
    assert active["next_action_at"] == active["review_due_at"] == "2026-02-22T12:00:00.000002Z"


@pytest.mark.req("JOB-AUD-3")
@pytest.mark.parametrize("way", ["evidence", "finish", "decide"])
def test_the_number_of_references_of_an_object_is_limited(rig: VerifierRig, way: str) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    for part in range(10):
        rig.user.attach_evidence("memory", "m", *[f"ev:{part}:{n}" for n in range(100 if part else 99)])
    job = rig.pulled(1)
    rig.begun(job)

    def one_more(ref: str) -> Any:
        match way:
            case "evidence":
                return rig.user.attach_evidence("memory", "m", ref)
            case "finish":
                return rig.finished(job, "inconclusive", evidence_refs=[ref])
            case _:
                return rig.user.decide("memory", "m", "verify", "conflict", reason="seen", evidence_refs=[ref])

    with pytest.raises(JobRefused, match="would have 1001 references; the limit is 1000"):
        one_more("ev_new")
    assert len(one_more("ev_1")["object"]["evidence_refs"]) == 1000
