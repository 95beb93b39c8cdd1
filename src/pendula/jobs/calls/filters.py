"""Filters of lists, counts and batch calls."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from pendula.jobs.model import BATCH_MOST, Code, Policy, Refused, Status, seq_of
from pendula.jobs.request_reading import BodyReader, Faults
from pendula.jobs.requests import OBJECT_ID_MOST, REASON_MOST
from pendula.jobs.store.protocol import Listing
from pendula.jobs.transaction.replies import Body

LIST_DEFAULT, LIST_MOST = 100, 1000
ERROR_CODE_MOST = 64
FILTERS = frozenset(
    [
        "status",
        "object_type",
        "object_id",
        "action",
        "queue",
        "correlation_id",
        "error_code",
        "created_after",
        "created_before",
    ]
)
LIST = FILTERS | {"cursor", "limit"}
# The statuses that a batch call works on; the first is the default.
CANCELLABLE = (Status.QUEUED, Status.RUNNING)
REVIVABLE = (Status.DEAD_LETTER, Status.FAILED)
CANCEL_ALL = frozenset(["filter", "reason", "limit", "cursor"])
REQUEUE_ALL = CANCEL_ALL | {"run_at"}


class Step(Struct, frozen=True):
    """One step of a batch call: the jobs to look at, how many at most, and what to do with them."""

    listing: Listing
    limit: int
    reason: str | None = None
    run_at: int | None = None


def read_listing(query: Mapping[str, Any], policy: Policy) -> Listing | Faults:
    """The page of a query, with room for one more job, which says whether there is another page."""
    body = BodyReader(query, LIST)
    limit = body.integer("limit", 1, LIST_MOST, Code.INVALID_LIMIT) or LIST_DEFAULT
    before = _cursor(body, query)
    listing = _filtered(body, policy, limit + 1, before)
    return body.faults if body.faults.entries else listing


def read_count(query: Mapping[str, Any], policy: Policy) -> Listing | Faults:
    body = BodyReader(query, FILTERS)
    listing = _filtered(body, policy, 1, None)
    return body.faults if body.faults.entries else listing


def read_step(given: Body, policy: Policy, statuses: tuple[Status, ...], now: int) -> Step | Refused:
    """A step of a batch call for jobs of these statuses; without a status filter, of the first.

    The filter must not be empty, so that a mistake does not change all jobs.
    """
    revives = Status.DEAD_LETTER in statuses
    body = BodyReader(given, REQUEUE_ALL if revives else CANCEL_ALL)
    filter_body = given.get("filter")
    if body.required("filter") and (not isinstance(filter_body, Mapping) or not filter_body):
        body.bad("filter", allowed="an object with at least one filter")
    limit = body.integer("limit", 1, BATCH_MOST, Code.INVALID_LIMIT) or BATCH_MOST
    before = _cursor(body, given)
    reason = body.text("reason", REASON_MOST) if body.has("reason") else None
    run_at = body.time("run_at") if revives else None
    if run_at is not None and run_at < now:
        body.bad("run_at", Code.RUN_AT_IN_PAST)
    inner = BodyReader(filter_body if isinstance(filter_body, Mapping) else {}, FILTERS)
    listing = _filtered(inner, policy, limit + 1, before, statuses)
    for fault in inner.faults.entries:
        body.faults.entries.append({**fault, "field": f"filter.{fault['field']}"})
    return body.faults.refusal() if body.faults.entries else Step(listing, limit, reason, run_at)


def _filtered(
    body: BodyReader, policy: Policy, limit: int, before: int | None, statuses: tuple[Status, ...] = ()
) -> Listing:
    words = policy.vocabulary
    status = body.word("status", statuses or tuple(Status))
    return Listing(
        limit=limit,
        before=before,
        status=statuses[0].value if statuses and status is None else status,
        object_type=body.word("object_type", words.object_types),
        object_id=body.text("object_id", OBJECT_ID_MOST),
        action=body.word("action", words.actions),
        queue=body.text("queue", 64),
        correlation_id=body.text("correlation_id", OBJECT_ID_MOST),
        error_code=body.text("error_code", ERROR_CODE_MOST),
        created_after=body.time("created_after"),
        created_before=body.time("created_before"),
    )


def _cursor(body: BodyReader, given: Mapping[str, Any]) -> int | None:
    cursor = given.get("cursor")
    before = seq_of(cursor) if isinstance(cursor, str) else None
    if cursor is not None and before is None:
        body.bad("cursor", allowed="the next_cursor of a reply")
    return before
