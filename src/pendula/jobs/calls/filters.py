"""Filters of lists, counts and batch calls, as a store takes them."""

from msgspec import UNSET, Struct
from msgspec.structs import replace

from pendula.jobs.messages import (
    CANCELLABLE,
    LIST_DEFAULT,
    REVIVABLE,
    CancelBatch,
    Chosen,
    Filter,
    ListJobs,
    RequeueBatch,
)
from pendula.jobs.model import BATCH_MOST
from pendula.jobs.store.protocol import Listing


class Step(Struct, frozen=True):
    """One step of a batch call: the jobs to look at, how many at most, and what to do with them."""

    listing: Listing
    limit: int
    reason: str | None = None
    run_at: int | None = None


def page_of(request: ListJobs) -> Listing:
    """The page of a query, with room for one more job, which says whether there is another page."""
    return _listing(request, (request.limit or LIST_DEFAULT) + 1, request.cursor)


def all_of(request: Filter) -> Listing:
    return _listing(request, 1, None)


def step_of(request: CancelBatch | RequeueBatch) -> Step:
    """A step of a batch call; without a status filter, for jobs of the first status that the call works on."""
    limit = request.limit or BATCH_MOST
    listing = _listing(request.filter, limit + 1, request.cursor)
    if isinstance(request, CancelBatch):
        return Step(_or_status(listing, CANCELLABLE[0]), limit, request.reason)
    return Step(_or_status(listing, REVIVABLE[0]), limit, request.reason, request.run_at)


def _or_status(listing: Listing, status: str) -> Listing:
    return listing if listing.status is not None else replace(listing, status=str(status))


def _listing(chosen: Chosen, limit: int, before: int | None) -> Listing:
    given = {name: getattr(chosen, name) for name in Filter.__struct_fields__}
    return Listing(limit=limit, before=before, **{name: value for name, value in given.items() if value is not UNSET})
