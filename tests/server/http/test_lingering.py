"""A client refused while it still sends reads the response, not a reset, within a bounded time."""

import socket

import pytest

from pendula.server.http import connection
from pendula.server.settings import Settings
from tests.server.living import LiveServer

CHUNK = b" " * 65_536


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sending stays within its timeout on a slow machine too."""
    monkeypatch.setattr(connection, "LINGER_SECONDS", 3600.0)


def answer_of(caller: socket.socket) -> bytes:
    """Everything received until the other side closes."""
    response = b""
    while part := caller.recv(65_536):
        response += part
    return response


def head(server: LiveServer, length: int) -> bytes:
    return (
        f"POST /api/v1/tally/demo/commands HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
        f"content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    ).encode()


@pytest.mark.usefixtures("patient")
def test_a_refused_connection_that_sends_first_still_reads_the_error(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveServer(settings) as server:
        monkeypatch.setattr(server.protocol, "most_connections", 0)
        with server.connect() as caller:
            for _ in range(16):
                caller.sendall(CHUNK)
            response = answer_of(caller)

    assert response.startswith(b"HTTP/1.1 503 ")
    assert b"connections are open; this is the limit" in response


@pytest.mark.usefixtures("patient")
def test_a_client_that_still_sends_a_too_large_body_reads_the_error(settings: Settings) -> None:
    length = 12 * 1024 * 1024
    with LiveServer(settings) as server, server.connect() as caller:
        caller.sendall(head(server, length))
        for _ in range(length // len(CHUNK)):
            caller.sendall(CHUNK)
        response = answer_of(caller)

    assert response.startswith(b"HTTP/1.1 413 ")


@pytest.mark.usefixtures("patient")
def test_a_client_that_never_stops_sending_is_disconnected(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LINGER_BYTES", 100_000)
    with LiveServer(settings) as server:
        monkeypatch.setattr(server.protocol, "most_connections", 0)
        with server.connect() as caller, pytest.raises(OSError, match=r"reset|pipe|aborted"):
            while True:
                caller.sendall(CHUNK)


def test_a_silent_client_lingers_no_longer_than_allowed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LINGER_SECONDS", 0.01)
    with LiveServer(settings) as server:
        monkeypatch.setattr(server.protocol, "most_connections", 0)
        with server.connect() as caller:
            answer_of(caller)
            with pytest.raises(OSError, match=r"reset|pipe|aborted"):
                while True:
                    caller.sendall(CHUNK)


@pytest.mark.usefixtures("patient")
def test_lingering_connections_are_bounded(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_LINGERING", 0)
    with LiveServer(settings) as server:
        monkeypatch.setattr(server.protocol, "most_connections", 0)
        with server.connect() as caller, pytest.raises(OSError, match=r"reset|pipe|aborted"):
            while True:
                caller.sendall(CHUNK)
