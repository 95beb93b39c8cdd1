"""Maps are compiled one after the other, off the event loop; a full queue rejects requests."""

import asyncio
import threading

import pytest

from pendula.server.schedulers.fleet.fleets import MOST_WAITING_MAPS, MapCompiler, MapsWait

pytestmark = pytest.mark.anyio


class Slow:
    """A job that blocks until released; counts how many run at the same time."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def make(self) -> str:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.go_on.wait(120)
        with self._lock:
            self.at_once -= 1
        return "made"


async def until_started(slow: Slow) -> None:
    async with asyncio.timeout(120):
        while slow.at_once == 0:
            await asyncio.sleep(0.001)


async def test_one_map_is_compiled_at_a_time_and_the_loop_is_free_meanwhile() -> None:
    compiler, slow = MapCompiler(), Slow()
    requests = [asyncio.create_task(compiler.run(slow.make)) for _ in range(3)]
    # This returns only if the loop is free.
    await until_started(slow)
    slow.go_on.set()

    assert await asyncio.gather(*requests) == ["made"] * 3
    assert slow.most_at_once == 1


async def test_a_full_queue_rejects_requests_until_it_drains() -> None:
    compiler, slow = MapCompiler(), Slow()
    requests = [asyncio.create_task(compiler.run(slow.make)) for _ in range(1 + MOST_WAITING_MAPS)]
    await until_started(slow)

    with pytest.raises(MapsWait, match="5 maps are being compiled or wait for it"):
        await compiler.run(slow.make)
    slow.go_on.set()
    await asyncio.gather(*requests)
    assert await compiler.run(slow.make) == "made"


async def test_the_map_of_a_cancelled_request_is_finished_before_the_next() -> None:
    compiler, slow = MapCompiler(), Slow()
    left = asyncio.create_task(compiler.run(slow.make))
    await until_started(slow)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    after = asyncio.create_task(compiler.run(slow.make))
    await asyncio.sleep(0)
    slow.go_on.set()

    assert await after == "made"
    assert slow.most_at_once == 1


async def test_failed_compilations_leave_the_queue() -> None:
    compiler = MapCompiler()

    def broken() -> str:
        raise ValueError("no map")

    for _ in range(MOST_WAITING_MAPS + 3):
        with pytest.raises(ValueError, match="no map"):
            await compiler.run(broken)
