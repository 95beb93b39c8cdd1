"""`pendula serve` passes the right settings to the server, prints its address, and stops cleanly."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pendula.server import monitoring, serving
from pendula.server.settings import LogFormat, Settings
from tests.cli.conftest import Finished, Pendula, quiet_environment


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of every server start; no server runs."""
    seen: list[Settings] = []

    def serve(settings: Settings, schedulers: None = None, on_ready: Callable[[str], None] | None = None) -> None:
        seen.append(settings)
        assert on_ready is not None
        on_ready("http://127.0.0.1:1")

    monkeypatch.setattr(serving, "serve", serve)
    return seen


def test_without_flags_the_defaults_apply(served: list[Settings], pendula: Pendula) -> None:
    ended = pendula("serve")

    assert ended == Finished(0, "Pendula is at http://127.0.0.1:1 (Ctrl+C stops it)\n", "")
    assert served == [Settings()]


def test_every_flag_reaches_the_settings(served: list[Settings], tmp_path: Path, pendula: Pendula) -> None:
    config = tmp_path / "settings.toml"
    config.write_text("host = '10.0.0.1'\nlog_level = 'error'\n")

    ended = pendula(
        *("serve", "--host", "::1", "--port", 99, "--data", tmp_path, "--demo", "--config", config, "--behind-proxy"),
        *("--allowed-host", "one.example", "--allowed-host", "two.example:8"),
        *("--tls-cert", "cert.pem", "--tls-key", "key.pem", "--json"),
    )

    (settings,) = served
    assert json.loads(ended.out) == {"address": "http://127.0.0.1:1", "data": str(tmp_path), "demo": True}
    assert (settings.host, settings.port, settings.data, settings.demo) == ("::1", 99, str(tmp_path), True)
    assert settings.allowed_hosts == ("one.example", "two.example:8")
    assert (settings.tls_cert, settings.tls_key, settings.behind_proxy) == ("cert.pem", "key.pem", True)
    assert (settings.log_level, settings.log_format) == ("error", LogFormat.JSON)


def test_an_omitted_flag_does_not_override_the_environment(
    served: list[Settings], monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.setenv("PENDULA_DEMO", "true")
    monkeypatch.setenv("PENDULA_BEHIND_PROXY", "true")
    monkeypatch.setenv("PENDULA_ALLOWED_HOSTS", "a.example")

    pendula("serve")

    assert (served[0].demo, served[0].behind_proxy, served[0].allowed_hosts) == (True, True, ("a.example",))


def test_bad_settings_are_refused_by_name(served: list[Settings], pendula: Pendula) -> None:
    ended = pendula("serve", "--port", 70000)

    assert (ended.code, ended.out) == (1, "")
    assert "port (flag)" in ended.err
    assert ended.err.endswith("(invalid_settings)\n")
    assert served == []


def test_a_taken_port_is_a_broken_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula) -> None:
    monkeypatch.setattr(monitoring, "configure", lambda *_: None)  # the log of this process is pytest's
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = pendula("serve", "--port", taken.getsockname()[1], "--data", tmp_path)

    assert (ended.code, ended.out) == (3, "")
    assert ended.err.endswith("(port_taken)\n")


def test_a_real_server_prints_its_url_answers_and_stops_with_0(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pendula", "serve", "--port", "0", "--data", str(tmp_path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=quiet_environment()) as process:
        try:
            assert process.stdout is not None
            started = json.loads(process.stdout.readline())
            place = urlsplit(started["address"])
            assert place.hostname is not None
            connection = HTTPConnection(place.hostname, place.port, timeout=120)
            connection.request("GET", "/healthz")
            status = connection.getresponse().status
            connection.close()
            process.send_signal(signal.SIGINT)
            rest, logged = process.communicate(timeout=120)
        finally:
            process.kill()

    assert status == 200
    assert process.returncode == 0
    assert rest == b""
    assert [json.loads(line)["event"] for line in logged.splitlines()] != []
