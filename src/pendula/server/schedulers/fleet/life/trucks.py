"""The trucks of a served fleet: simulated ones, which live in this process, or real ones, whose gateway calls us.

Both satisfy `pendula.fleet.gateway.Gateway`, and the loop of a fleet does not know which it has.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Protocol

from msgspec import UNSET, Struct
from msgspec.structs import replace

from pendula.fleet.contracts.traffic import RollingTargetCommand
from pendula.fleet.driving.records import Record
from pendula.fleet.engine import FleetEngine
from pendula.fleet.gateway import Gateway, Received, ReportBatch, ToldOperations
from pendula.fleet.gateway.reception import is_name
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.simulator.connection import SimulatedGateway
from pendula.fleet.simulator.faults import Fault
from pendula.fleet.simulator.restored_world import restored_world
from pendula.fleet.simulator.settings import WorldSettings
from pendula.fleet.tasks import Operation, OperationDone, OperationFailed
from pendula.fleet.tick.observing import TruckReport, unreadable
from pendula.server.errors import HttpRefused

# Of one truck between two ticks.
MOST_WAITING = 20


class NotSimulated(HttpRefused):
    """Only simulated trucks can be given a fault."""

    code = "not_simulated"
    status = 409


class Simulation(Struct, frozen=True, forbid_unknown_fields=True):
    """How simulated trucks are: how good their sensors and radio, from which seed, how many times faster than life."""

    world: WorldSettings = WorldSettings()
    seed: int = 0
    speed: int = 1


class Trucks(Gateway, Protocol):
    """A gateway whose trucks may be ours to move and to trouble."""

    def drive(self, to_ms: int) -> None:
        """Let time go on, where it is ours."""

    def follow(self, records: Sequence[Record]) -> None:
        """See to it, where they are ours, that who was said to be removed is gone."""

    def trouble(self, robot_id: str, fault: Fault) -> None:
        """Raises `NotSimulated`."""

    def take_failed(self) -> list[OperationFailed]:
        """What trucks could not load or unload, each told once."""


class SimulatedTrucks(SimulatedGateway):
    """Trucks that stand where the fleet believes them to be when it is opened."""

    def __init__(self, engine: FleetEngine, simulation: Simulation) -> None:
        traffic = engine.traffic
        self._hall = restored_world(
            engine.site, traffic.records, engine.dispatch, simulation.world, seed=simulation.seed, now_ms=traffic.now_ms
        )
        super().__init__(self._hall)

    def drive(self, to_ms: int) -> None:
        if to_ms > self._hall.now_ms:
            self._hall.advance(to_ms)

    def follow(self, records: Sequence[Record]) -> None:
        self._hall.follow(records)

    def trouble(self, robot_id: str, fault: Fault) -> None:
        self._hall.start_fault(self._hall.robot_ids.index(robot_id), fault)

    def take_failed(self) -> list[OperationFailed]:
        return []


class RemoteTrucks:
    """Trucks behind a gateway: it posts what they report and asks for what they are to do, whenever it likes."""

    def __init__(self, robot_ids: Iterable[str]) -> None:
        # The last ones of every truck: who says too much takes no place from the others, strangers least of all.
        self._reports = {name: deque[TruckReport](maxlen=MOST_WAITING) for name in sorted(robot_ids)}
        self._strange: deque[TruckReport] = deque(maxlen=MOST_WAITING)
        self._done: dict[OperationDone, None] = {}
        self._failed: dict[tuple[str, str], OperationFailed] = {}
        self._told = ToldOperations()
        self.commands: dict[str, RollingTargetCommand] = {}
        self._good_until = 0.0
        self.operations: dict[str, Operation] = {}

    def hear(
        self, reports: Sequence[TruckReport], done: Sequence[OperationDone], failed: Sequence[OperationFailed]
    ) -> None:
        for one in reports:
            # The journal would keep a name of any length.
            told = one if is_name(one.robot_id) else unreadable("")
            self._reports.get(told.robot_id, self._strange).append(told)
        self._done.update(dict.fromkeys(self._told.named(done)))
        for trouble in failed:
            name = self._told.meant(trouble.robot_id) if trouble.operation_id is UNSET else trouble.operation_id
            self._failed[trouble.robot_id, name] = replace(trouble, operation_id=name)
        self.operate([*self.operations.values()])

    def tell_operations(self) -> list[Operation]:
        """What trucks are to load and unload, by their names; from now on the gateway knows of it."""
        operations = [one for _, one in sorted(self.operations.items())]
        self._told.note(operations)
        return operations

    def poll(self) -> Received:
        lines = [*self._reports.values(), self._strange]
        heard = Received(ReportBatch(one for line in lines for one in line), tuple(self._done))
        for line in lines:
            line.clear()
        self._done.clear()
        return heard

    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        # Once: each is made when it is read.
        told = tuple(commands)
        self.commands.update((one.robotId, one) for one in told)
        if told:
            self._good_until = monotonic() + min(one.validForMs for one in told) / 1000

    def are_fresh(self) -> bool:
        """Whether the commands are not older than they are good for; none are good for ever."""
        return monotonic() <= self._good_until

    def announce(self, routes: Sequence[RoutePlan]) -> None:
        """Every command brings the piece of the way it is about."""

    def operate(self, operations: Sequence[Operation]) -> None:
        """All that trucks are about now. One of which was heard meanwhile that it is over is not told to begin again,
        and neither is one whose task is gone."""
        over = {*((one.robot_id, one.operation_id) for one in self._done), *self._failed}
        self.operations = {one.robot_id: one for one in operations if (one.robot_id, one.operation_id) not in over}

    def take_failed(self) -> list[OperationFailed]:
        told = [one for _, one in sorted(self._failed.items())]
        self._failed.clear()
        return told

    def drive(self, to_ms: int) -> None:
        """Real trucks drive by themselves."""

    def follow(self, records: Sequence[Record]) -> None:
        """Whoever removed a real truck has done so."""

    def trouble(self, robot_id: str, fault: Fault) -> None:  # noqa: ARG002
        raise NotSimulated("This fleet has real trucks; only simulated ones can be given a fault", robot=robot_id)
