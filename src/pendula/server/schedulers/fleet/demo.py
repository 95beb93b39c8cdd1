"""The demo of the scheduler: four trucks in a hall, with random faults from a seed.

A truck stands before an obstacle, its position jumps, it stops reporting, it has a fault, or its wheels are stuck until
the fault is cleared. Faults that are not cleared for a while are cleared automatically.
"""

import asyncio
from typing import TYPE_CHECKING

import structlog
from msgspec import structs

from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator.faults import Fault, FaultKind
from pendula.fleet.simulator.settings import FaultRate, WorldSettings
from pendula.kernel.canonical import Json
from pendula.kernel.errors import PendulaError
from pendula.server.schedulers.fleet.life.trucks import Simulation

if TYPE_CHECKING:
    from pendula.server.schedulers.fleet.life.loop import FleetLoop

DEMO_NAME = "hall"
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
DEMO_SIMULATION = Simulation(world=WorldSettings(faults=FAULTS), seed=7, speed=2)

log = structlog.get_logger("pendula.server")


def demo_config() -> Json:
    """The hall with four trucks and streams that never end."""
    hall = shipped(SCENARIO)
    streams = tuple(structs.replace(stream, last_ms=None) for stream in hall.streams)
    return Run(structs.replace(hall, streams=streams)).config


class FaultClearer:
    """Clears faults of the demo that stay for `PATIENCE_MS`."""

    def __init__(self, loop: "FleetLoop") -> None:
        self._loop = loop
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
        now = self._loop.engine.now()
        waiting = [record.robot_id for record in self._loop.engine.traffic.records if record.latched is not None]
        self._seen = {name: self._seen.get(name, now) for name in waiting}
        return [name for name, since in self._seen.items() if now - since >= PATIENCE_MS]

    async def _clear(self, robot_id: str) -> None:
        engine = self._loop.engine
        await self._loop.act(
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
