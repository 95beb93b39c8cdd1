"""The clock of wall time: steady beats, and no work twice at once."""

import asyncio

import pytest

from pendula.server.runtime.engine_host import Beat, Work

pytestmark = pytest.mark.anyio


class Beats:
    """Two clocks as a run has them; counts heartbeats, running ticks and missed ticks."""

    def __init__(self, ticks_wanted: bool = True) -> None:
        self.beats = self.requests = self.ticks = self.missed = self.most_at_once = self.at_once = 0
        self.go = asyncio.Event()
        self._ticks_wanted = ticks_wanted
        self.clocks = [Beat(0.001, self._beat), Beat(0.001, self._next, self._missed)]

    def start(self) -> None:
        for clock in self.clocks:
            clock.start()

    async def stop(self) -> None:
        for clock in self.clocks:
            await clock.stop()

    def _beat(self, _: float) -> None:
        self.beats += 1

    def _next(self, late: float) -> Work | None:
        assert late >= 0
        self.requests += 1
        return self._tick if self._ticks_wanted else None

    def _missed(self) -> None:
        self.missed += 1

    async def _tick(self) -> None:
        self.ticks += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.go.wait()
        self.at_once -= 1

    async def until(self, beats: int) -> None:
        while min(self.beats, self.requests) < beats:
            await asyncio.sleep(0.001)


@pytest.mark.req("SIM-TIME-5", "SIM-GUARD-2")
async def test_a_long_tick_delays_no_heartbeat_and_no_other_tick_starts() -> None:
    watched = Beats()
    watched.start()
    await watched.until(10)

    assert (watched.ticks, watched.most_at_once) == (1, 1)
    assert watched.missed >= 8
    watched.go.set()
    await watched.stop()


@pytest.mark.req("SIM-TIME-7")
async def test_missed_ticks_are_not_repeated() -> None:
    watched = Beats()
    watched.start()
    await watched.until(10)
    missed = watched.missed
    watched.go.set()
    await watched.until(15)
    await watched.stop()

    assert watched.ticks + missed <= watched.requests


@pytest.mark.req("SIM-RUN-6")
async def test_heartbeats_continue_without_ticks() -> None:
    watched = Beats(ticks_wanted=False)
    watched.start()
    await watched.until(5)
    await watched.stop()

    assert watched.ticks == 0


async def test_stopping_a_clock_waits_for_the_running_tick() -> None:
    watched = Beats()
    watched.start()
    await watched.until(1)
    stopping = asyncio.create_task(watched.stop())
    await asyncio.sleep(0.01)
    assert not stopping.done()
    watched.go.set()
    await stopping

    assert watched.at_once == 0
