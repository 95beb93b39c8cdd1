"""All trucks in virtual time: commands reach them late or never, they drive, and report where they think they are.

The place on the route is where a truck means to be. It drives beside it by the error of tracking, and truly is off
from there by an error of position that drifts. Every report is off from the truth by an error of its own, anywhere in
the disc of the position error, and neither truth nor report lies outside that disc around where the truck drives.
Stamps jitter. The same seed gives the same run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from pendula.fleet.contracts.traffic import RobotStatus, RollingTargetCommand
from pendula.fleet.driving.records import Record
from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.simulator.channel import Channel
from pendula.fleet.simulator.faults import Fault, FaultKind, Trouble
from pendula.fleet.simulator.kinematics import Order, SimulatedTruck, order_of, order_of_aim
from pendula.fleet.simulator.misfortune import Misfortune
from pendula.fleet.simulator.noise import Drift, Source, generators, within, within_disc
from pendula.fleet.simulator.settings import WorldSettings
from pendula.fleet.simulator.tracks import Tracks, wrapped
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.targets.rolling_target import Aim
from pendula.fleet.trucks.envelope import envelope_of
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.fleet.units import MILLION, PI_URAD

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
# By so much the clock of a truck is ahead whose telemetry is bad.
_WRONG_CLOCK_MS = 60_000
# So much farther, in square micrometres, counts an edge that leads the other way.
_AGAINST = MILLION * MILLION


@dataclass(frozen=True, slots=True)
class Start:
    """A truck where it stands when a run begins: in a node, at the end of an edge into it or the start of one out of
    it, with a yaw."""

    robot_id: str
    profile: RobotProfile
    edge: int
    on_um: int
    yaw_urad: int


class Telemetry(Struct, frozen=True, gc=False):
    """What a truck says of itself."""

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
    """Where the trucks were at some instants: one row an instant, one column a truck; metres and radians. `route` is
    the pose on the route, `seen` the one that the truck measures, `truth` the true one."""

    at_ms: Floats
    route: tuple[Floats, Floats, Floats]
    seen: tuple[Floats, Floats, Floats]
    truth: tuple[Floats, Floats, Floats]


class World:
    """Trucks in the order of their names."""

    def __init__(
        self, site: CompiledMap, starts: Sequence[Start], settings: WorldSettings, seed: int, now_ms: int = 0
    ) -> None:
        self.site = site
        self.settings = settings
        self.now_ms = now_ms
        eps = site.params.tangent_eps_urad
        self.robot_ids = tuple(one.robot_id for one in starts)
        self.trucks = [SimulatedTruck(one.profile, eps, one.edge, one.on_um, one.yaw_urad) for one in starts]
        count = len(starts)
        self._tracks = Tracks(site)
        self._commands: Channel[Order] = Channel(
            seed, (Source.COMMAND_LATENCY, Source.COMMAND_LOSS), count, settings.command_latency_ms
        )
        self._reports: Channel[Telemetry] = Channel(
            seed, (Source.TELEMETRY_LATENCY, Source.TELEMETRY_LOSS), count, settings.telemetry_latency_ms
        )
        profiles = [one.profile for one in starts]
        places = [one.localization_error.value_um * settings.localization_permille // 1000 for one in profiles]
        self._jitter = generators(seed, Source.JITTER, count)
        self._jitter_um = places
        self._stamps = generators(seed, Source.STAMP, count)
        # Two stamps are off by no more than the jitter, so each by half of it.
        self._stamp_ms = [one.stamp_jitter_ms * settings.stamp_permille // 2000 for one in profiles]
        tracking = [one.tracking_error.value_um * settings.tracking_permille // 1000 for one in profiles]
        self._aside = Drift(seed, Source.TRACKING, tracking)
        self._off = Drift(seed, Source.POSITION, places, within_disc)
        self._off_yaw = Drift(seed, Source.HEADING, [_heading(one, settings.heading_permille) for one in profiles])
        self._operations = generators(seed, Source.OPERATION, count)
        self._busy_until: list[int | None] = [None] * count
        self.trouble = [Trouble() for _ in starts]
        self._wild = generators(seed, Source.WILD, count)
        self._misfortune = Misfortune(settings.faults, seed, count, now_ms) if settings.faults else None
        # Reports whose time cannot be: whoever reads them has to notice.
        self.bad: list[list[Telemetry]] = [[] for _ in starts]
        self._loads = [False] * count
        # Whether a truck has something on its fork.
        self.loaded = [False] * count
        self.latest: list[Telemetry] = []
        # Whether somebody has carried it out of the hall, where it is off; and when it was said of each to be removed.
        self.out = [False] * count
        self._removed_ms: list[int | None] = [None] * count
        self.look_anew()

    def look_anew(self) -> None:
        """What is known of every truck is what it says at this moment."""
        self.latest = self._telemetry(0, self._trace([self.now_ms], *self._places([])))

    def send(self, truck: int, command: RollingTargetCommand | Aim) -> None:
        """A command on its way to a truck."""
        order = order_of_aim(command) if isinstance(command, Aim) else order_of(command)
        self._commands.send(truck, self.now_ms, order, self.settings.command_loss_ppm)

    def learn(self, truck: int, route: RoutePlan) -> None:
        self.trucks[truck].learn(route)

    @property
    def lost(self) -> tuple[int, int]:
        """How many commands and reports never arrived so far."""
        return self._commands.lost, self._reports.lost

    def operate(self, truck: int, for_ms: int, loads: bool) -> None:
        """A truck begins to load, or to unload; one that is about that already goes on with it."""
        if self._busy_until[truck] is not None and self._loads[truck] == loads:
            return
        self._loads[truck] = loads
        part = for_ms * self.settings.operation_permille // 1000
        self._busy_until[truck] = self.now_ms + for_ms + within(self._operations[truck], part)

    def operated(self) -> list[int]:
        """The trucks that have loaded or unloaded; each is told once. One whose operation hangs is not done before that
        is over."""
        done = [
            i
            for i, until in enumerate(self._busy_until)
            if until is not None
            and self.now_ms >= until
            and not self.trouble[i].has(FaultKind.OPERATION_HANGS, self.now_ms)
        ]
        for truck in done:
            self._busy_until[truck] = None
            self.loaded[truck] = self._loads[truck]
        return done

    def follow(self, records: Sequence[Record]) -> None:
        """Whoever says of a truck that it was removed has carried it out of the hall."""
        for record in records:
            said_ms = record.removed_ms
            if said_ms is not None and said_ms != self._removed_ms[record.number]:
                self._take_out(record.number)
            self._removed_ms[record.number] = said_ms

    def _take_out(self, truck: int) -> None:
        """Its place is kept: from there it is carried back."""
        one = self.trucks[truck]
        one.carried(one.edge, one.on_um, one.yaw_urad)
        self.out[truck], self._busy_until[truck], self.bad[truck] = True, None, []

    def trouble_with(self, truck: int, fault: Fault) -> None:
        """Something goes wrong with a truck from now on. One that is out of the hall and carried somewhere is back."""
        self.trouble[truck].begin(fault, self.now_ms)
        if fault.kind is FaultKind.OVERRUN:
            self.trucks[truck].beyond_um = fault.by_um
        if fault.kind is FaultKind.PUSHED:
            self._push(self.trucks[truck], fault.x_um, fault.y_um)
        if fault.kind is FaultKind.CARRIED:
            one = self.trucks[truck]
            x_um, y_um = self.site.network.edges[one.edge].path.point(one.on_um)
            self.put(truck, x_um + fault.x_um, y_um + fault.y_um)

    def _push(self, truck: SimulatedTruck, x_um: int, y_um: int) -> None:
        """Puts a truck beside its line, as far as a push goes across it."""
        edge = self.site.network.edges[truck.edge]
        along = truck_yaw(edge.path.heading(truck.on_um), edge.style)
        yaw = (along if truck.yaw_urad is None else truck.yaw_urad) / MILLION
        truck.aside_um += round(y_um * np.cos(yaw) - x_um * np.sin(yaw))
        truck.v_um_s = 0

    def put(self, truck: int, x_um: int, y_um: int, yaw_urad: int | None = None) -> None:
        """Puts a truck on the edge that is nearest to a place, along it; of those that lie there both ways, on the one
        of its yaw. One that was out of the hall is on again."""
        places = []
        for number, edge in enumerate(self.site.network.edges):
            on_um, square = edge.path.nearest(x_um, y_um, 0, edge.path.length_um)
            along = truck_yaw(edge.path.heading(on_um), edge.style)
            against = yaw_urad is not None and abs(turn_urad(yaw_urad, along)) > PI_URAD // 2
            inside = 0 < on_um < edge.path.length_um
            places.append((square + _AGAINST * against, number, on_um, None if inside else along))
        _, number, on_um, yaw = min(places, key=lambda one: one[:2])
        self.trucks[truck].carried(number, on_um, yaw)
        self.out[truck] = False

    def take_bad(self, truck: int) -> list[Telemetry]:
        """Reports of a truck whose time cannot be, each once."""
        found, self.bad[truck] = self.bad[truck], []
        return found

    def advance(self, to_ms: int) -> Trace:
        """Drives on to a time, in steps of `step_ms`; reports that arrive on the way become `latest`."""
        for number, fault in () if self._misfortune is None else self._misfortune.due(self.now_ms):
            if not self.out[number]:
                self.trouble_with(number, fault)
        times = [*range(self.now_ms + self.settings.step_ms, to_ms, self.settings.step_ms), to_ms]
        rows = []
        before = self.now_ms
        for now in times:
            for i, truck in enumerate(self.trucks):
                trouble = self.trouble[i]
                if self._commands.is_due(i, now):
                    for order in self._commands.arrived(i, now):
                        if trouble.hears(now) and not self.out[i]:
                            truck.hear(order, now)
                truck.advance(now, now - before, still=trouble.is_still(now))
            rows.append(self._row())
            before = now
        self.now_ms = to_ms
        trace = self._trace(times, *self._places(rows))
        self._report(times, trace)
        return trace

    def _row(self) -> list[tuple[int, int, int, bool, int, int]]:
        return [
            (one.edge, one.on_um, one.yaw_urad or 0, one.yaw_urad is not None, one.aside_um, one.steers_urad)
            for one in self.trucks
        ]

    def _places(self, rows: list[list[tuple[int, int, int, bool, int, int]]]) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        whole = np.array(rows or [self._row()], dtype=np.int64)
        x, y, yaw = self._tracks.poses(whole[:, :, 0], whole[:, :, 1])
        return x, y, np.where(whole[:, :, 3] == 1, whole[:, :, 2], yaw), whole[:, :, 4], whole[:, :, 5]

    def _trace(self, times: list[int], x: Ints, y: Ints, yaw: Ints, pushed: Ints, steers: Ints) -> Trace:
        """On the route, and in truth: tracking is across the way, errors of position anywhere."""
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
                    # What is not said is not lost: the channel draws as if it had been.
                    self._reports.send(i, time, report, loss if self._speaks(i, time) else 1_000_000)
        for i, latest in enumerate(self.latest):
            for report in self._reports.arrived(i, self.now_ms):
                if self.out[i]:
                    continue
                if report.at_ms >= self.now_ms + _WRONG_CLOCK_MS // 2:
                    self.bad[i].append(report)
                elif report.at_ms > latest.at_ms:
                    self.latest[i] = latest = report

    def _speaks(self, truck: int, now_ms: int) -> bool:
        return self.trouble[truck].speaks(now_ms) and not self.out[truck]

    def _telemetry(self, row: int, trace: Trace) -> list[Telemetry]:
        """What every truck measures at an instant: the truth with an error."""
        at_ms = int(trace.at_ms[row])
        x, y, yaw = [np.rint(one[row] * MILLION).astype(np.int64) for one in trace.seen]
        true_x, true_y = [np.rint(one[row] * MILLION).astype(np.int64) for one in trace.truth[:2]]
        seen = zip(x.tolist(), y.tolist(), wrapped(yaw).tolist(), strict=True)
        off = zip((true_x - x).tolist(), (true_y - y).tolist(), strict=True)
        return [self._said(i, at_ms, *pose, aside) for i, (pose, aside) in enumerate(zip(seen, off, strict=True))]

    def _said(self, i: int, at_ms: int, x_um: int, y_um: int, yaw_urad: int, aside: tuple[int, int]) -> Telemetry:
        """`aside`: how far the truth is from where the truck drives."""
        truck, trouble = self.trucks[i], self.trouble[i]
        error = within_disc(self._jitter[i], self._jitter_um[i], aside) if self._jitter_um[i] else (0, 0)
        off = self._wild_off(i, trouble, at_ms) if trouble.until_ms else (0, 0)
        stamp_ms = max(0, at_ms + within(self._stamps[i], self._stamp_ms[i]))
        well = Telemetry(
            at_ms=stamp_ms,
            x_um=x_um + error[0] + off[0],
            y_um=y_um + error[1] + off[1],
            yaw_urad=yaw_urad,
            v_um_s=truck.v_um_s,
            last_ack_seq=trouble.acknowledgement(0 if truck.order is None else truck.order.seq, at_ms),
        )
        if not trouble.until_ms:
            return well
        return replace(
            well,
            at_ms=stamp_ms + _WRONG_CLOCK_MS * trouble.has(FaultKind.BAD_TELEMETRY, at_ms),
            status=RobotStatus.FAULT if trouble.has(FaultKind.FAULT, at_ms) else RobotStatus.OK,
            obstructed=trouble.has(FaultKind.STAND, at_ms),
        )

    def _wild_off(self, truck: int, trouble: Trouble, at_ms: int) -> tuple[int, int]:
        """By how much a report is off beside its ordinary error."""
        x, y = trouble.offset_um(at_ms)
        noise = trouble.noise_um(at_ms)
        return x + within(self._wild[truck], noise), y + within(self._wild[truck], noise)


def _heading(profile: RobotProfile, permille: int) -> int:
    """The error of yaw that moves no corner by more than the margin for everything else."""
    bound = profile.extra_margin_um * MILLION // max(envelope_of(profile).turn_radius_um, 1)
    return (bound + profile.heading_error_urad) * permille // 1000
