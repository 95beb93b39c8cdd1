"""The trucks of a served fleet: simulated ones, which live in this process, or real ones, whose gateway calls us.

Both say what they report, take orders, and are asked in the same way; the loop of a fleet does not know which it has.
"""

from collections import deque
from typing import Protocol

from msgspec import Struct

from pendula.fleet.contracts.traffic import RollingTargetCommand
from pendula.fleet.engine import FleetEngine, OrdersOut
from pendula.fleet.simulator.faults import Fault
from pendula.fleet.simulator.settings import WorldSettings
from pendula.fleet.simulator.standing import standing_world
from pendula.fleet.tasks import OperationDone, TaskEvent
from pendula.fleet.tasks.model import Operation
from pendula.fleet.tick.observing import TruckReport
from pendula.server.errors import HttpRefused

MOST_WAITING = 1000


class NotSimulated(HttpRefused):
    """Only simulated trucks can be given a fault."""

    code = "not_simulated"
    status = 409


class Simulation(Struct, frozen=True, forbid_unknown_fields=True):
    """How simulated trucks are: how good their sensors and radio, from which seed, how many times faster than life."""

    world: WorldSettings = WorldSettings()
    seed: int = 0
    speed: int = 1


class Trucks(Protocol):
    def reports(self) -> tuple[TruckReport, ...]:
        """What was heard since the last tick."""
        ...

    def task_events(self) -> tuple[TaskEvent, ...]: ...

    def carry_out(self, orders: OrdersOut) -> None: ...

    def drive(self, to_ms: int) -> None:
        """Let time go on, where it is ours."""
        ...

    def trouble(self, robot_id: str, fault: Fault) -> None: ...


class SimulatedTrucks:
    def __init__(self, engine: FleetEngine, simulation: Simulation) -> None:
        self._engine = engine
        traffic = engine.traffic
        self._world = standing_world(
            engine.site, traffic.records, engine.dispatch, simulation.world, simulation.seed, traffic.now_ms
        )
        self._number = {name: number for number, name in enumerate(self._world.robot_ids)}

    def reports(self) -> tuple[TruckReport, ...]:
        world = self._world
        return tuple(
            TruckReport(
                robot_id=robot_id,
                at_ms=seen.at_ms,
                x_um=seen.x_um,
                y_um=seen.y_um,
                yaw_urad=seen.yaw_urad,
                v_um_s=seen.v_um_s,
                status=seen.status,
                last_ack_seq=seen.last_ack_seq,
                load=world.loaded[number],
                obstructed=seen.obstructed,
            )
            for number, (robot_id, seen) in enumerate(zip(world.robot_ids, world.latest, strict=True))
        )

    def task_events(self) -> tuple[TaskEvent, ...]:
        return tuple(OperationDone(self._world.robot_ids[number]) for number in self._world.operated())

    def carry_out(self, orders: OrdersOut) -> None:
        world = self._world
        for route in orders.routes:
            world.learn(self._number[route.robot_id], route)
        for one in orders.operations:
            world.operate(self._number[one.robot_id], one.duration_ms, one.kind == "LOAD")
        for command in orders.commands:
            world.send(self._number[command.robotId], command)

    def drive(self, to_ms: int) -> None:
        if to_ms > self._world.now_ms:
            self._world.advance(to_ms)

    def trouble(self, robot_id: str, fault: Fault) -> None:
        self._world.trouble_with(self._number[robot_id], fault)


class RemoteTrucks:
    """Trucks behind a gateway: it posts what they report and asks for what they are to do, whenever it likes."""

    def __init__(self) -> None:
        self._reports: deque[TruckReport] = deque(maxlen=MOST_WAITING)
        self._events: deque[TaskEvent] = deque(maxlen=MOST_WAITING)
        self.commands: dict[str, RollingTargetCommand] = {}
        self.operations: dict[str, Operation] = {}

    def hear(self, reports: tuple[TruckReport, ...], events: tuple[TaskEvent, ...]) -> None:
        self._reports.extend(reports)
        self._events.extend(events)
        for event in events:
            if isinstance(event, OperationDone):
                self.operations.pop(event.robot_id, None)

    def reports(self) -> tuple[TruckReport, ...]:
        heard = tuple(self._reports)
        self._reports.clear()
        return heard

    def task_events(self) -> tuple[TaskEvent, ...]:
        heard = tuple(self._events)
        self._events.clear()
        return heard

    def carry_out(self, orders: OrdersOut) -> None:
        self.commands.update((one.robotId, one) for one in orders.commands)
        self.operations.update((one.robot_id, one) for one in orders.operations)

    def drive(self, to_ms: int) -> None:
        """Real trucks drive by themselves."""

    def trouble(self, robot_id: str, fault: Fault) -> None:  # noqa: ARG002
        raise NotSimulated("This fleet has real trucks; only simulated ones can be given a fault", robot=robot_id)
