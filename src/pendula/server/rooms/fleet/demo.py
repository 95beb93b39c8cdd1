"""The living example of the room: four trucks in a hall, alive for hours, and now and then something goes wrong.

What goes wrong is chosen by the tick alone, in turn: a truck that stands before an obstacle, one whose position jumps,
one that falls silent, one with a fault that somebody has to clear. A fault that nobody clears for a while is cleared.
"""

import asyncio
from typing import TYPE_CHECKING

import structlog

from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator.faults import Fault, FaultKind
from pendula.kernel.canonical import Json
from pendula.kernel.errors import PendulaError
from pendula.server.rooms.fleet.trucks import Simulation

if TYPE_CHECKING:
    from pendula.server.rooms.fleet.loop import FleetLoop

DEMO_NAME = "hall"
DEMO_SIMULATION = Simulation(seed=7, speed=2)
SCENARIO = "hall"
PAUSE_SECONDS = 45.0
PATIENCE_SECONDS = 60.0
FAULTS = (
    Fault(FaultKind.STAND, for_ms=20_000),
    Fault(FaultKind.POSE_JUMP, for_ms=3_000, x_um=800_000, y_um=0),
    Fault(FaultKind.SILENCE, for_ms=8_000),
    Fault(FaultKind.FAULT, for_ms=15_000),
)

log = structlog.get_logger("pendula.server")


def demo_config() -> Json:
    """The hall with four trucks and streams that never end."""
    return Run(shipped(SCENARIO)).config


class Mischief:
    """Gives the trucks of the demo a fault now and then, and clears what nobody clears."""

    def __init__(self, loop: "FleetLoop") -> None:
        self._loop = loop
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _live(self) -> None:
        number = self._loop.engine.traffic.tick_number
        names = self._loop.engine.traffic.robot_ids
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            number += 1
            robot = sorted(names)[number % len(names)]
            try:
                self._loop.trucks.trouble(robot, FAULTS[number % len(FAULTS)])
                await asyncio.sleep(PATIENCE_SECONDS)
                await self._clear()
            except PendulaError as error:
                log.warning("demo", problem=error.message)

    async def _clear(self) -> None:
        for record in self._loop.engine.traffic.records:
            if record.latched is not None:
                await self._loop.act(
                    OperatorAction(
                        contractVersion=CONTRACT_VERSION,
                        actionId=f"demo-{record.robot_id}-{self._loop.engine.traffic.tick_number}",
                        ts=self._loop.engine.now(),
                        operatorId="demo",
                        type="CLEAR_FAULT",
                        reason="nobody came",
                        robotId=record.robot_id,
                    )
                )
