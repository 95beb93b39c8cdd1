"""Reads of history run in their own bounded threads and delay no command."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from pendula.kernel.cancellation import Cancellation, Cancelled, cancellable, check
from pendula.kernel.driver import engine_at
from pendula.kernel.journal import RecordsPruned
from pendula.server.errors import PastBusy, ReadTooLong
from pendula.server.runtime.past import THREADS, Lane, PastEngines
from pendula.server.security.identity import Asking, asking
from pendula.server.settings import Settings
from tests.server.living import BASE, LiveServer, client_of, code_of, running, supervisor_of

pytestmark = pytest.mark.anyio

A = TypeVar("A")


class Gate(threading.Event):
    """Closed until the block ends, also by an error: a thread that waits forever would keep pytest from ending."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.set()


async def test_a_hundred_slow_history_reads_delay_no_command_and_no_record_read(settings: Settings) -> None:
    go_on = Gate()
    given = msgspec.structs.replace(settings, limits={"past_reads": 98})
    async with running(given) as app, client_of(app) as client:
        looks = [asyncio.create_task(supervisor_of(app).replayed(go_on.wait)) for _ in range(100)]
        await asyncio.sleep(0)

        with go_on:
            async with asyncio.timeout(120):
                done = await client.post(f"{BASE}/commands", json={"type": "add", "amount": 1})
                records = await client.get(f"{BASE}/journal")
                full = await client.get(f"{BASE}/state", params={"at": 0})
        found = await asyncio.gather(*looks)
        after = await client.get(f"{BASE}/state", params={"at": 0})

    assert (done.status_code, records.status_code, after.status_code) == (200, 200, 200)
    assert (full.status_code, code_of(full), full.headers["retry-after"]) == (503, "past_busy", "1")
    assert found == [True] * 100


async def test_concurrent_history_reads_are_bounded_by_the_threads() -> None:
    lane = Lane("test", 50)
    lock = threading.Lock()
    running_now = [0, 0]

    def look() -> None:
        with lock:
            running_now[0] += 1
            running_now[1] = max(running_now)
        with lock:
            running_now[0] -= 1

    await asyncio.gather(*(lane.look(look) for _ in range(50)))
    lane.close()

    assert 1 <= running_now[1] <= THREADS


async def test_a_cancelled_read_leaves_the_queue() -> None:
    lane = Lane("test", 1)
    go_on = Gate()
    busy = [asyncio.create_task(lane.look(go_on.wait)) for _ in range(THREADS)]
    waiting = asyncio.create_task(lane.look(go_on.wait))
    await asyncio.sleep(0)
    with go_on:
        async with asyncio.timeout(120):
            with pytest.raises(PastBusy):
                await lane.look(go_on.wait)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        another = asyncio.create_task(lane.look(go_on.wait))
        await asyncio.sleep(0)

    assert await asyncio.gather(*busy, another) == [True] * (THREADS + 1)
    assert lane.inside == 0
    lane.close()


async def test_a_read_of_pruned_history_is_retried() -> None:
    lane = Lane("test", 1)
    tries: list[int] = []

    def look() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise RecordsPruned("gone", first_n=9)
        return "found"

    assert await lane.look(look) == "found"
    lane.close()


# Time limits, callers that disconnect, callers with many requests


class Connection:
    """The part of a request that a lane uses."""

    def __init__(self, caller: str) -> None:
        self._left = asyncio.Event()
        self._asking = Asking(caller, self._receive)

    def leave(self) -> None:
        self._left.set()

    async def look(self, lane: Lane, read: Callable[[], A]) -> A:
        asking.set(self._asking)
        return await lane.look(read)

    async def look_at(self, lane: Lane, fetch: Callable[[], Awaitable[A]], read: Callable[[A], A]) -> A:
        asking.set(self._asking)
        return await lane.look_at(fetch, read)

    async def _receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}


class Steps:
    """Endless work in steps; `begun` is set by the first step, `ended` when it is aborted."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()

    def __call__(self) -> None:
        try:
            while True:
                check()
                self.begun.set()
        finally:
            self.ended.set()


async def until_set(event: threading.Event) -> None:
    async with asyncio.timeout(120):
        while not event.is_set():
            await asyncio.sleep(0.001)


async def test_a_read_is_aborted_when_its_caller_disconnects() -> None:
    lane, caller, work = Lane("test", threads=1), Connection("ann"), Steps()
    looking = asyncio.create_task(caller.look(lane, work))
    await until_set(work.begun)
    caller.leave()

    with pytest.raises(ClientDisconnect):
        await looking
    assert work.ended.is_set()
    assert lane.inside == 0
    assert await lane.look(lambda: "found") == "found"
    lane.close()


async def test_a_queued_read_does_not_start_for_a_disconnected_caller() -> None:
    lane, ann, bob = Lane("test", threads=1), Connection("ann"), Connection("bob")
    go_on = Gate()
    begun: list[str] = []
    busy = asyncio.create_task(ann.look(lane, go_on.wait))
    with go_on:
        while lane.inside < 1:
            await asyncio.sleep(0)
        waiting = asyncio.create_task(bob.look(lane, lambda: begun.append("bob")))
        while lane.inside < 2:
            await asyncio.sleep(0)
        bob.leave()
        for _ in range(100):
            await asyncio.sleep(0)
    with pytest.raises(ClientDisconnect):
        await waiting
    assert await busy is True
    lane.close()
    assert begun == []


async def test_the_input_of_a_read_is_fetched_only_when_a_thread_is_free() -> None:
    lane, ann, bob, go_on = Lane("test", most_waiting=2, threads=1), Connection("ann"), Connection("bob"), Gate()
    fetched: list[str] = []

    async def fetch() -> str:
        fetched.append("large")
        return "large"

    busy = asyncio.create_task(lane.look(go_on.wait))
    with go_on:
        while lane.inside < 1:
            await asyncio.sleep(0)
        staying = asyncio.create_task(ann.look_at(lane, fetch, str.upper))
        leaving = asyncio.create_task(bob.look_at(lane, fetch, str.upper))
        while lane.inside < 3:
            await asyncio.sleep(0)
        with pytest.raises(PastBusy):
            await lane.look_at(fetch, str.upper)
        for _ in range(100):
            await asyncio.sleep(0)
        assert fetched == []
        bob.leave()
        async with asyncio.timeout(240):
            with pytest.raises(ClientDisconnect):
                await leaving
        assert lane.inside == 2, "a caller who has left before its turn gives its place back at once"
    await busy

    assert await staying == "LARGE"
    assert fetched == ["large"]
    lane.close()


async def test_a_read_that_takes_too_long_is_aborted() -> None:
    lane, work = Lane("test", threads=1, seconds=0.01), Steps()

    with pytest.raises(ReadTooLong):
        await Connection("ann").look(lane, work)
    with pytest.raises(ReadTooLong):
        await lane.look(work)

    assert work.ended.is_set()
    assert await lane.look(lambda: "found") == "found"
    lane.close()


async def test_one_caller_cannot_take_all_threads_and_queue_places() -> None:
    lane, go_on = Lane("test", most_waiting=30, most_of_one=5), Gate()
    ann, bob = Connection("ann"), Connection("bob")
    with go_on:
        many = [asyncio.create_task(ann.look(lane, go_on.wait)) for _ in range(5)]
        while lane.inside < 5:
            await asyncio.sleep(0)
        async with asyncio.timeout(120):
            with pytest.raises(PastBusy) as busy:
                await asyncio.create_task(ann.look(lane, go_on.wait))
            found = await asyncio.create_task(bob.look(lane, lambda: "found"))

    assert found == "found"
    assert busy.value.details["limit"] == "past_reads_per_caller"
    assert await asyncio.gather(*many) == [True] * 5
    assert lane.inside == 0
    lane.close()


async def test_an_aborted_replay_resumes_where_it_stopped(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(settings) as app, client_of(app) as client:
        for _ in range(30):
            await client.post(f"{BASE}/commands", json={"type": "add", "amount": 1})
        host = supervisor_of(app).host("tally", "main")
        last = host.driver.journal.durable_n
        cancellation = Cancellation()
        applied: list[object] = []

        kind: Any = type(host.driver.engine)
        apply = kind.apply

        def watched(engine: Any, command: Any) -> Any:
            applied.append(command)
            if len(applied) == 10:
                cancellation.cancel()
            return apply(engine, command)

        monkeypatch.setattr(kind, "apply", watched)
        past = PastEngines(host.journal, lambda n: engine_at(host.journal, kind, n))
        with pytest.raises(Cancelled), cancellable(cancellation), past.at(last):
            raise AssertionError
        before = len(applied)
        with past.at(last) as engine:
            state = engine.state()

    assert before == 10
    assert len(applied) == 30
    assert state == host.driver.engine.state()


async def nothing() -> None: ...


async def test_a_long_what_if_delays_no_history_read(settings: Settings) -> None:
    go_on = Gate()
    async with running(settings) as app, client_of(app) as client:
        await client.post(f"{BASE}/commands", json={"type": "add", "amount": 1})
        supervisor = supervisor_of(app)
        supposing = [asyncio.create_task(supervisor.supposed(nothing, lambda _: go_on.wait())) for _ in range(5)]
        await asyncio.sleep(0)
        with go_on:
            async with asyncio.timeout(120):
                state = await client.get(f"{BASE}/state", params={"at": 0})
                moments = await client.get(f"{BASE}/moments")
        await asyncio.gather(*supposing)

    assert (state.status_code, moments.status_code) == (200, 200)


async def test_a_caller_hang_up_is_detected(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Steps()
    with LiveServer(settings) as server:
        host = supervisor_of(server.app).host("tally", "main")
        monkeypatch.setattr(type(host.past), "at", lambda *_: work())
        with server.connect() as connection:
            connection.sendall(f"GET {BASE}/state?at=0 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            assert work.begun.wait(120)
            assert not work.ended.is_set()
        assert work.ended.wait(120)
        with server.client() as client:
            assert client.get(f"{BASE}/journal").status_code == 200
