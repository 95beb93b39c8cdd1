"""Amendments by a named user: dates and falsification of an object; tiers only go up."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused
from pendula.jobs.upkeep.verification import check
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import WHOLE, VerifierRig

LACKING: dict[str, Any] = {name: value for name, value in WHOLE.items() if name != "expires_at"}
SOON = "2026-03-01T00:00:00Z"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[VerifierRig]:
    rig = VerifierRig(tmp_path)
    yield rig
    assert check(rig.scheduler.calls.store) == []
    rig.scheduler.close()


def test_a_cognition_that_lacks_a_date_becomes_active_once_it_has_one(rig: VerifierRig) -> None:
    rig.user.create("cognition", "cg", **LACKING, unknown_type="multipath")
    with pytest.raises(JobRefused, match="needs expires_at or review_due_at"):
        rig.user.decide("cognition", "cg", "verify", "passed", reason="seen")

    rig.user.amend("cognition", "cg", "it ends with the year", expires_at="2027-01-01T00:00:00Z")

    decided = rig.user.decide("cognition", "cg", "verify", "passed", reason="seen")
    assert decided["object"]["status"] == "active"


def test_an_amendment_is_audited_with_user_and_reason_and_changes_no_state(rig: VerifierRig) -> None:
    rig.user.create("memory", "m")

    rig.user.amend("memory", "m", "it fades faster", half_life="P1D")

    *_, event = rig.events("memory", "m")
    assert (event["actor"]["id"], event["reason"]) == ("mia", "it fades faster")
    assert (event["before"]["half_life"], event["after"]["half_life"]) == ("P30D", "P1D")
    assert "status" not in event["after"]


def test_an_amended_date_moves_the_next_action(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", status="stale_uncertain")

    amended = rig.user.amend("memory", "m", "a court order", expires_at="2026-02-21T00:00:00Z")

    [job] = rig.scheduler.list(object_id="m", status="queued").jobs
    assert (job.action, job.run_at) == ("archive", "2026-02-21T00:00:00Z")
    assert job.job_id == amended["followup_job_id"]


def test_a_tier_is_raised_and_never_lowered(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", risk_tier="medium")
    raised = rig.user.amend("memory", "m", "it names people", risk_tier="high", impact_tier="critical")["object"]

    with pytest.raises(JobRefused) as refused:
        rig.user.amend("memory", "m", "never mind", risk_tier="low", impact_tier="low")

    assert (raised["risk_tier"], raised["impact_tier"]) == ("high", "critical")
    allowed = {fault["field"]: fault["allowed"] for fault in refused.value.details["fields"]}
    assert allowed == {"risk_tier": ["high"], "impact_tier": ["critical"]}


def test_a_higher_risk_makes_the_decision_mode_as_careful_as_required(rig: VerifierRig) -> None:
    rig.user.create("cognition", "cg", **WHOLE, unknown_type="multipath")

    amended = rig.user.amend("cognition", "cg", "it names people", risk_tier="high")["object"]

    assert amended["decision_mode"] == "escalate"


def test_an_object_in_a_final_state_cannot_be_amended(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", status="archived")

    with pytest.raises(JobRefused, match="archived is a final state") as refused:
        rig.user.amend("memory", "m", "too late", half_life="P1D")

    assert refused.value.code == "illegal_transition"


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({}, "members"),
        ({"half_life": "soon"}, "half_life"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"status": "active"}, "status"),
        ({"evidence_refs": ["ev_1"]}, "evidence_refs"),
        ({"auto_verify_budget": 9}, "auto_verify_budget"),
    ],
)
def test_fields_that_cannot_be_amended_are_rejected_by_name(
    rig: VerifierRig, members: dict[str, Any], field: str
) -> None:
    rig.user.create("memory", "m")

    with pytest.raises(JobRefused) as refused:
        rig.user.amend("memory", "m", "a test", **members)

    assert [fault["field"] for fault in refused.value.details["fields"]] == [field]


def test_an_amendment_needs_a_user_and_the_current_version(rig: VerifierRig) -> None:
    rig.user.create("memory", "m")
    with pytest.raises(JobRefused, match="named user"):
        governed(rig.scheduler).amend("memory", "m", "by nobody", review_due_at=SOON)

    with pytest.raises(JobRefused) as refused:
        rig.user.amend("memory", "m", "an old view", review_due_at=SOON, version=7)

    assert refused.value.code == "state_conflict"


def test_answers_about_an_object_are_json_and_keep_a_weight_exact(rig: VerifierRig) -> None:
    """Whole numbers are integers, as over HTTP; a fraction is exact, as in payloads."""
    rig.user.create("memory", "plain")
    rig.user.create("memory", "half", impact_weight=0.5)

    assert json.loads(json.dumps(rig.user.show("memory", "plain")))["object"]["impact_weight"] == 0
    assert repr(rig.user.list("memory")["objects"][0]["impact_weight"]) == "Decimal('0.5')"
    assert json.loads(json.dumps(rig.user.show("memory", "half"), default=float))["object"]["impact_weight"] == 0.5
    assert rig.user.amend("memory", "half", "more", impact_weight=Decimal("2.0"))["object"]["impact_weight"] == 2
