"""The inputs of a decision about an object: its machine, effective tiers, current gates and evidence."""

from collections.abc import Iterable, Mapping

from pendula.governance.decisions import ActionContext, Ending, Limits
from pendula.governance.gates import is_high_risk
from pendula.governance.machines import REFERENCE, Machine
from pendula.governance.model import Governed, Impact, Risk
from pendula.governance.model import tiers as the_tiers
from pendula.governance.tables import GovernedTables
from pendula.jobs.model import Code, GovernanceSettings, Policy, Refused
from pendula.jobs.reasons import Reason
from pendula.jobs.request_reading import Faults
from pendula.kernel.canonical import Json

EVIDENCE_MOST = 1000
# Objects that are suspect, forged, refuted or set aside cannot serve as evidence.
_NO_EVIDENCE = frozenset(
    {("memory", "quarantine"), ("memory", "rejected_poisoned"), ("memory", "stale_uncertain")}
    | {("cognition", "stale/uncertain"), ("cognition", "refuted/refuted"), ("experience", "invalidated")}
)


class Rules(GovernanceSettings, frozen=True):
    """The settings of governed objects: a state machine for each type, and limits."""

    machines: Mapping[str, Machine] = REFERENCE
    limits: Limits = Limits()


DEFAULT = Rules()


def rules_of(policy: Policy) -> Rules:
    """The rules of a policy; the reference machines and the default limits where it names none."""
    return policy.governance if isinstance(policy.governance, Rules) else DEFAULT


def machine_of(policy: Policy, object_type: str) -> Machine | Refused:
    machines = rules_of(policy).machines
    if object_type in machines:
        return machines[object_type]
    known = sorted(machines)
    message = f"there is no state machine for {object_type}; there are some for {', '.join(known)}"
    details: dict[str, Json] = {
        "object_type": object_type,
        "fields": [{"field": "object_type", "code": Code.INVALID_ENUM.value, "allowed": [*known]}],
    }
    return Refused(Code.INVALID_ENUM, message, details)


def object_not_found(object_type: str, object_id: str) -> Refused:
    details: dict[str, Json] = {"object_type": object_type, "object_id": object_id}
    return Refused(Code.OBJECT_NOT_FOUND, f"no governed object {object_type} {object_id}", details)


def user_required(what: str, details: dict[str, Json]) -> Refused:
    how = "with a token, in X-Pendula-User, as_user(…) or --user"
    return Refused(Code.USER_REQUIRED, f"only a named user may {what}; name one {how}", details)


def action_context(
    look: GovernedTables, subject: Governed, action: str, policy: Policy, now: int, *, deferrals: int = 0
) -> ActionContext:
    """Collect the inputs of a decision about an action, in the transaction that will write."""
    risk, impact = tiers(look, subject)
    return ActionContext(
        action=action,
        now=now,
        risk=risk,
        impact=impact,
        gates=look.gates(subject.ref),
        limits=rules_of(policy).limits,
        deferrals=deferrals,
    )


def tiers(look: GovernedTables, subject: Governed) -> tuple[Risk, Impact]:
    """The effective tiers, with the memories as they are now."""
    return the_tiers(subject, lambda memory: look.governed("memory", memory))


def refuse_too_many_references(subject: Governed, refs: Iterable[str]) -> Refused | None:
    """The refusal if the object would have too many references. Each event lists all of them and a promotion checks
    each, so the trail would grow quadratically and a promotion would block other writers."""
    held = set(subject.evidence)
    together = len(held | set(refs))
    if together <= max(EVIDENCE_MOST, len(held)):
        return None
    faults = Faults()
    allowed = f"at most {EVIDENCE_MOST} references in all; the object has {len(held)}"
    faults.add("evidence_refs", Code.INVALID_FIELD, allowed=allowed)
    return faults.refusal(f"{subject.ref} would have {together} references; the limit is {EVIDENCE_MOST}")


def is_promotion(before: Governed, ending: Ending, machine: Machine) -> bool:
    """Whether the ending raises the trust of the object."""
    after = ending.subject
    return after.place != before.place and machine.trust[after.place] > machine.trust[before.place]


def explain_unfit_evidence(
    look: GovernedTables, subject: Governed, refs: Iterable[str], context: ActionContext
) -> Reason | None:
    """Why the references of the object and the verdict cannot support a promotion, or None.

    A reference that is not a governed object is accepted: evidence may be stored anywhere.
    """
    is_risky = is_high_risk(context.risk, context.impact)
    for ref in dict.fromkeys((*refs, *subject.evidence, *subject.sources)):
        kind, _, name = ref.partition(":")
        source = look.governed(kind, name) if name else None
        if source is not None and (wrong := _explain_unfit(source, ref, is_risky=is_risky)) is not None:
            return wrong
    return None


def _explain_unfit(source: Governed, ref: str, *, is_risky: bool) -> Reason | None:
    where = (source.object_type, source.place)
    if where in _NO_EVIDENCE:
        return Reason("evidence_unfit", {"ref": ref, "place": source.place})
    if where == ("experience", "needs_review") and is_risky:
        return Reason("evidence_under_review", {"ref": ref})
    return None
