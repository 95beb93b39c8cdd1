"""A small payment core over HTTP for tests: its own ledger, concurrent calls, clearing.

It keeps the contract of `credit.outside.payment_service`: a known key returns its stored result, and a payment with
the header `Decide-After` is decided after the payment of that key. It records its requests and the most concurrent
calls, and can delay each call.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from time import monotonic, sleep
from typing import Any

from pendula.credit.commands import Clear, Pay
from pendula.credit.runs.headless import Headless, plan_run
from pendula.documents import from_value

PATIENCE = 240.0  # seconds; bounds a test that would otherwise hang


class Core:
    """The ledger of a scenario behind HTTP; `slow` is the longest delay of a decision, in seconds.

    Calls wait until `expect` of them have been open at once.
    """

    def __init__(self, scenario: Any, slow: float = 0.0, expect: int = 1) -> None:
        self.ledger = Headless(plan_run(from_value(scenario), seed=0, intensity=0))
        self.slow, self.expect = slow, expect
        self.url = ""
        self.results: dict[str, dict[str, Any]] = {}
        self.posts: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.arrivals: list[float] = []
        self.inside = self.most_inside = 0
        self.decided = threading.Condition()
        self.luck = Random(7)
        self.hang = False  # no answer until the core is closed
        self.clearing_status = 200  # status of the answer to a clearing, which is applied in any case
        self.knows_clearings = True
        self.closing = threading.Event()

    def debts(self, code: str) -> list[tuple[str, str, int]]:
        return list(self.ledger.run.network.ledgers[code].book.debt_rows())

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.posts]

    def post(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        key, after = headers["idempotency-key"], headers.get("decide-after")
        with self.decided:
            self.arrivals.append(monotonic())
            self.posts.append((path, body, headers))
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
            self.decided.notify_all()
            self.decided.wait_for(lambda: self.most_inside >= self.expect, PATIENCE)
            wait = self.slow * self.luck.random()
        sleep(wait)
        with self.decided:
            self.decided.wait_for(lambda: after is None or after in self.results, PATIENCE)
            if key not in self.results:
                self.results[key] = self._clear(body) if path == "/clearing" else self._pay(body)
            self.inside -= 1
            self.decided.notify_all()
            return self.results[key]

    def _pay(self, body: dict[str, Any]) -> dict[str, Any]:
        outcome = self.ledger.do(Pay(body["from"], body["to"], body["equivalent"], body["amount"]))
        assert isinstance(outcome.answer, dict)
        return outcome.answer

    def _clear(self, body: dict[str, Any]) -> dict[str, Any]:
        cleared: Any = self.ledger.do(Clear(body["equivalent"], body["max_depth"])).answer
        cycles = [{"cleared_amount": cycle["cleared_amount"], "edges": cycle["edges"]} for cycle in cleared["cycles"]]
        return {"equivalent": body["equivalent"], "cleared_cycles": len(cycles), "cycles": cycles}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    core: Core

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.core.hang:
            self.core.closing.wait(PATIENCE)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.core.post(self.path, body, headers)
        self._reply(self.core.clearing_status if self.path == "/clearing" else 200, answer)

    def do_GET(self) -> None:
        result = self.core.results.get(self.path.rpartition("/")[2])
        if "/clearing/" in self.path and not self.core.knows_clearings:
            result = None
        self._reply(404 if result is None else 200, result or {})

    def _reply(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def serving_core(scenario: Any, slow: float = 0.0, expect: int = 1) -> Iterator[Core]:
    """A core in a thread, on a free port."""
    core = Core(scenario, slow, expect)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"core": core}))
    core.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield core
    finally:
        core.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
