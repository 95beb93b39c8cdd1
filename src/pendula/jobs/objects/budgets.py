"""What uncertainty may cost: a budget of verifications, a time to live, and for the unknowable a limit for life."""

from enum import StrEnum

from msgspec.structs import replace

from pendula.jobs.objects.governed import (
    CANNOT_BE_KNOWN,
    VERIFICATIONS,
    Epistemic,
    Governed,
    Impact,
    Mode,
    Risk,
    Unknown,
)
from pendula.jobs.objects.machine import Machine


class Entry(StrEnum):
    """Whether the verifier may be entered."""

    FREE = "free"  # nothing is spent: the action verifies nothing, or the object is not uncertain
    PAID = "paid"
    NO_BUDGET = "no_budget"
    UNKNOWABLE = "unknowable"


def entry(subject: Governed, action: str, machine: Machine, ontic_limit: int) -> Entry:
    if action not in VERIFICATIONS or subject.place not in machine.uncertain:
        return Entry.FREE
    if subject.unknown_type is Unknown.ONTIC_UNKNOWABLE and (subject.closed or subject.verifications >= ontic_limit):
        return Entry.UNKNOWABLE
    return Entry.PAID if subject.verify_budget_left > 0 else Entry.NO_BUDGET


def spent(subject: Governed, now: int) -> Governed:
    """One unit less; to be stored before the verifier is entered, whatever becomes of it."""
    return replace(
        subject,
        verify_budget_left=subject.verify_budget_left - 1,
        verifications=subject.verifications + 1,
        version=subject.version + 1,
        updated_at=now,
    )


def is_over(subject: Governed, now: int) -> bool:
    """Whether its uncertainty has lasted as long as it may."""
    ends = subject.uncertainty_ends
    return ends is None or now >= ends


def needs_a_person(subject: Governed, risk: Risk, impact: Impact) -> bool:
    """Whether somebody is asked when time and budget are both used up."""
    return (
        risk is Risk.HIGH
        or impact in (Impact.HIGH, Impact.CRITICAL)
        or subject.hard_persona_limit
        or subject.deception_signals > 1
    )


def decision_mode(unknown: Unknown | None, risk: Risk) -> Mode:
    """How to decide while it is uncertain: at high risk somebody else does, at medium risk nothing is tried out."""
    if unknown is Unknown.ONTIC_UNKNOWABLE:
        return Mode.ABSTAIN
    if risk is Risk.HIGH:
        return Mode.ESCALATE
    if risk is Risk.MEDIUM:
        return Mode.CONSERVATIVE
    return Mode.EXPLORE if unknown is Unknown.MULTIPATH else Mode.COLLECT


def modes_allowed(unknown: Unknown | None, risk: Risk) -> tuple[Mode, ...]:
    """The ways in which one may choose to decide: never a bolder one than the risk allows."""
    if risk is Risk.HIGH:
        return Mode.ESCALATE, Mode.ABSTAIN
    careful = (Mode.CONSERVATIVE, Mode.ESCALATE, Mode.ABSTAIN)
    if risk is Risk.MEDIUM:
        return careful
    return (Mode.EXPLORE, Mode.COLLECT, *careful) if unknown is Unknown.MULTIPATH else (Mode.COLLECT, *careful)


def made_uncertain(subject: Governed, unknown: Unknown | None, risk: Risk, ttl: int, now: int) -> Governed:
    """From now on uncertain. The budget stays what is left of it: only new evidence or a person refills it."""
    kind = unknown or subject.unknown_type or Unknown.OUT_OF_SCOPE
    return replace(
        subject,
        unknown_type=kind,
        uncertain_since=now,
        uncertainty_ttl=subject.uncertainty_ttl or ttl,
        decision_mode=decision_mode(kind, risk),
    )


def made_certain(subject: Governed) -> Governed:
    return replace(subject, unknown_type=None, uncertain_since=None, decision_mode=None, closed=None)


def refilled(subject: Governed, default: int) -> Governed:
    full = subject.auto_verify_budget
    return replace(subject, verify_budget_left=default if full is None else full)


def closed(subject: Governed) -> Governed:
    """Nobody verifies it any more, until new evidence makes it something that can be known."""
    return replace(subject, closed=CANNOT_BE_KNOWN, decision_mode=Mode.ABSTAIN)


def missing_members(subject: Governed) -> list[str]:
    """What an uncertain cognition has to carry and does not."""
    if subject.epistemic != Epistemic.UNCERTAIN:
        return []
    needed = ("unknown_type", "uncertainty_ttl", "auto_verify_budget", "decision_mode")
    return [name for name in needed if getattr(subject, name) is None]
