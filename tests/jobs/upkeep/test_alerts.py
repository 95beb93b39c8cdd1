"""Alerts: stored with the dead letter, delivered to every sink at least once, in order, without delaying calls."""

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.store.protocol import Writer
from pendula.jobs.upkeep.alerts import LONGEST_PAUSE_SEC, Alert, Alerts, Sink, Webhook, to_log, to_log_quietly
from pendula.kernel.canonical import decode
from pendula.kernel.errors import WrongUsage
from tests.jobs.workers import MEMORY, Virtual, close_all, virtual
from tests.waiting import joined


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Virtual]:
    yield virtual(tmp_path)
    close_all()


def dead_letter(client: Virtual, name: str, **members: Any) -> str:
    """Make a dead letter; returns the id of its alert."""
    client.enqueue(**{**MEMORY, "object_id": name}, max_attempts=1, **members)
    [job] = client.pull(worker_id="w1").jobs
    client.fail(job.job_id, error="poison", lease_token=job.lease_token)
    return f"dead_letter:{job.job_id}:1"


def waiting(client: Virtual) -> int:
    return client.calls.store.read(lambda look: look.figures(0, 0)).alerts_waiting


class Receiver:
    """A sink that accepts alerts unless it is down."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.tries = 0
        self.down = False

    def __call__(self, alert: Alert) -> None:
        self.tries += 1
        if self.down:
            raise ConnectionError("the sink is down")
        self.taken.append(alert["alert_id"])


def delivering(client: Virtual, *sinks: Any) -> Alerts:
    return Alerts(client.calls.store, client.clock, sinks, ticks=client.clock)


@pytest.mark.req("JOB-FAIL-6")
def test_an_alert_has_the_specified_form_and_is_delivered_once(client: Virtual) -> None:
    seen: list[Alert] = []
    alert_id = dead_letter(client, "mem_1", priority="high")
    alerts = delivering(client, seen.append)

    alerts.deliver()
    alerts.deliver()

    [job] = client.list().jobs
    [alert] = seen
    [event] = [record for record in client.history(job.job_id).events if record.after.get("status") == "dead_letter"]
    assert alert == {
        "alert": "job.dead_letter",
        "alert_id": alert_id,
        "severity": "critical",
        "job_id": job.job_id,
        "object_type": "memory",
        "object_id": "mem_1",
        "action": "decay",
        "priority": "high",
        "attempt": 1,
        "max_attempts": 1,
        "last_error": "poison",
        "audit_event_id": event.id,
        "at": job.updated_at,
    }
    assert waiting(client) == 0


@pytest.mark.req("JOB-FAIL-6")
@pytest.mark.parametrize(("first", "level"), [(to_log, "CRITICAL"), (to_log_quietly, "INFO")])
def test_an_alert_is_one_log_line_at_level_info_in_the_demo(
    client: Virtual, caplog: pytest.LogCaptureFixture, first: Sink, level: str
) -> None:
    alert_id = dead_letter(client, "mem_1", priority="high")
    with caplog.at_level(logging.INFO):
        Alerts(client.calls.store, client.clock, first=first, ticks=client.clock).deliver()

    logged = [(record.levelname, record.getMessage()) for record in caplog.records if "alert_id" in record.message]
    assert [(name, json.loads(alert)["alert_id"]) for name, alert in logged] == [(level, alert_id)]


@pytest.mark.req("JOB-FAIL-6")
def test_an_alert_survives_a_crash_before_its_delivery(tmp_path: Path) -> None:
    before = virtual(tmp_path)
    alert_id = dead_letter(before, "mem_1")
    close_all()
    after, receiver = virtual(tmp_path), Receiver()

    delivering(after, receiver).deliver()

    assert receiver.taken == [alert_id]
    assert waiting(after) == 0
    close_all()


@pytest.mark.req("JOB-FAIL-6")
def test_an_alert_is_delivered_again_if_the_process_dies_before_all_sinks_took_it(client: Virtual) -> None:
    alert_id = dead_letter(client, "mem_1")
    good, bad = Receiver(), Receiver()
    bad.down = True
    delivering(client, good, bad).deliver()
    left = waiting(client)
    bad.down = False

    delivering(client, good, bad).deliver()

    assert (left, waiting(client)) == (1, 0)
    assert (good.taken, bad.taken) == ([alert_id, alert_id], [alert_id])


@pytest.mark.req("JOB-FAIL-7")
def test_a_failing_sink_is_retried_with_backoff_and_delays_no_other(client: Virtual) -> None:
    first = dead_letter(client, "mem_1")
    good, bad = Receiver(), Receiver()
    bad.down = True
    tried, second = [], 0
    alerts = Alerts(client.calls.store, client.clock, [bad, good], ticks=lambda: second * 1_000_000)
    for second in range(1200):
        before = bad.tries
        alerts.deliver()
        if bad.tries > before:
            tried.append(second)
    second_alert = dead_letter(client, "mem_2")
    alerts.deliver()
    good_while_down = list(good.taken)
    bad.down = False
    second += LONGEST_PAUSE_SEC
    alerts.deliver()

    assert [b - a for a, b in pairwise(tried)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert good_while_down == [first, second_alert]
    assert bad.taken == [first, second_alert], "in order, none left out"
    assert waiting(client) == 0


@pytest.mark.req("JOB-FAIL-7")
def test_the_log_always_receives_alerts(client: Virtual, caplog: pytest.LogCaptureFixture) -> None:
    high, low = dead_letter(client, "mem_1", priority="high"), dead_letter(client, "mem_2")

    delivering(client).deliver()

    logged = [
        (record.levelno, decode(record.message.encode())) for record in caplog.records if record.name.endswith("alerts")
    ]
    assert [(level, body["alert_id"]) for level, body in logged if isinstance(body, dict)] == [
        (logging.CRITICAL, high),
        (logging.WARNING, low),
    ]


def test_alerts_beyond_one_page_are_all_delivered(client: Virtual) -> None:
    ids = [f"dead_letter:job_{number}:1" for number in range(230)]

    def store(tx: Writer) -> None:
        for record in ids:
            tx.alert(record, {"alert_id": record})

    client.calls.store.write(store)
    receiver = Receiver()

    delivering(client, receiver).deliver()

    assert receiver.taken == ids
    assert waiting(client) == 0


@pytest.mark.req("JOB-FAIL-7")
def test_a_hanging_sink_delays_no_call(client: Virtual) -> None:
    dead_letter(client, "mem_1")
    entered, release = threading.Event(), threading.Event()

    def hangs(alert: Alert) -> None:
        entered.set()
        assert release.wait(240)

    alerts = Alerts(client.calls.store, client.clock, [hangs], poll_sec=0.01)
    alerts.start()
    assert entered.wait(240)
    client.enqueue(**{**MEMORY, "object_id": "mem_2"})
    [job] = client.pull(worker_id="w1").jobs
    done = client.ack(job.job_id, result="succeeded", lease_token=job.lease_token)
    release.set()
    alerts.close()

    assert done.job.status == "succeeded"


@pytest.mark.req("JOB-FAIL-7")
def test_the_thread_delivers_new_alerts_while_it_runs(client: Virtual) -> None:
    arrived = threading.Event()
    alerts = Alerts(client.calls.store, client.clock, [lambda alert: arrived.set()], poll_sec=0.01)
    alerts.start()
    dead_letter(client, "mem_1")

    assert arrived.wait(240)
    alerts.close()


class Hook(BaseHTTPRequestHandler):
    """Answers with the given codes, and records the requests."""

    answers: list[int] = []
    got: list[tuple[str, bytes]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Hook.got.append((self.headers["Content-Type"], body))
        code = Hook.answers.pop(0)
        self.send_response(code)
        if 300 <= code < 400:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    Hook.answers, Hook.got = [], []
    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/alerts"
    server.shutdown()
    server.server_close()
    joined(thread)


@pytest.mark.req("JOB-FAIL-7")
def test_a_webhook_gets_the_alert_until_it_accepts_it(client: Virtual, hook: str) -> None:
    alert_id = dead_letter(client, "mem_1")
    Hook.answers = [500, 302, 404, 204]
    alerts = delivering(client, Webhook(hook))
    left = []
    for _ in range(4):
        alerts.deliver()
        left.append(waiting(client))
        client.clock.pass_by(LONGEST_PAUSE_SEC)

    assert left == [1, 1, 1, 0], "only 2xx counts; a redirect would lose the body"
    bodies = [decode(body) for _, body in Hook.got]
    assert [body["alert_id"] for body in bodies if isinstance(body, dict)] == [alert_id] * 4
    assert {kind for kind, _ in Hook.got} == {"application/json"}


def test_an_unreachable_webhook_is_a_failing_sink(client: Virtual, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    dead_letter(client, "mem_1")

    delivering(client, Webhook("http://127.0.0.1:9/", timeout_sec=1)).deliver()

    assert waiting(client) == 1


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x", "alerts", ""])
def test_a_webhook_is_an_http_address(url: str) -> None:
    with pytest.raises(WrongUsage):
        Webhook(url)
