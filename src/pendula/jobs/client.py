"""`RemoteScheduler`: the calls on a running server, over HTTP.

Connections are reused, one for each calling thread. Only reading calls are repeated when a reused connection is dead;
writing calls are never sent twice.
"""

import json
import select
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from http.client import BadStatusLine, HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from re import compile as regex
from ssl import SSLCertVerificationError
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import ValidationError, convert

from pendula.jobs.addresses import place_of, trust
from pendula.jobs.calls import no_plan, not_found
from pendula.jobs.messages import PLAN_NAME, PULL, Call, JobRefused, Message
from pendula.jobs.model import Code, Refused, StorageBusy
from pendula.jobs.scheduler_calls import SchedulerCalls
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused, WorldBroken, WrongUsage
from pendula.kernel.wallclock import WallClock

R = TypeVar("R", bound=Message)

TIMEOUT_SECONDS = 30
REPLY_BYTES_MOST = 256 * 1024 * 1024
USER_HEADER = "X-Pendula-User"
_JOB_ID = regex(r"job_[0-9A-Za-z]{8,40}")

_encode = msgspec.json.Encoder(decimal_format="number").encode


class ServerUnreachable(WorldBroken):
    """No answer: the call may or may not have been applied. Facts: `url`."""

    code = "server_unreachable"


class NotAScheduler(WorldBroken):
    """The answer is not from a scheduler. Facts: `url`, `status`."""

    code = "not_a_scheduler"


class ServerTrouble(WorldBroken):
    """The server failed; `code`, `status` and `details` are those of its answer."""

    code: ClassVar[str] = "server_trouble"

    def __init__(self, status: int, code: str, message: str, details: Mapping[str, Json]) -> None:
        super().__init__(message, **_facts(details))
        self.status = status
        self.__dict__["code"] = code


class CallRefused(InputRefused):
    """The server refused the call before it reached the scheduler: no token, no right, too large; see `code`."""

    code: ClassVar[str] = "call_refused"

    def __init__(self, status: int, code: str, message: str, details: Mapping[str, Json]) -> None:
        super().__init__(message, **_facts(details))
        self.status = status
        self.__dict__["code"] = code


class RemoteScheduler(SchedulerCalls):
    """Jobs of a server. A refused call raises `JobRefused`, like `Scheduler`; safe for threads.

    Over https the certificate is verified with the authorities of this system, or with those in the file `ca`.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        *,
        ca: str | Path | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._tls, self._host, self._port, self._prefix = place_of(url)
        self._token = token
        self._timeout = timeout
        self._trust = trust(ca) if self._tls else None
        self._idle: deque[HTTPConnection] = deque()
        self._closed = False

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.popleft().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def now(self) -> int:
        return WallClock().now()

    def send(self, call: Call[R], members: Mapping[str, Any], *path: str) -> R:
        return self.send_as(None, call, members, *path)

    def send_as(self, user: str | None, call: Call[R], members: Mapping[str, Any], *path: str) -> R:
        """Make a call in the name of a user; a server with tokens uses the name of the token."""
        place = _target(call, path)
        if call.reads:
            reply = self.get(place, members)
        else:
            wait_ms = members.get("wait_ms") if call is PULL else None
            reply = self.post(
                place, members, wait_ms / 1000 if isinstance(wait_ms, int) else 0, method=call.method, user=user
            )
        try:
            return convert(reply, call.reply)
        except ValidationError as wrong:
            message = f"The answer of the server at {self.url} is not that of {call.name}: {wrong}"
            raise NotAScheduler(message, url=self.url, status=200) from None

    # Inside

    def post(
        self,
        path: str,
        members: Mapping[str, Any],
        wait_seconds: float = 0,
        *,
        method: str = "POST",
        user: str | None = None,
    ) -> dict[str, Any]:
        try:
            body = _encode(members)
        except (UnicodeEncodeError, msgspec.MsgspecError, TypeError) as error:
            raise InputRefused(f"This cannot be sent as JSON: {error}") from None
        return self._asked(method, path, body, wait_seconds, user)

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        given = [(name, _word(value)) for name, value in (query or {}).items() if value is not None]
        return self._asked("GET", f"{path}?{urlencode(given, errors='replace')}" if given else path, None, 0)

    def _asked(
        self, method: str, path: str, body: bytes | None, wait_seconds: float, user: str | None = None
    ) -> dict[str, Any]:
        if self._closed:
            raise WrongUsage("The scheduler was closed")
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if user is not None:
            headers[USER_HEADER] = quote(user, errors="replace")
        target = f"{self._prefix}/scheduler{path}"
        seconds = self._timeout + wait_seconds
        connection = self._reused()
        if connection is not None:
            try:
                return self._answered(connection, method, target, body, headers, seconds)
            except ServerUnreachable:
                if method != "GET":
                    raise
        return self._answered(self._made(seconds), method, target, body, headers, seconds)

    def _answered(
        self,
        connection: HTTPConnection,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
        seconds: float,
    ) -> dict[str, Any]:
        try:
            connection.timeout = seconds
            if connection.sock is not None:
                connection.sock.settimeout(seconds)
            connection.request(method, target, body, dict(headers))
            response = connection.getresponse()
            data = response.read(REPLY_BYTES_MOST)
        except (OSError, HTTPException) as trouble:
            connection.close()
            raise self._unreachable(trouble, seconds) from trouble
        except BaseException:
            connection.close()
            raise
        if response.will_close or self._closed or not response.isclosed():
            connection.close()
        else:
            self._idle.append(connection)
        return self._understood(response, data)

    def _reused(self) -> HTTPConnection | None:
        """An idle connection that the server has not closed."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            # No data is expected on an idle connection: readable means closed.
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()

    def _made(self, seconds: float) -> HTTPConnection:
        if self._trust is not None:
            return HTTPSConnection(self._host, self._port, timeout=seconds, context=self._trust)
        return HTTPConnection(self._host, self._port, timeout=seconds)

    def _unreachable(self, trouble: Exception, seconds: float) -> ServerUnreachable:
        if isinstance(trouble, SSLCertVerificationError):
            reason = f"{trouble.verify_message}; --ca, or ca= in Python, names a file with the authority to trust"
            return ServerUnreachable(f"The certificate of {self.url} is not trusted: {reason}", url=self.url)
        if isinstance(trouble, TimeoutError):
            reason = f"no answer within {seconds:g} s"
        elif isinstance(trouble, OSError) and trouble.strerror:
            reason = trouble.strerror
        else:
            reason = str(trouble) or type(trouble).__name__
        hint = "; does it want https?" if not self._tls and isinstance(trouble, BadStatusLine) else ""
        return ServerUnreachable(f"The server at {self.url} cannot be reached: {reason}{hint}", url=self.url)

    def _understood(self, response: HTTPResponse, data: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(data, parse_float=Decimal)
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict):
            if 200 <= response.status < 300:
                return answer
            error = answer.get("error")
            if isinstance(error, dict) and isinstance(error.get("code"), str):
                details = error.get("details")
                given = details if isinstance(details, dict) else {}
                raise _refusal(response.status, error["code"], str(error.get("message", "")), given)
        message = f"The server at {self.url} is not a scheduler of Pendula (HTTP {response.status})"
        raise NotAScheduler(message, url=self.url, status=response.status)


def _refusal(status: int, code: str, message: str, details: dict[str, Json]) -> Exception:
    if status >= 500:
        return StorageBusy(message) if code == StorageBusy.code else ServerTrouble(status, code, message, details)
    if code in tuple(Code):
        return JobRefused(Refused(Code(code), message, details))
    return CallRefused(status, code, message, details)


def _word(value: Any) -> str:
    """A value of a query."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _facts(details: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in details.items() if name != "message"}


def _target(call: Call[Any], path: Sequence[str]) -> str:
    """The path of a call. Raises `JobRefused` for a text that is no id, which could lead to another path."""
    match call.path.split("/")[1:], path:
        case ["jobs", "{job_id}", *_], [job_id]:
            return call.path.format(job_id=known_job(job_id))
        case ["plans", "{name}", _], [name] if PLAN_NAME.fullmatch(name) is None:
            raise JobRefused(no_plan(name))
        case ["plans", "{name}", *_], [name]:
            return call.path.format(name=segment(name))
        case _, [object_type, object_id]:
            return call.path.format(object_type=segment(object_type), object_id=segment(object_id))
        case _:
            return call.path


def known_job(job_id: str) -> str:
    """A valid job id; raises `JobRefused` for any other text, which could lead to another path."""
    if _JOB_ID.fullmatch(job_id) is None:
        raise JobRefused(not_found(job_id))
    return job_id


def segment(text: str) -> str:
    """A quoted segment of a path; dots only are escaped, since they would mean a parent."""
    quoted = quote(text, safe="", errors="replace")
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted
