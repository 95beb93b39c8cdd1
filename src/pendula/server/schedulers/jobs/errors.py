"""What is refused under `/scheduler`, in the words of its own contract: the gates' refusals get that contract's codes.

Everything that goes wrong under these paths passes here once, and is counted by its code.
"""

from collections.abc import Callable, Mapping

import structlog
from starlette.responses import Response
from starlette.types import Scope

from pendula.documents import DocumentRefused
from pendula.jobs.model import StorageBusy
from pendula.jobs.store.sqlite import NewerStore, NotDurable, StoreUnusable
from pendula.kernel.errors import PendulaError
from pendula.server.errors import (
    RETRY_AFTER_SECONDS,
    BodiesBusy,
    ForeignOrigin,
    HttpRefused,
    MethodNotAllowed,
    NotFound,
    NotIdentified,
    PastBusy,
    RoleTooLow,
    TooManyRequests,
    WrongContentType,
    error_response,
)
from pendula.server.security.wrong_tokens import TooManyWrongTokens

PREFIX = "/scheduler"

log = structlog.get_logger("pendula.server")


class Unauthenticated(HttpRefused):
    code = "unauthenticated"
    status = 401


class Forbidden(HttpRefused):
    code = "forbidden"
    status = 403


class RouteNotFound(HttpRefused):
    code = "route_not_found"
    status = 404


class UnsupportedMediaType(HttpRefused):
    code = "unsupported_media_type"
    status = 415


class MalformedJson(HttpRefused):
    """Facts: `faults`, each with its place."""

    code = "malformed_json"
    status = 400


class DuplicateMember(HttpRefused):
    """Facts: `faults`, each with its place."""

    code = "duplicate_member"
    status = 400


class BodyNotObject(HttpRefused):
    code = "body_not_object"
    status = 400


class RateLimited(HttpRefused):
    code = "rate_limited"
    status = 429
    retry_after = RETRY_AFTER_SECONDS


class Internal(HttpRefused):
    code = "internal"
    status = 500


class ShuttingDown(HttpRefused):
    code = "shutting_down"
    status = 503
    retry_after = RETRY_AFTER_SECONDS


class StoreBusy(HttpRefused):
    """Nothing was changed: another writer holds the store, or it is being opened."""

    code = StorageBusy.code
    status = 503
    retry_after = RETRY_AFTER_SECONDS


class StoreBroken(HttpRefused):
    """The store cannot be used. Facts: `reason`, the code that readiness shows."""

    code = StoreUnusable.code
    status = 503
    retry_after = RETRY_AFTER_SECONDS


WORDS: Mapping[type[PendulaError], type[HttpRefused]] = {
    NotIdentified: Unauthenticated,
    RoleTooLow: Forbidden,
    ForeignOrigin: Forbidden,
    NotFound: RouteNotFound,
    WrongContentType: UnsupportedMediaType,
    TooManyRequests: RateLimited,
    BodiesBusy: RateLimited,
    PastBusy: RateLimited,
    TooManyWrongTokens: RateLimited,
    StorageBusy: StoreBusy,
}


def worded(error: PendulaError) -> PendulaError:
    """The same refusal under the code that the contract of the scheduler has for it."""
    match error:
        case DocumentRefused():
            return unreadable(error)
        case StoreUnusable() | NewerStore() | NotDurable():
            # Where the file lies is for the log; the caller hears that it cannot be used.
            log.error("store_broken", code=error.code, problem=error.message)
            return store_broken(error)
        case _:
            kind = WORDS.get(type(error))
            return error if kind is None else kind(error.message, **error.details)


def unreadable(error: DocumentRefused) -> HttpRefused:
    """A body that is not JSON; repeated members have a code of their own where nothing else is wrong."""
    repeated = all(fault.code == "repeated_member" for fault in error.faults)
    kind = DuplicateMember if repeated else MalformedJson
    return kind(error.message, faults=error.details["faults"], more=error.more)


def store_broken(why: PendulaError) -> StoreBroken:
    return StoreBroken("The store of jobs cannot be used; the log of the server says why", reason=why.code)


def method_refused(method: str, path: str, allowed: list[str]) -> Response:
    """405 with all that is possible at the path."""
    return error_response(method_impossible(method, path, allowed))


def method_impossible(method: str, path: str, allowed: list[str]) -> MethodNotAllowed:
    message = f"{method} is not allowed at {path}; allowed: {', '.join(allowed)}"
    return MethodNotAllowed(message, path=path, method=method, allowed=allowed)


class SchedulerErrors:
    """The translator of what goes wrong under `/scheduler`, which counts each code."""

    def __init__(self, count: Callable[[str], None], methods: Callable[[Scope], set[str]]) -> None:
        """`methods` gives what is possible at the path of a request."""
        self._count = count
        self._methods = methods

    def translated(self, error: PendulaError, scope: Scope) -> PendulaError:
        said = self._impossible(error, scope) or worded(error)
        self._count(said.code)
        return said

    def _impossible(self, error: PendulaError, scope: Scope) -> PendulaError | None:
        """What the path cannot do at all is told before what is wrong with the body."""
        allowed: set[str] = self._methods(scope) if isinstance(error, WrongContentType) else set()
        if not allowed or scope["method"] in allowed:
            return None
        return method_impossible(scope["method"], scope["path"][:256], sorted(allowed))

    def response(self, error: PendulaError, scope: Scope) -> Response:  # noqa: ARG002
        return error_response(error)

    def defect(self) -> Internal:
        self._count(Internal.code)
        return Internal("The server made a mistake; its log has the details under this request's id")
