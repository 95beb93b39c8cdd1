"""Sets the wall clock of players with day parts: when they are opened or changed, and when clocks drift.

A player advances its wall clock itself. It is set again only if it is off by more than two seconds, because a clock was
set or the machine slept, or if the zone changed; so a journal has few of these commands.
"""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from pendula.kernel.errors import PendulaError
from pendula.kernel.wallclock import WallClock
from pendula.playback.choosing.dayparts import WallClock as WallClockOfPlayer
from pendula.playback.choosing.dayparts import wall_clock
from pendula.playback.clocks import clock_at
from pendula.playback.engine import Player
from pendula.playback.messages import Clock
from pendula.server.runtime.engine_host import AnyDriver, EngineHost
from pendula.server.views import State

TIMEKEEPER = "clock"
EVERY_SECONDS = 30.0
DRIFT_MS = 2000

log = structlog.get_logger("pendula.server")


class Timekeeper:
    """Checks all players every 30 seconds."""

    def __init__(self, clock: WallClock, hosts: Callable[[], Iterable[EngineHost]]) -> None:
        self._clock = clock
        self._hosts = hosts

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            for host in [host for host in self._hosts() if host.kind is Player and host.state is State.READY]:
                await self.tell(host)

    async def tell(self, host: EngineHost) -> None:
        """Set the clock of a player if it is wrong; a failure is logged and retried later."""
        try:
            clock = await host.ask(lambda driver: self._correction(host, driver))
            if clock is not None:
                await host.submit(clock, TIMEKEEPER, None)
        except PendulaError as error:
            log.warning("player_clock_not_set", engine=host.name, code=error.code, problem=error.message)

    def _correction(self, host: EngineHost, driver: AnyDriver) -> Clock | None:
        player = driver.engine
        assert isinstance(player, Player)
        settings = player.programme.snapshot.settings
        if not settings.day_parts:
            return None
        present = clock_at(settings.zone, self._clock.now() // 1000)
        if player.clock is not None and host.pace is not None and agree(player.clock, present, host.pace.reading()):
            return None
        return present


def agree(known: WallClockOfPlayer, present: Clock, reading: int) -> bool:
    """Whether the player's clock agrees with the present time and the next change of the UTC offset."""
    there = wall_clock(reading, present.utc_ms, present.offsets)
    near = abs(known.utc_ms + reading - known.at - present.utc_ms) <= DRIFT_MS
    return near and known.minute(reading) == there.minute(reading) and _next(known, reading) == _next(there, reading)


def _next(clock: WallClockOfPlayer, reading: int) -> tuple[int, int] | None:
    utc = clock.utc_ms + reading - clock.at
    return next((offset for offset in clock.offsets if offset[0] > utc), None)
