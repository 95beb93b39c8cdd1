"""The simulated hall as a gateway: commands and reports are delayed or lost."""

from collections.abc import Sequence

from msgspec import UNSET

from pendula.fleet.contracts import RollingTargetCommand
from pendula.fleet.gateway.protocol import Received
from pendula.fleet.gateway.reports import ReportBatch
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.simulator.world import Telemetry, World
from pendula.fleet.tasks import Operation, OperationDone
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.tick.targets import CommandBatch


class SimulatedGateway:
    """Implements `Gateway`. Every poll returns the newest report of each truck, even if it is not new."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._number = {name: number for number, name in enumerate(world.robot_ids)}
        # Ids of the running operations by truck; operations from before this gateway have no known id.
        self._operation_ids: dict[int, str] = {}

    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        if isinstance(commands, CommandBatch):
            # Use the aims directly: a simulated truck needs no decimals.
            for aim in commands.aims:
                self._world.send(self._number[aim.robot_id], aim)
            return
        for command in commands:
            self._world.send(self._number[command.robotId], command)

    def announce(self, routes: Sequence[RoutePlan]) -> None:
        for route in routes:
            self._world.learn(self._number[route.robot_id], route)

    def operate(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            number = self._number[operation.robot_id]
            self._operation_ids[number] = operation.operation_id
            self._world.operate(number, operation.duration_ms, operation.kind == "LOAD")

    def poll(self) -> Received:
        # Completions first: the report of a truck that has just unloaded must show no load.
        done = tuple(self._done(truck) for truck in self._world.operated())
        reports = []
        for truck, latest in enumerate(self._world.latest):
            reports += [self._report(truck, telemetry) for telemetry in (*self._world.take_bad(truck), latest)]
        return Received(ReportBatch(reports), done)

    def _done(self, truck: int) -> OperationDone:
        return OperationDone(self._world.robot_ids[truck], self._operation_ids.get(truck, UNSET))

    def _report(self, truck: int, telemetry: Telemetry) -> TruckReport:
        return TruckReport(
            robot_id=self._world.robot_ids[truck],
            at_ms=telemetry.at_ms,
            x_um=telemetry.x_um,
            y_um=telemetry.y_um,
            yaw_urad=telemetry.yaw_urad,
            v_um_s=telemetry.v_um_s,
            status=telemetry.status,
            last_ack_seq=telemetry.last_ack_seq,
            load=self._world.loaded[truck],
            obstructed=telemetry.obstructed,
        )
