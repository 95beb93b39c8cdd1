"""One simulated truck: its faults and bounded errors, and how it drives, turns, loads and obeys its newest command."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from math import isqrt
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct, UnsetType
from msgspec.structs import replace
from numpy.typing import NDArray

from pendula.fleet.contracts import CommandMode, RollingTargetCommand
from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.planner import AtNode, OnEdge
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.trucks import RobotProfile, allowed_speed_um_s, braking_um
from pendula.fleet.tick.aiming import Aim
from pendula.fleet.units import MILLION, wrapped_urad
from pendula.kernel.rng import Pcg32, stream

# Faults of a simulated truck, and when they end.
# POSE_JUMP moves the reported pose, not the truck. CARRIED moves the truck, which reports its new pose. PUSHED moves
# it beside its line. With SILENCE it continues to follow its commands. STUCK is not reported. OPERATION_HANGS affects
# nothing else. The checker always uses the true pose.

# Limits of offsets and durations.
FARTHEST_M = 1000
LONGEST_MS = 86_400_000
_FAR_UM = FARTHEST_M * MILLION


class FaultKind(StrEnum):
    STAND = "STAND"
    POSE_JUMP = "POSE_JUMP"
    NOISE = "NOISE"
    SILENCE = "SILENCE"
    DEAFNESS = "DEAFNESS"
    OFFLINE = "OFFLINE"
    LATE_ACKS = "LATE_ACKS"
    BAD_TELEMETRY = "BAD_TELEMETRY"
    FAULT = "FAULT"
    STUCK = "STUCK"
    OVERRUN = "OVERRUN"
    CARRIED = "CARRIED"
    PUSHED = "PUSHED"
    OPERATION_HANGS = "OPERATION_HANGS"


class Fault(Struct, frozen=True):
    """A fault for some time. `x_um`, `y_um`: offset of reported poses, or of the truck if it is carried or pushed;
    `by_um`: distance beyond the stop line, or amplitude of noise; `by_ms`: delay of acknowledgements."""

    kind: FaultKind
    for_ms: Annotated[int, Meta(ge=0, le=LONGEST_MS)]
    x_um: Annotated[int, Meta(ge=-_FAR_UM, le=_FAR_UM)] = 0
    y_um: Annotated[int, Meta(ge=-_FAR_UM, le=_FAR_UM)] = 0
    by_um: Annotated[int, Meta(ge=0, le=_FAR_UM)] = 0
    by_ms: Annotated[int, Meta(ge=0, le=LONGEST_MS)] = 0


@dataclass(slots=True)
class ActiveFaults:
    """The active faults of a truck: for every kind its end and the last fault."""

    until_ms: dict[FaultKind, int] = field(default_factory=dict)
    latest: dict[FaultKind, Fault] = field(default_factory=dict)
    acks: deque[tuple[int, int]] = field(default_factory=deque)
    acknowledged: int = 0

    def begin(self, fault: Fault, now_ms: int) -> None:
        self.until_ms[fault.kind] = now_ms + fault.for_ms
        self.latest[fault.kind] = fault

    def has(self, kind: FaultKind, now_ms: int) -> bool:
        return now_ms <= self.until_ms.get(kind, -1)

    def is_immobile(self, now_ms: int) -> bool:
        """Whether a fault keeps the truck from moving."""
        if not self.until_ms:
            return False
        return any(self.has(kind, now_ms) for kind in (FaultKind.STAND, FaultKind.FAULT, FaultKind.STUCK))

    def can_receive(self, now_ms: int) -> bool:
        if not self.until_ms:
            return True
        return not self.has(FaultKind.DEAFNESS, now_ms) and not self.has(FaultKind.OFFLINE, now_ms)

    def can_send(self, now_ms: int) -> bool:
        if not self.until_ms:
            return True
        return not self.has(FaultKind.SILENCE, now_ms) and not self.has(FaultKind.OFFLINE, now_ms)

    def offset_um(self, now_ms: int) -> tuple[int, int]:
        """The offset of reported poses."""
        if not self.has(FaultKind.POSE_JUMP, now_ms):
            return 0, 0
        jump = self.latest[FaultKind.POSE_JUMP]
        return jump.x_um, jump.y_um

    def noise_um(self, now_ms: int) -> int:
        return self.latest[FaultKind.NOISE].by_um if self.has(FaultKind.NOISE, now_ms) else 0

    def acknowledgement(self, seq: int, now_ms: int) -> int:
        """The acknowledged sequence number, delayed by LATE_ACKS."""
        if not self.until_ms:
            self.acknowledged = seq
            return seq
        late = self.latest[FaultKind.LATE_ACKS].by_ms if self.has(FaultKind.LATE_ACKS, now_ms) else 0
        if late or self.acks:
            self.acks.append((now_ms + late, seq))
            while self.acks and self.acks[0][0] <= now_ms:
                self.acknowledged = max(self.acknowledged, self.acks.popleft()[1])
        else:
            self.acknowledged = seq
        return self.acknowledged


# Speed at which a truck overruns its stop line.
OVERRUN_UM_S = 2 * MILLION // 10


# Settings of a simulated hall: quality of positioning, tracking and radio, and rates of faults.
# Errors are in thousandths of the bounds in the profile of a truck: 1000 uses the whole bound.


class FaultRate(Struct, frozen=True):
    """The rate of a random fault, for every truck."""

    fault: Fault
    per_hour: int


class WorldSettings(Struct, frozen=True):
    """Times in milliseconds; a latency is the range to draw from for every message, a loss is in millionths."""

    step_ms: int = 50
    telemetry_period_ms: int = 100
    telemetry_latency_ms: tuple[int, int] = (10, 40)
    telemetry_loss_ppm: int = 0
    command_latency_ms: tuple[int, int] = (10, 60)
    command_loss_ppm: int = 0
    localization_permille: int = 1000
    tracking_permille: int = 1000
    # Error of the yaw; its bound moves no corner by more than `extraMarginM`, plus `headingErrorRad`.
    heading_permille: int = 1000
    stamp_permille: int = 1000
    # Deviation of the duration of loading and unloading.
    operation_permille: int = 0
    faults: tuple[FaultRate, ...] = ()


STILL = WorldSettings(
    telemetry_latency_ms=(0, 0),
    command_latency_ms=(0, 0),
    localization_permille=0,
    tracking_permille=0,
    heading_permille=0,
    stamp_permille=0,
)
# Bounded errors: slow drifts for true positions and tracking, independent errors for reports.
# Every truck has its own random stream for every source: switching one source off changes no other.

Floats = NDArray[np.float64]


class Source(IntEnum):
    """Sources of randomness; the numbers identify the random streams."""

    TRACKING = 1
    POSITION = 2
    HEADING = 4
    JITTER = 5
    TELEMETRY_LATENCY = 6
    TELEMETRY_LOSS = 7
    COMMAND_LATENCY = 8
    COMMAND_LOSS = 9
    OPERATION = 10
    TASKS = 11
    FAULT_NOISE = 12
    RANDOM_FAULTS = 13
    STAMP = 14


def generators(seed: int, source: Source, trucks: int) -> list[Pcg32]:
    return [stream(seed, truck, source) for truck in range(trucks)]


def within(chance: Pcg32, bound: int) -> int:
    """A uniform integer from -bound to bound."""
    return chance.bounded(2 * bound + 1) - bound if bound else 0


def within_disc(chance: Pcg32, bound: int, around: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """A uniform point in the disc of radius `bound` that is also within `bound` of `around`, itself a point in the
    disc."""
    while True:
        x, y = within(chance, bound), within(chance, bound)
        dx, dy = x - around[0], y - around[1]
        if max(x * x + y * y, dx * dx + dy * dy) <= bound * bound:
            return x, y


class Drift:
    """Bounded drifting values for every truck, one or several as given by `draw`: linear interpolation between random
    knots every second."""

    KNOT_MS = 1000

    def __init__(
        self, seed: int, source: Source, bounds: list[int], draw: Callable[[Pcg32, int], int | tuple[int, ...]] = within
    ) -> None:
        self._chances = generators(seed, source, len(bounds))
        self._bounds = bounds
        self._draw = draw
        self._still = not any(bounds)
        self._begin = self._end = self._slope = np.zeros_like(self._draw_knot())
        self._knot = -1

    def at(self, times_ms: list[int]) -> Floats:
        """One row per instant, in order; no instant may be before the last knot in use."""
        if self._still:
            return np.broadcast_to(self._begin, (len(times_ms), *self._begin.shape))
        if self._knot == times_ms[0] // self.KNOT_MS == times_ms[-1] // self.KNOT_MS:
            # The usual case: all instants are between the same knots.
            parts = [self._begin + self._slope * (time % self.KNOT_MS / self.KNOT_MS) for time in times_ms]
            return np.array(parts)
        rows: Floats = np.empty((len(times_ms), *self._begin.shape))
        for row, time in enumerate(times_ms):
            knot, since = divmod(time, self.KNOT_MS)
            while self._knot < knot:
                self._advance()
            rows[row] = self._begin + self._slope * (since / self.KNOT_MS)
        return rows

    def _advance(self) -> None:
        """Advance to the next knot."""
        self._knot += 1
        self._begin = self._end
        self._end = self._draw_knot()
        self._slope = self._end - self._begin

    def _draw_knot(self) -> Floats:
        drawn = [self._draw(chance, bound) for chance, bound in zip(self._chances, self._bounds, strict=True)]
        return np.array(drawn, dtype=np.float64)


# Random faults: every truck has faults of a kind at a rate per hour, at times drawn from its own random stream.
# The same seed gives the same faults; a world without rates draws nothing.

_HOUR_MS = 3_600_000


class RandomFaults:
    """The next time of every kind of fault of every truck."""

    def __init__(self, rates: Sequence[FaultRate], seed: int, trucks: int, now_ms: int) -> None:
        self._rates = rates
        self._chances = generators(seed, Source.RANDOM_FAULTS, trucks)
        self._next = [[now_ms + self._pause_ms(truck, rate) for rate in rates] for truck in range(trucks)]

    def due(self, now_ms: int) -> list[tuple[int, Fault]]:
        """Faults that have become due, as (truck, fault), each once."""
        due = []
        for truck, times in enumerate(self._next):
            for kind, rate in enumerate(self._rates):
                if times[kind] <= now_ms:
                    due.append((truck, rate.fault))
                    times[kind] = now_ms + rate.fault.for_ms + self._pause_ms(truck, rate)
        return due

    def _pause_ms(self, truck: int, rate: FaultRate) -> int:
        """A uniform pause of up to twice the mean."""
        return 1 + self._chances[truck].bounded(2 * _HOUR_MS // rate.per_hour)


# One simulated truck: it drives along its route to its target, turns on the spot in nodes, and stops when it receives
# no commands (watchdog). Whole micrometres, microradians and milliseconds.
# A truck never passes a node in which it has to turn before it has turned, whatever its command says.

# A truck this close to its target has arrived.
_ARRIVED_UM = 1_000
# The distance to a node within which a truck creeps up to it, and the creep speed.
_CREEP_UM = 200_000
_CREEP_UM_S = 100_000
# A truck beside its line returns by one metre for this many metres along it.
_STEERS_BACK = 4
_STEER_URAD = 244_979
# For commands without a speed limit.
_NO_LIMIT_UM_S = 1_000 * MILLION


class Order(Struct, frozen=True, gc=False):
    """A command in whole numbers, as stored by the truck."""

    seq: int
    mode: CommandMode
    route: tuple[str, int]
    target_um: int
    stop_line_um: int
    limit_um_s: int
    yaw_urad: int | None
    valid_ms: int


def order_of(command: RollingTargetCommand) -> Order:
    """Convert a command."""
    yaw, limit = command.targetYaw, command.speedLimitMps
    return Order(
        seq=command.seq,
        mode=command.mode,
        route=(command.routeId, command.revision),
        target_um=int(command.targetS * MILLION),
        stop_line_um=int(command.stopLineS * MILLION),
        limit_um_s=_NO_LIMIT_UM_S if isinstance(limit, UnsetType) else int(limit * MILLION),
        yaw_urad=None if isinstance(yaw, UnsetType) else int(yaw * MILLION),
        valid_ms=command.validForMs,
    )


def order_of_aim(aim: Aim) -> Order:
    """Convert an aim directly, without the decimals of a command."""
    route = ("", 0) if aim.plan is None else (aim.plan.route_id, aim.plan.revision)
    return Order(
        aim.seq,
        aim.mode,
        route,
        aim.target_um,
        aim.stop_um,
        limit_um_s=aim.speed_um_s,
        yaw_urad=aim.turn_urad,
        valid_ms=aim.valid_ms,
    )


class SimulatedTruck:
    """The position of a truck on its route, its speed and its newest command."""

    def __init__(self, profile: RobotProfile, tangent_eps_urad: int, edge: int, on_um: int, yaw_urad: int) -> None:
        self.profile = profile
        self._eps = tangent_eps_urad
        self._slowing_um = braking_um(profile, profile.v_max_um_s)
        self.edge = edge
        self.on_um = on_um
        self.v_um_s = 0
        # The yaw while the truck stands in a node; None on an edge, where the path determines it.
        self.yaw_urad: int | None = yaw_urad
        self.route: RoutePlan | None = None
        # For every segment the next position at which the truck has to stop.
        self._bounds: list[int] = []
        self.segment = 0
        self.order: Order | None = None
        self.received_ms = 0
        self.overrun_um = 0
        # Offset from the line, positive to the left; it decreases while the truck drives.
        self.aside_um = 0
        # How far the truck overruns its next stop line, once.
        self.beyond_um = 0
        self._known: dict[tuple[str, int], RoutePlan] = {}
        # The yaw of the way out of the node in which the truck stands.
        self._ahead = yaw_urad

    @property
    def s_um(self) -> int:
        """The position on the route."""
        if self.route is None or not self.route.segments:
            return 0
        return self.route.segments[self.segment].route_s0_um + self.on_um

    @property
    def steers_urad(self) -> int:
        """The difference of the yaw from that of the line while the truck steers back."""
        if not self.aside_um or not self.v_um_s:
            return 0
        return -_STEER_URAD if self.aside_um > 0 else _STEER_URAD

    @property
    def at_goal(self) -> bool:
        """Whether the truck stands at the end of its route."""
        route = self.route
        return route is not None and self.v_um_s == 0 and self.s_um >= route.length_um

    def learn(self, route: RoutePlan) -> None:
        """Store a route; the truck takes it with the first command that names it."""
        key = (route.route_id, route.revision)
        # Routes are in the order of arrival.
        self._known.pop(key, None)
        self._known[key] = route

    def resume(self, route: RoutePlan, segment: int) -> None:
        """Continue a route on a segment, from the present position of the truck."""
        self.learn(route)
        self.route, self.segment, self._bounds = route, segment, _bounds_of(route)
        if not route.segments:
            return
        if self.on_um <= 0:
            self._enter(segment)
        elif self.on_um < route.segments[segment].length_um:
            self.yaw_urad = None
        elif segment + 1 < len(route.segments):
            self._enter(segment + 1)

    def relocate(self, edge: int, on_um: int, yaw_urad: int | None) -> None:
        """Relocate the truck: it stands, without a route until it learns one from there. `yaw_urad` is the yaw in a
        node; None on an edge."""
        self.edge, self.on_um, self.yaw_urad, self.v_um_s, self.aside_um = edge, on_um, yaw_urad, 0, 0
        self.route, self.segment, self._bounds, self._known = None, 0, [], {}

    def receive(self, order: Order, now_ms: int) -> None:
        """Accept a command unless a newer one has arrived before it."""
        if self.order is not None and order.seq <= self.order.seq:
            return
        current = None if self.route is None else (self.route.route_id, self.route.revision)
        if order.route != current and order.route in self._known:
            self._take_route(self._known[order.route])
            self._drop_routes_before(order.route)
        self.order, self.received_ms = order, now_ms

    def _drop_routes_before(self, taken: tuple[str, int]) -> None:
        """Drop the routes that arrived before the one taken: they are never commanded again. Later routes stay, as
        their commands may still be in transit."""
        for key in list(self._known):
            if key == taken:
                return
            del self._known[key]

    def _take_route(self, route: RoutePlan) -> None:
        """Take a new route that starts at the truck or with the edges it drives, and find the segment of the truck on
        it."""
        if not route.segments:
            # The truck is at its goal and must stand: nothing else would slow it down.
            self.route, self.segment, self.v_um_s = route, 0, 0
            return
        places = range(len(route.segments))
        number = next((k for k in places if route.segments[k].edge == self.edge and self._may_be_on(route, k)), None)
        leaves = self._segment_from_here(route) if number is None else None
        if number is None and leaves is None and self.route is None:
            # A truck that was carried elsewhere ignores a command for its previous route.
            return
        self._bounds = _bounds_of(route)
        if number is not None:
            self.route, self.segment = route, number
            if number + 1 < len(route.segments) and self.on_um >= route.segments[number].length_um:
                self._enter(number + 1)
            return
        assert leaves is not None, f"{route.route_id} does not begin where the truck is"
        here = self._current_yaw(route)
        self.route = route
        self.yaw_urad = here
        self._enter(leaves)

    def _segment_from_here(self, route: RoutePlan) -> int | None:
        """The segment of a new route that starts in the node of the truck: the first one, or for a revision of the
        current route the next one."""
        driven = self.segment if self.route is not None and self.route.start == route.start and not self.on_um else 0
        if driven and self.route is not None and _edges(self.route, driven) == _edges(route, driven):
            return driven
        begins = isinstance(route.start, AtNode) and (
            self.route is not None or self._stands_in(route, route.start.node)
        )
        return 0 if begins else None

    def _stands_in(self, route: RoutePlan, node: int) -> bool:
        """Whether the truck is at an end of its edge that is this node."""
        edge = route.site.network.edges[self.edge]
        at_end = node == edge.end and self.on_um >= edge.path.length_um
        return at_end or (node == edge.start and self.on_um <= 0)

    def _may_be_on(self, route: RoutePlan, number: int) -> bool:
        """Whether the truck may be on this segment of a route; on another route only on the segment of the anchor."""
        own = self.route
        if own is not None and self.segment == number and own.start == route.start:
            return _edges(own, number + 1) == _edges(route, number + 1) or self._is_anchor(route, number)
        return self._is_anchor(route, number)

    def _is_anchor(self, route: RoutePlan, number: int) -> bool:
        return number == 0 and isinstance(route.start, OnEdge)

    def _current_yaw(self, route: RoutePlan) -> int:
        if self.yaw_urad is not None:
            return self.yaw_urad
        edge = route.site.network.edges[self.edge]
        return truck_yaw(edge.path.heading(self.on_um), edge.style)

    def _enter(self, number: int) -> None:
        """Start a segment; if its direction differs, the truck stays in the node until it has turned."""
        assert self.route is not None
        here = self._current_yaw(self.route)
        self.segment, self.on_um = number, 0
        self.edge = self.route.segments[number].edge
        edge = self.route.site.network.edges[self.edge]
        self._ahead = truck_yaw(edge.path.heading(0), edge.style)
        tangent = abs(turn_urad(here, self._ahead)) <= self._eps
        self.yaw_urad = None if tangent else here

    def advance(self, now_ms: int, step_ms: int, *, immobile: bool = False) -> None:
        """Advance by a step that ends now; with `immobile` the truck cannot move."""
        order, route = self.order, self.route
        if order is None or route is None or not route.segments:
            return
        silent = now_ms - self.received_ms > order.valid_ms or immobile
        if self.yaw_urad is not None and not silent and self.v_um_s == 0 and self._turn(order, step_ms):
            return
        # Failing brakes ignore STOP.
        stop = silent or (order.mode is CommandMode.STOP and not self.beyond_um)
        if self.v_um_s or not stop:
            self._drive(order if stop else self._overrun(self._creep(order)), step_ms, stop)

    def _overrun(self, order: Order) -> Order:
        """The order of a truck whose brakes fail: its stop line is farther."""
        if not self.beyond_um:
            return order
        end = order.stop_line_um + self.beyond_um
        if self.s_um >= end - _ARRIVED_UM:
            self.beyond_um = 0
        return replace(order, target_um=end, stop_line_um=end, limit_um_s=max(order.limit_um_s, OVERRUN_UM_S))

    def _creep(self, order: Order) -> Order:
        """The order of a truck that stops just before its target node: it creeps up to the node, as the fleet manager
        knows its position only within the report error."""
        if self.yaw_urad is not None:
            return order
        node = self._bounds[self.segment]
        if node > order.stop_line_um or node - self.s_um > _CREEP_UM:
            return order
        return replace(order, target_um=node, limit_um_s=max(order.limit_um_s, _CREEP_UM_S))

    def _turn(self, order: Order, step_ms: int) -> bool:
        """Turn on the spot for one step, if the order allows it; true while the truck must not drive."""
        assert self.yaw_urad is not None
        if self.at_goal or self.route is None:
            target_yaw = order.yaw_urad if order.mode is CommandMode.TURN else None
        else:
            target_yaw = (
                order.yaw_urad if order.mode is CommandMode.TURN and order.yaw_urad is not None else self._ahead
            )
            if order.mode is CommandMode.STOP or (order.mode is not CommandMode.TURN and order.target_um <= self.s_um):
                target_yaw = None
        if target_yaw is None:
            return True
        turn = turn_urad(self.yaw_urad, target_yaw)
        most = self.profile.turn_rate_urad_s * step_ms // 1000
        self.yaw_urad = target_yaw if abs(turn) <= most else wrapped_urad(self.yaw_urad + (most if turn > 0 else -most))
        if self.yaw_urad == target_yaw and not self.at_goal and abs(turn_urad(target_yaw, self._ahead)) <= self._eps:
            self.yaw_urad = None
        return True

    def _drive(self, order: Order, step_ms: int, stop: bool) -> None:
        profile, s_um, before = self.profile, self.s_um, self.v_um_s
        bound = self._bound()
        left = (order.target_um if order.target_um < bound else bound) - s_um
        if left <= 0 and not before:
            return
        loss = profile.brake_um_s2 * step_ms // 1000
        desired = 0 if stop or left <= 0 else self._desired_speed(order, s_um, left, step_ms)
        v = desired if desired > before - loss else before - loss
        way = (before + v) * step_ms // 2000
        if left > 0 and (left <= way or left <= _ARRIVED_UM) and v <= loss and not stop:
            way, v = left, 0
        self.v_um_s = v
        if way:
            self._move(way)
            over = self.s_um - order.stop_line_um
            if over > self.overrun_um:
                self.overrun_um = over

    def _desired_speed(self, order: Order, s_um: int, left_um: int, step_ms: int) -> int:
        """The desired speed after a step."""
        profile, before = self.profile, self.v_um_s
        # The braking curve from the end of this step, so that no step exceeds the brakes.
        room = left_um - before * step_ms // 1000
        curve = (isqrt(2 * profile.brake_um_s2 * room) or 1) if room > 0 else 1
        gained = before + profile.accel_um_s2 * step_ms // 1000
        return min(gained, order.limit_um_s, profile.v_max_um_s, curve, self._allowed(order, s_um, step_ms))

    def _allowed(self, order: Order, s_um: int, step_ms: int) -> int:
        """The speed from which the truck stops before its stop line, at least the creep speed."""
        room = order.stop_line_um - s_um - self.v_um_s * step_ms // 1000
        if room >= self._slowing_um:
            return self.profile.v_max_um_s
        return max(allowed_speed_um_s(self.profile, room), _CREEP_UM_S)

    def _bound(self) -> int:
        """The position that the truck must not pass: the next node in which it has to turn, or the goal."""
        assert self.route is not None
        if self.yaw_urad is not None:
            return self.s_um
        return self._bounds[self.segment]

    def _move(self, way: int) -> None:
        route = self.route
        assert route is not None
        self.on_um += way
        if self.aside_um:
            back = min(abs(self.aside_um), way // _STEERS_BACK)
            self.aside_um -= back if self.aside_um > 0 else -back
        while self.on_um >= route.segments[self.segment].length_um:
            over = self.on_um - route.segments[self.segment].length_um
            if self.segment + 1 == len(route.segments):
                # The route ends here.
                self.on_um -= over
                self.v_um_s = 0
                self.yaw_urad = self._current_yaw(route)
                return
            if route.segments[self.segment].must_stop:
                self.on_um -= over
                self.v_um_s = 0
                self._enter(self.segment + 1)
                return
            self._enter(self.segment + 1)
            self.on_um = over


def _bounds_of(route: RoutePlan) -> list[int]:
    """For every segment the end of the first segment from it on at which the truck has to stop, or the goal."""
    bounds: list[int] = []
    bound = route.length_um
    for segment in reversed(route.segments):
        if segment.must_stop:
            bound = segment.route_s0_um + segment.length_um
        bounds.append(bound)
    return bounds[::-1]


def _edges(route: RoutePlan, count: int) -> list[int]:
    return [segment.edge for segment in route.segments[:count]]
