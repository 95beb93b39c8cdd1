"""An outside payment service over HTTP: what a run with the engine "external" asks as `pay`, `pay_many` and `clear`.

    POST <url>/payments                 {"from", "to", "equivalent", "amount"}, header Idempotency-Key
    GET  <url>/payments/by-key/<key>    what became of the payment of that key; 404 if there never was one
    POST <url>/clearing                 {"equivalent", "max_depth", "time_budget_ms"}, header Idempotency-Key
    GET  <url>/clearing/by-key/<key>    what that call cleared; 404 if there never was one

Payments that are asked for together are sent one after the other and are under way at the same time. Each but the
first has the header Decide-After, with the key of the payment before it: a service that decides in this order gives
the same results as one that is asked for one payment after the other. Answers are told in the order of the questions.

A clearing brings {"cycles": [{"cleared_amount", "edges": [{"from": creditor, "to": debtor}]}]}.

2xx brings the result: {"status": "COMMITTED", "routes": [{"path": [ids], "amount"}]}, or {"status": "ABORTED",
"error": {"code"}}. 4xx with {"error": {"code"}} is a refusal: nothing was done. 503 with {"tick_failed": true} says
that every payment of this tick was taken back. A key that the service knows gets the result it got before.

A payment that was made must never be told as one that was not. So every answer falls into one of four kinds:

- the service's own result: taken as it is;
- nothing was done, for the payment was refused or no connection could be made: told as ABORTED;
- the call was answered, but not with a result (500, no JSON, another payment): the key is looked up once. A result
  counts; "no such payment" is believed, because the call is over; anything else stays unclear, an internal error;
- no answer came, in time or at all: the key is looked up once. A result counts; "no such payment" is not believed,
  because the call may still be on its way: a timeout, which the run may try again under the same key.

What is left unclear stays in `unsettled` until a later answer settles it; `settle` asks again. Nothing is sent twice
behind the run's back, no redirect is followed, no proxy used, and every call has a connection of its own: a kept one
that dies just then would leave a payment unclear for nothing. An attempt takes at most `total_seconds` and, where the
key has to be looked up, `lookup_seconds` more. With `per_second` the service never sees more calls in any second.
"""

import ssl
from collections.abc import Callable, Iterator, Sequence
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
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias, TypeVar, cast
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from pendula.credit.model import Code
from pendula.credit.money import InvalidAmount, atoms
from pendula.credit.settings import Settings
from pendula.kernel.bodies import NoAnswerSource
from pendula.kernel.canonical import Json
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

# What payment engines of this family call the same things.
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
# A refusal without a code; 404 and 405 mean that there is no payment service at this address.
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
    """What the run asks. The number of the attempt is not sent on: under one key the request is always the same."""

    sender: str
    receiver: str
    equivalent: str
    amount: str
    key: str

    def body(self) -> dict[str, Json]:
        return {"from": self.sender, "to": self.receiver, "equivalent": self.equivalent, "amount": self.amount}


class Orders(Struct, frozen=True):
    """Payments that are under way at the same time."""

    payments: tuple[Order, ...]


class ClearingOrder(Struct, frozen=True, rename={"key": "idempotency_key"}):
    """One clearing that the run asks for."""

    equivalent: str
    max_depth: int
    time_budget_ms: int
    hard_timeout_ms: int
    key: str

    def body(self) -> dict[str, Json]:
        limits: dict[str, Json] = {"max_depth": self.max_depth, "time_budget_ms": self.time_budget_ms}
        return {"equivalent": self.equivalent, **limits}


class _ClearedEdge(Struct, frozen=True, rename={"creditor": "from", "debtor": "to"}):
    creditor: str
    debtor: str


class _ClearedCycle(Struct, frozen=True):
    cleared_amount: str
    edges: tuple[_ClearedEdge, ...]


class _Cleared(Struct, frozen=True):
    cycles: tuple[_ClearedCycle, ...]
    equivalent: str | None = None


class _Route(Struct, frozen=True):
    path: tuple[str, ...]
    amount: str


class _Error(Struct, frozen=True):
    code: str


class _Result(Struct, frozen=True, rename={"sender": "from", "receiver": "to"}):
    """A result as the contract has it; members it does not name are passed over."""

    status: Literal["COMMITTED", "ABORTED"]
    routes: tuple[_Route, ...] = ()
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
    """What is done once a call is sent, where nobody waits for it."""


class Trouble(NamedTuple):
    """Where a call went and why it brought no result; recorded with the answer, for the message of the error."""

    code: str
    url: str
    cause: str
    status: int | None = None

    @property
    def json(self) -> dict[str, Json]:
        found = {"code": self.code, "url": self.url, "cause": self.cause, "status": self.status}
        return {name: value for name, value in found.items() if value is not None}


class Settled(NamedTuple):
    """The service has spoken."""

    answer: Json


class NothingDone(NamedTuple):
    """This call did nothing; `over` if no other call under its key can be on its way either."""

    answer: Json
    over: bool


class Muddled(NamedTuple):
    """The call is over; what came of it was not told."""

    reason: str
    trouble: "Trouble"


class Silent(NamedTuple):
    """No answer; the call may still be on its way."""

    trouble: "Trouble"


class Absent(NamedTuple):
    """The service knows of no payment under the key."""


Said: TypeAlias = Settled | NothingDone | Muddled | Silent


class Reply(NamedTuple):
    """What came back over the wire."""

    status: int
    data: bytes


class Unsent(NamedTuple):
    """There was no connection to send anything over."""

    timed_out: bool
    trouble: Trouble


class Lost(NamedTuple):
    """Something may have been sent, and no answer came."""

    trouble: Trouble


class _Pace:
    """At most so many calls in any second, as the service sees them: a place is free again a second after its call."""

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

        Errors name the service by its address, or as it is `called`.
        """
        if min(total_seconds, connect_seconds, lookup_seconds) <= 0:
            raise WrongUsage("The time a payment service is given has to be above 0 seconds")
        if token is not None and not _WORD.fullmatch(token):
            raise WrongUsage("A token is one word of visible ASCII characters")
        self._https, self._host, self._port, self._prefix = _place(url)
        self.called = url.rstrip("/") if called is None else called
        self._tls = ssl.create_default_context() if self._https and tls is None else tls
        self._token = token
        self.total_seconds, self.connect_seconds, self.lookup_seconds = total_seconds, connect_seconds, lookup_seconds
        self._pace = _Pace(per_second)
        self._unsettled: dict[str, Order] = {}
        self._unsettled_clearings: dict[str, ClearingOrder] = {}

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
        """The service with the time limit of a payment and the rate that the settings of a run give."""
        limits = {"total_seconds": settings.payment_total_timeout_sec, "per_second": settings.max_payments_per_sec}
        return cls(url, token=token, tls=tls, called=called, **limits)

    @property
    def unsettled(self) -> dict[str, Json]:
        """Payments and clearings without a known outcome, by key, in the order they were tried."""
        found: dict[str, Json] = {key: order.body() for key, order in self._unsettled.items()}
        found |= {key: order.body() for key, order in self._unsettled_clearings.items()}
        return found

    def settle(self) -> dict[str, Json]:
        """Ask once more about each unsettled payment and clearing: results by key, None where the service knows none.

        One that was made after all is missing in the ledger of the run: the two have drifted apart.
        """
        found: dict[str, Json] = {}
        for key, order in list(self._unsettled.items()):
            said = self._looked_up(order)
            if isinstance(said, Settled | Absent):
                found[key] = said.answer if isinstance(said, Settled) else None
                del self._unsettled[key]
        for key, clearing in list(self._unsettled_clearings.items()):
            reply = self._clearing_looked_up(clearing)
            cycles = _cycles(reply, clearing) if isinstance(reply, Reply) else None
            if cycles is not None or (isinstance(reply, Reply) and reply.status == NOT_FOUND):
                found[key] = None if cycles is None else {"cycles": cycles}
                del self._unsettled_clearings[key]
        return found

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
        """All of them at the same time; each is sent when the one before it has been."""
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
            # The order in which threads ended is not the order in which payments were tried.
            if order.key in self._unsettled:
                self._unsettled[order.key] = self._unsettled.pop(order.key)
        return answers

    def _paid(self, order: Order, after: str | None = None, sent: Callable[[], None] = _nothing) -> Json:
        said = self._posted(order, after, sent)
        match said:
            case Settled(answer):
                self._unsettled.pop(order.key, None)
                return answer
            case NothingDone(answer) if order.key not in self._unsettled:
                return answer
        return self._after_a_look(order, said)

    def _after_a_look(self, order: Order, said: "NothingDone | Muddled | Silent") -> Json:
        """What to tell where this call, or an earlier one under its key, has left things open."""
        found = self._looked_up(order)
        if isinstance(found, Settled):
            self._unsettled.pop(order.key, None)
            return found.answer
        if isinstance(found, Absent):
            match said:
                case NothingDone(answer, over=True):
                    self._unsettled.pop(order.key, None)
                    return answer
                case Muddled() if order.key not in self._unsettled:
                    return _aborted(Code.INTERNAL_ERROR, said.trouble)
        self._unsettled[order.key] = order
        match said:
            case Muddled(reason, trouble):
                return {"unclear": reason, "trouble": trouble.json}
            case Silent(trouble):
                return {"timeout": True, "trouble": trouble.json}
        return {"timeout": True}

    def _cleared(self, order: ClearingOrder) -> Json:
        """What was cleared and how long the call took; a call whose answer is lost is looked up once."""
        begun = monotonic()
        seconds = order.hard_timeout_ms / 1000
        headers = {"Content-Type": "application/json", "Idempotency-Key": order.key}
        reply = self._called("POST", "/clearing", msgspec.json.encode(order.body()), headers, seconds)
        answer = self._clearing_told(reply, order)
        return {**answer, "cost_ms": max(1, round((monotonic() - begun) * 1000))}

    def _clearing_told(self, reply: "Reply | Unsent | Lost", order: ClearingOrder) -> dict[str, Json]:
        failed: dict[str, Json] = {"error": {"code": Code.INTERNAL_ERROR.value}}
        url = self._url("/clearing")
        if isinstance(reply, Unsent):
            return {**({"timeout": True} if reply.timed_out else failed), "trouble": reply.trouble.json}
        if isinstance(reply, Reply):
            if (cycles := _cycles(reply, order)) is not None:
                return {"cycles": cycles}
            if reply.status == UNAVAILABLE and _read(reply.data, _TickFailed) == _TickFailed(True):
                return {"tick_failed": True}
            if 400 <= reply.status < 500 and reply.status not in (CONFLICT, REQUEST_TIMEOUT):
                return {"error": {"code": _refused_with(reply).value}, **_unexplained(reply, url)}
        found = self._clearing_looked_up(order)
        if isinstance(found, Reply) and (cycles := _cycles(found, order)) is not None:
            return {"cycles": cycles}
        silent = isinstance(reply, Lost) or reply.status in (ACCEPTED, CONFLICT, REQUEST_TIMEOUT)
        if silent or not (isinstance(found, Reply) and found.status == NOT_FOUND):
            # It may have been carried out, or may be yet.
            self._unsettled_clearings[order.key] = order
        if isinstance(reply, Lost):
            return {"timeout": True, "trouble": reply.trouble.json}
        return {**failed, "trouble": _no_result(reply, url).json}

    def _clearing_looked_up(self, order: ClearingOrder) -> "Reply | Unsent | Lost":
        path = f"/clearing/by-key/{quote(order.key, safe=':')}"
        return self._called("GET", path, None, {}, self.lookup_seconds)

    def _posted(self, order: Order, after: str | None = None, sent: Callable[[], None] = _nothing) -> Said:
        headers = {"Content-Type": "application/json", "Idempotency-Key": order.key}
        if after is not None:
            headers["Decide-After"] = after
        body = msgspec.json.encode(order.body())
        reply = self._called("POST", "/payments", body, headers, self.total_seconds, sent)
        match reply:
            case Unsent(timed_out, trouble):
                late: Json = {"timeout": True, "trouble": trouble.json}
                return NothingDone(late if timed_out else _aborted(Code.INTERNAL_ERROR, trouble), over=False)
            case Lost(trouble):
                return Silent(trouble)
        return _understood(reply, order, self._url("/payments"))

    def _looked_up(self, order: Order) -> Settled | Absent | None:
        path = f"/payments/by-key/{quote(order.key, safe=':')}"
        reply = self._called("GET", path, None, {}, self.lookup_seconds)
        if not isinstance(reply, Reply):
            return None
        if reply.status == NOT_FOUND:
            return Absent()
        answer = _result(reply, order)
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
        """One call over a connection of its own."""
        with self._pace.call():
            return self._called_now(method, path, body, headers, seconds, sent)

    def _called_now(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        seconds: float,
        sent: Callable[[], None],
    ) -> Reply | Unsent | Lost:
        deadline = monotonic() + seconds
        connection = self._connection(min(seconds, self.connect_seconds))
        try:
            connection.connect()
        except (OSError, UnicodeError) as trouble:
            connection.close()
            found = Trouble(UNREACHABLE, self._url(path), _cause(trouble))
            return Unsent(isinstance(trouble, TimeoutError), found)
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
    """A socket on which everything together has to be over by a moment, however slowly the bytes drip."""

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
        # The one who made the connection closes it: http.client would do so before the body is read.
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
    """Where a refusal without a code came from: it need not be a payment service that gave it."""
    return {} if _read(reply.data, _Refusal) is not None else {"trouble": _no_result(reply, url).json}


def _understood(reply: Reply, order: Order, url: str) -> Said:
    status = reply.status
    answer = _result(reply, order)
    if answer is not None:
        return Settled(answer)
    if status == UNAVAILABLE and _read(reply.data, _TickFailed) == _TickFailed(True):
        return Settled({"tick_failed": True})
    if status in (ACCEPTED, REQUEST_TIMEOUT):
        return Silent(_no_result(reply, url))
    if 400 <= status < 500:
        # A conflict may be with an earlier call of the same payment, which is still being worked on.
        answer = {**_aborted(_refused_with(reply)), **_unexplained(reply, url)}
        return NothingDone(answer, over=status != CONFLICT)
    return Muddled(f"http_{status}", _no_result(reply, url))


def _result(reply: Reply, order: Order) -> Json:
    """The result in an answer, in the form the run reads; None where there is none, or one of another payment."""
    if not 200 <= reply.status < 300 or len(reply.data) > ANSWER_BYTES_MOST:
        return None
    found = _read(reply.data, _Result)
    if found is None or not _is_of(found, order):
        return None
    if found.status == "ABORTED":
        return _aborted(Code.PAYMENT_REJECTED if found.error is None else _code(found.error.code))
    routes: Json = [{"path": list(route.path), "amount": route.amount} for route in found.routes]
    return {"status": found.status, "routes": routes, **({} if found.tx_id is None else {"tx_id": found.tx_id})}


def _cycles(reply: Reply, order: ClearingOrder) -> Json:
    """The circles in an answer, in the form the run reads; None where there are none, or those of something else."""
    if not 200 <= reply.status < 300 or len(reply.data) > ANSWER_BYTES_MOST:
        return None
    found = _read(reply.data, _Cleared)
    if found is None or found.equivalent not in (None, order.equivalent):
        return None
    return [
        {
            "cleared_amount": one.cleared_amount,
            "edges": [{"from": edge.creditor, "to": edge.debtor} for edge in one.edges],
        }
        for one in found.cycles
    ]


def _is_of(result: _Result, order: Order) -> bool:
    """Whether what the result says of the payment, if anything, is what was asked for."""
    told = result.sender, result.receiver, result.equivalent
    asked = order.sender, order.receiver, order.equivalent
    if any(one is not None and one != wanted for one, wanted in zip(told, asked, strict=True)):
        return False
    try:
        return result.amount is None or atoms(result.amount) == atoms(order.amount)
    except InvalidAmount:
        return False


def _refused_with(reply: Reply) -> Code:
    found = _read(reply.data, _Refusal)
    if found is not None:
        return _code(found.error.code)
    return _BY_STATUS.get(reply.status, Code.PAYMENT_REJECTED)


def _code(word: str) -> Code:
    if word in tuple(Code):
        return Code(word)
    return _SHORT_CODES.get(word, Code.PAYMENT_REJECTED)


def _aborted(code: Code, trouble: Trouble | None = None) -> dict[str, Json]:
    found: dict[str, Json] = {"status": "ABORTED", "error": {"code": code.value}}
    return found if trouble is None else {**found, "trouble": trouble.json}


def _read(data: bytes, kind: type[S]) -> S | None:
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):
        return None


def _place(url: str) -> tuple[bool, str, int | None, str]:
    """Whether it is TLS, host, port and the path before `/payments`; raises `WrongUsage`."""
    if "@" in url:
        raise WrongUsage("An address holds no secrets; give the token apart from it")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment or not _WORD.fullmatch(url):
        message = f"{url!r} is not the address of a payment service; write http://127.0.0.1:8000/api"
        raise WrongUsage(message, url=url)
    return parts.scheme == "https", host, port, parts.path.rstrip("/")
