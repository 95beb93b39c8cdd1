"""Readers of bodies with a proof of the lease: ack, fail, renew and release."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert

from pendula.jobs.model import LEASE_MOST_SEC, RESULT_MOST_BYTES, RETRY_DELAY_MOST_SEC, SECOND, Code, Policy
from pendula.jobs.request_reading import BodyReader, Faults
from pendula.jobs.requests import (
    ACK,
    FAIL,
    NOTE_MOST,
    OBJECT_ID_MOST,
    OUTCOME_MOST,
    RELEASE,
    RENEW,
    Ack,
    Fail,
    Proof,
    Renew,
    Text,
)
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc, parse_utc


def read_proof(given: Mapping[str, Any]) -> Proof:
    """The proof in a body; values of other types are faults of the body and prove nothing."""
    worker, token = given.get("worker_id"), given.get("lease_token")
    return Proof(worker if isinstance(worker, str) else None, token if isinstance(token, str) else None)


def _check_proof(body: BodyReader, *, required: bool) -> None:
    for name, most in (("worker_id", 128), ("lease_token", 200)):
        if body.has(name):
            body.text(name, most)
        elif required and body.required(name):
            body.bad(name)


class _PlainAck(Struct, gc=False, forbid_unknown_fields=True):
    """The usual body of an ack."""

    result: Literal["succeeded"]
    audit_event_id: Text | None = None
    next_action_at: object = UNSET
    next_action: str | None = None
    outcome: Annotated[str, Meta(min_length=1, max_length=OUTCOME_MOST)] | None = None
    worker_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    lease_token: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


def read_ack(given: Mapping[str, Any], policy: Policy, now: int) -> Ack | Faults:
    """A request. Usual bodies are converted at once, all others field by field."""
    try:
        plain = convert(given, _PlainAck)
        at = plain.next_action_at
        next_at: int | UnsetType | None = at if at is UNSET or at is None else parse_utc(at)
    except (ValidationError, InputRefused):
        return _read_ack(given, policy, now)
    if (
        (isinstance(next_at, int) and next_at < now)
        or not (plain.next_action is None or plain.next_action in policy.vocabulary.actions)
        # Printable text has no control characters.
        or not f"{plain.audit_event_id}{plain.outcome}{plain.worker_id}{plain.lease_token}".isprintable()
    ):
        return _read_ack(given, policy, now)
    return Ack(plain.audit_event_id, next_at, plain.next_action, plain.outcome)


def _read_ack(given: Mapping[str, Any], policy: Policy, now: int) -> Ack | Faults:
    body = BodyReader(given, ACK)
    if given.get("result") != "succeeded":
        body.bad("result", Code.INVALID_RESULT, allowed=["succeeded"], hint="report a failure with the call fail")
    event = body.text("audit_event_id", OBJECT_ID_MOST) if body.has("audit_event_id") else None
    next_at: int | UnsetType | None = body.time("next_action_at") if "next_action_at" in given else UNSET
    if isinstance(next_at, int) and next_at < now:
        present = format_utc(now)
        problem = f"{format_utc(next_at)} is earlier than now, {present}; name a later time, or null for none"
        body.bad("next_action_at", Code.NEXT_ACTION_AT_IN_PAST, problem=problem, now=present)
    action = body.word("next_action", policy.vocabulary.actions) if body.has("next_action") else None
    outcome = body.text("outcome", OUTCOME_MOST) if body.has("outcome") else None
    result = body.json("outcome_result", RESULT_MOST_BYTES) if "outcome_result" in given else None
    _check_proof(body, required=False)
    if body.faults.entries:
        return body.faults
    return Ack(event, next_at, action, outcome, result)


def read_fail(given: Mapping[str, Any]) -> Fail | Faults:
    body = BodyReader(given, FAIL)
    error = given.get("error")
    if not isinstance(error, str) or not error.strip():
        body.bad("error", allowed="a text of at least one character that is not blank")
    delay = body.seconds("retry_delay_sec", RETRY_DELAY_MOST_SEC)
    retryable = body.flag("retryable")
    cancelled = body.flag("cancelled")
    _check_proof(body, required=False)
    if body.faults.entries:
        return body.faults
    # A lone surrogate, as in some file names, must not prevent a failure from being recorded.
    return Fail(str(error).encode(errors="replace").decode(), delay, retryable is not False, cancelled is True)


def read_renew(given: Mapping[str, Any]) -> Renew | Faults:
    body = BodyReader(given, RENEW)
    lease = body.integer("lease_sec", 1, LEASE_MOST_SEC)
    progress = body.fraction("progress") if body.has("progress") else None
    note = body.text("progress_note", NOTE_MOST) if body.has("progress_note") else None
    if note is not None and not body.has("progress"):
        body.bad("progress_note", allowed="a few words beside progress")
    _check_proof(body, required=True)
    return body.faults if body.faults.entries else Renew(None if lease is None else lease * SECOND, progress, note)


def read_release(given: Mapping[str, Any]) -> Faults | None:
    body = BodyReader(given, RELEASE)
    _check_proof(body, required=True)
    return body.faults if body.faults.entries else None
