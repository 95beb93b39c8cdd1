"""Effects of an action on an object: gates, budget, verifier and change, in this order."""

from typing import Any

import pytest
from msgspec.structs import replace

from pendula.governance.decisions import ActionContext, Ending, Executed, How, Outcome, conclude, enter, settle_verdict
from pendula.governance.machines import COGNITION, EXPERIENCE, MEMORY, Machine
from pendula.governance.model import DAY_US, Governed, Impact, Mode, Risk
from pendula.jobs.reasons import Unknown, Verdict
from pendula.jobs.sentences import sentence_of
from tests.governance.governed_objects import NOW, context, gates, governed

INCONCLUSIVE = Verdict("inconclusive", "nothing new", ("ev_2",))
PASSED = Verdict("passed", "the evidence holds", ("ev_2",))


def _doubted(**members: Any) -> Governed:
    return governed("cognition", "needs_revalidate/uncertain", **members)


def _risky(action: str, now: int = NOW, **verdicts: str) -> ActionContext:
    return context(action, risk=Risk.HIGH, gates=gates(**verdicts), now=now)


def _entered(subject: Governed, question: ActionContext) -> Governed:
    entered = enter(subject, COGNITION, question)
    assert isinstance(entered, Governed), entered
    return entered


def _refused(subject: Governed, question: ActionContext) -> Ending:
    ending = enter(subject, COGNITION, question)
    assert isinstance(ending, Ending), ending
    return ending


@pytest.mark.req("JOB-GATE-6", "JOB-GATE-7", "JOB-GATE-9")
def test_an_object_goes_stale_after_two_inconclusive_verifications() -> None:
    subject = _doubted()
    for left in (1, 0):
        subject = _entered(subject, context("revalidate"))
        assert subject.verify_budget_left == left
        subject = conclude(subject, COGNITION, context("revalidate"), INCONCLUSIVE).subject
    assert (subject.next_action, subject.next_action_at) == ("revalidate", NOW + 7 * DAY_US)

    early = _refused(subject, context("revalidate", now=NOW + 6 * DAY_US))
    assert (early.outcome, early.subject.next_action_at) == (Outcome.BUDGET_EXHAUSTED, NOW + 7 * DAY_US)

    end = _refused(subject, context("revalidate", now=NOW + 7 * DAY_US))
    assert (end.how, end.outcome, end.subject.place) == (How.ACK, Outcome.BUDGET_EXHAUSTED, "stale/uncertain")
    assert end.subject.decision_mode is Mode.CONSERVATIVE
    assert end.subject.verifications == 2
    assert end.escalation is None


@pytest.mark.req("JOB-GATE-10")
@pytest.mark.parametrize(
    ("members", "question", "is_asked"),
    [
        ({}, {}, False),
        ({"deception_signals": 1}, {}, False),
        ({"deception_signals": 2}, {}, True),
        ({"hard_persona_limit": True}, {}, True),
        ({}, {"impact": Impact.HIGH}, True),
        ({}, {"risk": Risk.MEDIUM}, False),
    ],
)
def test_only_risky_objects_are_escalated_to_a_person(members: Any, question: Any, is_asked: bool) -> None:
    spent = _doubted(verify_budget_left=0, **members)
    ending = _refused(spent, context("revalidate", now=NOW + 8 * DAY_US, **question))

    assert (ending.escalation is not None) == is_asked


@pytest.mark.req("JOB-GATE-12", "JOB-GATE-13")
def test_an_unknowable_object_is_verified_once_and_closed() -> None:
    subject = _entered(_doubted(unknown_type=Unknown.ONTIC_UNKNOWABLE), context("verify"))
    ending = conclude(subject, COGNITION, context("verify"), INCONCLUSIVE)

    assert (ending.outcome, ending.closes) == (Outcome.CLOSED, True)
    assert (ending.subject.place, ending.subject.closed) == ("stale/uncertain", "cannot be known")
    assert ending.subject.decision_mode is Mode.ABSTAIN


@pytest.mark.req("JOB-GATE-12", "JOB-GATE-13")
def test_a_retry_does_not_enter_a_verifier_that_raised() -> None:
    subject = _entered(_doubted(unknown_type=Unknown.ONTIC_UNKNOWABLE, verify_budget_left=50), context("verify"))
    ending = _refused(subject, context("verify"))

    assert (ending.how, ending.outcome, ending.subject.verifications) == (How.ACK, Outcome.CLOSED, 1)


@pytest.mark.req("JOB-GATE-12")
def test_the_lower_of_the_two_limits_counts() -> None:
    broke = _doubted(unknown_type=Unknown.ONTIC_UNKNOWABLE, verify_budget_left=0)

    assert _refused(broke, context("verify")).outcome is Outcome.BUDGET_EXHAUSTED


@pytest.mark.req("JOB-GATE-13")
def test_only_evidence_that_makes_it_knowable_reopens_a_closed_object() -> None:
    closed = governed(
        "cognition", "stale/uncertain", unknown_type=Unknown.ONTIC_UNKNOWABLE, closed="cannot be known", verifications=1
    )
    same = Verdict("new_evidence", "more of the same", ("ev_3",))
    other = replace(same, unknown_type=Unknown.OUT_OF_SCOPE)

    assert conclude(closed, COGNITION, context("reinstate-check"), same).outcome is Outcome.NOOP
    reopened = conclude(closed, COGNITION, context("reinstate-check"), other)
    assert (reopened.outcome, reopened.subject.closed) == (Outcome.TRANSITIONED, None)


@pytest.mark.req("JOB-SM-6", "JOB-GATE-8")
def test_reinstatement_resets_the_dates_and_refills_the_budget() -> None:
    stale = governed("cognition", "stale/uncertain", stale_since=NOW - DAY_US, verify_budget_left=0)
    after = conclude(stale, COGNITION, context("reinstate-check"), Verdict("new_evidence", "found", ("ev_3",))).subject

    assert (after.place, after.verify_budget_left, after.reinforcement_count) == ("active/supported", 2, 1)
    assert (after.last_reinforced_at, after.review_due_at, after.stale_since) == (NOW, NOW + 7 * DAY_US, None)
    assert (after.next_action, after.next_action_at) == ("revalidate", NOW + 7 * DAY_US)
    assert after.evidence == ("ev_1", "ev_3")


@pytest.mark.req("JOB-SM-6")
def test_stale_since_and_last_verified_at_are_set() -> None:
    faded = conclude(governed("memory", "active"), MEMORY, context("decay"), Verdict("faded", "unused")).subject
    verified = conclude(governed("memory", "candidate"), MEMORY, context("verify"), PASSED).subject

    assert (faded.stale_since, faded.last_verified_at) == (NOW, None)
    assert (verified.stale_since, verified.last_verified_at) == (None, NOW)


@pytest.mark.req("JOB-GATE-8")
def test_becoming_uncertain_again_does_not_refill_the_budget() -> None:
    sure = governed("cognition", "active/supported", verify_budget_left=0, auto_verify_budget=2)
    after = conclude(sure, COGNITION, context("revalidate"), Verdict("conflict", "they differ", ("ev_3",))).subject

    assert (after.place, after.verify_budget_left, after.uncertain_since) == ("needs_revalidate/uncertain", 0, NOW)


@pytest.mark.req("JOB-SM-12")
@pytest.mark.parametrize("missing", ["unknown_type", "uncertainty_ttl", "auto_verify_budget", "decision_mode"])
def test_an_uncertain_cognition_has_the_fields_that_uncertainty_needs(missing: str) -> None:
    ending = _refused(_doubted(**{missing: None}), context("revalidate"))

    assert (ending.how, ending.error) == (How.FAIL, f"object_incomplete: {missing}")


@pytest.mark.req("JOB-GATE-4")
@pytest.mark.parametrize("step", ["before", "after"])
def test_a_blocking_gate_stops_the_job_before_and_after_the_verifier(step: str) -> None:
    subject = governed("memory", "candidate")
    question = _risky("verify", persona_conflict_gate="block")
    ending = enter(subject, MEMORY, question) if step == "before" else conclude(subject, MEMORY, question, PASSED)

    assert isinstance(ending, Ending)
    assert (ending.how, ending.error) == (How.FAIL, "gate_blocked: persona_conflict_gate")
    assert (ending.executed, ending.subject) == (Executed.BLOCKED, subject)
    assert ending.escalation is not None


@pytest.mark.req("JOB-GATE-4")
def test_a_deferred_job_returns_in_an_hour_and_is_blocked_after_ten_deferrals() -> None:
    question = _risky("verify", social_gate="defer")
    first = enter(governed("memory", "candidate"), MEMORY, replace(question, deferrals=9))
    last = enter(governed("memory", "candidate"), MEMORY, replace(question, deferrals=10))

    assert isinstance(first, Ending)
    assert isinstance(last, Ending)
    assert (first.how, first.retry_at) == (How.DEFER, NOW + 3_600_000_000)
    assert (last.how, last.error) == (How.FAIL, "gate_blocked: social_gate")


@pytest.mark.req("JOB-GATE-4", "JOB-GATE-5")
def test_a_limiting_gate_lets_trust_fall_but_not_rise() -> None:
    question = _risky("verify", risk_gate="limit")
    risen = conclude(governed("memory", "candidate"), MEMORY, question, PASSED)
    sunk = conclude(governed("memory", "candidate"), MEMORY, question, Verdict("suspicious", "odd source"))

    assert (risen.outcome, risen.executed) == (Outcome.NOOP, Executed.LIMITED)
    assert (sunk.outcome, sunk.subject.place, sunk.executed) == (
        Outcome.TRANSITIONED,
        "quarantine",
        Executed.LIMITED,
    )


@pytest.mark.req("JOB-GATE-3")
def test_an_unreadable_gate_is_retried() -> None:
    ending = enter(governed("memory", "candidate"), MEMORY, context("verify", risk=Risk.HIGH))

    assert isinstance(ending, Ending)
    assert (ending.how, ending.error) == (How.RETRY, "gate_unavailable: cognition_gate")


@pytest.mark.req("JOB-GATE-5")
def test_no_job_promotes_an_uncertain_object_of_high_risk_but_a_person_may() -> None:
    by_job = conclude(_doubted(), COGNITION, _risky("verify"), PASSED)
    by_person = conclude(_doubted(), COGNITION, replace(_risky("verify"), automatic=False), PASSED)

    assert (by_job.outcome, by_job.executed, by_job.subject.status) == (
        Outcome.NOOP,
        Executed.ESCALATED,
        "needs_revalidate",
    )
    assert by_person.subject.place == "active/supported"


@pytest.mark.req("JOB-GATE-1")
def test_no_gate_is_evaluated_at_low_risk() -> None:
    ending = conclude(governed("memory", "candidate"), MEMORY, context("verify"), PASSED)

    assert (ending.outcome, ending.reading, ending.executed) == (Outcome.TRANSITIONED, None, None)


@pytest.mark.req("JOB-SM-9")
@pytest.mark.parametrize(("verdict", "place"), [("pass", "active"), ("block", "candidate")])
def test_an_experience_becomes_active_only_through_the_persona_gate(verdict: str, place: str) -> None:
    question = context("verify", gates=gates(persona_conflict_gate=verdict))

    assert conclude(governed("experience", "candidate"), EXPERIENCE, question, PASSED).subject.place == place


@pytest.mark.req("JOB-SM-5")
def test_too_few_references_do_not_pass() -> None:
    bare = governed("experience", "candidate", evidence=())
    ending = conclude(bare, EXPERIENCE, context("verify", gates=gates()), Verdict("passed", "it looks right"))

    assert ending.subject.place == "needs_review"


@pytest.mark.req("JOB-SM-15")
@pytest.mark.parametrize(
    ("place", "verdict", "asks"),
    [("quarantine", "forged", True), ("quarantine", "passed", False)],
)
def test_a_forged_memory_asks_for_a_rollback_and_waits_for_it(place: str, verdict: str, asks: bool) -> None:
    ending = conclude(governed("memory", place), MEMORY, context("verify"), Verdict(verdict, "inquiry", ("ev_2",)))

    assert (ending.rollback, ending.subject.rollback_pending) == (asks, asks)
    if asks:
        waiting = settle_verdict(ending.subject, MEMORY, context("archive"))
        finished = settle_verdict(replace(ending.subject, rollback_pending=False), MEMORY, context("archive"))
        assert (waiting.finding, finished.finding) == ("inconclusive", "rolled_back")


@pytest.mark.req("JOB-SM-14")
@pytest.mark.parametrize(
    ("kind", "place", "members", "action", "days"),
    [
        ("memory", "verified", {}, "decay", 14),
        ("memory", "active", {}, "decay", 7),
        ("memory", "stale", {}, "revalidate", 3),
        ("memory", "stale_uncertain", {}, "reinstate-check", 7),
        ("memory", "stale_uncertain", {"expires_at": NOW + 2 * DAY_US}, "archive", 2),
        ("experience", "active", {"review_interval": None}, "decay", 14),
        ("experience", "needs_review", {}, "revalidate", 7),
        ("cognition", "needs_revalidate/uncertain", {}, "revalidate", 1),
        ("cognition", "needs_revalidate/uncertain", {"verify_budget_left": 0}, "revalidate", 7),
        ("cognition", "needs_revalidate/uncertain", {"uncertainty_ttl": DAY_US // 2}, "revalidate", 0.5),
        ("cognition", "stale/uncertain", {}, "reinstate-check", 7),
        ("cognition", "stale/uncertain", {"expires_at": NOW + DAY_US}, "archive", 1),
    ],
)
def test_the_next_action_and_its_date_follow_the_state(
    kind: str, place: str, members: Any, action: str, days: float
) -> None:
    machine = {"memory": MEMORY, "experience": EXPERIENCE, "cognition": COGNITION}[kind]
    after = conclude(governed(kind, place, **members), machine, context("none of these"), INCONCLUSIVE).subject

    assert (after.next_action, after.next_action_at) == (action, NOW + int(days * DAY_US))


@pytest.mark.req("JOB-SM-14")
def test_an_archived_object_has_no_date() -> None:
    stale = governed("memory", "stale", expires_at=NOW)
    ending = conclude(stale, MEMORY, context("archive"), settle_verdict(stale, MEMORY, context("archive")))

    assert (ending.subject.place, ending.subject.next_action, ending.subject.next_action_at) == ("archived", None, None)


@pytest.mark.req("JOB-GATE-5")
def test_at_high_risk_an_uncertain_object_never_counts_as_executed() -> None:
    lowered = conclude(_doubted(), COGNITION, _risky("verify"), Verdict("refuted", "a counter-example", ("ev_2",)))
    by_person = conclude(_doubted(), COGNITION, replace(_risky("verify"), automatic=False), PASSED)

    assert (lowered.subject.place, lowered.executed) == ("refuted/refuted", Executed.LIMITED)
    assert by_person.executed is Executed.ESCALATED


@pytest.mark.req("JOB-SM-15", "JOB-SM-11")
@pytest.mark.parametrize(
    ("subject", "action", "finding"),
    [
        (governed("memory", "rejected_poisoned", rollback_pending=True), "archive", "rolled_back"),
        (governed("cognition", "needs_revalidate/uncertain"), "verify", "exhausted"),
        (governed("cognition", "needs_revalidate/uncertain", verify_budget_left=0), "verify", "exhausted"),
    ],
)
def test_findings_that_the_object_computes_are_rejected_from_callers(
    subject: Governed, action: str, finding: str
) -> None:
    machine = MEMORY if subject.object_type == "memory" else COGNITION
    ending = conclude(subject, machine, context(action), Verdict(finding, "I say so", ("ev_2",)))

    assert (ending.outcome, ending.subject.place) == (Outcome.NOOP, subject.place)


@pytest.mark.req("JOB-SM-5")
def test_new_evidence_without_a_reference_reinstates_nothing() -> None:
    bare = governed("memory", "stale", evidence=())
    ending = conclude(bare, MEMORY, context("reinstate-check"), Verdict("new_evidence", "trust me"))

    assert (ending.outcome, ending.subject.place) == (Outcome.NOOP, "stale")


@pytest.mark.req("JOB-SM-11", "JOB-ACK-4")
@pytest.mark.parametrize("finding", ["inconclusive", "insufficient", "suspicious"])
def test_an_overdue_review_that_does_not_pass_has_failed(finding: str) -> None:
    overdue = governed("cognition", "active/supported", review_due_at=NOW - 1)
    ending = conclude(overdue, COGNITION, context("revalidate"), Verdict(finding, "hm", ("ev_2",)))

    assert ending.subject.place == "needs_revalidate/uncertain"
    assert ending.subject.next_action_at is not None
    assert ending.subject.next_action_at > NOW


@pytest.mark.req("JOB-ACK-4", "JOB-SM-3")
def test_a_noop_is_not_due_again_at_once() -> None:
    expired = governed("memory", "stale", expires_at=NOW - 1)
    ending = conclude(expired, MEMORY, context("archive"), Verdict("inconclusive", "I would keep it"))

    assert (ending.subject.next_action, ending.subject.next_action_at) == ("archive", NOW + DAY_US)


@pytest.mark.req("JOB-SM-6")
@pytest.mark.parametrize(
    ("subject", "machine"),
    [
        (governed("memory", "active"), MEMORY),
        (
            governed("cognition", "candidate/uncertain", unknown_type=Unknown.ONTIC_UNKNOWABLE, verifications=1),
            COGNITION,
        ),
    ],
)
def test_an_object_that_was_not_verified_has_no_new_last_verified_at(subject: Governed, machine: Machine) -> None:
    ending = enter(subject, machine, context("verify"))

    assert isinstance(ending, Ending)
    assert ending.subject.last_verified_at is None


@pytest.mark.req("JOB-GATE-13")
def test_a_verification_of_a_closed_object_fails_permanently() -> None:
    unknowable = {"unknown_type": Unknown.ONTIC_UNKNOWABLE, "verifications": 1, "closed": "cannot be known"}
    late = _refused(governed("cognition", "stale/uncertain", **unknowable), context("verify"))

    assert (late.how, late.error, late.closes) == (How.FAIL, "ontic_limit_reached", False)


@pytest.mark.req("JOB-GATE-11", "JOB-GATE-1")
@pytest.mark.parametrize(
    ("question", "mode"),
    [
        ({}, Mode.EXPLORE),
        ({"risk": Risk.MEDIUM}, Mode.CONSERVATIVE),
        ({"risk": Risk.HIGH, "gates": gates()}, Mode.ESCALATE),
        ({"impact": Impact.CRITICAL, "gates": gates()}, Mode.ESCALATE),
    ],
)
def test_only_low_risk_objects_are_explored(question: Any, mode: Mode) -> None:
    sure = governed("cognition", "active/supported")
    several = Verdict("conflict", "two ways to see it", ("ev_2",), Unknown.MULTIPATH)

    assert conclude(sure, COGNITION, context("revalidate", **question), several).subject.decision_mode is mode


@pytest.mark.req("JOB-GATE-9", "JOB-GATE-13")
@pytest.mark.parametrize("finding", ["passed", "inconclusive"])
def test_an_unknowable_object_is_closed_only_by_what_sets_it_aside(finding: str) -> None:
    spent = _doubted(unknown_type=Unknown.ONTIC_UNKNOWABLE, verifications=1)
    aged = conclude(spent, COGNITION, context("decay"), Verdict(finding, "looked at in passing"))
    verified = conclude(spent, COGNITION, context("verify"), INCONCLUSIVE)

    assert (aged.outcome, aged.subject.closed, aged.subject.next_action) == (Outcome.NOOP, None, "revalidate")
    assert (verified.outcome, verified.subject.place) == (Outcome.CLOSED, "stale/uncertain")


@pytest.mark.req("JOB-GATE-13")
def test_a_passed_finding_does_not_count_as_a_review_of_a_closed_object() -> None:
    subject = governed(
        "memory", "stale_uncertain", unknown_type=Unknown.ONTIC_UNKNOWABLE, verifications=1, review_interval=DAY_US
    )
    subject = replace(subject, review_due_at=NOW + 9)
    ending = conclude(subject, MEMORY, context("revalidate"), PASSED)

    assert (ending.outcome, ending.subject.review_due_at) == (Outcome.CLOSED, NOW + 9)


@pytest.mark.req("JOB-GATE-5")
@pytest.mark.parametrize(("automatic", "place"), [(True, "stale_uncertain"), (False, "active")])
def test_at_high_risk_only_a_person_promotes_a_memory_set_aside_as_uncertain(automatic: bool, place: str) -> None:
    question = replace(_risky("reinstate-check"), automatic=automatic)
    letter = Verdict("new_evidence", "a letter", ("ev_9",))
    ending = conclude(governed("memory", "stale_uncertain"), MEMORY, question, letter)

    assert (ending.subject.place, ending.executed) == (place, Executed.ESCALATED)
    assert (ending.escalation is not None) is automatic


@pytest.mark.req("JOB-SM-2")
def test_a_state_can_require_evidence_by_its_public_name() -> None:
    machine = replace(MEMORY, needs={"quarantine": ("source_refs", "evidence_refs|expires_at")})
    bare = replace(governed("memory", "candidate"), evidence=(), sources=(), expires_at=None)
    ending = conclude(bare, machine, context("verify"), Verdict("suspicious", "odd"))

    assert (ending.outcome, sentence_of(ending.reason)) == (
        Outcome.ILLEGAL,
        "quarantine needs source_refs, evidence_refs or expires_at",
    )
    whole = replace(bare, sources=("memory:m",), evidence=("ev_1",))
    assert conclude(whole, machine, context("verify"), Verdict("suspicious", "odd")).outcome is Outcome.TRANSITIONED
