"""Limits of uncertainty: a budget of verifications, a time to live, and a lifetime limit for unknowable objects."""

from enum import StrEnum

from msgspec.structs import replace

from pendula.governance.machines import Machine
from pendula.governance.model import CANNOT_BE_KNOWN, Epistemic, Governed, Impact, Mode, Risk
from pendula.jobs.model import VERIFICATIONS
from pendula.jobs.reasons import Unknown


class Entry(StrEnum):
    """Whether the verifier may run."""

    FREE = "free"  # spends nothing: the action is no verification, or the object is not uncertain
    PAID = "paid"
    NO_BUDGET = "no_budget"
    UNKNOWABLE = "unknowable"


def check_entry(subject: Governed, action: str, machine: Machine, ontic_limit: int) -> Entry:
    if action not in VERIFICATIONS or subject.place not in machine.uncertain:
        return Entry.FREE
    if subject.unknown_type is Unknown.ONTIC_UNKNOWABLE and (subject.closed or subject.verifications >= ontic_limit):
        return Entry.UNKNOWABLE
    return Entry.PAID if subject.verify_budget_left > 0 else Entry.NO_BUDGET


def spend(subject: Governed, now: int) -> Governed:
    """Take one unit; store this before the verifier runs."""
    return replace(
        subject,
        verify_budget_left=subject.verify_budget_left - 1,
        verifications=subject.verifications + 1,
        version=subject.version + 1,
        updated_at=now,
    )


def has_uncertainty_ended(subject: Governed, now: int) -> bool:
    """Whether the time to live of its uncertainty has passed."""
    ends = subject.uncertainty_ends
    return ends is None or now >= ends


def needs_a_person(subject: Governed, risk: Risk, impact: Impact) -> bool:
    """Whether to escalate to a person when time and budget are both used up."""
    return (
        risk is Risk.HIGH
        or impact in (Impact.HIGH, Impact.CRITICAL)
        or subject.hard_persona_limit
        or subject.deception_signals > 1
    )


def decision_mode(unknown: Unknown | None, risk: Risk) -> Mode:
    """How to decide while the object is uncertain: high risk escalates, medium risk does not explore."""
    if unknown is Unknown.ONTIC_UNKNOWABLE:
        return Mode.ABSTAIN
    if risk is Risk.HIGH:
        return Mode.ESCALATE
    if risk is Risk.MEDIUM:
        return Mode.CONSERVATIVE
    return Mode.EXPLORE if unknown is Unknown.MULTIPATH else Mode.COLLECT


def allowed_modes(unknown: Unknown | None, risk: Risk) -> tuple[Mode, ...]:
    """The modes a caller may choose: none bolder than the risk allows."""
    if risk is Risk.HIGH:
        return Mode.ESCALATE, Mode.ABSTAIN
    careful = (Mode.CONSERVATIVE, Mode.ESCALATE, Mode.ABSTAIN)
    if risk is Risk.MEDIUM:
        return careful
    return (Mode.EXPLORE, Mode.COLLECT, *careful) if unknown is Unknown.MULTIPATH else (Mode.COLLECT, *careful)


def make_uncertain(subject: Governed, unknown: Unknown | None, risk: Risk, ttl: int, now: int) -> Governed:
    """Start the uncertainty. The remaining budget stays: only new evidence or a person refills it."""
    kind = unknown or subject.unknown_type or Unknown.OUT_OF_SCOPE
    return replace(
        subject,
        unknown_type=kind,
        uncertain_since=now,
        uncertainty_ttl=subject.uncertainty_ttl or ttl,
        decision_mode=decision_mode(kind, risk),
    )


def make_certain(subject: Governed) -> Governed:
    return replace(subject, unknown_type=None, uncertain_since=None, decision_mode=None, closed=None)


def refill(subject: Governed, default: int) -> Governed:
    full = subject.auto_verify_budget
    return replace(subject, verify_budget_left=default if full is None else full)


def close(subject: Governed) -> Governed:
    """End all verification until new evidence makes the object knowable."""
    return replace(subject, closed=CANNOT_BE_KNOWN, decision_mode=Mode.ABSTAIN)


def missing_members(subject: Governed) -> list[str]:
    """The required members that an uncertain cognition lacks."""
    if subject.epistemic != Epistemic.UNCERTAIN:
        return []
    required = ("unknown_type", "uncertainty_ttl", "auto_verify_budget", "decision_mode")
    return [name for name in required if getattr(subject, name) is None]
