"""A client that disconnects mid-body is one short log line with its address, not a server error."""

import logging
from typing import Any

import pytest

from pendula.server.schedulers import schedulers_for
from pendula.server.settings import Settings
from tests.server.living import LiveServer, until

CHANGING = ("POST", "PUT", "PATCH", "DELETE")


def log_lines(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    return [record.msg for record in caplog.records if isinstance(record.msg, dict) and record.msg["event"] == event]


def leave(server: LiveServer, method: str, path: str) -> None:
    """Announce a body, send a part of it, and disconnect."""
    with server.connect() as connection:
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\ncontent-type: application/json\r\n"
        connection.sendall(f'{head}content-length: 1000\r\n\r\n{{"type"'.encode())


def test_a_client_that_leaves_mid_body_is_one_log_line_on_every_route(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    given = Settings(data=settings.data, port=0, demo=True)
    names = {"engine": "demo", "world": "town", "player": "frame", "fleet": "hall"}
    with LiveServer(given, schedulers_for(given)) as server:
        routes = [
            (method.upper(), path)
            for path, methods in server.app.openapi()["paths"].items()
            for method in methods
            if method.upper() in CHANGING
        ]
        for number, (method, path) in enumerate(routes, 1):
            named = path
            for part in path.split("{")[1:]:
                name = part.partition("}")[0]
                named = named.replace(f"{{{name}}}", names.get(name, "demo"))
            caplog.clear()
            leave(server, method, named)
            until(lambda: bool(log_lines(caplog, "client_left") or log_lines(caplog, "request")))

            lines = [record for record in caplog.records if record.name == "pendula.server"]
            matching = [
                record.msg for record in lines if isinstance(record.msg, dict) and record.msg.get("path") == named
            ]
            assert len(matching) == 1, (method, path, matching)
            assert not [record for record in lines if record.levelno >= logging.ERROR], (number, method, path)
            for one in log_lines(caplog, "client_left"):
                assert one["client"] == "127.0.0.1"
    assert len(routes) > 40
