"""Perfect trucks that follow commands without noise or delay: enough to drive the tick in its tests."""

from dataclasses import dataclass, field
from decimal import Decimal

from pendula.fleet import AtNode, CompiledMap, Fleet, Planner, RobotProfile, RoutePlan, plan_route
from pendula.fleet.contracts import CommandMode, Phase, RobotStatus, RollingTargetCommand
from pendula.fleet.map.geometry import turn_urad
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
        self.profile = {profile.profile_id: profile for profile in self.profiles}
        self.planners = {name: Planner(self.site, profile) for name, profile in self.profile.items()}
        self.truck = {truck.robot_id: truck for truck in self.fleet.trucks}
        self.drivers = {truck.robot_id: self._driver(truck.robot_id) for truck in self.fleet.trucks}
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
        reports = tuple(self._report(driver) for driver in self.drivers.values() if not driver.mute)
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
                self._follow(self.drivers[command.robotId], command)
        for driver in self.drivers.values():
            self._work(driver)
        return self.last

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self.step()

    def _report(self, driver: Driver) -> TruckReport:
        return TruckReport(
            robot_id=driver.robot_id,
            at_ms=self.now + driver.clock_ms,
            x_um=driver.x + driver.off[0],
            y_um=driver.y + driver.off[1],
            yaw_urad=driver.yaw,
            v_um_s=driver.v,
            status=driver.status,
            phase=driver.phase,
            last_ack_seq=driver.ack,
            obstructed=driver.obstructed,
            confidence_ppm=driver.sure,
        )

    def _follow(self, driver: Driver, command: RollingTargetCommand) -> None:
        driver.ack = command.seq
        if driver.jammed:
            driver.v = 0
            return
        profile = self.profile[self.truck[driver.robot_id].profile_id]
        if command.mode is CommandMode.TURN:
            driver.v = 0
            assert isinstance(command.targetYaw, Decimal)
            left = turn_urad(driver.yaw, micro(command.targetYaw))
            step = profile.turn_rate_urad_s * TICK_MS // 1000
            driver.yaw = wrapped_urad(driver.yaw + max(-step, min(step, left)))
        elif command.mode is CommandMode.GO:
            assert driver.plan is not None
            assert driver.plan.route_id == command.routeId
            left = micro(command.targetS) - driver.s
            assert isinstance(command.speedLimitMps, Decimal)
            speed = min(micro(command.speedLimitMps), driver.v + profile.accel_um_s2 * TICK_MS // 1000)
            move = min(speed * TICK_MS // 1000, left)
            driver.v = 0 if move == left else speed
            driver.s += max(0, move)
            if move > 0:
                pose = driver.plan.pose_at(driver.s)
                driver.x, driver.y, driver.yaw = pose.x_um, pose.y_um, pose.yaw_urad
        else:
            driver.v = 0

    def _work(self, driver: Driver) -> None:
        arrived = driver.plan is not None and driver.s >= driver.plan.length_um - 10_000
        if not arrived or driver.robot_id in self.submitted:
            self._idle(driver)
            return
        assert driver.plan is not None
        if driver.phase in (Phase.TO_PICK, Phase.TO_DROP):
            driver.phase = Phase.LOADING if driver.phase is Phase.TO_PICK else Phase.UNLOADING
            driver.node, driver.work_ms = driver.plan.goal, WORK_MS
        elif driver.phase in (Phase.LOADING, Phase.UNLOADING):
            driver.work_ms -= TICK_MS
            if driver.work_ms <= 0:
                driver.stops = driver.stops[1:]
                driver.done += driver.phase is Phase.UNLOADING
                driver.phase = Phase.TO_DROP if driver.stops else Phase.TO_PARK
                self.submitted[driver.robot_id] = self.plan(driver)
        elif (
            driver.phase is Phase.TO_PARK and driver.plan.goal == driver.rest and driver.robot_id not in self.submitted
        ):
            driver.phase, driver.node = Phase.IDLE, driver.rest
        else:
            self._idle(driver)

    def _idle(self, driver: Driver) -> None:
        if self.endless and driver.phase is Phase.IDLE and driver.robot_id not in self.submitted:
            streams = self.fleet.streams
            stream = streams[self.draw.bounded(len(streams))]
            pick = stream.pick_node_ids[self.draw.bounded(len(stream.pick_node_ids))]
            drop = stream.drop_node_ids[self.draw.bounded(len(stream.drop_node_ids))]
            self.send(driver.robot_id, pick, drop)
