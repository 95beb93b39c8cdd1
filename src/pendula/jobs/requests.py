"""Readers of request bodies: a request, or every fault of the body at once."""

from collections.abc import Mapping
from re import compile as regex
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert

from pendula.jobs.model import (
    ATTEMPTS_MOST,
    LEASE_MOST_SEC,
    PAYLOAD_MOST_BYTES,
    PRIORITIES,
    SECOND,
    Code,
    Policy,
)
from pendula.jobs.request_reading import BodyReader, Faults
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import format_utc, parse_utc

OBJECT_ID_MOST = 512  # of ids of objects, correlations and audit events
KEY_MOST = 512
WORKER_ID = regex(r"[A-Za-z0-9._:@-]{1,128}")
QUEUE = regex(r"[a-z0-9_-]{1,64}")
WAIT_MOST_MS = 30_000
OUTCOME_MOST = 64
REASON_MOST = 1000
LIMIT_LIST_MOST = 1000
NOTE_MOST = 200
PAIRS_MOST = 1000
WAITING = "waiting"

ENQUEUE = frozenset(
    [
        "object_type",
        "object_id",
        "action",
        "run_at",
        "priority",
        "max_attempts",
        "idempotency_key",
        "correlation_id",
        "queue",
        "payload",
        "unique",
    ]
)
PULL = frozenset(["now", "limit", "worker_id", "lease_sec", "object_types", "actions", "wait_ms", "queues", "pairs"])
ACK = frozenset(
    [
        "result",
        "audit_event_id",
        "next_action_at",
        "next_action",
        "outcome",
        "outcome_result",
        "worker_id",
        "lease_token",
    ]
)
FAIL = frozenset(["error", "retry_delay_sec", "retryable", "cancelled", "worker_id", "lease_token"])
RENEW = frozenset(["worker_id", "lease_token", "lease_sec", "progress", "progress_note"])
RELEASE = frozenset(["worker_id", "lease_token"])
CANCEL = frozenset(("reason",))
REQUEUE = frozenset(("run_at", "reason"))


class Enqueue(Struct, frozen=True, gc=False):
    """`run_at` is None for a job that is due now; `idempotency_key` is None where it follows from the rest.

    `payload` is canonical JSON. `unique`: no second job while one for the same work is queued or running.
    """

    object_type: str
    object_id: str
    action: str
    run_at: int | None
    priority: int
    max_attempts: int
    idempotency_key: str | None
    correlation_id: str | None
    queue: str
    payload: str | None = None
    unique: bool = False


class Pull(Struct, frozen=True):
    worker_id: str
    limit: int
    now: int | None = None
    lease_us: int | None = None
    object_types: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    wait_ms: int = 0
    pairs: tuple[tuple[str, str], ...] = ()  # object type and action of each handler of the worker


class Proof(Struct, frozen=True):
    """Proof of a lease: the worker and its token, as far as given."""

    worker_id: str | None = None
    lease_token: str | None = None


class Ack(Struct, frozen=True):
    """`next_action_at`: unset keeps the object's time, None clears it."""

    audit_event_id: str | None = None
    next_action_at: int | UnsetType | None = UNSET
    next_action: str | None = None
    outcome: str | None = None
    outcome_result: str | None = None


class Fail(Struct, frozen=True):
    error: str
    retry_delay_us: int | None = None
    retryable: bool = True
    cancelled: bool = False


class Renew(Struct, frozen=True):
    """`progress` is in millionths; None keeps the last one."""

    lease_us: int | None = None
    progress: int | None = None
    progress_note: str | None = None


class Requeue(Struct, frozen=True):
    run_at: int | None = None
    reason: str | None = None


Text = Annotated[str, Meta(min_length=1, max_length=OBJECT_ID_MOST)]


class _Plain(Struct, gc=False, forbid_unknown_fields=True):
    """The usual body of an enqueue."""

    object_type: str
    object_id: Text
    action: str
    run_at: object = None
    priority: str | None = None
    max_attempts: object = None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=KEY_MOST)] | None = None
    correlation_id: Text | None = None
    queue: str | None = None
    payload: object = None
    unique: object = None


def read_enqueue(given: Mapping[str, Any], policy: Policy, now: int = 0) -> Enqueue | Faults:
    """A request. A time in the past is reported here only beside other faults, else after the lookup of the key.

    Usual bodies are converted at once; all others field by field, to collect all faults.
    """
    try:
        plain = convert(given, _Plain)
        run_at = None if plain.run_at is None else parse_utc(plain.run_at)
    except (ValidationError, InputRefused):
        return _read_enqueue(given, policy, now)
    words, attempts = policy.vocabulary, plain.max_attempts
    if (
        # Rare members are read field by field.
        not (plain.payload is None and plain.unique is None)
        or plain.object_type not in words.object_types
        or plain.action not in words.actions
        or not (plain.priority is None or plain.priority in PRIORITIES)
        or not (attempts is None or (type(attempts) is int and 1 <= attempts <= ATTEMPTS_MOST))
        or not (plain.queue is None or QUEUE.fullmatch(plain.queue))
        # Printable text has no control characters, and only blanks to trim.
        or not f"{plain.object_id}{plain.idempotency_key}{plain.correlation_id}".isprintable()
        or plain.object_id[0] == " "
        or plain.object_id[-1] == " "
    ):
        return _read_enqueue(given, policy, now)
    return Enqueue(
        object_type=plain.object_type,
        object_id=plain.object_id,
        action=plain.action,
        run_at=run_at,
        priority=int(policy.default_priority if plain.priority is None else PRIORITIES[plain.priority]),
        max_attempts=policy.default_max_attempts if attempts is None else attempts,
        idempotency_key=plain.idempotency_key,
        correlation_id=plain.correlation_id,
        queue="default" if plain.queue is None else plain.queue,
    )


def _read_enqueue(given: Mapping[str, Any], policy: Policy, now: int) -> Enqueue | Faults:
    body = BodyReader(given, ENQUEUE)
    words = policy.vocabulary
    object_type = body.word("object_type", words.object_types) if body.required("object_type") else None
    object_id = body.text("object_id", OBJECT_ID_MOST, trimmed=True) if body.required("object_id") else None
    action = body.word("action", words.actions) if body.required("action") else None
    run_at = body.time("run_at")
    priority = body.word("priority", PRIORITIES) if body.has("priority") else None
    attempts = body.integer("max_attempts", 1, ATTEMPTS_MOST)
    key = body.text("idempotency_key", KEY_MOST) if body.has("idempotency_key") else None
    correlation = body.text("correlation_id", OBJECT_ID_MOST) if body.has("correlation_id") else None
    queue = _queue(body) if body.has("queue") else "default"
    payload = body.json("payload", PAYLOAD_MOST_BYTES)
    unique = body.word("unique", (WAITING,)) if body.has("unique") else None
    if body.faults.entries or object_type is None or object_id is None or action is None or queue is None:
        if run_at is not None and run_at < now:
            body.bad("run_at", Code.RUN_AT_IN_PAST)
        return body.faults
    return Enqueue(
        object_type=object_type,
        object_id=object_id,
        action=action,
        run_at=run_at,
        priority=int(policy.default_priority if priority is None else PRIORITIES[priority]),
        max_attempts=policy.default_max_attempts if attempts is None else attempts,
        idempotency_key=key,
        correlation_id=correlation,
        queue=queue,
        payload=payload,
        unique=unique is not None,
    )


def _queue(body: BodyReader) -> str | None:
    name = body.text("queue", 64)
    if name is not None and QUEUE.fullmatch(name) is None:
        body.bad("queue", allowed="1 to 64 of a-z, 0-9, _ and -")
        return None
    return name


def read_pull(given: Mapping[str, Any], policy: Policy, now: int) -> Pull | Faults:
    body = BodyReader(given, PULL)
    worker = given.get("worker_id")
    if not isinstance(worker, str) or WORKER_ID.fullmatch(worker) is None:
        body.bad("worker_id", Code.INVALID_WORKER_ID, allowed="1 to 128 of letters, digits and . _ : @ -")
    limit = body.integer("limit", 1, policy.pull_max_limit, Code.INVALID_LIMIT)
    requested_now = body.time("now")
    latest = now if policy.pull_clock == "server" else now + policy.max_clock_step_sec * SECOND
    if requested_now is not None and requested_now > latest:
        body.bad("now", Code.NOW_IN_FUTURE, allowed=f"a time until {format_utc(latest)}")
    lease = body.integer("lease_sec", 1, LEASE_MOST_SEC)
    types = body.words("object_types", policy.vocabulary.object_types)
    actions = body.words("actions", policy.vocabulary.actions)
    queues = _queues(body, given.get("queues"))
    pairs = _pairs(body, given.get("pairs"))
    wait = body.integer("wait_ms", 0, WAIT_MOST_MS)
    if body.faults.entries:
        return body.faults
    return Pull(
        worker_id=str(worker),
        limit=policy.pull_default_limit if limit is None else limit,
        now=requested_now,
        lease_us=None if lease is None else lease * SECOND,
        object_types=types,
        actions=actions,
        queues=queues,
        wait_ms=wait or 0,
        pairs=pairs,
    )


def _queues(body: BodyReader, given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if (
        not isinstance(given, list | tuple)
        or not given
        or any(not isinstance(name, str) or QUEUE.fullmatch(name) is None for name in given)
        or len(set(given)) != len(given)
    ):
        body.bad("queues", allowed="a list of names of queues, each once")
        return ()
    return tuple(given)


def _pairs(body: BodyReader, given: Any) -> tuple[tuple[str, str], ...]:
    """What a worker handles. Unknown words are allowed: there are no jobs of that kind."""
    if given is None:
        return ()
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= PAIRS_MOST or not all(map(_is_pair, given)):
        body.bad("pairs", allowed=f"a list of 1 to {PAIRS_MOST} pairs of an object type and an action")
        return ()
    return tuple((object_type, action) for object_type, action in given)


def _is_pair(given: Any) -> bool:
    return isinstance(given, list | tuple) and len(given) == 2 and all(isinstance(word, str) for word in given)


def read_reason(given: Mapping[str, Any]) -> str | Faults | None:
    """The reason of a call without other members."""
    body = BodyReader(given, CANCEL)
    reason = body.text("reason", REASON_MOST) if body.has("reason") else None
    return body.faults if body.faults.entries else reason


def read_requeue(given: Mapping[str, Any], now: int) -> Requeue | Faults:
    body = BodyReader(given, REQUEUE)
    run_at = body.time("run_at")
    if run_at is not None and run_at < now:
        body.bad("run_at", Code.RUN_AT_IN_PAST)
    reason = body.text("reason", REASON_MOST) if body.has("reason") else None
    return body.faults if body.faults.entries else Requeue(run_at, reason)
