"""Start and stop: errors are reported before anything is served, and no acknowledged command is lost."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest
from structlog.testing import capture_logs

from pendula.server import monitoring, serving
from pendula.server.data_directory import DataDirectory
from pendula.server.errors import DataLocked, DataUnusable, HostUnusable, PortTaken, TlsUnusable, UnsafeBinding
from pendula.server.security.identity import TokenStore
from pendula.server.serving import address, bind, check_binding, check_tls, serve
from pendula.server.settings import Settings
from tests.server.living import BASE, TALLY, LiveServer, running, supervisor_of, until

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from pendula.server.serving import serve
from pendula.server.settings import Settings
from tests.server.living import TALLY
serve(Settings(port=0, data=sys.argv[1]), [TALLY], on_ready=lambda address: print(address, flush=True))
"""


@pytest.fixture(autouse=True)
def logs_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the logging of the other tests after a server ran in this process."""
    monkeypatch.setattr(monitoring, "configure", lambda *_: None)


@contextmanager
def process(data: Path) -> Iterator[tuple["subprocess.Popen[str]", httpx.Client]]:
    """A server in a separate process, ready for commands."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", PROGRAM, str(data)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=root, env=environment
    ) as server:
        try:
            assert server.stdout is not None
            with httpx.Client(base_url=server.stdout.readline().strip(), trust_env=False, timeout=120) as client:
                until(lambda: client.get("/readyz").status_code == 200)
                yield server, client
        finally:
            server.kill()


def test_a_kill_loses_no_acknowledged_command(tmp_path: Path) -> None:
    with process(tmp_path) as (server, client):
        acknowledged = [
            client.post(f"{BASE}/commands", json={"type": "add", "amount": amount}).json()["n"] for amount in range(10)
        ]
        server.kill()
    with LiveServer(Settings(port=0, data=str(tmp_path))) as revived, revived.client() as client:
        records = client.get(f"{BASE}/journal", params={"limit": 1000}).json()["records"]
        total = client.get(f"{BASE}/state").json()["state"]["total"]

        assert [record["n"] for record in records if record["kind"] == "input"] == acknowledged
        assert total == sum(range(10))


def test_a_stop_signal_is_no_error(tmp_path: Path) -> None:
    raised_again: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: raised_again.append(number))
    try:
        serve(Settings(port=0, data=str(tmp_path)), [TALLY], on_ready=lambda _: signal.raise_signal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)

    assert raised_again == []
    DataDirectory.lock(tmp_path).close()


def test_a_stop_names_the_requests_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REPORT_SECONDS", 0.01)
    fields = "content-type: application/json\r\ncontent-length: 9\r\n\r\n"

    with (
        capture_logs() as logged,
        LiveServer(Settings(port=0, data=str(tmp_path))) as server,
        server.connect() as caller,
    ):
        head = f"POST {BASE}/commands HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n{fields}"
        caller.sendall(head.encode())  # and no body
        until(lambda: any(server.answering()))
        server.signal_stop()
        until(lambda: any("waits_for" in line for line in logged))
        caller.close()

    [first, *_] = [line for line in logged if "waits_for" in line]
    assert (first["event"], first["waits_for"], first["more"]) == ("stopping", [f"POST {BASE}/commands"], 0)


@pytest.mark.anyio
async def test_a_supervisor_names_what_it_has_not_closed_yet(tmp_path: Path) -> None:
    async with running(Settings(data=str(tmp_path))) as app:
        supervisor = supervisor_of(app)
        [host] = supervisor.hosts()
        closed = host.close

        async def looked_at() -> None:
            assert list(supervisor.closing) == ["tally main"]
            await closed()

        host.close = looked_at  # type: ignore[method-assign]

    assert not supervisor.closing


def test_a_second_server_on_one_data_directory_refuses_to_start(tmp_path: Path) -> None:
    with DataDirectory.lock(tmp_path), pytest.raises(DataLocked) as refused:
        serve(Settings(port=0, data=str(tmp_path)))

    assert (refused.value.code, refused.value.exit_code) == ("data_locked", 3)
    assert str(tmp_path) in refused.value.message


def test_a_data_directory_is_free_again_when_its_server_has_ended(tmp_path: Path) -> None:
    DataDirectory.lock(tmp_path).close()

    DataDirectory.lock(tmp_path).close()


def test_an_unusable_data_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataUnusable, match="file/data"):
        serve(Settings(data=str(tmp_path / "file" / "data")))


def test_a_taken_port_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken) as refused:
            serve(Settings(port=port, data=str(tmp_path)))

    assert (refused.value.code, refused.value.exit_code) == ("port_taken", 3)
    assert refused.value.message == f"Port {port} on 127.0.0.1 is taken by another program; choose another with --port"


def test_a_failed_start_leaves_the_data_directory_free(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(PortTaken):
        serve(Settings(port=other.getsockname()[1], data=str(tmp_path)))

    DataDirectory.lock(tmp_path).close()


def test_accepted_connections_have_tcp_nodelay() -> None:
    async def nodelay() -> int:
        sent_at_once: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        class Caller(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                accepted = transport.get_extra_info("socket")
                sent_at_once.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        with bind(Settings(port=0)) as listening:
            async with await asyncio.get_running_loop().create_server(Caller, sock=listening):
                with socket.create_connection(listening.getsockname()):
                    return await sent_at_once

    assert asyncio.run(nodelay())


def test_a_foreign_address_is_refused() -> None:
    with pytest.raises(HostUnusable):
        bind(Settings(host="192.0.2.1", port=0))


def test_the_url_is_written_as_in_a_browser() -> None:
    with bind(Settings(port=0)) as listening:
        port = listening.getsockname()[1]

        assert address(Settings(), listening) == f"http://127.0.0.1:{port}"
        assert address(Settings(tls_cert="c", tls_key="k"), listening) == f"https://127.0.0.1:{port}"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.5", "pendula.example"])
def test_serving_other_machines_needs_a_token_and_tls_or_a_proxy(tmp_path: Path, host: str) -> None:
    tokens = TokenStore(tmp_path)
    bare = Settings(host=host)
    encrypted = msgspec.structs.replace(bare, tls_cert="c", tls_key="k")
    proxied = msgspec.structs.replace(bare, behind_proxy=True)

    for unsafe, missing in [(bare, 2), (encrypted, 1), (proxied, 1)]:
        with pytest.raises(UnsafeBinding) as refused:
            check_binding(unsafe, tokens)
        assert len(refused.value.missing) == missing
    tokens.new("shift", "operator")
    with pytest.raises(UnsafeBinding):
        check_binding(bare, tokens)
    check_binding(encrypted, tokens)
    check_binding(proxied, tokens)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_serving_this_machine_needs_no_token(tmp_path: Path, host: str) -> None:
    check_binding(Settings(host=host), TokenStore(tmp_path))


def test_the_binding_is_checked_before_any_socket_listens(tmp_path: Path) -> None:
    with pytest.raises(UnsafeBinding):
        serve(Settings(host="0.0.0.0", port=0, data=str(tmp_path)))


def test_an_unusable_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")

    with pytest.raises(TlsUnusable, match=r"cert\.pem"):
        check_tls(Settings(tls_cert=str(tmp_path / "cert.pem"), tls_key=str(tmp_path / "absent.pem")))


def test_starlette_versions_with_the_crafted_host_bug_are_excluded() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]

    (starlette,) = [one for one in needed if one.startswith("starlette")]

    floor = starlette.partition(">=")[2]
    assert tuple(map(int, floor.split("."))) >= (1, 3, 1)
