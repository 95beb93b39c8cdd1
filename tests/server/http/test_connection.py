"""A real server on a real socket, and misbehaving clients."""

import io
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import h11
import httpx
import msgspec
import pytest

from pendula.server.http.connection import LARGEST_HEAD, StrictConnection
from pendula.server.settings import Settings
from tests.server.certificate import CERTIFICATE, KEY
from tests.server.living import BASE, LiveServer, until

ADD = {"type": "add", "amount": 1}


@pytest.fixture(scope="module")
def impatient_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that waits for two seconds at most, and takes bodies of a thousand bytes."""
    data = tmp_path_factory.mktemp("hasty") / "data"
    with LiveServer(
        Settings(port=0, data=str(data), limits={"header_seconds": 2, "reader_seconds": 1, "body_bytes": 1000})
    ) as server:
        yield server


def head(server: LiveServer, method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{server.port}", *lines, "", ""]).encode()


def answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body, read until the server closes."""
    data = rest(connection)
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


def assert_refused(given: tuple[int, dict[str, str], bytes], status: int, code: str) -> None:
    assert given[0] == status
    assert json.loads(given[2])["error"]["code"] == code
    assert given[1]["x-request-id"]


@pytest.fixture(scope="module")
def waiting(impatient_server: LiveServer) -> Iterator[dict[str, socket.socket]]:
    """Clients that keep the server waiting in different ways, all at the same time."""
    lines = ("content-type: application/json", "content-length: 100")
    begun = {
        "nothing": b"",
        "half a head": b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ",
        "half a second head": head(impatient_server, "GET", "/healthz"),
        "half a body": head(impatient_server, "POST", f"{BASE}/commands", *lines) + b"{",
    }
    with ExitStack() as stack:
        callers = {name: stack.enter_context(impatient_server.connect()) for name in begun}
        for name, text in begun.items():
            callers[name].sendall(text)
        assert callers["half a second head"].recv(65536).startswith(b"HTTP/1.1 200")
        callers["half a second head"].sendall(b"GET /healthz HTTP/1.1\r\n")
        yield callers


def test_a_silent_connection_is_closed(waiting: dict[str, socket.socket]) -> None:
    assert_refused(answer(waiting["nothing"]), 408, "slow_request")


def test_an_unfinished_head_is_answered_and_closed(waiting: dict[str, socket.socket]) -> None:
    assert_refused(answer(waiting["half a head"]), 408, "slow_request")


def test_the_second_head_on_a_connection_has_a_deadline_too(waiting: dict[str, socket.socket]) -> None:
    assert_refused(answer(waiting["half a second head"]), 408, "slow_request")


def test_a_missing_body_times_out(waiting: dict[str, socket.socket]) -> None:
    assert_refused(answer(waiting["half a body"]), 408, "slow_request")


def test_a_stream_request_with_a_missing_body_is_refused_at_once(live: LiveServer, quiet_logs: io.StringIO) -> None:
    before = len(quiet_logs.getvalue())
    with live.connect() as connection:
        connection.sendall(head(live, "GET", f"{BASE}/stream", "content-length: 5"))

        assert_refused(answer(connection), 400, "invalid_http")
    assert "Traceback" not in quiet_logs.getvalue()[before:]


def test_a_stream_request_ends_with_its_head(live: LiveServer) -> None:
    with live.connect() as connection, live.client() as client:
        connection.sendall(head(live, "HEAD", f"{BASE}/stream", "connection: close"))

        status, headers, body = answer(connection)

        assert (status, body) == (200, b"")
        assert headers["content-type"].startswith("text/event-stream")
        until(lambda: b"pendula_streams_open 0.0" in client.get("/metrics").content)


def test_slow_callers_do_not_delay_others(impatient_server: LiveServer) -> None:
    with ExitStack() as stack, impatient_server.client() as client:
        for _ in range(50):
            stack.enter_context(impatient_server.connect()).sendall(b"GET / HTTP/1.1\r\n")

        assert client.post(f"{BASE}/commands", json=ADD).status_code == 200


def test_a_body_over_the_limit_is_refused_while_it_arrives(impatient_server: LiveServer) -> None:
    with impatient_server.connect() as connection:
        lines = ("content-type: application/json", "transfer-encoding: chunked")
        connection.sendall(head(impatient_server, "POST", f"{BASE}/commands", *lines))
        connection.sendall(b"3e9\r\n" + b" " * 1001 + b"\r\n")

        given = answer(connection)

    assert_refused(given, 413, "body_too_large")
    assert given[1]["connection"] == "close"


@pytest.mark.parametrize(
    "text",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 40_000,
        b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 40_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_bytes_that_are_not_http_are_refused_in_the_error_form(live: LiveServer, text: bytes) -> None:
    with live.connect() as connection:
        connection.sendall(text)

        assert_refused(answer(connection), 400, "invalid_http")


def test_a_request_with_two_lengths_is_refused_and_the_connection_closed(live: LiveServer) -> None:
    lines = ("content-type: application/json", "content-length: 30", "transfer-encoding: chunked")
    smuggled = head(live, "GET", "/healthz")
    with live.connect() as connection:
        connection.sendall(head(live, "POST", "/api/v1/session", *lines) + b"0\r\n\r\n" + smuggled)

        given = answer(connection)

    assert_refused(given, 400, "invalid_http")
    assert given[1]["connection"] == "close"
    assert "Content-Length and Transfer-Encoding" in json.loads(given[2])["error"]["message"]


@pytest.mark.parametrize(("size", "passes"), [(LARGEST_HEAD, True), (LARGEST_HEAD + 1, False), (100_000, False)])
def test_a_complete_head_is_bounded_and_its_body_does_not_count(size: int, passes: bool) -> None:
    frame = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 50000\r\nx:%b\r\n\r\n"
    whole = frame % (b" " * (size - len(frame % b"")))
    connection = StrictConnection()
    connection.receive_data(whole + b"b" * 50_000)

    if passes:
        assert isinstance(connection.next_event(), h11.Request)
        assert isinstance(connection.next_event(), h11.Data)
    else:
        with pytest.raises(h11.RemoteProtocolError, match=f"The request head has {size} bytes"):
            connection.next_event()


@pytest.mark.parametrize(
    "target",
    [
        "/assets/../../../../../../etc/passwd",
        "/assets/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/assets//etc/passwd",
        "/assets/%2fetc%2fpasswd",
        "/assets/..\\..\\app.py",
        "/assets/%00",
        "/assets/../app.py",
        "/../settings.py",
        "//etc/passwd",
        "/assets/" + "a" * 5000,
    ],
)
def test_no_path_escapes_the_page_directory(live: LiveServer, target: str) -> None:
    with live.connect() as connection:
        connection.sendall(head(live, "GET", target, "connection: close"))

        assert_refused(answer(connection), 404, "not_found")


def test_an_upgrade_is_ignored(live: LiveServer) -> None:
    with live.connect() as connection:
        lines = (
            "connection: upgrade, close",
            "upgrade: websocket",
            "sec-websocket-key: x",
            "sec-websocket-version: 13",
        )
        connection.sendall(head(live, "GET", f"{BASE}/stream2", *lines))

        assert answer(connection)[0] == 404


def test_untrusted_forwarded_headers_are_ignored_and_make_no_caller_local(live: LiveServer) -> None:
    with live.client() as client:
        for name, value in [
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "evil.example"),
        ]:
            response = client.get("/api/v1/session", headers={name: value})

            assert (response.status_code, response.json()["error"]["code"]) == (401, "not_identified")


def test_the_257th_stream_is_refused_and_the_others_continue(tmp_path: Path) -> None:
    settings = Settings(port=0, data=str(tmp_path / "data"), limits={"streams_per_token": 1000})
    with LiveServer(settings) as server, ExitStack() as stack, server.client() as client:
        readers = [stack.enter_context(server.connect()) for _ in range(256)]
        for reader in readers:
            reader.sendall(head(server, "GET", f"{BASE}/stream"))
        for reader in readers:
            read_until(reader, b": open\n\n")

        refused = client.get(f"{BASE}/stream")
        client.post(f"{BASE}/commands", json=ADD)

        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "too_many_streams")
        for reader in readers:
            assert b'"by":1' in read_until(reader, b"id: 0.0\n\n")
        assert b"pendula_streams_open 256.0" in client.get("/metrics").content


def test_a_stop_ends_streams_and_keeps_acknowledged_commands(tmp_path: Path, quiet_logs: io.StringIO) -> None:
    settings = Settings(port=0, data=str(tmp_path / "data"))
    with LiveServer(settings) as server, server.connect() as reader, server.client() as client:
        reader.sendall(head(server, "GET", f"{BASE}/stream"))
        read_until(reader, b": open\n\n")
        client.post(f"{BASE}/commands", json=ADD)
        server.stop()

        assert b'"by":1' in rest(reader)
        # Uvicorn logs this when it aborts a connection.
        assert "graceful shutdown exceeded" not in quiet_logs.getvalue()
    with LiveServer(settings) as server, server.client() as client:
        assert client.get(f"{BASE}/state").json()["state"]["total"] == 1


def test_a_reader_that_disconnects_frees_its_place(tmp_path: Path) -> None:
    settings = Settings(port=0, data=str(tmp_path / "data"), limits={"streams": 1})
    with LiveServer(settings) as server, server.client() as client:
        for _ in range(5):
            with server.connect() as reader:
                reader.sendall(head(server, "GET", f"{BASE}/stream"))
                read_until(reader, b": open\n\n")
            until(lambda: b"pendula_streams_open 0.0" in client.get("/metrics").content)


def test_a_connection_above_the_limit_is_refused(tmp_path: Path) -> None:
    settings = Settings(port=0, data=str(tmp_path / "data"), limits={"streams": 1, "requests": 1})
    with LiveServer(settings) as server, ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(server.connect()).sendall(b"GET")
        last = stack.enter_context(server.connect())

        assert_refused(answer(last), 503, "too_many_requests")


def encrypted(folder: Path, **limits: int) -> LiveServer:
    """A server that speaks TLS."""
    (folder / "cert.pem").write_text(CERTIFICATE)
    (folder / "key.pem").write_text(KEY)
    plain = Settings(port=0, data=str(folder / "data"), limits=limits)
    return LiveServer(
        msgspec.structs.replace(plain, tls_cert=str(folder / "cert.pem"), tls_key=str(folder / "key.pem"))
    )


def test_tls_serves_requests_and_streams_until_the_server_stops(tmp_path: Path) -> None:
    with encrypted(tmp_path) as server, server.client() as reader, reader.stream("GET", f"{BASE}/stream") as stream:
        with server.client() as client:
            assert client.post(f"{BASE}/commands", json=ADD).status_code == 200
        server.signal_stop()

        assert b'"by":1' in stream.read()


def test_a_missing_handshake_times_out(tmp_path: Path) -> None:
    with encrypted(tmp_path, header_seconds=1) as server, server.connect() as connection:
        assert rest(connection) == b""


def test_connections_in_their_handshake_are_counted(tmp_path: Path) -> None:
    with encrypted(tmp_path, header_seconds=1000, streams=1, requests=1) as server, ExitStack() as stack:
        silent = [stack.enter_context(server.connect()) for _ in range(4)]

        assert rest(stack.enter_context(server.connect())) == b""
        for connection in silent:
            connection.close()
        until(lambda: healthy(server))


def healthy(server: LiveServer) -> bool:
    try:
        with server.client() as client:
            return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_bytes_that_are_not_tls_do_not_affect_other_connections(tmp_path: Path) -> None:
    with encrypted(tmp_path) as server, server.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")

        assert not rest(connection).startswith(b"HTTP")
        assert healthy(server)


def test_keep_alive_serves_many_requests_on_one_connection(live: LiveServer) -> None:
    with live.client(limits=httpx.Limits(max_connections=1)) as client:
        assert {client.get("/healthz").status_code for _ in range(20)} == {200}


def rest(connection: socket.socket) -> bytes:
    data = b""
    while chunk := connection.recv(65536):
        data += chunk
    return data


def read_until(connection: socket.socket, end: bytes) -> bytes:
    data = b""
    while end not in data:
        chunk = connection.recv(65536)
        assert chunk, data
        data += chunk
    return data


@contextmanager
def socket_with_small_buffers(server: LiveServer) -> Iterator[socket.socket]:
    """A connection with minimal socket buffers on both sides."""
    server.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        caller.connect(("127.0.0.1", server.port))
        yield caller


def test_a_client_that_never_reads_is_disconnected(impatient_server: LiveServer, quiet_logs: io.StringIO) -> None:
    with socket_with_small_buffers(impatient_server) as caller:
        caller.sendall(head(impatient_server, "GET", "/openapi.json") * 20)
        until(lambda: "reader_stalled" in quiet_logs.getvalue())

        assert rest(caller).count(b"HTTP/1.1 200 OK") < 20


@pytest.mark.long
def test_a_client_that_reads_slowly_is_not_disconnected(impatient_server: LiveServer) -> None:
    with socket_with_small_buffers(impatient_server) as caller:
        caller.sendall(head(impatient_server, "GET", "/openapi.json") * 60)
        end = time.monotonic() + 2.2
        while time.monotonic() < end:
            assert caller.recv(1024)
            time.sleep(0.02)
        assert impatient_server.answering() or caller.recv(1)
