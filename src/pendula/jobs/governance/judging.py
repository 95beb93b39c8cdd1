"""What an action on an object is judged by: its machine, the tiers that count, the gates as they are in this moment."""

from collections.abc import Iterable

from pendula.jobs.model import Code, Policy, Refused
from pendula.jobs.objects.endings import Asked
from pendula.jobs.objects.governed import Governed, Impact, Risk
from pendula.jobs.objects.machine import Machine
from pendula.jobs.store.governed_protocol import GovernedReading
from pendula.kernel.canonical import Json

MEMORY_REF = "memory:"
_RISKS, _IMPACTS = list(Risk), list(Impact)


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
    """Those of the object; for an experience the highest of its source memories, and high where there are none."""
    if subject.object_type != "experience":
        return subject.risk_tier, subject.impact_tier
    ids = (ref.removeprefix(MEMORY_REF) for ref in subject.sources if ref.startswith(MEMORY_REF))
    found = [memory for memory in (look.governed("memory", each) for each in ids) if memory is not None]
    if not found:
        return Risk.HIGH, subject.impact_tier
    return _highest_risk(one.risk_tier for one in found), _highest_impact(one.impact_tier for one in found)


def _highest_risk(tiers: Iterable[Risk]) -> Risk:
    return max(tiers, key=_RISKS.index)


def _highest_impact(tiers: Iterable[Impact]) -> Impact:
    return max(tiers, key=_IMPACTS.index)


def unfit_evidence(look: GovernedReading, refs: Iterable[str], risk: Risk) -> str | None:
    """Why a promotion may not rest on these: what is in quarantine proves nothing, what needs review nothing risky."""
    for ref in refs:
        kind, _, name = ref.partition(":")
        source = look.governed(kind, name) if name else None
        if source is None:
            continue
        if source.object_type == "memory" and source.status in ("quarantine", "rejected_poisoned"):
            return f"{ref} is in {source.status} and cannot serve as evidence"
        if source.object_type == "experience" and source.status == "needs_review" and risk is Risk.HIGH:
            return f"{ref} needs review and cannot carry a decision of high risk"
    return None
