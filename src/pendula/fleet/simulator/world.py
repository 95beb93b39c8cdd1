"""All simulated trucks in virtual time: they receive delayed commands, drive, and report measured poses.

Each truck has three poses. The pose on the route is the intended one. The measured pose adds the tracking error. The
true pose adds a drifting position error to the measured one. Every report adds an independent error to the measured
pose, so that reports and true poses stay within the position error of each other and of the measured pose. Stamps
jitter. The same seed gives the same run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, TypeVar

import numpy as np
from msgspec import UNSET, Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from pendula.fleet.contracts import CommandMode, Phase, RobotStatus, RollingTargetCommand
from pendula.fleet.gateway import Received, ReportBatch
from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.planner import AtNode
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile, envelope_of
from pendula.fleet.model import MoveStyle
from pendula.fleet.simulator.truck import (
    ActiveFaults,
    Drift,
    Fault,
    FaultKind,
    Order,
    RandomFaults,
    SimulatedTruck,
    Source,
    WorldSettings,
    generators,
    order_of,
    order_of_aim,
    within,
    within_disc,
)
from pendula.fleet.tasks import Dispatch, Operation, OperationDone
from pendula.fleet.tick.aiming import Aim, CommandBatch
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.tick.records import Record
from pendula.fleet.units import MILLION, PI_URAD, TWO_PI_URAD

# Messages in transit: each has a random latency, and some are lost.

M = TypeVar("M")
_MILLION = 1_000_000


class Channel(Generic[M]):
    """One direction between the trucks and the fleet manager; messages of one truck may overtake each other."""

    def __init__(self, seed: int, sources: tuple[Source, Source], trucks: int, latency_ms: tuple[int, int]) -> None:
        latency, loss = sources
        self._latencies = generators(seed, latency, trucks)
        self._losses = generators(seed, loss, trucks)
        self._least, most = latency_ms
        self._span = most - self._least + 1
        self._waiting: list[list[tuple[int, int, M]]] = [[] for _ in range(trucks)]
        self._sent = 0
        # Number of lost messages.
        self.lost = 0

    def send(self, truck: int, now_ms: int, message: M, loss_ppm: int) -> None:
        # Draw both values for every message, so that a loss does not change the latencies of others.
        delay = self._least + self._latencies[truck].bounded(self._span)
        lost = self._losses[truck].bounded(_MILLION) < loss_ppm if loss_ppm else False
        if lost:
            self.lost += 1
        else:
            self._sent += 1
            heappush(self._waiting[truck], (now_ms + delay, self._sent, message))

    def is_due(self, truck: int, now_ms: int) -> bool:
        """Whether a message has arrived by now."""
        waiting = self._waiting[truck]
        return bool(waiting) and waiting[0][0] <= now_ms

    def arrived(self, truck: int, now_ms: int) -> list[M]:
        """Take the messages that have arrived by now, in the order of arrival."""
        waiting = self._waiting[truck]
        messages = []
        while waiting and waiting[0][0] <= now_ms:
            messages.append(heappop(waiting)[2])
        return messages


# Vectorised poses on all edges of a map: one lookup for a whole fleet, in whole micrometres and microradians.

Ints = NDArray[np.int64]


class Tracks:
    """The polylines of all edges, concatenated on a single axis."""

    def __init__(self, site: CompiledMap) -> None:
        x: list[int] = []
        y: list[int] = []
        s: list[int] = []
        first: list[int] = []
        base: list[int] = []
        legs: list[tuple[int, int]] = []
        begin = 0
        for edge in site.network.edges:
            first.append(len(x))
            base.append(begin)
            x += edge.path.x
            y += edge.path.y
            s += [begin + vertex for vertex in edge.path.s]
            # The last vertex starts no leg; its entry is unused.
            legs += [*edge.path.yaws, (0, 0)]
            begin += edge.path.length_um + 1
        self._s = np.array(s, dtype=np.int64)
        self._legs = _legs(self._s, np.array(x, dtype=np.int64), np.array(y, dtype=np.int64), np.array(legs))
        begins = np.array(first, dtype=np.int64)
        ends = np.append(begins[1:], len(x)) - 2
        backward = [edge.style is MoveStyle.BACKWARD for edge in site.network.edges]
        # For every edge: its start on the axis, its first and last leg, and the turn of trucks that drive backward.
        self._edges = np.array([base, begins, ends, np.where(backward, PI_URAD, 0)], dtype=np.int64)

    def poses(self, edge: Ints, s_um: Ints) -> tuple[Ints, Ints, Ints]:
        """x, y and yaw of trucks on these edges at these positions, of the same shape."""
        base, first, last, about = self._edges[:, edge]
        at = base + s_um
        leg = np.minimum(np.maximum(self._s.searchsorted(at, side="right") - 1, first), last)
        rows = self._legs[:, leg]
        begin, whole = rows[0], rows[1]
        part = np.minimum(np.maximum(at - begin, 0), whole)
        # Interpolate x, y and yaw at once, rounded half up.
        x, y, yaw = rows[2:5] + (2 * rows[5:8] * part + whole) // (2 * whole)
        return x, y, wrapped(yaw + about)


def _legs(s: Ints, x: Ints, y: Ints, yaws: Ints) -> Ints:
    """One column per vertex, for the leg that starts there: start, length, x, y and yaw, and the changes of x, y and
    yaw. The column of the last vertex of an edge is unused."""
    turn = wrapped(yaws[:, 1] - yaws[:, 0])
    changes = (np.append(np.diff(column), 0) for column in (s, x, y))
    whole, dx, dy = changes
    return np.array([s, np.maximum(whole, 1), x, y, yaws[:, 0], dx, dy, turn], dtype=np.int64)


def wrapped(urad: Ints) -> Ints:
    """The same directions in (-pi, pi]."""
    angle = urad % TWO_PI_URAD
    return np.where(angle <= PI_URAD, angle, angle - TWO_PI_URAD)


Floats = NDArray[np.float64]
# Clock error of trucks with BAD_TELEMETRY.
_WRONG_CLOCK_MS = 60_000
# Penalty in square micrometres for an edge in the opposite direction.
_AGAINST = MILLION * MILLION


@dataclass(frozen=True, slots=True)
class Start:
    """The initial position of a truck: on an edge, or in a node, as the end of an edge into it or the start of one out
    of it, with a yaw."""

    robot_id: str
    profile: RobotProfile
    edge: int
    on_um: int
    yaw_urad: int


class Telemetry(Struct, frozen=True, gc=False):
    """A report of a truck."""

    at_ms: int
    x_um: int
    y_um: int
    yaw_urad: int
    v_um_s: int
    last_ack_seq: int
    status: RobotStatus = RobotStatus.OK
    obstructed: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Trace:
    """Poses of the trucks, one row per instant and one column per truck, in metres and radians: on the route (`route`),
    as measured by the truck (`seen`), and true (`truth`)."""

    at_ms: Floats
    route: tuple[Floats, Floats, Floats]
    seen: tuple[Floats, Floats, Floats]
    truth: tuple[Floats, Floats, Floats]


class World:
    """The simulated hall; trucks are in the order of their ids."""

    def __init__(
        self, site: CompiledMap, starts: Sequence[Start], settings: WorldSettings, seed: int, now_ms: int = 0
    ) -> None:
        self.site = site
        self.settings = settings
        self.now_ms = now_ms
        eps = site.params.tangent_eps_urad
        self.robot_ids = tuple(start.robot_id for start in starts)
        self.trucks = [SimulatedTruck(start.profile, eps, start.edge, start.on_um, start.yaw_urad) for start in starts]
        count = len(starts)
        self._tracks = Tracks(site)
        self._commands: Channel[Order] = Channel(
            seed, (Source.COMMAND_LATENCY, Source.COMMAND_LOSS), count, settings.command_latency_ms
        )
        self._reports: Channel[Telemetry] = Channel(
            seed, (Source.TELEMETRY_LATENCY, Source.TELEMETRY_LOSS), count, settings.telemetry_latency_ms
        )
        profiles = [start.profile for start in starts]
        errors = [profile.localization_error.value_um * settings.localization_permille // 1000 for profile in profiles]
        self._jitter = generators(seed, Source.JITTER, count)
        self._jitter_um = errors
        self._stamps = generators(seed, Source.STAMP, count)
        # The jitter bounds the error of an interval, so each stamp is off by at most half of it.
        self._stamp_ms = [profile.stamp_jitter_ms * settings.stamp_permille // 2000 for profile in profiles]
        tracking = [profile.tracking_error.value_um * settings.tracking_permille // 1000 for profile in profiles]
        self._aside = Drift(seed, Source.TRACKING, tracking)
        self._off = Drift(seed, Source.POSITION, errors, within_disc)
        self._off_yaw = Drift(
            seed, Source.HEADING, [_heading(profile, settings.heading_permille) for profile in profiles]
        )
        self._operations = generators(seed, Source.OPERATION, count)
        self._busy_until: list[int | None] = [None] * count
        self.faults = [ActiveFaults() for _ in starts]
        self._fault_noise = generators(seed, Source.FAULT_NOISE, count)
        self._random_faults = RandomFaults(settings.faults, seed, count, now_ms) if settings.faults else None
        # Reports with an impossible time, which the receiver must reject.
        self.bad: list[list[Telemetry]] = [[] for _ in starts]
        self._loads = [False] * count
        # Whether a truck carries a load.
        self.loaded = [False] * count
        self.latest: list[Telemetry] = []
        # Whether a truck is out of the hall and off; and the last removal time of each.
        self.out = [False] * count
        self._removed_ms: list[int | None] = [None] * count
        self.refresh_reports()

    def refresh_reports(self) -> None:
        """Replace the latest report of every truck by its present measurement."""
        self.latest = self._telemetry(0, self._trace([self.now_ms], *self._places([])))

    def send(self, truck: int, command: RollingTargetCommand | Aim) -> None:
        """Send a command to a truck."""
        order = order_of_aim(command) if isinstance(command, Aim) else order_of(command)
        self._commands.send(truck, self.now_ms, order, self.settings.command_loss_ppm)

    def learn(self, truck: int, route: RoutePlan) -> None:
        self.trucks[truck].learn(route)

    @property
    def lost(self) -> tuple[int, int]:
        """The numbers of lost commands and reports."""
        return self._commands.lost, self._reports.lost

    def operate(self, truck: int, for_ms: int, loads: bool) -> None:
        """Start loading or unloading; a running operation of the same kind continues."""
        if self._busy_until[truck] is not None and self._loads[truck] == loads:
            return
        self._loads[truck] = loads
        part = for_ms * self.settings.operation_permille // 1000
        self._busy_until[truck] = self.now_ms + for_ms + within(self._operations[truck], part)

    def operated(self) -> list[int]:
        """The trucks that have finished loading or unloading, each once. OPERATION_HANGS delays the end."""
        done = [
            i
            for i, until in enumerate(self._busy_until)
            if until is not None
            and self.now_ms >= until
            and not self.faults[i].has(FaultKind.OPERATION_HANGS, self.now_ms)
        ]
        for truck in done:
            self._busy_until[truck] = None
            self.loaded[truck] = self._loads[truck]
        return done

    def follow(self, records: Sequence[Record]) -> None:
        """Take trucks out of the hall that the fleet records as removed."""
        for record in records:
            removed_ms = record.removed_ms
            if removed_ms is not None and removed_ms != self._removed_ms[record.number]:
                self._take_out(record.number)
            self._removed_ms[record.number] = removed_ms

    def _take_out(self, truck: int) -> None:
        """Take a truck out of the hall. Its position stays, as the origin of a later CARRIED fault."""
        taken = self.trucks[truck]
        taken.relocate(taken.edge, taken.on_um, taken.yaw_urad)
        self.out[truck], self._busy_until[truck], self.bad[truck] = True, None, []

    def start_fault(self, truck: int, fault: Fault) -> None:
        """Start a fault of a truck. CARRIED brings a truck that is out of the hall back."""
        self.faults[truck].begin(fault, self.now_ms)
        if fault.kind is FaultKind.OVERRUN:
            self.trucks[truck].beyond_um = fault.by_um
        if fault.kind is FaultKind.PUSHED:
            self._push(self.trucks[truck], fault.x_um, fault.y_um)
        if fault.kind is FaultKind.CARRIED:
            carried = self.trucks[truck]
            x_um, y_um = self.site.network.edges[carried.edge].path.point(carried.on_um)
            self.put(truck, x_um + fault.x_um, y_um + fault.y_um)

    def _push(self, truck: SimulatedTruck, x_um: int, y_um: int) -> None:
        """Move a truck beside its line, by the component of the push across it."""
        edge = self.site.network.edges[truck.edge]
        along = truck_yaw(edge.path.heading(truck.on_um), edge.style)
        yaw = (along if truck.yaw_urad is None else truck.yaw_urad) / MILLION
        truck.aside_um += round(y_um * np.cos(yaw) - x_um * np.sin(yaw))
        truck.v_um_s = 0

    def put(self, truck: int, x_um: int, y_um: int, yaw_urad: int | None = None) -> None:
        """Put a truck on the edge nearest to a point, along the edge; the yaw selects between the directions of a lane.
        A truck that was out of the hall is on again."""
        places = []
        for number, edge in enumerate(self.site.network.edges):
            on_um, square = edge.path.nearest(x_um, y_um, 0, edge.path.length_um)
            along = truck_yaw(edge.path.heading(on_um), edge.style)
            against = yaw_urad is not None and abs(turn_urad(yaw_urad, along)) > PI_URAD // 2
            inside = 0 < on_um < edge.path.length_um
            places.append((square + _AGAINST * against, number, on_um, None if inside else along))
        _, number, on_um, yaw = min(places, key=lambda place: place[:2])
        self.trucks[truck].relocate(number, on_um, yaw)
        self.out[truck] = False

    def take_bad(self, truck: int) -> list[Telemetry]:
        """Take the reports of a truck with an impossible time."""
        reports, self.bad[truck] = self.bad[truck], []
        return reports

    def advance(self, to_ms: int) -> Trace:
        """Advance to a time in steps of `step_ms`; reports that arrive meanwhile become `latest`."""
        for number, fault in () if self._random_faults is None else self._random_faults.due(self.now_ms):
            if not self.out[number]:
                self.start_fault(number, fault)
        times = [*range(self.now_ms + self.settings.step_ms, to_ms, self.settings.step_ms), to_ms]
        rows = []
        before = self.now_ms
        for now in times:
            for i, truck in enumerate(self.trucks):
                faults = self.faults[i]
                if self._commands.is_due(i, now):
                    for order in self._commands.arrived(i, now):
                        if faults.can_receive(now) and not self.out[i]:
                            truck.receive(order, now)
                truck.advance(now, now - before, immobile=faults.is_immobile(now))
            rows.append(self._row())
            before = now
        self.now_ms = to_ms
        trace = self._trace(times, *self._places(rows))
        self._report(times, trace)
        return trace

    def _row(self) -> list[tuple[int, int, int, bool, int, int]]:
        return [
            (
                truck.edge,
                truck.on_um,
                truck.yaw_urad or 0,
                truck.yaw_urad is not None,
                truck.aside_um,
                truck.steers_urad,
            )
            for truck in self.trucks
        ]

    def _places(self, rows: list[list[tuple[int, int, int, bool, int, int]]]) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        whole = np.array(rows or [self._row()], dtype=np.int64)
        x, y, yaw = self._tracks.poses(whole[:, :, 0], whole[:, :, 1])
        return x, y, np.where(whole[:, :, 3] == 1, whole[:, :, 2], yaw), whole[:, :, 4], whole[:, :, 5]

    def _trace(self, times: list[int], x: Ints, y: Ints, yaw: Ints, pushed: Ints, steers: Ints) -> Trace:
        """The tracking error is across the way, the position error in any direction."""
        rx, ry, ryaw = x / MILLION, y / MILLION, yaw / MILLION
        aside = self._aside.at(times) / MILLION + pushed / MILLION
        sx, sy = rx - aside * np.sin(ryaw), ry + aside * np.cos(ryaw)
        off = self._off.at(times) / MILLION
        tx, ty = sx + off[..., 0], sy + off[..., 1]
        tyaw = ryaw + self._off_yaw.at(times) / MILLION + steers / MILLION
        return Trace(np.array(times, dtype=np.float64), (rx, ry, ryaw), (sx, sy, tyaw), (tx, ty, tyaw))

    def _report(self, times: list[int], trace: Trace) -> None:
        period, loss = self.settings.telemetry_period_ms, self.settings.telemetry_loss_ppm
        for row, time in enumerate(times):
            if time % period == 0:
                for i, report in enumerate(self._telemetry(row, trace)):
                    # Send suppressed reports as lost, so that the channel draws the same numbers.
                    self._reports.send(i, time, report, loss if self._can_send(i, time) else 1_000_000)
        for i, latest in enumerate(self.latest):
            for report in self._reports.arrived(i, self.now_ms):
                if self.out[i]:
                    continue
                if report.at_ms >= self.now_ms + _WRONG_CLOCK_MS // 2:
                    self.bad[i].append(report)
                elif report.at_ms > latest.at_ms:
                    self.latest[i] = latest = report

    def _can_send(self, truck: int, now_ms: int) -> bool:
        return self.faults[truck].can_send(now_ms) and not self.out[truck]

    def _telemetry(self, row: int, trace: Trace) -> list[Telemetry]:
        """The report of every truck at an instant: the measured pose with the report error."""
        at_ms = int(trace.at_ms[row])
        x, y, yaw = [np.rint(column[row] * MILLION).astype(np.int64) for column in trace.seen]
        true_x, true_y = [np.rint(column[row] * MILLION).astype(np.int64) for column in trace.truth[:2]]
        seen = zip(x.tolist(), y.tolist(), wrapped(yaw).tolist(), strict=True)
        off = zip((true_x - x).tolist(), (true_y - y).tolist(), strict=True)
        return [self._report_of(i, at_ms, *pose, aside) for i, (pose, aside) in enumerate(zip(seen, off, strict=True))]

    def _report_of(self, i: int, at_ms: int, x_um: int, y_um: int, yaw_urad: int, aside: tuple[int, int]) -> Telemetry:
        """`aside` is the offset of the true position from the measured one."""
        truck, faults = self.trucks[i], self.faults[i]
        error = within_disc(self._jitter[i], self._jitter_um[i], aside) if self._jitter_um[i] else (0, 0)
        off = self._fault_offset(i, faults, at_ms) if faults.until_ms else (0, 0)
        stamp_ms = max(0, at_ms + within(self._stamps[i], self._stamp_ms[i]))
        report = Telemetry(
            at_ms=stamp_ms,
            x_um=x_um + error[0] + off[0],
            y_um=y_um + error[1] + off[1],
            yaw_urad=yaw_urad,
            v_um_s=truck.v_um_s,
            last_ack_seq=faults.acknowledgement(0 if truck.order is None else truck.order.seq, at_ms),
        )
        if not faults.until_ms:
            return report
        return replace(
            report,
            at_ms=stamp_ms + _WRONG_CLOCK_MS * faults.has(FaultKind.BAD_TELEMETRY, at_ms),
            status=RobotStatus.FAULT if faults.has(FaultKind.FAULT, at_ms) else RobotStatus.OK,
            obstructed=faults.has(FaultKind.STAND, at_ms),
        )

    def _fault_offset(self, truck: int, faults: ActiveFaults, at_ms: int) -> tuple[int, int]:
        """The offset of a report by faults."""
        x, y = faults.offset_um(at_ms)
        noise = faults.noise_um(at_ms)
        return x + within(self._fault_noise[truck], noise), y + within(self._fault_noise[truck], noise)


def _heading(profile: RobotProfile, permille: int) -> int:
    """The bound of the yaw error: it moves no corner by more than `extraMarginM`, plus `headingErrorRad`."""
    bound = profile.extra_margin_um * MILLION // max(envelope_of(profile).turn_radius_um, 1)
    return (bound + profile.heading_error_urad) * permille // 1000


# A simulated hall that starts from the state of a running fleet, as after a restart of the server.
# The trucks stand at their last reported positions, with their loads, routes and acknowledged sequence numbers.

# A truck that turns in a node may report a position this far before it.
_IN_NODE_UM = 300_000


def restored_world(
    site: CompiledMap, records: Sequence[Record], dispatch: Dispatch, settings: WorldSettings, seed: int, now_ms: int
) -> World:
    """The world at a time of the fleet; running loading and unloading operations start again."""
    world = World(site, [start_of(record) for record in records], settings, seed, now_ms)
    world.follow(records)
    for record, truck in zip(records, world.trucks, strict=True):
        if record.removed_ms is None:
            _restore_route(record, truck)
        elif record.pose is not None:
            world.put(record.number, record.pose.x_um, record.pose.y_um, record.pose.yaw_urad)
            # A truck that has reported since its removal is in the hall again.
            world.out[record.number] = record.is_out
        world.loaded[record.number] = record.load
        task = dispatch.task_of(record.number)
        phase = dispatch.phase(record.number)
        if task is not None and phase in (Phase.LOADING, Phase.UNLOADING):
            loads = phase is Phase.LOADING
            world.operate(record.number, task.order.pick_ms if loads else task.order.drop_ms, loads)
    world.refresh_reports()
    for record in records:
        if record.is_out:
            # The truck is off: keep the time of its last report.
            world.latest[record.number] = replace(world.latest[record.number], at_ms=record.report_ms)
    return world


def start_of(record: Record) -> Start:
    """Where a truck stands: on its route, or in its node at the end of the first way in."""
    network = record.site.network
    plan = _plan_of(record)
    if plan is not None and plan.segments:
        number, on_um = _position_on(record, plan)
        edge = plan.segments[number].edge
    else:
        node = plan.start.node if plan is not None and isinstance(plan.start, AtNode) else record.node
        ways = network.incoming[node]
        edge = ways[0] if ways else network.outgoing[node][0]
        on_um = network.edges[edge].path.length_um if ways else 0
    yaw = truck_yaw(network.edges[edge].path.heading(on_um), network.edges[edge].style)
    return Start(record.robot_id, record.profile, edge, on_um, yaw if record.pose is None else record.pose.yaw_urad)


def _plan_of(record: Record) -> RoutePlan | None:
    return None if record.track is None else record.track.plan


def _position_on(record: Record, plan: RoutePlan) -> tuple[int, int]:
    """The segment of a truck and its position on it. A node belongs to the segment before it until the truck has done
    its act there, then to the next one, regardless of the noise in the reported position."""
    assert record.track is not None
    at_um = min(max(record.at_um, plan.start_um), plan.length_um)
    done = record.track.acts[: record.acted]
    if done and at_um <= done[-1].s_um:
        return plan.passed(done[-1].s_um), 0
    act = record.act
    if act is not None and at_um < act.s_um <= min(at_um + _IN_NODE_UM, record.grant_um, plan.length_um):
        at_um = act.s_um if _is_turning(record, plan, act.s_um) else at_um
    number = plan.segment_at(at_um)
    return number, at_um - plan.segments[number].route_s0_um


def _is_turning(record: Record, plan: RoutePlan, node_um: int) -> bool:
    """Whether a truck before a node does not face along its lane: then it is already turning in the node."""
    along = plan.pose_at(node_um).yaw_urad
    return record.pose is not None and abs(turn_urad(along, record.pose.yaw_urad)) > plan.site.params.tangent_eps_urad


def _restore_route(record: Record, truck: SimulatedTruck) -> None:
    plan = _plan_of(record)
    if plan is None:
        return
    truck.resume(plan, _position_on(record, plan)[0] if plan.segments else 0)
    truck.order = Order(
        seq=record.ack_seq,
        mode=CommandMode.HOLD,
        route=(plan.route_id, plan.revision),
        target_um=truck.s_um,
        stop_line_um=truck.s_um,
        limit_um_s=0,
        yaw_urad=None,
        valid_ms=0,
    )


# The simulated hall as a gateway: commands and reports are delayed or lost.


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
