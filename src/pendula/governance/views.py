"""Governed objects, gates and endings as JSON: times and durations as text."""

from decimal import Decimal

from pendula.governance.decisions import Ending
from pendula.governance.gates import REQUIRED, VERDICTS, Gate
from pendula.governance.machines import Machine
from pendula.governance.model import SHOWN_AS, Governed, format_duration
from pendula.governance.tables import Rollback
from pendula.jobs.messages import utc_or_null
from pendula.jobs.model import exact
from pendula.jobs.sentences import sentence_of
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

TIMES = (
    *("created_at", "updated_at", "next_action_at", "last_verified_at", "last_accessed_at", "last_reinforced_at"),
    *("stale_since", "review_due_at", "expires_at", "uncertain_since"),
)
LENGTHS = ("review_interval", "half_life", "uncertainty_ttl")


def object_json(subject: Governed) -> dict[str, Json]:
    """Every member, in the order of the model."""
    return {SHOWN_AS.get(name, name): _shown(member_json(subject, name)) for name in Governed.__struct_fields__}


def _shown(member: Json) -> Json:
    return exact(member) if isinstance(member, Decimal) else member


def member_json(subject: Governed, name: str) -> Json:
    value = getattr(subject, name)
    if name in TIMES:
        return utc_or_null(value)
    if name in LENGTHS:
        return None if value is None else format_duration(value)
    if isinstance(value, tuple):
        return list(value)
    # An enum member becomes a plain string.
    return str(value) if isinstance(value, str) else value


def changes(before: Governed | None, after: Governed) -> tuple[dict[str, Json] | None, dict[str, Json]]:
    """The members that differ, old and new, without `version` and `updated_at`."""
    names = [name for name in Governed.__struct_fields__ if name not in ("version", "updated_at")]
    if before is None:
        return None, {SHOWN_AS.get(name, name): member_json(after, name) for name in names}
    touched = [name for name in names if getattr(before, name) != getattr(after, name)]
    old, new = (
        {SHOWN_AS.get(name, name): member_json(subject, name) for name in touched} for subject in (before, after)
    )
    return old, new


def gate_json(gate: Gate) -> dict[str, Json]:
    return {
        "gate": gate.name,
        "scope": gate.scope,
        "verdict": gate.verdict,
        "version": gate.version,
        "set_at": format_utc(gate.set_at),
        "set_by": gate.set_by,
        "reason": gate.reason,
        "override_by": gate.override_by,
    }


def rollback_json(rollback: Rollback) -> dict[str, Json]:
    return {
        "rollback_id": f"rb_{rollback.n:012d}",
        "object_type": rollback.object_type,
        "object_id": rollback.object_id,
        "asked_at": format_utc(rollback.asked_at),
        "reason": sentence_of(rollback.reason),
        "job_id": rollback.job_id,
        "finished_at": utc_or_null(rollback.finished_at),
    }


def ending_json(ending: Ending, trace: str | None) -> dict[str, Json]:
    return {
        "outcome": ending.outcome.value,
        "reason": sentence_of(ending.reason),
        "executed": None if ending.executed is None else ending.executed.value,
        "gates": {} if ending.reading is None else {**ending.reading.verdicts},
        "decision_trace_id": trace,
        "escalated": ending.escalation is not None,
    }


def machine_json(machine: Machine) -> dict[str, Json]:
    """A state machine for drawing: places, the most trusted first, then by name; arrows; forbidden transitions."""
    places: list[Json] = [
        {
            "place": place,
            "trust": trust,
            "uncertain": place in machine.uncertain,
            "next_action": None if (follow := machine.follow.get(place)) is None else follow.action,
            "after": None if follow is None else format_duration(follow.after),
            "at": None if follow is None else follow.at,
        }
        for place, trust in sorted(machine.trust.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    return {
        "object_type": machine.object_type,
        "first": machine.first,
        "places": places,
        "arrows": [
            {
                "source": arrow.source,
                "action": arrow.action,
                "finding": arrow.finding,
                "target": arrow.target,
                "gates": [*arrow.gates],
            }
            for arrow in machine.arrows
        ],
        "never": [{"source": rule.source, "target": rule.target, "because": rule.because} for rule in machine.never],
    }


def gate_words() -> list[Json]:
    """Every gate, its possible verdicts, and whether high-risk actions require it."""
    return [
        {"gate": name, "verdicts": [*verdicts], "required": name in REQUIRED} for name, verdicts in VERDICTS.items()
    ]
