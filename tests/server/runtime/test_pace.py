"""A paced engine advances by itself: on time, never back, and without writing while nothing is due."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from pendula.kernel.driver import DiskLow
from pendula.playback.engine import Player
from pendula.playback.messages import Advance, At, Insert, Next
from pendula.server.runtime import engine_host, supervisor
from pendula.server.runtime.engine_host import Pace
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.playback.routes import timed
from tests.server.living import JSON, supervisor_of
from tests.server.screens import BASE, HALL, HOUR_MS, STILL, ask, eventually, fill, hang, make, view

pytestmark = pytest.mark.anyio
MS = 1_000_000


@pytest.fixture
def schedulers() -> Sequence[SchedulerSpec]:
    return (STILL,)


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.ns = 7_000 * MS

    def __call__(self) -> int:
        return self.ns


async def _ordinal(client: httpx.AsyncClient, least: int) -> bool:
    return bool((await view(client, "now"))["item"]["ordinal"] >= least)


async def _clock(client: httpx.AsyncClient, least: int) -> bool:
    return bool((await view(client, "now"))["clock"] >= least)


async def inputs(client: httpx.AsyncClient) -> list[Any]:
    found = (await view(client, "journal", limit=1000))["records"]
    return [record["body"] for record in found if record["kind"] == "input"]


async def test_the_clock_continues_from_the_engine_time() -> None:
    clock, player = Clock(), Player.create({"seed": 1})
    player.apply(Advance(5000))
    pace = Pace(timed, "ms", clock)

    pace.begin(player)
    clock.ns += 1500 * MS

    now = pace.present(player)
    assert pace.reading() == now == 6500
    assert pace.due_step(player, now) is None
    assert pace.timed(player, now, Next()) == At(6500, Next())


async def test_time_passes_by_itself_only_when_something_is_due() -> None:
    clock, player = Clock(), Player.create({"seed": 1})
    pace = Pace(timed, "ms", clock)
    pace.begin(player)

    assert pace.due_step(player, pace.present(player)) is None
    player.apply(Insert(id=1))
    pace.follow(player)

    assert pace.due_step(player, pace.present(player)) == Advance(0)
    assert await asyncio.wait_for(pace.due(), 120)


@pytest.mark.parametrize(("seconds", "advanced"), [(60, 60_000), (61, 0), (30 * 86_400, 0)])
async def test_time_lost_while_the_program_was_suspended_is_skipped(seconds: int, advanced: int) -> None:
    clock, player = Clock(), Player.create({"seed": 1})
    pace = Pace(timed, "ms", clock)
    pace.begin(player)
    player.apply(Insert(id=1))
    pace.follow(player)

    clock.ns += seconds * 1000 * MS

    assert pace.due_step(player, pace.present(player)) == Advance(advanced)
    assert pace.reading() == advanced
    clock.ns += 5 * MS
    assert pace.reading() == advanced + 5


async def test_time_advanced_by_a_command_does_not_go_back() -> None:
    clock, player = Clock(), Player.create({"seed": 1})
    pace = Pace(timed, "ms", clock)
    pace.begin(player)

    player.apply(Advance(90_000))
    pace.follow(player)
    clock.ns += 10 * MS

    assert pace.reading() == 90_010


async def test_a_waiting_timer_wakes_when_something_is_due_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_host, "LEAST_SECONDS", 0)
    player = Player.create({"seed": 1})
    pace = Pace(timed, "ms")
    pace.begin(player)
    waiting = asyncio.create_task(pace.due())
    for _ in range(10):
        await asyncio.sleep(0)

    player.apply(Insert(id=1))
    await asyncio.to_thread(pace.follow, player)

    assert await asyncio.wait_for(waiting, 120)


async def test_a_waiting_timer_returns_when_the_pace_ends() -> None:
    pace = Pace(timed, "ms")
    pace.begin(Player.create({"seed": 1}))
    waiting = asyncio.create_task(pace.due())
    await asyncio.sleep(0)

    pace.end()

    assert await asyncio.wait_for(waiting, 120) is False


async def test_items_advance_without_a_call(client: httpx.AsyncClient) -> None:
    await hang(client, dwell_ms=25)

    await eventually(lambda: _ordinal(client, 4))

    assert {body["meta"]["by"] for body in (await inputs(client))[1:]} == {"clock"}
    assert {body["command"]["type"] for body in (await inputs(client))[1:]} == {"advance"}


async def test_nothing_is_written_while_nothing_is_due(client: httpx.AsyncClient) -> None:
    await hang(client, dwell_ms=25)
    await ask(client, "pause")
    before = await view(client, "journal")

    # Several times the dwell of an item.
    clock = (await view(client, "now"))["clock"]
    await eventually(lambda: _clock(client, clock + 100))

    assert await view(client, "journal") == before


async def test_a_command_runs_at_the_present_time_not_at_the_last_due_time(client: httpx.AsyncClient) -> None:
    await hang(client)
    await eventually(lambda: _clock(client, 20))

    done = await ask(client, "next")

    assert done["events"][-1]["started_at"] >= 20
    assert done["events"][-1]["ends_at"] == done["events"][-1]["started_at"] + HOUR_MS
    assert [body["command"]["type"] for body in await inputs(client)] == ["next", "at"]


async def test_a_command_has_no_time_of_its_own_while_the_engine_is_there_or_has_more_to_do() -> None:
    player = Player.create({"seed": 1})
    pace = Pace(timed, "ms", Clock())
    pace.begin(player)

    assert pace.timed(player, 0, Next()) == Next()
    player.apply(Insert(id=1))
    assert pace.timed(player, 5, Next()) == Next()


class NoScheduler:
    """An engine that cannot write: each call takes ten seconds and fails; the second one removes it."""

    scheduler, name, failure = "playback", "hall", None

    def __init__(self, player: Player, pace: Pace, clock: Clock) -> None:
        self.engine, self.driver = player, self
        self._pace, self._clock = pace, clock
        self.readings: list[int] = []

    async def advance(self) -> None:
        self.readings.append(self._pace.reading())
        self._clock.ns += 10_000 * MS
        if len(self.readings) == 2:
            self._pace.end()
        raise DiskLow("The disk is nearly full")


async def test_time_stops_while_it_cannot_be_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STANDS_SECONDS", 0)
    clock, player = Clock(), Player.create({"seed": 1})
    player.apply(Insert(id=1))
    pace = Pace(timed, "ms", clock)
    pace.begin(player)
    host: Any = NoScheduler(player, pace, clock)

    await asyncio.wait_for(supervisor._keep_time(host, pace), 120)

    assert host.readings == [0, 0]
    assert pace.reading() == 0


async def test_a_closed_player_is_not_advanced(client: httpx.AsyncClient, app: FastAPI) -> None:
    await fill(client, "a", 1, 2)
    await make(client, channels=["a"], dwell_ms=20)

    await client.post(f"{HALL}/close", headers=JSON)

    assert [host.name for host in supervisor_of(app).hosts()] == []
    assert (await client.get(BASE)).json()["players"][0]["state"] == "closed"
