"""The trucks of a served fleet: simulated in this process, or real, with a gateway that calls the HTTP routes.

Both satisfy `pendula.fleet.gateway.Gateway`, so the loop treats both alike.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Protocol

from msgspec import UNSET, Struct
from msgspec.structs import replace

from pendula.fleet.contracts import RollingTargetCommand
from pendula.fleet.engine import FleetEngine
from pendula.fleet.gateway import Gateway, IssuedOperations, Received, ReportBatch, is_name
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.simulator.truck import Fault, WorldSettings
from pendula.fleet.simulator.world import SimulatedGateway, restored_world
from pendula.fleet.tasks import Operation, OperationDone, OperationFailed
from pendula.fleet.tick.observing import TruckReport, unreadable
from pendula.fleet.tick.records import Record
from pendula.server.errors import HttpRefused

# Reports of one truck between two ticks.
MOST_WAITING = 20


class NotSimulated(HttpRefused):
    """Only simulated trucks can be given a fault."""

    code = "not_simulated"
    status = 409


class Simulation(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of simulated trucks: errors of sensors and radio, seed, and speed as a multiple of real time."""

    world: WorldSettings = WorldSettings()
    seed: int = 0
    speed: int = 1


class Trucks(Gateway, Protocol):
    """A gateway whose trucks may be simulated, so that they can be moved and given faults."""

    def drive(self, to_ms: int) -> None:
        """Advance simulated trucks."""

    def follow(self, records: Sequence[Record]) -> None:
        """Take removed trucks out of the simulation."""

    def cause_fault(self, robot_id: str, fault: Fault) -> None:
        """Raises `NotSimulated`."""

    def take_failed(self) -> list[OperationFailed]:
        """Failed operations, each returned once."""


class SimulatedTrucks(SimulatedGateway):
    """Simulated trucks, at the positions in the state of the fleet when it is opened."""

    def __init__(self, engine: FleetEngine, simulation: Simulation) -> None:
        traffic = engine.traffic
        self._world = restored_world(
            engine.site, traffic.records, engine.dispatch, simulation.world, seed=simulation.seed, now_ms=traffic.now_ms
        )
        super().__init__(self._world)

    def drive(self, to_ms: int) -> None:
        if to_ms > self._world.now_ms:
            self._world.advance(to_ms)

    def follow(self, records: Sequence[Record]) -> None:
        self._world.follow(records)

    def cause_fault(self, robot_id: str, fault: Fault) -> None:
        self._world.start_fault(self._world.robot_ids.index(robot_id), fault)

    def take_failed(self) -> list[OperationFailed]:
        return []


class RemoteTrucks:
    """Trucks behind a gateway, which posts reports and fetches orders at any time."""

    def __init__(self, robot_ids: Iterable[str]) -> None:
        # The newest reports of each truck: one that reports too often must not displace others, nor may unknown trucks.
        self._reports = {name: deque[TruckReport](maxlen=MOST_WAITING) for name in sorted(robot_ids)}
        self._unknown: deque[TruckReport] = deque(maxlen=MOST_WAITING)
        self._done: dict[OperationDone, None] = {}
        self._failed: dict[tuple[str, str], OperationFailed] = {}
        self._issued = IssuedOperations()
        self.commands: dict[str, RollingTargetCommand] = {}
        self._valid_until = 0.0
        self.operations: dict[str, Operation] = {}

    def receive(
        self, reports: Sequence[TruckReport], done: Sequence[OperationDone], failed: Sequence[OperationFailed]
    ) -> None:
        for report in reports:
            # Names of any length would end up in the journal.
            checked = report if is_name(report.robot_id) else unreadable("")
            self._reports.get(checked.robot_id, self._unknown).append(checked)
        self._done.update(dict.fromkeys(self._issued.with_ids(done)))
        for failure in failed:
            name = self._issued.last_of(failure.robot_id) if failure.operation_id is UNSET else failure.operation_id
            self._failed[failure.robot_id, name] = replace(failure, operation_id=name)
        self.operate([*self.operations.values()])

    def issue_operations(self) -> list[Operation]:
        """The current operations, by truck; from now on the gateway knows them."""
        operations = [operation for _, operation in sorted(self.operations.items())]
        self._issued.note(operations)
        return operations

    def poll(self) -> Received:
        queues = [*self._reports.values(), self._unknown]
        received = Received(ReportBatch(report for queue in queues for report in queue), tuple(self._done))
        for queue in queues:
            queue.clear()
        self._done.clear()
        return received

    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        # Read once: each command is built when it is read.
        sent = tuple(commands)
        self.commands.update((command.robotId, command) for command in sent)
        if sent:
            self._valid_until = monotonic() + min(command.validForMs for command in sent) / 1000

    def are_fresh(self) -> bool:
        """Whether the newest commands are still valid."""
        return monotonic() <= self._valid_until

    def announce(self, routes: Sequence[RoutePlan]) -> None:
        """Every command contains its part of the route."""

    def operate(self, operations: Sequence[Operation]) -> None:
        """Replace the current operations, without those that have ended meanwhile: they must not start again."""
        over = {*((done.robot_id, done.operation_id) for done in self._done), *self._failed}
        self.operations = {
            operation.robot_id: operation
            for operation in operations
            if (operation.robot_id, operation.operation_id) not in over
        }

    def take_failed(self) -> list[OperationFailed]:
        failed = [failure for _, failure in sorted(self._failed.items())]
        self._failed.clear()
        return failed

    def drive(self, to_ms: int) -> None:
        """Real trucks drive by themselves."""

    def follow(self, records: Sequence[Record]) -> None:
        """Real trucks are removed by people."""

    def cause_fault(self, robot_id: str, fault: Fault) -> None:  # noqa: ARG002
        raise NotSimulated("This fleet has real trucks; only simulated ones can be given a fault", robot=robot_id)
