"""Looks at the past: in threads of their own, a bounded number of them, and none in the way of a command."""

import asyncio
import threading

import msgspec
import pytest

from pendula.kernel.journal import RecordsPruned
from pendula.server.errors import PastBusy
from pendula.server.hosting.past import THREADS, Lane
from pendula.server.settings import Settings
from tests.server.living import BASE, client_of, code_of, running, supervisor_of

pytestmark = pytest.mark.anyio


class Gate(threading.Event):
    """Closed until the block is left, also by an error: a thread that waits for ever keeps the tests from ending."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.set()


async def test_a_hundred_slow_looks_hold_up_no_command_and_no_reading_of_records(settings: Settings) -> None:
    go_on = Gate()
    given = msgspec.structs.replace(settings, limits={"past_reads": 98})
    async with running(given) as app, client_of(app) as client:
        looks = [asyncio.create_task(supervisor_of(app).replayed(go_on.wait)) for _ in range(100)]
        await asyncio.sleep(0)

        with go_on:
            async with asyncio.timeout(60):
                done = await client.post(f"{BASE}/commands", json={"type": "add", "amount": 1})
                records = await client.get(f"{BASE}/journal")
                full = await client.get(f"{BASE}/state", params={"at": 0})
        found = await asyncio.gather(*looks)
        after = await client.get(f"{BASE}/state", params={"at": 0})

    assert (done.status_code, records.status_code, after.status_code) == (200, 200, 200)
    assert (full.status_code, code_of(full), full.headers["retry-after"]) == (503, "past_busy", "1")
    assert found == [True] * 100


async def test_no_more_looks_run_at_once_than_there_are_threads() -> None:
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


async def test_whoever_gives_up_waiting_leaves_the_line() -> None:
    lane = Lane("test", 1)
    go_on = Gate()
    busy = [asyncio.create_task(lane.look(go_on.wait)) for _ in range(THREADS)]
    waiting = asyncio.create_task(lane.look(go_on.wait))
    await asyncio.sleep(0)
    with go_on:
        async with asyncio.timeout(60):
            with pytest.raises(PastBusy):
                await lane.look(go_on.wait)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        another = asyncio.create_task(lane.look(go_on.wait))
        await asyncio.sleep(0)

    assert await asyncio.gather(*busy, another) == [True] * (THREADS + 1)
    assert lane.inside == 0
    lane.close()


async def test_a_look_at_what_was_pruned_meanwhile_is_taken_again() -> None:
    lane = Lane("test", 1)
    tries: list[int] = []

    def look() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise RecordsPruned("gone", first_n=9)
        return "found"

    assert await lane.look(look) == "found"
    lane.close()
