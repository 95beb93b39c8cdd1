"""A payment service over HTTP that keeps the contract of `credit.outside.payment_service`, with planned violations.

It has its own ledger and engine, remembers keys, and records its calls. `acts` has the treatment of each POST in order;
after the last one the service behaves. A call without an answer stays open until the service is closed.
"""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from pendula.credit.engine import Run
from pendula.credit.ledger.payment import Drifted, Refused
from pendula.credit.runs.headless import plan_run
from pendula.credit.tick.event_parts import route_views
from pendula.documents import from_value

PEOPLE = ("ann", "bea", "cid", "dan", "eva", "fay")


def network(limit: int = 4) -> dict[str, Any]:
    """A ring in which opposite participants trust each other too."""
    return {
        "schema_version": "scenario/1",
        "scenario_id": "ring",
        "equivalents": ["UAH"],
        "participants": [{"id": name, "type": "person"} for name in PEOPLE],
        "trustlines": [
            {"from": creditor, "to": debtor, "limit": limit, "equivalent": "UAH"}
            for place, creditor in enumerate(PEOPLE)
            for debtor in (PEOPLE[place - 1], PEOPLE[place - 5], PEOPLE[place - 3])
        ],
    }


class Act(StrEnum):
    """What the service does with one POST."""

    BEHAVE = "behave"
    NO_ANSWER = "no answer"
    PAY_WITHOUT_ANSWER = "pay without answer"
    DISCONNECT = "disconnect"
    PAY_AND_DISCONNECT = "pay and disconnect"
    PAY_AND_DRIP = "pay and drip"
    ANSWER_TWICE = "answer twice"
    ANSWER_HALF = "answer half"
    NOT_JSON = "not json"
    PAY_AND_NOT_JSON = "pay and not json"
    NOT_HTTP = "not http"
    HUGE = "huge"
    NESTED = "nested"
    FAIL = "fail"
    PAY_AND_FAIL = "pay and fail"
    REDIRECT = "redirect"
    ANOTHER_PAYMENT = "another payment"
    UNKNOWN_LINES = "unknown lines"
    WRONG_SUM = "wrong sum"
    FAIL_THE_TICK = "fail the tick"
    REFUSE = "refuse"
    BUSY = "busy"


class Service:
    """State of the service; `effects` are the keys of payments in the order they changed its ledger."""

    def __init__(self, acts: Iterator[Act], limit: int) -> None:
        self.acts = acts
        self._config = plan_run(from_value(network(limit)), seed=0).json
        self.run = Run.create(self._config)
        self.book = self.run.network.ledgers["UAH"].book
        self.results: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.effects: list[str] = []
        self.posts: list[str] = []
        self.looks: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.refusal: tuple[int, dict[str, Any]] = (422, {"error": {"code": "E002", "message": "secret trace"}})
        self.drops_lookups = False  # closes every lookup without an answer
        self.knows_no_keys = False  # answers every lookup with 404
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._mark = self.run.state()
        self.url = ""

    def begin(self) -> None:
        """Start a tick: `FAIL_THE_TICK` rolls back to this state."""
        self._mark = self.run.state()
        self._known = dict(self.results)

    def roll_back(self) -> None:
        self.run = Run.from_state(self._config, self._mark)
        self.book = self.run.network.ledgers["UAH"].book
        self.results = self._known

    def debts(self) -> list[tuple[str, str, int]]:
        return list(self.book.debt_rows())

    def pay(self, key: str, order: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the result; a known key returns its stored result without effect."""
        known = self.results.get(key)
        if known is not None:
            return (200, known[1]) if known[0] == order else (409, {"error": {"code": "CONFLICT"}})
        index, cents = self.book.people.index, order["amount"].replace(".", "")
        ends = index[order["from"]], index[order["to"]]
        outcome = self.run.network.ledgers["UAH"].processor.pay(*ends, int(cents) * 10**6)
        assert not isinstance(outcome, Drifted)
        result: dict[str, Any] = {"tx_id": f"tx-{len(self.results)}", **order}
        if isinstance(outcome, Refused):
            result |= {"status": "ABORTED", "routes": [], "error": {"code": outcome.code.value, "message": "secret"}}
        else:
            result |= {"status": "COMMITTED", "routes": msgspec.to_builtins(route_views(self.book, outcome))}
            self.effects.append(key)
        self.results[key] = (order, result)
        return 200, result


class Handler(BaseHTTPRequestHandler):
    """One connection, one call."""

    service: Service

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        key = self.path.rpartition("/")[2].replace("%3A", ":")
        service = self.service
        service.looks.append(key)
        if service.drops_lookups:
            return
        with service.lock:
            known = None if service.knows_no_keys else service.results.get(key)
        if known is None:
            self.answer(404, {"error": {"code": "TX_NOT_FOUND"}})
        else:
            self.answer(200, known[1])

    def do_POST(self) -> None:
        service = self.service
        key = self.headers["Idempotency-Key"]
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.posts.append(key)
        service.headers.append(dict(self.headers))
        act = next(service.acts, Act.BEHAVE)
        try:
            self.perform(act, key, order)
        except OSError:
            assert act is not Act.BEHAVE, "the caller closed the connection to a service that behaves"

    def perform(self, act: Act, key: str, order: dict[str, Any]) -> None:
        service = self.service
        match act:
            case Act.NO_ANSWER:
                service.closing.wait()
            case Act.DISCONNECT:
                pass
            case Act.NOT_JSON:
                self.answer_bytes(200, b"<html>Payments are down for maintenance</html>")
            case Act.NOT_HTTP:
                self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
            case Act.HUGE:
                self.answer_bytes(200, b'{"status": "COMMITTED", "routes": [' + b" " * 2_000_000 + b"]}")
            case Act.NESTED:
                self.answer_bytes(200, b'{"status": "COMMITTED", "more": ' + b"[" * 100_000)
            case Act.FAIL:
                self.answer(500, {"error": {"code": "INTERNAL_ERROR", "message": "Traceback: secret"}})
            case Act.REDIRECT:
                self.answer(307, {})
            case Act.ANOTHER_PAYMENT:
                self.answer(200, {**order, "to": "eva", "status": "COMMITTED", "routes": []})
            case Act.FAIL_THE_TICK:
                service.roll_back()
                self.answer(503, {"tick_failed": True})
            case Act.REFUSE:
                self.answer(*service.refusal)
            case Act.BUSY:
                self.answer(409, {"error": {"code": "CONFLICT", "message": "in progress"}})
            case _:
                self.pay(act, key, order)

    def pay(self, act: Act, key: str, order: dict[str, Any]) -> None:
        """Pay, then answer as the act says."""
        service = self.service
        with service.lock:
            status, result = service.pay(key, order)
        data = json.dumps(result).encode()
        match act:
            case Act.PAY_WITHOUT_ANSWER:
                service.closing.wait()
            case Act.PAY_AND_DISCONNECT:
                pass
            case Act.PAY_AND_DRIP:
                self.answer_bytes(status, b"", length=len(data) + 300)
                for _ in range(300):
                    service.closing.wait(0.01)
                    self.wfile.write(b" ")
                self.wfile.write(data)
            case Act.ANSWER_TWICE:
                self.answer(status, result)
                self.answer(status, result)
            case Act.ANSWER_HALF:
                self.answer_bytes(status, data[: len(data) // 2], length=len(data))
            case Act.PAY_AND_NOT_JSON:
                self.answer_bytes(status, b"\xff\x00")
            case Act.PAY_AND_FAIL:
                self.answer(500, {"error": {"code": "INTERNAL_ERROR"}})
            case Act.UNKNOWN_LINES:
                way = [order["from"], "stranger", order["to"]]
                self.answer(status, {**result, "routes": [{"path": way, "amount": order["amount"]}]})
            case Act.WRONG_SUM:
                self.answer(status, {**result, "routes": [*result["routes"], *result["routes"]]})
            case _:
                self.answer(status, result)

    def answer(self, status: int, answer: dict[str, Any]) -> None:
        self.answer_bytes(status, json.dumps(answer).encode())

    def answer_bytes(self, status: int, data: bytes, length: int | None = None) -> None:
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", f"{self.service.url}/elsewhere")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    """Wait for open calls on close, so that none outlives its test."""

    daemon_threads = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.troubles.append(str(client_address))

    troubles: list[str]


@contextmanager
def serving(
    *acts: Act, forever: Act | None = None, limit: int = 4, tls: ssl.SSLContext | None = None
) -> Iterator[Service]:
    """A service that treats its first calls by `acts` and later ones well, or every call by `forever`."""
    service = Service(iter(acts) if forever is None else iter(lambda: forever, None), limit)
    handler = type("Handler", (Handler,), {"service": service})
    with Server(("127.0.0.1", 0), handler) as server:
        server.troubles = []
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        service.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}/api"
        listening = threading.Thread(target=server.serve_forever, args=(0.01,))
        listening.start()
        try:
            yield service
        finally:
            service.closing.set()
            server.shutdown()
            listening.join()
    assert not server.troubles or tls is not None
