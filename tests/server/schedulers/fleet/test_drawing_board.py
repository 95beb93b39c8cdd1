"""Maps are compiled one after the other, off the event loop, and a long line is refused in words."""

import asyncio
import threading

import pytest

from pendula.server.schedulers.fleet.fleets import MOST_WAITING_MAPS, DrawingBoard, MapsWait

pytestmark = pytest.mark.anyio


class Slow:
    """Something that takes until it is let go; counts how many are at it at the same time."""

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


async def begun(slow: Slow) -> None:
    async with asyncio.timeout(120):
        while slow.at_once == 0:
            await asyncio.sleep(0.001)


async def test_one_map_is_compiled_at_a_time_and_the_loop_is_free_meanwhile() -> None:
    board, slow = DrawingBoard(), Slow()
    asked = [asyncio.create_task(board.work(slow.make)) for _ in range(3)]
    # That this comes to an end shows that the loop is free.
    await begun(slow)
    slow.go_on.set()

    assert await asyncio.gather(*asked) == ["made"] * 3
    assert slow.most_at_once == 1


async def test_a_long_line_is_refused_and_later_ones_are_served() -> None:
    board, slow = DrawingBoard(), Slow()
    asked = [asyncio.create_task(board.work(slow.make)) for _ in range(1 + MOST_WAITING_MAPS)]
    await begun(slow)

    with pytest.raises(MapsWait, match="5 maps are being compiled or wait for it"):
        await board.work(slow.make)
    slow.go_on.set()
    await asyncio.gather(*asked)
    assert await board.work(slow.make) == "made"


async def test_nobody_begins_while_the_map_of_somebody_who_left_is_compiled() -> None:
    board, slow = DrawingBoard(), Slow()
    left = asyncio.create_task(board.work(slow.make))
    await begun(slow)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    after = asyncio.create_task(board.work(slow.make))
    await asyncio.sleep(0)
    slow.go_on.set()

    assert await after == "made"
    assert slow.most_at_once == 1


async def test_a_map_that_cannot_be_compiled_keeps_nobody_waiting() -> None:
    board = DrawingBoard()

    def broken() -> str:
        raise ValueError("no map")

    for _ in range(MOST_WAITING_MAPS + 3):
        with pytest.raises(ValueError, match="no map"):
            await board.work(broken)
