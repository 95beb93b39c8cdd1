"""A payment service over HTTP that keeps the contract of `credit.outside.payment_service`, except where told not to.

It has a ledger and an engine of its own, remembers keys, and counts what it did. `acts` says how it treats one POST
after the other; when they are used up it behaves. What waits for nothing waits until the service is closed.
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
from pendula.credit.runs.headless import made
from pendula.credit.tick.event_parts import route_views
from pendula.documents import from_value

PEOPLE = ("ann", "bea", "cid", "dan", "eva", "fay")


def network(limit: int = 4) -> dict[str, Any]:
    """A ring whose opposite participants trust each other too."""
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
    KEEP_SILENT = "keep silent"
    PAY_AND_KEEP_SILENT = "pay and keep silent"
    HANG_UP = "hang up"
    PAY_AND_HANG_UP = "pay and hang up"
    PAY_AND_DRIP = "pay and drip"
    SAY_IT_TWICE = "say it twice"
    SAY_IT_BY_HALF = "say it by half"
    NO_JSON = "no json"
    PAY_AND_NO_JSON = "pay and no json"
    NO_HTTP = "no http"
    HUGE = "huge"
    NESTED = "nested"
    FAIL = "fail"
    PAY_AND_FAIL = "pay and fail"
    REDIRECT = "redirect"
    ANOTHER_PAYMENT = "another payment"
    UNKNOWN_LINES = "unknown lines"
    WRONG_SUM = "wrong sum"
    LOSE_THE_TICK = "lose the tick"
    REFUSE = "refuse"
    BUSY = "busy"


class Service:
    """State of the service; `effects` are the keys of payments in the order they changed its ledger."""

    def __init__(self, acts: Iterator[Act], limit: int) -> None:
        self.acts = acts
        self._config = made(from_value(network(limit)), seed=0).json
        self.run = Run.create(self._config)
        self.book = self.run.network.ledgers["UAH"].book
        self.results: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.effects: list[str] = []
        self.posts: list[str] = []
        self.looks: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.refusal: tuple[int, dict[str, Any]] = (422, {"error": {"code": "E002", "message": "secret trace"}})
        self.deaf = False  # hangs up on everybody who looks up a key
        self.forgetful = False  # knows no key
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._mark = self.run.state()
        self.url = ""

    def begin(self) -> None:
        """A tick begins: what `LOSE_THE_TICK` goes back to."""
        self._mark = self.run.state()
        self._known = dict(self.results)

    def lose(self) -> None:
        self.run = Run.from_state(self._config, self._mark)
        self.book = self.run.network.ledgers["UAH"].book
        self.results = self._known

    def debts(self) -> list[tuple[str, str, int]]:
        return list(self.book.debt_rows())

    def pay(self, key: str, order: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the result; a key that is known gets its result again, and nothing happens."""
        known = self.results.get(key)
        if known is not None:
            return (200, known[1]) if known[0] == order else (409, {"error": {"code": "CONFLICT"}})
        index, cents = self.book.people.index, order["amount"].replace(".", "")
        ends = index[order["from"]], index[order["to"]]
        found = self.run.network.ledgers["UAH"].processor.pay(*ends, int(cents) * 10**6)
        assert not isinstance(found, Drifted)
        result: dict[str, Any] = {"tx_id": f"tx-{len(self.results)}", **order}
        if isinstance(found, Refused):
            result |= {"status": "ABORTED", "routes": [], "error": {"code": found.code.value, "message": "secret"}}
        else:
            result |= {"status": "COMMITTED", "routes": msgspec.to_builtins(route_views(self.book, found))}
            self.effects.append(key)
        self.results[key] = (order, result)
        return 200, result


class Handler(BaseHTTPRequestHandler):
    """One connection, one call."""

    service: Service

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what the tests need is counted."""

    def do_GET(self) -> None:
        key = self.path.rpartition("/")[2].replace("%3A", ":")
        service = self.service
        service.looks.append(key)
        if service.deaf:
            return
        with service.lock:
            known = None if service.forgetful else service.results.get(key)
        if known is None:
            self.say(404, {"error": {"code": "TX_NOT_FOUND"}})
        else:
            self.say(200, known[1])

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
            assert act is not Act.BEHAVE, "the caller went away from a service that behaves"

    def perform(self, act: Act, key: str, order: dict[str, Any]) -> None:
        service = self.service
        match act:
            case Act.KEEP_SILENT:
                service.closing.wait()
            case Act.HANG_UP:
                pass
            case Act.NO_JSON:
                self.say_bytes(200, b"<html>Payments are down for maintenance</html>")
            case Act.NO_HTTP:
                self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
            case Act.HUGE:
                self.say_bytes(200, b'{"status": "COMMITTED", "routes": [' + b" " * 2_000_000 + b"]}")
            case Act.NESTED:
                self.say_bytes(200, b'{"status": "COMMITTED", "more": ' + b"[" * 100_000)
            case Act.FAIL:
                self.say(500, {"error": {"code": "INTERNAL_ERROR", "message": "Traceback: secret"}})
            case Act.REDIRECT:
                self.say(307, {})
            case Act.ANOTHER_PAYMENT:
                self.say(200, {**order, "to": "eva", "status": "COMMITTED", "routes": []})
            case Act.LOSE_THE_TICK:
                service.lose()
                self.say(503, {"tick_failed": True})
            case Act.REFUSE:
                self.say(*service.refusal)
            case Act.BUSY:
                self.say(409, {"error": {"code": "CONFLICT", "message": "in progress"}})
            case _:
                self.pay(act, key, order)

    def pay(self, act: Act, key: str, order: dict[str, Any]) -> None:
        """Acts that do pay, and then tell it in one way or another."""
        service = self.service
        with service.lock:
            status, result = service.pay(key, order)
        data = json.dumps(result).encode()
        match act:
            case Act.PAY_AND_KEEP_SILENT:
                service.closing.wait()
            case Act.PAY_AND_HANG_UP:
                pass
            case Act.PAY_AND_DRIP:
                self.say_bytes(status, b"", length=len(data) + 300)
                for _ in range(300):
                    service.closing.wait(0.01)
                    self.wfile.write(b" ")
                self.wfile.write(data)
            case Act.SAY_IT_TWICE:
                self.say(status, result)
                self.say(status, result)
            case Act.SAY_IT_BY_HALF:
                self.say_bytes(status, data[: len(data) // 2], length=len(data))
            case Act.PAY_AND_NO_JSON:
                self.say_bytes(status, b"\xff\x00")
            case Act.PAY_AND_FAIL:
                self.say(500, {"error": {"code": "INTERNAL_ERROR"}})
            case Act.UNKNOWN_LINES:
                way = [order["from"], "nobody", order["to"]]
                self.say(status, {**result, "routes": [{"path": way, "amount": order["amount"]}]})
            case Act.WRONG_SUM:
                self.say(status, {**result, "routes": [*result["routes"], *result["routes"]]})
            case _:
                self.say(status, result)

    def say(self, status: int, answer: dict[str, Any]) -> None:
        self.say_bytes(status, json.dumps(answer).encode())

    def say_bytes(self, status: int, data: bytes, length: int | None = None) -> None:
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", f"{self.service.url}/elsewhere")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    """Waits for its calls when it is closed, so that none outlives its test."""

    daemon_threads = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.troubles.append(str(client_address))

    troubles: list[str]


@contextmanager
def serving(
    *acts: Act, forever: Act | None = None, limit: int = 4, tls: ssl.SSLContext | None = None
) -> Iterator[Service]:
    """A service that treats its first calls so, and all later ones well, or all in the one way that is given."""
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
