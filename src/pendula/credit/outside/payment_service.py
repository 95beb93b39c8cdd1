"""Client of a payment service over HTTP; answers `pay`, `pay_many` and `clear` of a run with the engine "external".

    POST <url>/payments                 {"from", "to", "equivalent", "amount"}, header Idempotency-Key
    GET  <url>/payments/by-key/<key>    the result of the payment with that key; 404 if there is none
    POST <url>/clearing                 {"equivalent", "max_depth", "time_budget_ms"}, header Idempotency-Key
    GET  <url>/clearing/by-key/<key>    the result of that call; 404 if there is none

Payments of one question are sent one after the other and run concurrently. Each but the first has the header
Decide-After with the key of the previous payment: a service that decides in this order gives the same results as with
sequential calls. Answers keep the order of the questions.

A clearing returns {"cycles": [{"cleared_amount", "edges": [{"from": creditor, "to": debtor}]}]}.

2xx has the result: {"status": "COMMITTED", "routes": [{"path": [ids], "amount"}]}, or {"status": "ABORTED",
"error": {"code"}}. 4xx with {"error": {"code"}} is a refusal: nothing was done. 503 with {"tick_failed": true} means
that every payment of this tick was rolled back. A repeated key returns the stored result.

A payment that was made must never be reported as failed. So every response falls into one of four kinds:

- a result of the service: used as it is;
- nothing was done, because the payment was refused or the connection failed: reported as ABORTED;
- a response without a result (500, no JSON, another payment): the key is looked up once. A result counts; "no such
  payment" counts, because the call is over; anything else stays unclear, an internal error;
- no response, in time or at all: the key is looked up once. A result counts; "no such payment" does not, because the
  call may still arrive: a timeout, which the run may retry under the same key.

Unclear payments stay in `unsettled` until a later answer settles them; `settle` asks again. The client never retries on
its own, follows no redirects, uses no proxy, and opens a connection per call: a reused one that breaks would leave a
payment unclear. An attempt takes at most `total_seconds`, plus `lookup_seconds` if the key has to be looked up. With
`per_second` the service never sees more calls in any second.
"""

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from errno import errorcode
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from io import BufferedReader, RawIOBase
from queue import SimpleQueue
from re import compile as regex
from socket import gaierror, socket
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, TypeAlias, TypeVar, cast
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from pendula.credit.events import Edge, RouteView
from pendula.credit.model import Code
from pendula.credit.money import InvalidAmount, atoms
from pendula.credit.settings import Settings
from pendula.kernel.canonical import Json
from pendula.kernel.engine import NoAnswerSource
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

S = TypeVar("S")

QUESTION, TOGETHER, CLEARING = "pay", "pay_many", "clear"
UNREACHABLE, FAILED = "engine_unreachable", "engine_failed"
ANSWER_BYTES_MOST = 1024 * 1024
CONNECT_SECONDS = 3.0
LOOKUP_SECONDS = 3.0

_WORD = regex(r"[\x21-\x7e]{1,2000}")

# Short codes of payment engines of this family.
_SHORT_CODES = {
    "E001": Code.ROUTING_NO_ROUTE,
    "E002": Code.ROUTING_NO_CAPACITY,
    "E003": Code.TRUSTLINE_LIMIT_EXCEEDED,
    "E004": Code.TRUSTLINE_NOT_ACTIVE,
    "E007": Code.PAYMENT_TIMEOUT,
    "E008": Code.CONFLICT,
    "E009": Code.INVALID_INPUT,
    "E010": Code.INTERNAL_ERROR,
}
# Refusals without a code; 404 and 405 mean that there is no payment service at this address.
_BY_STATUS = {
    400: Code.INVALID_INPUT,
    401: Code.UNAUTHORIZED,
    403: Code.FORBIDDEN,
    404: Code.INTERNAL_ERROR,
    405: Code.INTERNAL_ERROR,
    409: Code.CONFLICT,
    422: Code.INVALID_INPUT,
}
ACCEPTED, NOT_FOUND, REQUEST_TIMEOUT, CONFLICT, UNAVAILABLE = 202, 404, 408, 409, 503


class Order(Struct, frozen=True, rename={"sender": "from", "receiver": "to", "key": "idempotency_key"}):
    """A payment to make. The number of the attempt is not sent: requests with one key are identical."""

    sender: str
    receiver: str
    equivalent: str
    amount: str
    key: str

    path: ClassVar[str] = "/payments"

    def body(self) -> dict[str, Json]:
        return {"from": self.sender, "to": self.receiver, "equivalent": self.equivalent, "amount": self.amount}


class Orders(Struct, frozen=True):
    """Payments to send concurrently."""

    payments: tuple[Order, ...]


class ClearingOrder(Struct, frozen=True, rename={"key": "idempotency_key"}):
    """A clearing to make."""

    equivalent: str
    max_depth: int
    time_budget_ms: int
    hard_timeout_ms: int
    key: str

    path: ClassVar[str] = "/clearing"

    def body(self) -> dict[str, Json]:
        limits: dict[str, Json] = {"max_depth": self.max_depth, "time_budget_ms": self.time_budget_ms}
        return {"equivalent": self.equivalent, **limits}


class _ClearedCycle(Struct, frozen=True):
    cleared_amount: str
    edges: tuple[Edge, ...]


class _Cleared(Struct, frozen=True):
    cycles: tuple[_ClearedCycle, ...]
    equivalent: str | None = None


class _Error(Struct, frozen=True):
    code: str


class _Result(Struct, frozen=True, rename={"sender": "from", "receiver": "to"}):
    """A result as in the contract; unknown members are ignored."""

    status: Literal["COMMITTED", "ABORTED"]
    routes: tuple[RouteView, ...] = ()
    error: _Error | None = None
    tx_id: str | None = None
    sender: str | None = None
    receiver: str | None = None
    equivalent: str | None = None
    amount: str | None = None


class _Refusal(Struct, frozen=True):
    error: _Error


class _TickFailed(Struct, frozen=True):
    tick_failed: bool


def _nothing() -> None:
    """The default `sent` callback."""


class Trouble(NamedTuple):
    """Address and cause of a call without a result; recorded with the answer."""

    code: str
    url: str
    cause: str
    status: int | None = None

    @property
    def json(self) -> dict[str, Json]:
        members = {"code": self.code, "url": self.url, "cause": self.cause, "status": self.status}
        return {name: value for name, value in members.items() if value is not None}


class Settled(NamedTuple):
    """A result of the service."""

    answer: dict[str, Json]


class NothingDone(NamedTuple):
    """This call did nothing; `over` if no other call with its key can still arrive."""

    answer: Json
    over: bool


class Unclear(NamedTuple):
    """The call is over; its result is unknown."""

    reason: str
    trouble: "Trouble"


class NoResponse(NamedTuple):
    """No response; the call may still arrive."""

    trouble: "Trouble"


class Absent(NamedTuple):
    """The service has no payment with the key."""


CallResult: TypeAlias = Settled | NothingDone | Unclear | NoResponse


class Reply(NamedTuple):
    """An HTTP response."""

    status: int
    data: bytes


class Unsent(NamedTuple):
    """The connection failed; nothing was sent."""

    timed_out: bool
    trouble: Trouble


class Lost(NamedTuple):
    """The request may have been sent, and no response came."""

    trouble: Trouble


class _Pace:
    """A rate limit as the service sees it: each slot is free again one second after its call."""

    def __init__(self, per_second: int) -> None:
        self._free: SimpleQueue[float] | None = None
        if per_second > 0:
            self._free = SimpleQueue()
            for _ in range(per_second):
                self._free.put(0.0)

    @contextmanager
    def call(self) -> Iterator[None]:
        if self._free is None:
            yield
            return
        left = self._free.get() - monotonic()
        if left > 0:
            sleep(left)
        try:
            yield
        finally:
            self._free.put(monotonic() + 1.0)


class PaymentService:
    """An `Outside` that answers `pay`, `pay_many` and `clear`."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        total_seconds: float = 10,
        connect_seconds: float = CONNECT_SECONDS,
        lookup_seconds: float = LOOKUP_SECONDS,
        per_second: int = 0,
        tls: ssl.SSLContext | None = None,
        called: str | None = None,
    ) -> None:
        """`per_second` bounds the calls of any second, lookups too; 0 and below is no bound.

        Errors name the service by its address, or by `called`.
        """
        if min(total_seconds, connect_seconds, lookup_seconds) <= 0:
            raise WrongUsage("The timeouts of a payment service must be above 0 seconds")
        if token is not None and not _WORD.fullmatch(token):
            raise WrongUsage("A token is one word of visible ASCII characters")
        self._https, self._host, self._port, self._prefix = _place(url)
        self.called = url.rstrip("/") if called is None else called
        self._tls = ssl.create_default_context() if self._https and tls is None else tls
        self._token = token
        self.total_seconds, self.connect_seconds, self.lookup_seconds = total_seconds, connect_seconds, lookup_seconds
        self._pace = _Pace(per_second)
        self._unsettled: dict[str, Order | ClearingOrder] = {}

    @classmethod
    def with_settings(
        cls,
        url: str,
        settings: Settings,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        called: str | None = None,
    ) -> Self:
        """The service with the timeout and the rate limit in the settings of a run."""
        limits = {"total_seconds": settings.payment_total_timeout_sec, "per_second": settings.max_payments_per_sec}
        return cls(url, token=token, tls=tls, called=called, **limits)

    @property
    def unsettled(self) -> dict[str, Json]:
        """Payments and clearings without a known outcome, by key, in the order of their attempts."""
        return {key: order.body() for key, order in self._unsettled.items()}

    def settle(self) -> dict[str, Json]:
        """Look up each unsettled payment and clearing: results by key, None if the service has none.

        One that was made is missing in the ledger of the run: the two have drifted apart.
        """
        answers: dict[str, Json] = {}
        for key, order in list(self._unsettled.items()):
            found = self._look_up(order)
            if found is not None:
                answers[key] = found.answer if isinstance(found, Settled) else None
                del self._unsettled[key]
        return answers

    def ask(self, name: str, question: Json) -> Json:
        match name:
            case "pay":
                return self._paid(msgspec.convert(question, Order))
            case "pay_many":
                return self._paid_together(msgspec.convert(question, Orders).payments)
            case "clear":
                return self._cleared(msgspec.convert(question, ClearingOrder))
        known = f"{QUESTION!r}, {TOGETHER!r} and {CLEARING!r}"
        raise NoAnswerSource(f"A payment service answers {known}, not {name!r}", name=name, question=question)

    def _paid_together(self, orders: Sequence[Order]) -> Json:
        """Make payments concurrently; each is sent after the previous one was sent."""
        sent = [Event() for _ in orders]

        def pay(at: int) -> Json:
            try:
                if at:
                    sent[at - 1].wait()
                return self._paid(orders[at], orders[at - 1].key if at else None, sent[at].set)
            finally:
                sent[at].set()

        with ThreadPoolExecutor(max(1, len(orders))) as threads:
            answers = list(threads.map(pay, range(len(orders))))
        for order in orders:
            # Threads end in any order; restore the order of the attempts.
            if order.key in self._unsettled:
                self._unsettled[order.key] = self._unsettled.pop(order.key)
        return answers

    def _paid(self, order: Order, after: str | None = None, sent: Callable[[], None] = _nothing) -> Json:
        call_result = self._post(order, after, sent)
        match call_result:
            case Settled(answer):
                self._unsettled.pop(order.key, None)
                return answer
            case NothingDone(answer) if order.key not in self._unsettled:
                return answer
        return self._after_lookup(order, call_result)

    def _after_lookup(self, order: Order, call_result: "NothingDone | Unclear | NoResponse") -> Json:
        """The answer if this call, or an earlier one with its key, has no known outcome."""
        lookup = self._look_up(order)
        if isinstance(lookup, Settled):
            self._unsettled.pop(order.key, None)
            return lookup.answer
        if isinstance(lookup, Absent):
            match call_result:
                case NothingDone(answer, over=True):
                    self._unsettled.pop(order.key, None)
                    return answer
                case Unclear() if order.key not in self._unsettled:
                    return _aborted(Code.INTERNAL_ERROR, call_result.trouble)
        self._unsettled[order.key] = order
        match call_result:
            case Unclear(reason, trouble):
                return {"unclear": reason, "trouble": trouble.json}
            case NoResponse(trouble):
                return {"timeout": True, "trouble": trouble.json}
        return {"timeout": True}

    def _cleared(self, order: ClearingOrder) -> Json:
        """Clear, and measure the duration of the call; a call without a response is looked up once."""
        begun = monotonic()
        answer = self._clearing_answer(self._sent(order, order.hard_timeout_ms / 1000), order)
        return {**answer, "cost_ms": max(1, round((monotonic() - begun) * 1000))}

    def _clearing_answer(self, reply: "Reply | Unsent | Lost", order: ClearingOrder) -> dict[str, Json]:
        failed: dict[str, Json] = {"error": {"code": Code.INTERNAL_ERROR.value}}
        url = self._url(order.path)
        if isinstance(reply, Unsent):
            return {**({"timeout": True} if reply.timed_out else failed), "trouble": reply.trouble.json}
        if isinstance(reply, Reply):
            if (answer := _cycles(reply, order)) is not None:
                return answer
            if reply.status == UNAVAILABLE and _read(reply.data, _TickFailed) == _TickFailed(True):
                return {"tick_failed": True}
            if 400 <= reply.status < 500 and reply.status not in (CONFLICT, REQUEST_TIMEOUT):
                return {"error": {"code": _refused_with(reply).value}, **_unexplained(reply, url)}
        lookup = self._look_up(order)
        if isinstance(lookup, Settled):
            return lookup.answer
        silent = isinstance(reply, Lost) or reply.status in (ACCEPTED, CONFLICT, REQUEST_TIMEOUT)
        if silent or lookup is None:
            # It may have been executed, or still may be.
            self._unsettled[order.key] = order
        if isinstance(reply, Lost):
            return {"timeout": True, "trouble": reply.trouble.json}
        return {**failed, "trouble": _no_result(reply, url).json}

    def _post(self, order: Order, after: str | None = None, sent: Callable[[], None] = _nothing) -> CallResult:
        reply = self._sent(order, self.total_seconds, {} if after is None else {"Decide-After": after}, sent)
        match reply:
            case Unsent(timed_out, trouble):
                late: Json = {"timeout": True, "trouble": trouble.json}
                return NothingDone(late if timed_out else _aborted(Code.INTERNAL_ERROR, trouble), over=False)
            case Lost(trouble):
                return NoResponse(trouble)
        return _understood(reply, order, self._url(order.path))

    def _sent(
        self,
        order: Order | ClearingOrder,
        seconds: float,
        more: Mapping[str, str] = {},
        sent: Callable[[], None] = _nothing,
    ) -> Reply | Unsent | Lost:
        headers = {"Content-Type": "application/json", "Idempotency-Key": order.key, **more}
        return self._called("POST", order.path, msgspec.json.encode(order.body()), headers, seconds, sent)

    def _look_up(self, order: Order | ClearingOrder) -> Settled | Absent | None:
        """What the service has under the key; None if that is unknown."""
        path = f"{order.path}/by-key/{quote(order.key, safe=':')}"
        reply = self._called("GET", path, None, {}, self.lookup_seconds)
        if not isinstance(reply, Reply):
            return None
        if reply.status == NOT_FOUND:
            return Absent()
        answer = _result(reply, order) if isinstance(order, Order) else _cycles(reply, order)
        return None if answer is None else Settled(answer)

    def _called(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        seconds: float,
        sent: Callable[[], None] = _nothing,
    ) -> Reply | Unsent | Lost:
        """One call over its own connection."""
        with self._pace.call():
            deadline = monotonic() + seconds
            connection = self._connection(min(seconds, self.connect_seconds))
            try:
                connection.connect()
            except (OSError, UnicodeError) as trouble:
                connection.close()
                problem = Trouble(UNREACHABLE, self._url(path), _cause(trouble))
                return Unsent(isinstance(trouble, TimeoutError), problem)
            wire = cast(socket, connection.sock)
            connection.sock = cast(socket, _Punctual(wire, deadline))
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token}"
            try:
                connection.request(method, self._prefix + path, body, {"Accept": "application/json", **headers})
                sent()
                response = connection.getresponse()
                return Reply(response.status, response.read(ANSWER_BYTES_MOST + 1))
            except (OSError, HTTPException, ValueError) as trouble:
                return Lost(Trouble(FAILED, self._url(path), _cause(trouble)))
            finally:
                wire.close()

    def _url(self, path: str) -> str:
        return self.called + path

    def _connection(self, seconds: float) -> HTTPConnection:
        if self._https:
            return HTTPSConnection(self._host, self._port, timeout=seconds, context=self._tls)
        return HTTPConnection(self._host, self._port, timeout=seconds)


class _Punctual(RawIOBase):
    """A socket with one deadline for all operations together, however slowly bytes arrive."""

    def __init__(self, wire: socket, deadline: float) -> None:
        self._wire = wire
        self._deadline = deadline

    def _hurry(self) -> None:
        left = self._deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        self._wire.settimeout(left)

    def sendall(self, data: "ReadableBuffer") -> None:
        self._hurry()
        self._wire.sendall(data)

    def makefile(self, _: str) -> BufferedReader:
        # Closed by the caller: http.client would close it before the body is read.
        return BufferedReader(_Punctual(self._wire, self._deadline))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._hurry()
        return self._wire.recv_into(buffer)


_CAUSES: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, "timeout"),
    (ConnectionRefusedError, "connection_refused"),
    (gaierror, "unknown_host"),
    (UnicodeError, "invalid_host"),
    (ssl.SSLCertVerificationError, "untrusted_certificate"),
    (ssl.SSLError, "no_tls"),
    (ConnectionError, "connection_lost"),
    (IncompleteRead, "connection_lost"),
    (HTTPException, "not_http"),
)


def _cause(trouble: Exception) -> str:
    """A key of `sentences.CAUSES`, else the name of the error. Text of libraries and services stays out of events."""
    for kind, cause in _CAUSES:
        if isinstance(trouble, kind):
            return cause
    number = trouble.errno if isinstance(trouble, OSError) else None
    return errorcode.get(number or 0, type(trouble).__name__)


def _no_result(reply: Reply, url: str) -> Trouble:
    return Trouble(FAILED, url, "no_result", reply.status)


def _unexplained(reply: Reply, url: str) -> dict[str, Json]:
    """The source of a refusal without a code, which may not be a payment service."""
    return {} if _read(reply.data, _Refusal) is not None else {"trouble": _no_result(reply, url).json}


def _understood(reply: Reply, order: Order, url: str) -> CallResult:
    status = reply.status
    answer = _result(reply, order)
    if answer is not None:
        return Settled(answer)
    if status == UNAVAILABLE and _read(reply.data, _TickFailed) == _TickFailed(True):
        return Settled({"tick_failed": True})
    if status in (ACCEPTED, REQUEST_TIMEOUT):
        return NoResponse(_no_result(reply, url))
    if 400 <= status < 500:
        # The conflict may be with an earlier call of the same payment that is still running.
        answer = {**_aborted(_refused_with(reply)), **_unexplained(reply, url)}
        return NothingDone(answer, over=status != CONFLICT)
    return Unclear(f"http_{status}", _no_result(reply, url))


def _result(reply: Reply, order: Order) -> dict[str, Json] | None:
    """The result in a response, as the run reads it; None without a result or with one of another payment."""
    if not 200 <= reply.status < 300 or len(reply.data) > ANSWER_BYTES_MOST:
        return None
    result = _read(reply.data, _Result)
    if result is None or not _is_of(result, order):
        return None
    if result.status == "ABORTED":
        return _aborted(Code.PAYMENT_REJECTED if result.error is None else _code(result.error.code))
    routes: Json = [{"path": list(route.path), "amount": route.amount} for route in result.routes]
    return {"status": result.status, "routes": routes, **({} if result.tx_id is None else {"tx_id": result.tx_id})}


def _cycles(reply: Reply, order: ClearingOrder) -> dict[str, Json] | None:
    """The cycles in a response, as the run reads them; None without cycles or with those of another equivalent."""
    if not 200 <= reply.status < 300 or len(reply.data) > ANSWER_BYTES_MOST:
        return None
    cleared = _read(reply.data, _Cleared)
    if cleared is None or cleared.equivalent not in (None, order.equivalent):
        return None
    cycles: list[Json] = [
        {"cleared_amount": cycle.cleared_amount, "edges": [msgspec.to_builtins(edge) for edge in cycle.edges]}
        for cycle in cleared.cycles
    ]
    return {"cycles": cycles}


def _is_of(result: _Result, order: Order) -> bool:
    """Whether the payment in the result, as far as it is given, is the requested one."""
    returned = result.sender, result.receiver, result.equivalent
    requested = order.sender, order.receiver, order.equivalent
    if any(name is not None and name != expected for name, expected in zip(returned, requested, strict=True)):
        return False
    try:
        return result.amount is None or atoms(result.amount) == atoms(order.amount)
    except InvalidAmount:
        return False


def _refused_with(reply: Reply) -> Code:
    refusal = _read(reply.data, _Refusal)
    if refusal is not None:
        return _code(refusal.error.code)
    return _BY_STATUS.get(reply.status, Code.PAYMENT_REJECTED)


def _code(word: str) -> Code:
    if word in tuple(Code):
        return Code(word)
    return _SHORT_CODES.get(word, Code.PAYMENT_REJECTED)


def _aborted(code: Code, trouble: Trouble | None = None) -> dict[str, Json]:
    answer: dict[str, Json] = {"status": "ABORTED", "error": {"code": code.value}}
    return answer if trouble is None else {**answer, "trouble": trouble.json}


def _read(data: bytes, kind: type[S]) -> S | None:
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):
        return None


def _place(url: str) -> tuple[bool, str, int | None, str]:
    """Whether it is TLS, host, port and the path before `/payments`; raises `WrongUsage`."""
    if "@" in url:
        raise WrongUsage("The address must not contain credentials; pass the token separately")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment or not _WORD.fullmatch(url):
        message = f"{url!r} is not the address of a payment service; an example is http://127.0.0.1:8000/api"
        raise WrongUsage(message, url=url)
    return parts.scheme == "https", host, port, parts.path.rstrip("/")
