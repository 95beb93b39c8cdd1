"""Errors of the server with stable codes and HTTP statuses, and the common error form.

InputRefused
├── InvalidSettings, UnsafeBinding, InvalidToken    before the server starts
└── HttpRefused                                     one request
WorldBroken
└── DataLocked, DataUnusable, PortTaken, HostUnusable, TlsUnusable, TokensUnreadable, EngineUnavailable
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, ClassVar

from starlette.responses import Response

from pendula.kernel import canonical
from pendula.kernel.commit import Busy
from pendula.kernel.errors import InputRefused, NotCanonical, PendulaError, WorldBroken

RETRY_AFTER_SECONDS = 1


class InvalidSettings(InputRefused):
    """Facts: `faults`, one per invalid setting: `setting`, `source`, `problem`, `allowed`."""

    code = "invalid_settings"


class UnsafeBinding(InputRefused):
    """The address is reachable from other machines without authentication or encryption."""

    code = "unsafe_binding"


class InvalidToken(InputRefused):
    """The name, role or expiry of a token is invalid."""

    code = "invalid_token"


class DataLocked(WorldBroken):
    code = "data_locked"


class DataUnusable(WorldBroken):
    code = "data_unusable"


class PortTaken(WorldBroken):
    code = "port_taken"


class HostUnusable(WorldBroken):
    code = "host_unusable"


class TlsUnusable(WorldBroken):
    code = "tls_unusable"


class TokensUnreadable(WorldBroken):
    code = "tokens_unreadable"


class EngineUnavailable(WorldBroken):
    """The engine is starting, or could not be opened."""

    code = "engine_unavailable"


class HttpRefused(InputRefused):
    """A refused request; `status` is its HTTP status."""

    status: ClassVar[int] = 400
    retry_after: ClassVar[int | None] = None


class InvalidHead(HttpRefused):
    code = "invalid_http"
    status = 400


class NotIdentified(HttpRefused):
    code = "not_identified"
    status = 401


class RoleTooLow(HttpRefused):
    code = "role_too_low"
    status = 403


class ForeignOrigin(HttpRefused):
    code = "foreign_origin"
    status = 403


class NotFound(HttpRefused):
    code = "not_found"
    status = 404


class NotAStream(HttpRefused):
    """The address is not an event stream."""

    code = "not_a_stream"
    status = 404


class MethodNotAllowed(HttpRefused):
    code = "method_not_allowed"
    status = 405


class SlowRequest(HttpRefused):
    code = "slow_request"
    status = 408


class BodyTooLarge(HttpRefused):
    code = "body_too_large"
    status = 413


class WrongContentType(HttpRefused):
    code = "wrong_content_type"
    status = 415


class HostNotAllowed(HttpRefused):
    code = "host_not_allowed"
    status = 421


class InvalidRequest(HttpRefused):
    code = "invalid_request"
    status = 422


class TooMuchAtOnce(HttpRefused):
    """A command requests more than one command may; it was not applied. Facts: `asked`, `allowed`."""

    code = "too_much_at_once"
    status = 422


class StreamsOfTokenUsedUp(HttpRefused):
    code = "too_many_streams"
    status = 429
    retry_after = RETRY_AFTER_SECONDS


class StreamsUsedUp(HttpRefused):
    code = "too_many_streams"
    status = 503
    retry_after = RETRY_AFTER_SECONDS


class TooManyRequests(HttpRefused):
    code = "too_many_requests"
    status = 503
    retry_after = RETRY_AFTER_SECONDS


class BodiesBusy(HttpRefused):
    """The server has too many bytes of request bodies in memory. Try again in a moment."""

    code = "bodies_busy"
    status = 503
    retry_after = RETRY_AFTER_SECONDS


class ReadTooLong(HttpRefused):
    """A replay, a what-if or a long read took more than `read_seconds` and was cancelled."""

    code = "read_too_long"
    status = 503


class PastBusy(HttpRefused):
    """Too many reads of past states are waiting. Try again in a moment."""

    code = "past_busy"
    status = 503
    retry_after = RETRY_AFTER_SECONDS


def status_of(error: PendulaError) -> int:
    """The HTTP status of any error of the package: 4xx for invalid input, 503 for `WorldBroken`."""
    match error:
        case HttpRefused():
            return error.status
        case InputRefused():
            return 422
        case _:
            return 503


def error_body(code: str, message: str, details: Mapping[str, Any] | None = None) -> bytes:
    """`{"error": {"code", "message", "details"}}`; a fact without canonical form is sent as text."""
    facts = {name: _writable(value) for name, value in (details or {}).items()}
    return canonical.encode({"error": {"code": code, "message": _encodable(message), "details": facts}})


def error_response(error: PendulaError) -> Response:
    """The response for `error`."""
    headers = {"cache-control": "no-store"}
    status = status_of(error)
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="pendula"'
    match error:
        case MethodNotAllowed(details={"allowed": [*methods]}):
            headers["allow"] = ", ".join(methods)
        case HttpRefused(details={"retry_after_seconds": int(seconds)}) | HttpRefused(retry_after=int(seconds)):
            headers["retry-after"] = str(seconds)
        case Busy() | EngineUnavailable():
            headers["retry-after"] = str(RETRY_AFTER_SECONDS)
    message, details = _without_places(error)
    return json_response(error_body(error.code, message, details), status, headers)


def internal_error_response() -> Response:
    """The response to an internal error; the log has the details under the request id."""
    message = "Internal error; the server log has the details under this request id"
    return json_response(error_body("internal_error", message), 500, {"cache-control": "no-store"})


def json_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response with JSON bytes, sent unchanged so that every number stays exact."""
    return Response(body, status, headers, media_type="application/json")


def _without_places(error: PendulaError) -> tuple[str, Mapping[str, Any]]:
    """Message and facts with file names instead of paths, which only the log has."""
    file = PurePath(str(error.details.get("file", "")))
    if not file.is_absolute():
        return error.message, error.details
    return error.message.replace(str(file), file.name), {**error.details, "file": file.name}


def _writable(value: Any) -> Any:
    try:
        canonical.encode(value)
    except NotCanonical:
        return _encodable(str(value))
    return value


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()
