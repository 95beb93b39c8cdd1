"""The explanation of an object's state: its next action and time, and all obstacles."""

from pathlib import Path
from typing import Any

import pytest

from pendula.governance import REFERENCE, Rules
from pendula.governance.machines import Arrow, Follow, Machine, Never
from pendula.jobs import Policy
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import WHOLE, VerifierRig, proof


@pytest.fixture
def rig(tmp_path: Path) -> VerifierRig:
    return VerifierRig(tmp_path)


def _why(rig: VerifierRig, kind: str, name: str) -> dict[str, Any]:
    return dict(governed(rig.scheduler).why(kind, name))


def test_every_unset_gate_is_named_at_once(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])
    nothing_set = _why(rig, "memory", "m")["in_the_way"]
    rig.user.set_gate("risk_gate", "pass", "calm")
    rig.user.set_gate("cognition_gate", "pass", "calm")

    assert nothing_set == "cognition_gate, persona_conflict_gate and risk_gate were never set"
    assert _why(rig, "memory", "m")["in_the_way"] == "persona_conflict_gate was never set"


@pytest.mark.parametrize(("gate", "word"), [("risk_gate", "limit"), ("cognition_gate", "degrade")])
def test_a_limiting_gate_is_reported_as_an_obstacle(rig: VerifierRig, gate: str, word: str) -> None:
    rig.open_gates(**{gate: word})
    rig.user.create("memory", "m", risk_tier="high", evidence_refs=["ev_1"])

    assert _why(rig, "memory", "m")["in_the_way"] == f"{gate} allows only what lowers trust"


def test_a_gate_named_by_a_transition_is_an_obstacle_at_low_risk_too(tmp_path: Path) -> None:
    house = Machine(
        object_type="house",
        first="planned",
        trust={"planned": 1, "lived_in": 2},
        arrows=(Arrow("planned", "verify", "passed", "lived_in", ("risk_gate",)),),
        follow={"planned": Follow("verify", 1)},
        never=(Never("lived_in", "planned", "it stands"),),
    )
    rig = VerifierRig(tmp_path, Policy(governance=Rules(machines={**REFERENCE, "house": house})))
    rig.user.create("house", "h", evidence_refs=["ev_1"])
    unset = _why(rig, "house", "h")["in_the_way"]
    rig.user.set_gate("risk_gate", "block", "a storm")

    assert unset == "risk_gate was never set"
    assert _why(rig, "house", "h")["in_the_way"] == "risk_gate blocks it"


def test_an_uncertain_object_of_high_risk_waits_for_a_person(rig: VerifierRig) -> None:
    rig.open_gates()
    rig.user.create("cognition", "cg", **WHOLE, unknown_type="multipath", risk_tier="high")

    assert "a person has to decide" in _why(rig, "cognition", "cg")["in_the_way"]


def test_missing_fields_of_a_cognition_are_reported_before_its_verification(rig: VerifierRig) -> None:
    lacking = {name: value for name, value in WHOLE.items() if name != "expires_at"}
    rig.user.create("cognition", "cg", **lacking, unknown_type="multipath")

    explanation = _why(rig, "cognition", "cg")["in_the_way"]

    assert explanation == "to become active/supported it needs expires_at or review_due_at"


def test_the_time_is_that_of_the_job_to_be_retried(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    job = rig.pulled(1)
    rig.scheduler.fail(job["job_id"], error="the verifier is down", retry_delay_sec=600, **proof(job))

    explanation = _why(rig, "memory", "m")

    again = rig.scheduler.show(job["job_id"]).job.run_at
    assert (explanation["next_action_at"], explanation["next_job_id"]) == (again, job["job_id"])
    assert f"next comes verify at {again} ({job['job_id']}, after 1 of 3 attempts)" in explanation["sentence"]


def test_the_earlier_of_two_jobs_is_reported(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    sooner = rig.scheduler.defer("memory", "m", "verify", in_sec=60).job_id
    rig.scheduler.defer("memory", "m", "verify", in_sec=90_000)

    assert _why(rig, "memory", "m")["next_job_id"] == sooner


def test_a_running_job_is_reported_with_its_worker(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])
    job = rig.pulled(1)

    assert f"verify is at work ({job['job_id']}, w)." in _why(rig, "memory", "m")["sentence"]


def test_an_object_whose_job_failed_reports_that_no_job_waits(rig: VerifierRig) -> None:
    job = rig.user.create("memory", "m", evidence_refs=["ev_1"])["followup_job_id"]
    rig.end_without_replacement(job)

    assert _why(rig, "memory", "m")["in_the_way"] == f"no job waits for it: {job} is failed"
