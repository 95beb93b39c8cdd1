"""The simulated hall as a gateway: commands reach its trucks late or never, and so does what they say."""

from collections.abc import Sequence

from msgspec import UNSET

from pendula.fleet.contracts.traffic import RollingTargetCommand
from pendula.fleet.gateway.protocol import Received
from pendula.fleet.gateway.reports import ReportBatch
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.simulator.world import Telemetry, World
from pendula.fleet.targets.rolling_target import Told
from pendula.fleet.tasks import Operation, OperationDone
from pendula.fleet.tick.observing import TruckReport


class SimulatedGateway:
    """Satisfies `Gateway`. Every truck's newest report is told again until another one comes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._number = {name: number for number, name in enumerate(world.robot_ids)}
        # What trucks are about in nodes; one that was about it before this was made is not known by name.
        self._about: dict[int, str] = {}

    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        if isinstance(commands, Told):
            # Straight from what was decided: a simulated truck needs no decimals.
            for aim in commands.aims:
                self._world.send(self._number[aim.robot_id], aim)
            return
        for one in commands:
            self._world.send(self._number[one.robotId], one)

    def announce(self, routes: Sequence[RoutePlan]) -> None:
        for one in routes:
            self._world.learn(self._number[one.robot_id], one)

    def operate(self, operations: Sequence[Operation]) -> None:
        for one in operations:
            number = self._number[one.robot_id]
            self._about[number] = one.operation_id
            self._world.operate(number, one.duration_ms, one.kind == "LOAD")

    def poll(self) -> Received:
        # First what is done: a truck that has just unloaded says so in its report too.
        done = tuple(self._done(truck) for truck in self._world.operated())
        reports = []
        for truck, seen in enumerate(self._world.latest):
            reports += [self._report(truck, one) for one in (*self._world.take_bad(truck), seen)]
        return Received(ReportBatch(reports), done)

    def _done(self, truck: int) -> OperationDone:
        return OperationDone(self._world.robot_ids[truck], self._about.get(truck, UNSET))

    def _report(self, truck: int, seen: Telemetry) -> TruckReport:
        return TruckReport(
            robot_id=self._world.robot_ids[truck],
            at_ms=seen.at_ms,
            x_um=seen.x_um,
            y_um=seen.y_um,
            yaw_urad=seen.yaw_urad,
            v_um_s=seen.v_um_s,
            status=seen.status,
            last_ack_seq=seen.last_ack_seq,
            load=self._world.loaded[truck],
            obstructed=seen.obstructed,
        )
