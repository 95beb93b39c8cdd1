"""Perfect trucks that follow commands without noise or delay: enough to drive the tick in its tests."""

from dataclasses import dataclass, field
from decimal import Decimal

from pendula.fleet import AtNode, CompiledMap, Fleet, Planner, RobotProfile, RoutePlan, plan_route
from pendula.fleet.contracts.traffic import CommandMode, Phase, RobotStatus, RollingTargetCommand
from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.tick import Order, TickInputs, TickOutputs, Traffic, TrafficParams
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.units import micro, wrapped_urad
from pendula.kernel.rng import Pcg32

TICK_MS = 100
WORK_MS = 2_000


@dataclass
class Driver:
    """One truck: its position on its route, its phase, and the nodes it still has to reach."""

    robot_id: str
    node: int
    rest: int
    x: int
    y: int
    yaw: int
    plan: RoutePlan | None = None
    s: int = 0
    v: int = 0
    phase: Phase = Phase.IDLE
    work_ms: int = 0
    stops: tuple[int, ...] = ()
    ack: int = 0
    routes: int = 0
    done: int = 0
    mute: bool = False
    # The error of its reports, whether it receives commands and moves, and its reported state.
    off: tuple[int, int] = (0, 0)
    deaf: bool = False
    jammed: bool = False
    status: RobotStatus = RobotStatus.OK
    obstructed: bool = False
    sure: int = 1_000_000
    clock_ms: int = 0


@dataclass
class Yard:
    site: CompiledMap
    fleet: Fleet
    profiles: list[RobotProfile]
    params: TrafficParams = field(default_factory=TrafficParams)
    seed: int = 1
    override: bool = False

    def __post_init__(self) -> None:
        self.traffic = Traffic.create(self.site, self.fleet, self.profiles, self.params, override=self.override)
        self.profile = {one.profile_id: one for one in self.profiles}
        self.planners = {name: Planner(self.site, one) for name, one in self.profile.items()}
        self.truck = {one.robot_id: one for one in self.fleet.trucks}
        self.drivers = {one.robot_id: self._driver(one.robot_id) for one in self.fleet.trucks}
        self.draw = Pcg32.seeded(self.seed, 1)
        self.now = 0
        self.submitted: dict[str, RoutePlan] = {}
        self.orders: tuple[Order, ...] = ()
        self.last: TickOutputs | None = None
        self.endless = False

    def _driver(self, robot_id: str) -> Driver:
        node = self.site.node_number[self.truck[robot_id].park_node_id]
        at = self.site.network.nodes[node].at
        edge = self.site.network.edges[self.site.network.outgoing[node][0]]
        return Driver(robot_id, node, node, at.x_um, at.y_um, wrapped_urad(edge.path.heading(0)))

    def send(self, robot_id: str, *stops: str, phase: Phase = Phase.TO_PICK) -> None:
        """A task: over these nodes, then to rest."""
        driver = self.drivers[robot_id]
        driver.stops = tuple(self.site.node_number[stop] for stop in stops)
        driver.phase = phase
        self.submitted[robot_id] = self.plan(driver)

    def plan(self, driver: Driver) -> RoutePlan:
        driver.routes += 1
        stops = driver.stops or (driver.rest,)
        planner = self.planners[self.truck[driver.robot_id].profile_id]
        closed = self.traffic.closed[driver.robot_id]
        found = plan_route(
            planner,
            driver.robot_id,
            f"{driver.robot_id}-{driver.routes}",
            AtNode(driver.node, driver.yaw),
            stops,
            driver.rest,
            closed=closed,
        )
        assert isinstance(found, RoutePlan), found
        return found

    def step(self) -> TickOutputs:
        self.now += TICK_MS
        reports = tuple(self._report(one) for one in self.drivers.values() if not one.mute)
        routes = tuple(self.submitted.values())
        self.submitted = {}
        orders, self.orders = self.orders, ()
        self.last = self.traffic.tick(TickInputs(self.now, reports, routes, orders))
        assert self.last.error is None, self.last.error
        for plan in self.last.accepted_routes:
            driver = self.drivers[plan.robot_id]
            driver.plan, driver.s = plan, plan.start_um
        for command in self.last.commands:
            if not self.drivers[command.robotId].mute and not self.drivers[command.robotId].deaf:
                self._obey(self.drivers[command.robotId], command)
        for driver in self.drivers.values():
            self._work(driver)
        return self.last

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self.step()

    def _report(self, one: Driver) -> TruckReport:
        return TruckReport(
            robot_id=one.robot_id,
            at_ms=self.now + one.clock_ms,
            x_um=one.x + one.off[0],
            y_um=one.y + one.off[1],
            yaw_urad=one.yaw,
            v_um_s=one.v,
            status=one.status,
            phase=one.phase,
            last_ack_seq=one.ack,
            obstructed=one.obstructed,
            confidence_ppm=one.sure,
        )

    def _obey(self, one: Driver, command: RollingTargetCommand) -> None:
        one.ack = command.seq
        if one.jammed:
            one.v = 0
            return
        profile = self.profile[self.truck[one.robot_id].profile_id]
        if command.mode is CommandMode.TURN:
            one.v = 0
            assert isinstance(command.targetYaw, Decimal)
            left = turn_urad(one.yaw, micro(command.targetYaw))
            step = profile.turn_rate_urad_s * TICK_MS // 1000
            one.yaw = wrapped_urad(one.yaw + max(-step, min(step, left)))
        elif command.mode is CommandMode.GO:
            assert one.plan is not None
            assert one.plan.route_id == command.routeId
            left = micro(command.targetS) - one.s
            assert isinstance(command.speedLimitMps, Decimal)
            speed = min(micro(command.speedLimitMps), one.v + profile.accel_um_s2 * TICK_MS // 1000)
            move = min(speed * TICK_MS // 1000, left)
            one.v = 0 if move == left else speed
            one.s += max(0, move)
            if move > 0:
                pose = one.plan.pose_at(one.s)
                one.x, one.y, one.yaw = pose.x_um, pose.y_um, pose.yaw_urad
        else:
            one.v = 0

    def _work(self, one: Driver) -> None:
        arrived = one.plan is not None and one.s >= one.plan.length_um - 10_000
        if not arrived or one.robot_id in self.submitted:
            self._idle(one)
            return
        assert one.plan is not None
        if one.phase in (Phase.TO_PICK, Phase.TO_DROP):
            one.phase = Phase.LOADING if one.phase is Phase.TO_PICK else Phase.UNLOADING
            one.node, one.work_ms = one.plan.goal, WORK_MS
        elif one.phase in (Phase.LOADING, Phase.UNLOADING):
            one.work_ms -= TICK_MS
            if one.work_ms <= 0:
                one.stops = one.stops[1:]
                one.done += one.phase is Phase.UNLOADING
                one.phase = Phase.TO_DROP if one.stops else Phase.TO_PARK
                self.submitted[one.robot_id] = self.plan(one)
        elif one.phase is Phase.TO_PARK and one.plan.goal == one.rest and one.robot_id not in self.submitted:
            one.phase, one.node = Phase.IDLE, one.rest
        else:
            self._idle(one)

    def _idle(self, one: Driver) -> None:
        if self.endless and one.phase is Phase.IDLE and one.robot_id not in self.submitted:
            streams = self.fleet.streams
            stream = streams[self.draw.bounded(len(streams))]
            pick = stream.pick_node_ids[self.draw.bounded(len(stream.pick_node_ids))]
            drop = stream.drop_node_ids[self.draw.bounded(len(stream.drop_node_ids))]
            self.send(one.robot_id, pick, drop)
