"""What the server refuses, each with a stable code and an HTTP status, and the one form every error is sent in.

InputRefused
├── InvalidSettings, UnsafeBinding, InvalidToken    before the server starts
└── HttpRefused                                     one request; the others go on
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
    """Facts: `faults`, one for each setting that cannot be used: `setting`, `source`, `problem`, `allowed`."""

    code = "invalid_settings"


class UnsafeBinding(InputRefused):
    """The address is reachable from elsewhere, and nothing would keep strangers out."""

    code = "unsafe_binding"


class InvalidToken(InputRefused):
    """A token with this name, role or expiry cannot be made or revoked."""

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
    """One request is not answered as asked; `status` is its HTTP status."""

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
    """Something is at the address, but it tells no events."""

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
    """One command asks for more than may be done in one go; nothing was done. Facts: `asked`, `allowed`."""

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
    """The server holds as many bytes of bodies as it may. Try again in a moment."""

    code = "bodies_busy"
    status = 503
    retry_after = RETRY_AFTER_SECONDS


class ReadTooLong(HttpRefused):
    """A replay, a what-if or a long read took more than `read_seconds`, and was given up."""

    code = "read_too_long"
    status = 503


class PastBusy(HttpRefused):
    """As many looks at the past wait as may. Try again in a moment."""

    code = "past_busy"
    status = 503
    retry_after = RETRY_AFTER_SECONDS


def status_of(error: PendulaError) -> int:
    """The HTTP status of any error of the package: the caller's fault is 4xx, the world's is 503."""
    match error:
        case HttpRefused():
            return error.status
        case InputRefused():
            return 422
        case _:
            return 503


def error_body(code: str, message: str, details: Mapping[str, Any] | None = None) -> bytes:
    """`{"error": {"code", "message", "details"}}`; a fact without canonical form is given as text."""
    facts = {name: _writable(value) for name, value in (details or {}).items()}
    return canonical.encode({"error": {"code": code, "message": _encodable(message), "details": facts}})


def error_response(error: PendulaError) -> Response:
    """The answer that reports `error`."""
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
    """What a caller hears of a defect: that there is one, and under which id the log tells more."""
    message = "The server made a mistake; its log has the details under this request's id"
    return json_response(error_body("internal_error", message), 500, {"cache-control": "no-store"})


def json_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Bytes that are JSON already; they are sent as they are, so that every number stays exact."""
    return Response(body, status, headers, media_type="application/json")


def _without_places(error: PendulaError) -> tuple[str, Mapping[str, Any]]:
    """Sentence and facts; where a file lies on this machine is for its log, callers hear the file's name."""
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
