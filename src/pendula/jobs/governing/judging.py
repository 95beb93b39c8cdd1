"""What an action on an object is judged by: its machine, the tiers that count, the gates as they are in this moment."""

from collections.abc import Iterable

from pendula.jobs.model import Code, Policy, Refused
from pendula.jobs.objects.endings import Asked, Ending
from pendula.jobs.objects.gates import is_high_risk
from pendula.jobs.objects.governed import Governed, Impact, Risk
from pendula.jobs.objects.machine import Machine
from pendula.jobs.objects.reasons import Reason
from pendula.jobs.objects.tiers import tiers as the_tiers
from pendula.jobs.request_reading import Faults
from pendula.jobs.store.governed_protocol import GovernedReading
from pendula.kernel.canonical import Json

EVIDENCE_MOST = 1000
# What is under inquiry or was found forged proves nothing; what was set aside takes no part in a promotion.
_NO_EVIDENCE = frozenset(
    {("memory", "quarantine"), ("memory", "rejected_poisoned"), ("memory", "stale_uncertain")}
    | {("cognition", "stale/uncertain"), ("cognition", "refuted/refuted"), ("experience", "invalidated")}
)


def machine_of(policy: Policy, object_type: str) -> Machine | Refused:
    machine = policy.machines.get(object_type)
    if machine is not None:
        return machine
    known: list[Json] = [*sorted(policy.machines)]
    message = f"there is no state machine for {object_type}; there are some for {', '.join(sorted(policy.machines))}"
    details: dict[str, Json] = {
        "object_type": object_type,
        "fields": [{"field": "object_type", "code": Code.INVALID_ENUM.value, "allowed": known}],
    }
    return Refused(Code.INVALID_ENUM, message, details)


def no_object(object_type: str, object_id: str) -> Refused:
    details: dict[str, Json] = {"object_type": object_type, "object_id": object_id}
    return Refused(Code.OBJECT_NOT_FOUND, f"no governed object {object_type} {object_id}", details)


def user_required(what: str, details: dict[str, Json]) -> Refused:
    how = "with a token, in X-Pendula-User, as_user(…) or --user"
    return Refused(Code.USER_REQUIRED, f"only a named user may {what}; say who you are, {how}", details)


def question(
    look: GovernedReading, subject: Governed, action: str, policy: Policy, now: int, *, deferrals: int = 0
) -> Asked:
    """The action with all that it is judged by, read in the transaction that will write."""
    risk, impact = tiers(look, subject)
    return Asked(
        action=action,
        now=now,
        risk=risk,
        impact=impact,
        gates=look.gates(subject.ref),
        limits=policy.limits,
        deferrals=deferrals,
    )


def tiers(look: GovernedReading, subject: Governed) -> tuple[Risk, Impact]:
    """The tiers that count, with the memories as they are in this moment."""
    return the_tiers(subject, lambda memory: look.governed("memory", memory))


def overladen(subject: Governed, refs: Iterable[str]) -> Refused | None:
    """Why the object takes no more references. The trail tells all of them with each that comes, and a promotion looks
    at every one: without an end the one would grow with the square of their number, and the other hold up everybody."""
    held = set(subject.evidence)
    together = len(held | set(refs))
    if together <= max(EVIDENCE_MOST, len(held)):
        return None
    faults = Faults()
    allowed = f"an object carries at most {EVIDENCE_MOST} references; this one has {len(held)}"
    faults.add("evidence_refs", Code.INVALID_FIELD, allowed=allowed)
    return faults.refusal(f"{subject.ref} would carry {together} references; {EVIDENCE_MOST} are the most")


def is_promotion(before: Governed, ending: Ending, machine: Machine) -> bool:
    """Whether the object would be trusted more than before."""
    after = ending.subject
    return after.place != before.place and machine.trust[after.place] > machine.trust[before.place]


def unfit_evidence(look: GovernedReading, subject: Governed, said: Iterable[str], asked: Asked) -> Reason | None:
    """Why a promotion may not rest on what the object carries and what was said for it.

    A reference that names no governed object is taken at its word: evidence may lie anywhere.
    """
    is_risky = is_high_risk(asked.risk, asked.impact)
    for ref in dict.fromkeys((*said, *subject.evidence, *subject.sources)):
        kind, _, name = ref.partition(":")
        source = look.governed(kind, name) if name else None
        if source is not None and (wrong := _unfit(source, ref, is_risky=is_risky)) is not None:
            return wrong
    return None


def _unfit(source: Governed, ref: str, *, is_risky: bool) -> Reason | None:
    where = (source.object_type, source.place)
    if where in _NO_EVIDENCE:
        return Reason("evidence_unfit", {"ref": ref, "place": source.place})
    if where == ("experience", "needs_review") and is_risky:
        return Reason("evidence_under_review", {"ref": ref})
    return None
