"""Errors under `/scheduler`: errors of the server get the codes of the scheduler's contract.

Every error under these paths passes here once and is counted by its code.
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
from pendula.server.security.gates import TooManyWrongTokens

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


TRANSLATIONS: Mapping[type[PendulaError], type[HttpRefused]] = {
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


def translate_error(error: PendulaError) -> PendulaError:
    """The same error with the code of the scheduler's contract."""
    match error:
        case DocumentRefused():
            return body_error(error)
        case StoreUnusable() | NewerStore() | NotDurable():
            # The path of the file goes to the log, not to the caller.
            log.error("store_broken", code=error.code, problem=error.message)
            return store_broken(error)
        case _:
            kind = TRANSLATIONS.get(type(error))
            return error if kind is None else kind(error.message, **error.details)


def body_error(error: DocumentRefused) -> HttpRefused:
    """The error of a body that is not JSON; if repeated members are the only fault, it has its own code."""
    repeated = all(fault.code == "repeated_member" for fault in error.faults)
    kind = DuplicateMember if repeated else MalformedJson
    return kind(error.message, faults=error.details["faults"], more=error.more)


def store_broken(why: PendulaError) -> StoreBroken:
    return StoreBroken("The store of jobs cannot be used; see the server log", reason=why.code)


def method_refused(method: str, path: str, allowed: list[str]) -> Response:
    """A 405 response with the methods allowed at the path."""
    return error_response(method_error(method, path, allowed))


def method_error(method: str, path: str, allowed: list[str]) -> MethodNotAllowed:
    message = f"{method} is not allowed at {path}; allowed: {', '.join(allowed)}"
    return MethodNotAllowed(message, path=path, method=method, allowed=allowed)


class SchedulerErrors:
    """Translates errors under `/scheduler` and counts their codes."""

    def __init__(self, count: Callable[[str], None], methods: Callable[[Scope], set[str]]) -> None:
        """`methods` returns the methods allowed at the path of a request."""
        self._count = count
        self._methods = methods

    def translated(self, error: PendulaError, scope: Scope) -> PendulaError:
        translated = self._method_error(error, scope) or translate_error(error)
        self._count(translated.code)
        return translated

    def _method_error(self, error: PendulaError, scope: Scope) -> PendulaError | None:
        """405 takes precedence over a wrong content type."""
        allowed: set[str] = self._methods(scope) if isinstance(error, WrongContentType) else set()
        if not allowed or scope["method"] in allowed:
            return None
        return method_error(scope["method"], scope["path"][:256], sorted(allowed))

    def response(self, error: PendulaError, scope: Scope) -> Response:  # noqa: ARG002
        return error_response(error)

    def defect(self) -> Internal:
        self._count(Internal.code)
        return Internal("Internal error; the server log has the details under this request id")
