"""The demo of the scheduler: four trucks in a hall, with random faults from a seed.

A truck stands before an obstacle, its position jumps, it stops reporting, it has a fault, or its wheels are stuck until
the fault is cleared. Faults that are not cleared for a while are cleared automatically.
"""

import asyncio
from typing import Protocol

import structlog
from msgspec import structs

from pendula.fleet.contracts import OperatorAction
from pendula.fleet.engine import FleetEngine
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator import Fault, FaultKind, FaultRate, WorldSettings
from pendula.kernel.canonical import Json
from pendula.kernel.errors import PendulaError

NAME = "hall"
SCENARIO = "hall"
ROUND_SECONDS = 5.0
PATIENCE_MS = 120_000
# With four trucks at twice real time: a fault every other minute.
FAULTS = (
    FaultRate(Fault(FaultKind.STAND, for_ms=20_000), per_hour=1),
    FaultRate(Fault(FaultKind.POSE_JUMP, for_ms=3_000, x_um=800_000), per_hour=1),
    FaultRate(Fault(FaultKind.SILENCE, for_ms=8_000), per_hour=1),
    FaultRate(Fault(FaultKind.FAULT, for_ms=15_000), per_hour=1),
    FaultRate(Fault(FaultKind.STUCK, for_ms=10_000), per_hour=1),
)
WORLD = WorldSettings(faults=FAULTS)
SEED = 7
SPEED = 2

log = structlog.get_logger("pendula.server")


def demo_config() -> Json:
    """The hall with four trucks and streams that never end."""
    hall = shipped(SCENARIO)
    streams = tuple(structs.replace(stream, last_ms=None) for stream in hall.streams)
    return Run(structs.replace(hall, streams=streams)).config


class RunningFleet(Protocol):
    """A fleet that takes operator actions while it runs."""

    @property
    def engine(self) -> FleetEngine: ...

    async def act(self, action: OperatorAction) -> object: ...


class FaultClearer:
    """Clears faults of the demo that stay for `PATIENCE_MS`."""

    def __init__(self, fleet: RunningFleet) -> None:
        self._fleet = fleet
        self._seen: dict[str, int] = {}
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            try:
                for robot_id in self.overdue():
                    await self._clear(robot_id)
            except PendulaError as error:
                log.warning("demo", problem=error.message)

    def overdue(self) -> list[str]:
        """Trucks with a fault that has not been cleared for `PATIENCE_MS`."""
        now = self._fleet.engine.now()
        waiting = [record.robot_id for record in self._fleet.engine.traffic.records if record.latched is not None]
        self._seen = {name: self._seen.get(name, now) for name in waiting}
        return [name for name, since in self._seen.items() if now - since >= PATIENCE_MS]

    async def _clear(self, robot_id: str) -> None:
        engine = self._fleet.engine
        await self._fleet.act(
            OperatorAction(
                contractVersion=CONTRACT_VERSION,
                actionId=f"demo-{robot_id}-{engine.traffic.tick_number}",
                ts=engine.now(),
                operatorId="demo",
                type="CLEAR_FAULT",
                reason="not cleared in time",
                robotId=robot_id,
            )
        )
