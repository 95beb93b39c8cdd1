"""OpenAPI schemas of governed objects, gates and verdicts."""

from collections.abc import Mapping

from pendula.governance.bodies import (
    AMENDABLE,
    BUDGET_MOST,
    MEMBERS,
    NUMBER_MOST,
    REASON_MOST,
    REF_MOST,
    REFS_MOST,
    SCOPE_MOST,
    VERSION_MOST,
)
from pendula.governance.decisions import Executed, Outcome
from pendula.governance.gates import VERDICTS
from pendula.governance.model import SHOWN_AS, Governed, Impact, Mode, Risk
from pendula.governance.views import LENGTHS, TIMES
from pendula.jobs.messages import OBJECT_ID_MOST
from pendula.jobs.reasons import Unknown
from pendula.server.schedulers.jobs import shapes
from pendula.server.schedulers.jobs.answering import USER_HEADER
from pendula.server.schedulers.jobs.shapes import (
    ANY_TEXT,
    ANY_TIME,
    COUNT,
    FLAG,
    OBJECT,
    TEXT,
    TIME,
    Shape,
    or_null,
    record,
)

USER: Shape = {
    "name": USER_HEADER,
    "in": "header",
    "required": False,
    "description": "The acting user, percent-encoded; only on a server without tokens, since a token has a name",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._@-]{1,128}$"},
}
ENUMS: Mapping[str, type[Risk | Impact | Unknown | Mode]] = {
    "risk_tier": Risk,
    "impact_tier": Impact,
    "unknown_type": Unknown,
    "decision_mode": Mode,
}
COUNTS = ("version", "verify_budget_left", "verifications", "reinforcement_count", "deception_signals")
FLAGS = ("hard_persona_limit", "rollback_pending")
PLAIN_TEXT = ("object_type", "object_id", "status")
PLAIN_TIMES = ("created_at", "updated_at")
WEIGHT: Shape = {"type": "number", "minimum": 0, "maximum": 100}
DURATION: Shape = {"type": "string", "pattern": "^P[0-9DHMSTW.]+$", "description": "Such as P7D or PT12H"}
VERSIONS: Shape = {"type": "object", "additionalProperties": {"type": "integer"}}
WORDS: Shape = {"type": "object", "additionalProperties": TEXT}


def schemas() -> Mapping[str, Shape]:
    """All schemas by name."""
    found = {**_requests(), **_replies()}
    return {shapes.NAME.format(name=name): shape for name, shape in found.items()}


def _requests() -> dict[str, Shape]:
    proof: Shape = {"worker_id": or_null(shapes.text(128)), "lease_token": or_null(shapes.text(200))}
    version = or_null(shapes.integer(1, VERSION_MOST))
    unknown = or_null(_enum(Unknown))
    reason = shapes.text(REASON_MOST)
    verdict: Shape = {
        "finding": shapes.text(64),
        "reason": reason,
        "evidence_refs": or_null(_refs()),
        "unknown_type": unknown,
        "version": version,
    }
    return {
        "Proof": shapes.request(proof),
        "Finish": shapes.request({**proof, **verdict, "gates": or_null(VERSIONS)}, "finding", "reason"),
        "NewObject": shapes.request({name: _given(name) for name in sorted(MEMBERS)}, "object_type", "object_id"),
        "Evidence": shapes.request(
            {"evidence_refs": _refs(1), "reason": reason, "unknown_type": unknown, "version": version}, "evidence_refs"
        ),
        "Amendment": shapes.request(
            {**{name: _given(name) for name in sorted(AMENDABLE)}, "reason": reason, "version": version}, "reason"
        ),
        "Decision": shapes.request({"action": shapes.text(64), **verdict}, "action", "finding", "reason"),
        "Refill": shapes.request({"budget": or_null(shapes.integer(0, BUDGET_MOST)), "reason": reason}, "reason"),
        "SetGate": shapes.request(
            {
                "gate": {"enum": list(VERDICTS)},
                "scope": shapes.text(SCOPE_MOST),
                "verdict": {"enum": sorted({word for words in VERDICTS.values() for word in words})},
                "reason": reason,
            },
            "gate",
            "verdict",
            "reason",
        ),
    }


def _given(name: str) -> Shape:
    """A member in a request for a new object."""
    if name in ENUMS:
        return or_null(_enum(ENUMS[name]))
    if name in ("evidence_refs", "source_refs"):
        return or_null(_refs())
    if name in TIMES:
        return ANY_TIME
    if name in LENGTHS:
        return or_null(DURATION)
    match name:
        case "impact_weight":
            return or_null(WEIGHT)
        case "auto_verify_budget" | "deception_signals" | "reinforcement_count":
            return or_null(shapes.integer(0, NUMBER_MOST))
        case "hard_persona_limit":
            return FLAG
        case "object_id":
            return shapes.text(OBJECT_ID_MOST)
        case "reason" | "falsify_if":
            return shapes.text(REASON_MOST)
        case _:
            return shapes.text(64)


def _replies() -> dict[str, Shape]:
    subject, gate, rollback = shapes.ref("Governed"), shapes.ref("Gate"), shapes.ref("Rollback")
    ending = _ending()
    step: Shape = {
        "entered": FLAG,
        "job": shapes.ref("Job"),
        "object": or_null(subject),
        "already_ended": FLAG,
        **ending,
        "gates": OBJECT,
        "followup_job_id": ANY_TEXT,
        "gates_moved": FLAG,
        "version": COUNT,
        "verdicts": shapes.listed(gate),
        "mode": ANY_TEXT,
    }
    figures: Shape = {
        "places": shapes.listed(record({"object_type": TEXT, "place": TEXT, "objects": COUNT})),
        "counts": shapes.listed(record({"kind": TEXT, "word": TEXT, "count": COUNT})),
        "for_a_person": record({"count": COUNT, "first": shapes.listed(subject)}),
    }
    return {
        "Governed": record({SHOWN_AS.get(name, name): _shown(name) for name in Governed.__struct_fields__}),
        "Gate": _gate(),
        "Rollback": _rollback(),
        "Step": record(step, optional=tuple(name for name in step if name not in ("entered", "job", "object"))),
        "Kept": record({"object": subject, "followup_job_id": ANY_TEXT}),
        "Decided": record({**ending, "object": subject, "followup_job_id": ANY_TEXT}),
        "RolledBack": record({"object": subject, "rollbacks": shapes.listed(rollback)}),
        "ObjectPage": record({"objects": shapes.listed(subject), "next_after": ANY_TEXT}),
        "ShownObject": record(
            {
                "object": subject,
                "gates": shapes.listed(gate),
                "decision_traces": shapes.listed(_trace()),
                "rollbacks": shapes.listed(rollback),
            }
        ),
        "WhyObject": _why(subject),
        "Gates": record({"gates": shapes.listed(gate), "next_after": ANY_TEXT}),
        "OneGate": record({"gate": gate}),
        "Rollbacks": record({"rollbacks": shapes.listed(rollback)}),
        "Governance": record(figures),
        "Machine": _machine(),
        "Machines": record(
            {
                "machines": shapes.listed(shapes.ref("Machine")),
                "gates": shapes.listed(record({"gate": TEXT, "verdicts": shapes.listed(TEXT), "required": FLAG})),
            }
        ),
    }


def _shown(name: str) -> Shape:
    """A member of an object in a reply."""
    if name in ("evidence", "sources"):
        return shapes.listed(TEXT)
    if name in ("risk_tier", "impact_tier"):
        return _enum(ENUMS[name])
    if name in ENUMS:
        return or_null(_enum(ENUMS[name]))
    kinds = ((PLAIN_TEXT, TEXT), (PLAIN_TIMES, TIME), (TIMES, ANY_TIME), (COUNTS, COUNT), (FLAGS, FLAG))
    for names, shape in kinds:
        if name in names:
            return shape
    match name:
        case "auto_verify_budget":
            return or_null(COUNT)
        case "impact_weight":
            return WEIGHT
        case "half_life":
            return TEXT
        case _:
            return ANY_TEXT


def _ending() -> Shape:
    return {
        "outcome": _enum(Outcome),
        "reason": TEXT,
        "executed": or_null(_enum(Executed)),
        "gates": WORDS,
        "decision_trace_id": ANY_TEXT,
        "escalated": FLAG,
    }


def _gate() -> Shape:
    return record(
        {
            "gate": TEXT,
            "scope": TEXT,
            "verdict": TEXT,
            "version": COUNT,
            "set_at": TIME,
            "set_by": TEXT,
            "reason": TEXT,
            "override_by": ANY_TEXT,
        }
    )


def _machine() -> Shape:
    place: Shape = {
        "place": TEXT,
        "trust": COUNT,
        "uncertain": FLAG,
        "next_action": ANY_TEXT,
        "after": ANY_TEXT,
        "at": ANY_TEXT,
    }
    ends: Shape = {"source": TEXT, "target": TEXT}
    arrow: Shape = {**ends, "action": TEXT, "finding": TEXT, "gates": shapes.listed(TEXT)}
    return record(
        {
            "object_type": TEXT,
            "first": TEXT,
            "places": shapes.listed(record(place)),
            "arrows": shapes.listed(record(arrow)),
            "never": shapes.listed(record({**ends, "because": TEXT})),
        }
    )


def _rollback() -> Shape:
    return record(
        {
            "rollback_id": TEXT,
            "object_type": TEXT,
            "object_id": TEXT,
            "asked_at": TIME,
            "reason": TEXT,
            "job_id": ANY_TEXT,
            "finished_at": ANY_TIME,
        }
    )


def _trace() -> Shape:
    return record(
        {
            "decision_trace_id": TEXT,
            "at": TIME,
            "action": TEXT,
            "outcome": _enum(Executed),
            "verdicts": WORDS,
            "versions": VERSIONS,
            "reason": TEXT,
            "code": TEXT,
            "facts": OBJECT,
            "evidence_refs": shapes.listed(TEXT),
            "risk_tier": _enum(Risk),
            "job_id": ANY_TEXT,
        }
    )


def _why(subject: Shape) -> Shape:
    return record(
        {
            "sentence": TEXT,
            "status": TEXT,
            "because": or_null(OBJECT),
            "next_action": ANY_TEXT,
            "next_action_at": ANY_TIME,
            "next_job_id": ANY_TEXT,
            "in_the_way": ANY_TEXT,
            "risk_tier": _enum(Risk),
            "impact_tier": _enum(Impact),
            "ways_out": shapes.listed(record({"action": TEXT, "finding": TEXT, "leads_to": TEXT})),
            "object": subject,
        }
    )


def _enum(words: type[Risk | Impact | Unknown | Mode | Outcome | Executed]) -> Shape:
    return {"enum": [word.value for word in words]}


def _refs(least: int = 0) -> Shape:
    return shapes.listed(shapes.text(REF_MOST), least, REFS_MOST)
