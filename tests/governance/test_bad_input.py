"""Invalid input: all faults of a body are reported at once, and nothing changes."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused
from pendula.jobs.upkeep.verification import check
from pendula.kernel.errors import WrongUsage
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import WHOLE, VerifierRig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[VerifierRig]:
    rig = VerifierRig(tmp_path)
    yield rig
    assert check(rig.scheduler.calls.store) == []
    rig.scheduler.close()


def _faults(refused: pytest.ExceptionInfo[JobRefused]) -> list[tuple[str, str]]:
    return [(fault["field"], fault["code"]) for fault in refused.value.details["fields"]]


@pytest.mark.req("JOB-SM-12", "JOB-ENQ-7")
@pytest.mark.parametrize(
    ("members", "faults"),
    [
        ({"expires_at": "2026-02-20T11:59:59Z"}, [("expires_at", "invalid_field")]),
        ({"expires_at": "2026-02-30T00:00:00Z"}, [("expires_at", "invalid_timestamp")]),
        ({"last_accessed_at": "2027-01-01T00:00:00Z"}, [("last_accessed_at", "invalid_field")]),
        ({"review_due_at": "9999-12-31T24:00:00Z"}, [("review_due_at", "invalid_timestamp")]),
        ({"review_interval": "P999999W"}, [("review_interval", "invalid_field")]),
        ({"half_life": "PT0S"}, [("half_life", "invalid_field")]),
        ({"uncertainty_ttl": "P1M"}, [("uncertainty_ttl", "invalid_field")]),
        ({"auto_verify_budget": 10**30}, [("auto_verify_budget", "invalid_field")]),
        ({"auto_verify_budget": -1}, [("auto_verify_budget", "invalid_field")]),
        ({"auto_verify_budget": True}, [("auto_verify_budget", "invalid_field")]),
        ({"impact_weight": float("nan")}, [("impact_weight", "invalid_field")]),
        ({"impact_weight": float("inf")}, [("impact_weight", "invalid_field")]),
        ({"impact_weight": Decimal("0." + "1" * 10_000)}, [("impact_weight", "invalid_field")]),
        ({"evidence_refs": ["a\x00b"]}, [("evidence_refs", "invalid_field")]),
        ({"evidence_refs": [""]}, [("evidence_refs", "invalid_field")]),
        ({"evidence_refs": "ev_1"}, [("evidence_refs", "invalid_field")]),
        ({"status": "asleep"}, [("status", "invalid_enum")]),
        ({"risk_tier": "HIGH"}, [("risk_tier", "invalid_enum")]),
        ({"colour": "red"}, [("colour", "unknown_field")]),
        (
            {"risk_tier": "none", "half_life": "soon", "expires_at": "2020-01-01T00:00:00Z", "colour": 1},
            [
                ("colour", "unknown_field"),
                ("risk_tier", "invalid_enum"),
                ("expires_at", "invalid_field"),
                ("half_life", "invalid_field"),
            ],
        ),
    ],
)
def test_an_invalid_object_is_rejected_with_all_its_faults(rig: VerifierRig, members: Any, faults: Any) -> None:
    with pytest.raises(JobRefused) as refused:
        rig.user.create("memory", "m", **members)

    assert _faults(refused) == faults
    assert rig.scheduler.list().jobs == []


@pytest.mark.req("JOB-SM-12")
@pytest.mark.parametrize("missing", ["falsify_if", "review_interval", "expires_at"])
def test_a_cognition_cannot_be_created_active_without_its_required_fields(rig: VerifierRig, missing: str) -> None:
    with pytest.raises(JobRefused) as refused:
        rig.user.create("cognition", "cg", status="active", **{k: v for k, v in WHOLE.items() if k != missing})

    assert _faults(refused)[0][1] == "missing_field"


@pytest.mark.req("JOB-GATE-11")
@pytest.mark.parametrize(
    ("tier", "mode"), [("medium", "explore"), ("medium", "collect"), ("high", "conservative"), ("low", "explore")]
)
def test_a_mode_bolder_than_the_risk_allows_is_rejected(rig: VerifierRig, tier: str, mode: str) -> None:
    with pytest.raises(JobRefused) as refused:
        rig.user.create("cognition", "cg", **WHOLE, risk_tier=tier, decision_mode=mode, unknown_type="out_of_scope")

    assert _faults(refused) == [("decision_mode", "invalid_enum")]


@pytest.mark.req("JOB-GATE-11", "JOB-GATE-12")
@pytest.mark.parametrize("member", [{"unknown_type": "ontic_unknowable"}, {"decision_mode": "explore"}])
@pytest.mark.parametrize(
    ("kind", "status"), [("memory", "candidate"), ("cognition", "active"), ("experience", "active")]
)
def test_an_object_that_is_not_uncertain_has_no_unknown_type(
    rig: VerifierRig, kind: str, status: str, member: dict[str, str]
) -> None:
    with pytest.raises(JobRefused) as refused:
        rig.user.create(kind, "m", **WHOLE, status=status, **member)

    assert _faults(refused) == [(name, "invalid_field") for name in member]


@pytest.mark.req("JOB-OBJ-5")
@pytest.mark.parametrize("name", ["a/b", "a:b", "ä-漢-🦆", "*", "' OR 1=1 --", "x" * 512])
def test_an_unusual_name_is_accepted(rig: VerifierRig, name: str) -> None:
    rig.user.create("memory", name, evidence_refs=["ev_1"], risk_tier="high")
    rig.open_gates()
    rig.user.set_gate("risk_gate", "block", "under inquiry", scope=f"memory:{name}")

    assert rig.begun(rig.pulled(1))["job"]["last_error"] == "gate_blocked: risk_gate"


@pytest.mark.req("JOB-OBJ-5")
@pytest.mark.parametrize("name", ["", " a", "a\n", "a\x00", "\ud800", "x" * 513, 7])
def test_an_invalid_name_is_rejected(rig: VerifierRig, name: Any) -> None:
    with pytest.raises(JobRefused) as refused:
        rig.user.create("memory", name)

    assert _faults(refused) == [("object_id", "invalid_field")]


@pytest.mark.req("JOB-GATE-3", "JOB-AUD-2")
@pytest.mark.parametrize(
    ("gate", "verdict", "scope", "field"),
    [
        ("mood_gate", "pass", "*", "gate"),
        ("risk_gate", "override", "*", "verdict"),
        ("risk_gate", "PASS", "*", "verdict"),
        ("risk_gate", "pass", "planet:mars", "scope"),
        ("risk_gate", "pass", "memory:", "scope"),
        ("risk_gate", "pass", "memory", "scope"),
        ("risk_gate", "pass", "memory: m", "scope"),
    ],
)
def test_an_invalid_gate_is_rejected(rig: VerifierRig, gate: str, verdict: str, scope: str, field: str) -> None:
    with pytest.raises(JobRefused) as refused:
        rig.user.set_gate(gate, verdict, "for a test", scope=scope)

    assert [name for name, _ in _faults(refused)] == [field]
    assert governed(rig.scheduler).gates()["gates"] == []


def test_gates_are_listed_in_pages_with_global_gates_first(rig: VerifierRig) -> None:
    scopes = ["*", "memory:a", "memory:a b", "memory:b"]
    for scope in reversed(scopes):
        for gate in ("social_gate", "risk_gate"):
            rig.user.set_gate(gate, "pass", "for a test", scope=scope)
    first = governed(rig.scheduler).gates(limit=3)
    second = governed(rig.scheduler).gates(limit=3, after=first["next_after"])
    third = governed(rig.scheduler).gates(limit=3, after=second["next_after"])
    seen = [(one["scope"], one["gate"]) for page in (first, second, third) for one in page["gates"]]

    assert seen == [(scope, gate) for scope in scopes for gate in ("risk_gate", "social_gate")]
    assert [len(first["gates"]), len(second["gates"]), third["next_after"]] == [3, 3, None]
    own = governed(rig.scheduler).gates(scope="memory:a b", limit=3)
    assert [one["scope"] for one in own["gates"]] == ["*", "*", "memory:a b"]
    assert own["next_after"] == "memory:a b risk_gate"


@pytest.mark.req("JOB-GATE-1")
def test_a_gate_can_be_set_for_an_object_that_does_not_exist_yet(rig: VerifierRig) -> None:
    rig.open_gates()
    rig.user.set_gate("risk_gate", "block", "before it is there", scope="memory:later")
    rig.user.create("memory", "later", risk_tier="high", evidence_refs=["ev_1"])

    assert rig.begun(rig.pulled(1))["outcome"] == "gate_blocked"


@pytest.mark.req("JOB-GATE-4")
@pytest.mark.parametrize("who", ["system", "nobody"])
def test_an_override_without_a_user_is_rejected(rig: VerifierRig, who: str) -> None:
    caller = governed(rig.scheduler) if who == "system" else governed(rig.scheduler).as_user("")

    with pytest.raises(JobRefused, match="named user"):
        caller.set_gate("persona_conflict_gate", "override", "because")


@pytest.mark.req("JOB-SM-3")
def test_a_person_cannot_decide_on_an_unknown_action(rig: VerifierRig) -> None:
    rig.user.create("memory", "m")

    with pytest.raises(JobRefused) as refused:
        rig.user.decide("memory", "m", "forget", "passed", reason="why not")

    assert _faults(refused) == [("action", "invalid_enum")]


@pytest.mark.req("JOB-WRK-9")
def test_a_job_about_an_unknown_object_is_rejected_at_begin(rig: VerifierRig) -> None:
    rig.scheduler.enqueue(object_type="memory", object_id="unknown", action="verify")

    with pytest.raises(JobRefused) as refused:
        rig.begun(rig.pulled())

    assert refused.value.code == "object_not_found"


def test_a_misspelt_finding_of_a_person_is_rejected_with_the_allowed_ones(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])

    with pytest.raises(JobRefused) as refused:
        rig.user.decide("memory", "m", "verify", "passd", reason="read it")

    [fault] = refused.value.details["fields"]
    assert (fault["field"], fault["code"]) == ("finding", "invalid_enum")
    assert fault["allowed"] == ["forged", "passed", "suspicious"]


def test_a_misspelt_finding_of_a_verifier_is_a_noop_with_the_allowed_ones(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", evidence_refs=["ev_1"])

    ended = rig.verified("passd", days=1)

    assert ended["outcome"] == "noop"
    assert ended["reason"].endswith("verify of a memory knows no finding passd")


def test_a_rejection_does_not_repeat_its_code(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", status="rejected_poisoned")

    with pytest.raises(JobRefused) as refused:
        rig.user.decide("memory", "m", "verify", "passed", reason="so beautiful", evidence_refs=["ev_1"])

    assert refused.value.code == "illegal_transition"
    assert refused.value.message == "verify on rejected_poisoned: a memory found forged never comes back"


def test_too_little_evidence_is_explained_in_plain_words(rig: VerifierRig) -> None:
    rig.user.create("memory", "m")

    decided = rig.user.decide("memory", "m", "verify", "passed", reason="well known")

    assert decided["reason"] == "well known; it needs 1 reference as evidence and has fewer"


def test_a_missing_user_name_is_rejected_with_the_ways_to_give_one(rig: VerifierRig) -> None:
    rig.user.create("memory", "m")

    with pytest.raises(JobRefused, match="name one with a token, in X-Pendula-User, as_user"):
        governed(rig.scheduler).refill("memory", "m", "by nobody")


@pytest.mark.parametrize("name", [" ", "mia ", "mi\na", "\ud800", "x" * 129])
def test_a_user_that_cannot_be_recorded_is_rejected(rig: VerifierRig, name: str) -> None:
    with pytest.raises(WrongUsage, match="1 to 128 printable characters"):
        governed(rig.scheduler).as_user(name)
