"""Readers of request bodies that report all faults: new objects, evidence, gates, verdicts, decisions by people."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from pendula.governance.gates import EVERYTHING, VERDICTS
from pendula.governance.model import ALLOWED, Impact, Mode, Risk, parse_duration
from pendula.jobs.messages import OBJECT_ID_MOST
from pendula.jobs.model import Code
from pendula.jobs.reasons import Reason, Unknown, Verdict, stated
from pendula.jobs.request_reading import BodyReader, Faults
from pendula.kernel.time import format_utc

REF_MOST, REFS_MOST, REASON_MOST = 600, 100, 1000
PLACE_MOST, SCOPE_MOST, BUDGET_MOST, VERSION_MOST, NUMBER_MOST = 130, 600, 1000, 2**53, 1000
GATE_MOST = 64
PAGE_DEFAULT, PAGE_MOST = 100, 1000
WEIGHT_DIGITS = 28
PROOF = {"worker_id", "lease_token"}
MEMBERS = frozenset(
    {
        *("object_type", "object_id", "status", "epistemic_state", "risk_tier", "impact_tier", "evidence_refs"),
        *("source_refs", "review_interval", "review_due_at", "expires_at", "half_life", "impact_weight"),
        *("reinforcement_count", "falsify_if", "unknown_type", "uncertainty_ttl", "auto_verify_budget"),
        *("decision_mode", "hard_persona_limit", "deception_signals", "last_accessed_at", "reason"),
    }
)


AMENDABLE = (
    *("review_interval", "review_due_at", "expires_at", "half_life", "falsify_if", "impact_weight"),
    *("risk_tier", "impact_tier"),
)


class NewObject(Struct, frozen=True):
    """The initial members of an object, by the names of the model; missing ones are left out."""

    object_type: str
    object_id: str
    status: str | None
    epistemic: str | None
    members: dict[str, Any]
    reason: Reason


class Finish(Struct, frozen=True):
    """A verdict and, if given, the versions of the object and the gates that it is based on."""

    verdict: Verdict
    version: int | None
    gates: dict[str, int] | None


class Decision(Struct, frozen=True):
    """A decision by a person."""

    action: str
    verdict: Verdict
    version: int | None


class SetGate(Struct, frozen=True):
    name: str
    scope: str
    verdict: str
    reason: str


class Evidence(Struct, frozen=True):
    refs: tuple[str, ...]
    reason: Reason
    unknown_type: Unknown | None
    version: int | None


class Amendment(Struct, frozen=True):
    """Changed members, by the names of the model."""

    members: dict[str, Any]
    reason: Reason
    version: int | None


class Refill(Struct, frozen=True):
    budget: int | None
    reason: Reason


class GatePage(Struct, frozen=True):
    """A page of gates by scope and name, starting after `after`; all gates, or those that apply to one scope."""

    scope: str | None
    after: tuple[str, str]
    limit: int


class Page(Struct, frozen=True):
    """A page of objects of a type by id, starting after `after`; all, or those in one place."""

    object_type: str
    place: str | None
    after: str
    limit: int


def read_new(given: Mapping[str, Any], now: int) -> NewObject | Faults:
    body = BodyReader(given, MEMBERS)
    kind = body.text("object_type", 64) if body.required("object_type") else None
    name = body.text("object_id", OBJECT_ID_MOST, trimmed=True) if body.required("object_id") else None
    members: dict[str, Any] = {
        "risk_tier": _word(body, "risk_tier", Risk),
        "impact_tier": _word(body, "impact_tier", Impact),
        "evidence": _refs(body, given, "evidence_refs"),
        "sources": _refs(body, given, "source_refs"),
        "unknown_type": _word(body, "unknown_type", Unknown),
        "decision_mode": _word(body, "decision_mode", Mode),
        "falsify_if": body.text("falsify_if", REASON_MOST),
        "impact_weight": _weight(body, given),
        "hard_persona_limit": body.flag("hard_persona_limit"),
    }
    for date in ("review_due_at", "expires_at", "last_accessed_at"):
        members[date] = body.time(date)
    _check_dates(body, members, now)
    for length in ("review_interval", "half_life", "uncertainty_ttl"):
        members[length] = _duration(body, given, length)
    for number in ("auto_verify_budget", "deception_signals", "reinforcement_count"):
        members[number] = body.integer(number, 0, NUMBER_MOST)
    status, epistemic = body.text("status", 64), body.text("epistemic_state", 64)
    reason = body.text("reason", REASON_MOST)
    if body.faults.entries or kind is None or name is None:
        return body.faults
    given_members = {key: value for key, value in members.items() if value is not None}
    return NewObject(kind, name, status, epistemic, given_members, _or(reason, "governed"))


def read_amendment(given: Mapping[str, Any], now: int) -> Amendment | Faults:
    body = BodyReader(given, {*AMENDABLE, "reason", "version"})
    members: dict[str, Any] = {
        "risk_tier": _word(body, "risk_tier", Risk),
        "impact_tier": _word(body, "impact_tier", Impact),
        "falsify_if": body.text("falsify_if", REASON_MOST),
        "impact_weight": _weight(body, given),
        "review_due_at": body.time("review_due_at"),
        "expires_at": body.time("expires_at"),
        "review_interval": _duration(body, given, "review_interval"),
        "half_life": _duration(body, given, "half_life"),
    }
    _check_dates(body, {"last_accessed_at": None, **members}, now)
    reason = body.text("reason", REASON_MOST) if body.required("reason") else None
    version = body.integer("version", 1, VERSION_MOST)
    known = {name: value for name, value in members.items() if value is not None}
    if not known and not body.faults.entries:
        body.faults.add("members", Code.MISSING_FIELD, allowed=[*AMENDABLE])
    return body.faults if body.faults.entries or reason is None else Amendment(known, stated(reason), version)


def read_begin(given: Mapping[str, Any]) -> Faults | None:
    body = BodyReader(given, PROOF)
    return body.faults if body.faults.entries else None


def read_finish(given: Mapping[str, Any]) -> Finish | Faults:
    body = BodyReader(given, PROOF | {"finding", "reason", "evidence_refs", "unknown_type", "version", "gates"})
    verdict = _verdict(body, given)
    version = body.integer("version", 1, VERSION_MOST)
    gates = given.get("gates")
    if gates is not None and not (
        isinstance(gates, Mapping) and all(isinstance(k, str) and type(v) is int for k, v in gates.items())
    ):
        body.bad("gates", allowed="the `gates` that begin returned")
    if body.faults.entries or verdict is None:
        return body.faults
    return Finish(verdict, version, None if gates is None else dict(gates))


def read_decision(given: Mapping[str, Any]) -> Decision | Faults:
    body = BodyReader(given, {"action", "finding", "reason", "evidence_refs", "unknown_type", "version"})
    action = body.text("action", 64) if body.required("action") else None
    verdict = _verdict(body, given)
    version = body.integer("version", 1, VERSION_MOST)
    if body.faults.entries or action is None or verdict is None:
        return body.faults
    return Decision(action, verdict, version)


def read_gate(given: Mapping[str, Any], kinds: Collection[str]) -> SetGate | Faults:
    """A gate may be set before its object exists, so that the object can be blocked from the start."""
    body = BodyReader(given, {"gate", "scope", "verdict", "reason"})
    name = body.word("gate", list(VERDICTS)) if body.required("gate") else None
    verdict = body.word("verdict", VERDICTS.get(name or "", ())) if body.required("verdict") and name else None
    scope = body.text("scope", SCOPE_MOST, trimmed=True) or EVERYTHING
    kind, _, about = scope.partition(":")
    if scope != EVERYTHING and (kind not in kinds or not about or about != about.strip()):
        body.bad("scope", allowed=f"* or type:id with a type of {', '.join(sorted(kinds))}")
    reason = body.text("reason", REASON_MOST) if body.required("reason") else None
    if body.faults.entries or name is None or verdict is None or reason is None:
        return body.faults
    return SetGate(name, scope, verdict, reason)


def read_evidence(given: Mapping[str, Any]) -> Evidence | Faults:
    body = BodyReader(given, {"evidence_refs", "reason", "unknown_type", "version"})
    refs = _refs(body, given, "evidence_refs") if body.required("evidence_refs") else None
    if refs == ():
        body.bad("evidence_refs", allowed="at least one reference")
    reason = body.text("reason", REASON_MOST)
    unknown = _word(body, "unknown_type", Unknown)
    version = body.integer("version", 1, VERSION_MOST)
    if body.faults.entries or refs is None:
        return body.faults
    return Evidence(refs, _or(reason, "evidence_attached"), unknown, version)


def read_refill(given: Mapping[str, Any]) -> Refill | Faults:
    body = BodyReader(given, {"budget", "reason"})
    budget = body.integer("budget", 0, BUDGET_MOST)
    reason = body.text("reason", REASON_MOST) if body.required("reason") else None
    return body.faults if body.faults.entries or reason is None else Refill(budget, stated(reason))


def read_reason(given: Mapping[str, Any]) -> Reason | Faults:
    body = BodyReader(given, {"reason"})
    reason = body.text("reason", REASON_MOST)
    return body.faults if body.faults.entries else _or(reason, "rollback_reported")


def _or(text: str | None, code: str) -> Reason:
    """The words of the caller, or the code that stands for none."""
    return stated(text) if text else Reason(code)


def read_page(query: Mapping[str, Any], kinds: Collection[str]) -> Page | Faults:
    body = BodyReader(query, {"object_type", "place", "after", "limit"})
    kind = body.word("object_type", sorted(kinds)) if body.required("object_type") else None
    place, after = body.text("place", PLACE_MOST), body.text("after", OBJECT_ID_MOST)
    limit = body.integer("limit", 1, PAGE_MOST, Code.INVALID_LIMIT) or PAGE_DEFAULT
    return body.faults if body.faults.entries or kind is None else Page(kind, place, after or "", limit)


def read_gate_page(query: Mapping[str, Any]) -> GatePage | Faults:
    body = BodyReader(query, {"scope", "after", "limit"})
    scope, after = body.text("scope", SCOPE_MOST), body.text("after", SCOPE_MOST + GATE_MOST + 1)
    limit = body.integer("limit", 1, PAGE_MOST, Code.INVALID_LIMIT) or PAGE_DEFAULT
    last_scope, _, last_name = (after or "").rpartition(" ")
    return body.faults if body.faults.entries else GatePage(scope, (last_scope, last_name), limit)


def read_limit(query: Mapping[str, Any]) -> int | Faults:
    body = BodyReader(query, {"limit"})
    limit = body.integer("limit", 1, PAGE_MOST, Code.INVALID_LIMIT) or PAGE_DEFAULT
    return body.faults if body.faults.entries else limit


def _verdict(body: BodyReader, given: Mapping[str, Any]) -> Verdict | None:
    finding = body.text("finding", 64) if body.required("finding") else None
    reason = body.text("reason", REASON_MOST) if body.required("reason") else None
    refs = _refs(body, given, "evidence_refs") or ()
    unknown = _word(body, "unknown_type", Unknown)
    return None if finding is None or reason is None else Verdict(finding, reason, refs, unknown)


def _word(body: BodyReader, name: str, kind: Any) -> Any:
    if not body.has(name):
        return None
    word = body.word(name, [str(member) for member in kind])
    return None if word is None else kind(word)


def _refs(body: BodyReader, given: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    refs = given.get(name)
    if refs is None:
        return None
    good = isinstance(refs, list | tuple) and len(refs) <= REFS_MOST and all(_is_ref(ref) for ref in refs)
    if not good:
        body.bad(name, allowed=f"a list of at most {REFS_MOST} references of 1 to {REF_MOST} characters")
        return None
    return tuple(dict.fromkeys(refs))


def _is_ref(ref: object) -> bool:
    return isinstance(ref, str) and 1 <= len(ref) <= REF_MOST and ref.isprintable() and ref == ref.strip()


def _check_dates(body: BodyReader, members: Mapping[str, Any], now: int) -> None:
    """Reject an expiry in the past and an access in the future. A review may be overdue already."""
    expires, accessed = members["expires_at"], members["last_accessed_at"]
    if expires is not None and expires <= now:
        body.bad("expires_at", allowed=f"later than now, {format_utc(now)}")
    if accessed is not None and accessed > now:
        body.bad("last_accessed_at", allowed=f"not later than now, {format_utc(now)}")


def _duration(body: BodyReader, given: Mapping[str, Any], name: str) -> int | None:
    if given.get(name) is None:
        return None
    length = parse_duration(given[name])
    if length is None:
        body.bad(name, allowed=ALLOWED)
    return length


def _weight(body: BodyReader, given: Mapping[str, Any]) -> Decimal | None:
    value = given.get("impact_weight")
    if value is None:
        return None
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal) and not (value.is_finite() and len(value.as_tuple().digits) <= WEIGHT_DIGITS):
        value = None
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= 100:
        body.bad("impact_weight", allowed=f"a number from 0 to 100 of at most {WEIGHT_DIGITS} digits")
        return None
    return Decimal(value)
