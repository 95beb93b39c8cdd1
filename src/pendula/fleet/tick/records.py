"""The record of each truck between two ticks: its route, its position, what it holds, what it waits for.

`held` gives for every resource the position on the present track at which it is passed. Records are copied before a
tick and the copies replace them when the tick has succeeded, so a failed tick changes nothing.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct

from pendula.fleet.contracts import HoldReason, Phase, PriorityClass, RobotHealth, RobotStatus
from pendula.fleet.map.routes import Pose, Progress, RoutePlan
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.tick.track import Act, Track

# Why a truck must stand regardless of traffic: the codes, their precedence, and their alerts.
# The order of `Stop` is the precedence of FLT-FAIL-3: faults of the truck, silence, missing acknowledgements,
# everything that makes going on unsafe, then operator pauses.


class Stop(StrEnum):
    ROBOT_FAULT = "STOP_ROBOT_FAULT"
    STUCK = "STOP_STUCK"
    OFFLINE = "STOP_OFFLINE"
    NO_COMMS = "STOP_NO_COMMS"
    OVERRUN = "STOP_OVERRUN"
    # Before stops of only one of the two trucks: they stand for each other.
    OCCUPANCY_CONFLICT = "STOP_OCCUPANCY_CONFLICT"
    POSE_JUMP = "STOP_POSE_JUMP"
    OFF_ROUTE = "STOP_OFF_ROUTE"
    FOREIGN_OCCUPANCY = "STOP_FOREIGN_OCCUPANCY"
    STALE_TELEMETRY = "STOP_STALE_TELEMETRY"
    INVARIANT = "STOP_INVARIANT"
    OPERATOR = "STOP_OPERATOR"
    # Nothing is wrong any more, but other trucks have to move before this one may go on.
    SAFE_STATE = "WAIT_SAFE_STATE"


_HOLD = {
    Stop.ROBOT_FAULT: HoldReason.ROBOT_FAULT,
    Stop.STUCK: HoldReason.ROBOT_FAULT,
    Stop.OFFLINE: HoldReason.OFFLINE,
    Stop.NO_COMMS: HoldReason.NO_COMMS,
    Stop.SAFE_STATE: HoldReason.TRAFFIC_HOLD,
}
# Stops after which a truck has failed: it keeps what it has, needs nothing, and others take detours round it.
FAILURES = frozenset({Stop.ROBOT_FAULT, Stop.STUCK, Stop.OFFLINE, Stop.OVERRUN, Stop.POSE_JUMP, Stop.OFF_ROUTE})


def hold_of(stop: str) -> HoldReason:
    """The reason of FLT-FAIL-2 for a code."""
    return _HOLD.get(Stop(stop), HoldReason.SAFETY_STOP)


# Data of a truck whose position is in doubt: why, where on its route it can be, and what it may cover instead.
# A doubt ends when poses have been steady for a while and fit: where the truck can be on its route, where an operator
# relocated it, or, if no pose was torn from the one before, where it went by itself.

# From here on a removed truck can be: it is no longer on its route.
NOWHERE_UM = 1 << 61


class Rejoin(Struct, frozen=True, array_like=True):
    """A truck beside its line: how far, positive to its left, on which edge and where. It is sent back to its line at
    `target_um` of its track; if that is None, `blockers` are the trucks in the way, each with a resource it holds
    there, and without any the granted route is too short to steer back."""

    aside_um: int
    edge: int
    on_um: int
    target_um: int | None = None
    blockers: tuple[tuple[int, int], ...] = ()


class Doubt(Struct, frozen=True, array_like=True):
    """`low_um` to `high_um`: where on its track the truck can be. `torn`: two consecutive poses between which no truck
    can drive. `steady_ms`: since when there was none, and the truck reports no fault."""

    code: str
    since_ms: int
    low_um: int
    high_um: int
    torn: bool
    steady_ms: int | None = None
    # An operator confirmed the reported position, and named its edge.
    confirmed: bool = False
    edge: int | None = None
    # What the truck may cover at its reported position, and for which position that was computed.
    extra: tuple[int, ...] = ()
    seen: tuple[int, int] | None = None
    # Whether this began with the first report of the truck.
    first: bool = False
    # Since when the truck has reported, without a break, to be on its route, or elsewhere on the map.
    on_map_ms: int | None = None
    # Whether an alert for its silence was raised.
    silent: bool = False
    # A truck a little beside its line: how it gets back, or what prevents it.
    rejoin: Rejoin | None = None
    # A truck beyond its stop line: how far, more than an obeying truck could report.
    beyond_um: int | None = None


class Waiting(Struct, frozen=True):
    """Why a truck got no further unit: a code of FLT-OBS-8, the resource it requested, the blocking truck and what that
    one holds; for WAIT_SAFE_STATE the cycle, which is empty if the truck is cut off."""

    code: str
    resource: int | None
    by: int | None
    theirs: int | None
    cycle: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Retraction:
    """What a truck releases once it has acknowledged the command that shortened its grant."""

    seq: int
    stop_line_um: int
    resources: tuple[int, ...]


@dataclass
class Record:
    site: CompiledMap
    number: int
    robot_id: str
    profile: RobotProfile
    rest: int
    short_um: int
    # Its node while it has no route.
    node: int
    # How far ahead it requests units.
    asked_um: int = 0
    track: Track | None = None
    # The position of the locks that is position 0 of the track.
    base: int = 0
    # The number of finished acts of the track.
    acted: int = 0
    granted: int = 0
    held: dict[int, int] = field(default_factory=dict)
    progress: Progress | None = None
    at_um: int = 0
    bound_um: int = 0
    pose: Pose | None = None
    v_um_s: int = 0
    report_ms: int = 0
    status: RobotStatus = RobotStatus.OK
    phase: Phase = Phase.IDLE
    load: bool = False
    health: RobotHealth = RobotHealth.HEALTHY
    stop_code: str | None = None
    # Since when it has stood with this code.
    stopped_ms: int | None = None
    # Its doubt, the stop that an operator has to clear, and the truck that may be where it is granted.
    doubt: Doubt | None = None
    latched: str | None = None
    foreign: int | None = None
    # Whether the two have stood too close since the start; computed in every tick.
    too_close: bool = False
    # Paused, declared absent, or awaited: no truck moves before it has reported.
    paused: bool = False
    absent: bool = False
    unheard: bool = True
    # Since when a truck that never reported is awaited, and whether an alert was raised.
    awaited_ms: int | None = None
    missed: bool = False
    # Dropped reports in a row, the last new acknowledgement, and since when it is at this position.
    bad_reports: int = 0
    ack_ms: int | None = None
    crawl_um: int = 0
    # Its yaw then, if it had to turn; kept when it is stuck, for the alert.
    crawl_urad: int | None = None
    crawl_ms: int | None = None
    # Since when it drives on despite a stop, and whether an alert was raised.
    rolls_ms: int | None = None
    defiant: bool = False
    obstructed: bool = False
    confidence_ppm: int = 1_000_000
    ack_seq: int = 0
    seq: int = 0
    hold_um: int = 0
    farthest_um: int = 0
    target_um: int = 0
    pending: RoutePlan | None = None
    pending_since_ms: int | None = None
    # The trucks that prevented the pending route, with their versions.
    refused_cycle: tuple[int, ...] = ()
    refused_versions: tuple[int, ...] = ()
    # When a route may be checked again, when it is checked even without a change, and when a refused unit is.
    retry_ms: int = 0
    sleep_ms: int = 0
    again_ms: int = 0
    waiting: Waiting | None = None
    waiting_since_ms: int | None = None
    request_ms: int | None = None
    last_grant_ms: int = 0
    # The last detour because of a deadlock.
    rerouted_ms: int | None = None
    # The truck it waits for, since when, and the last escalation step.
    blocked_by: int | None = None
    blocked_ms: int = 0
    escalated: int = 0
    retraction: Retraction | None = None
    # The last reserved standing position, and since when each one beyond the grant is reserved.
    reserved: int = 0
    reserved_ms: dict[int, int] = field(default_factory=dict)
    priority: PriorityClass = PriorityClass.IDLE
    rank: int = 0

    # What the first cell of a waiting truck's next unit excludes, and what the whole unit does; cached while it waits.
    ripe: frozenset[int] | None = None
    ripe_whole: frozenset[int] | None = None
    # Derived from what is held and the next unit; cached while both stay.
    _edges: frozenset[int] | None = None
    _zones: tuple[int, ...] | None = None
    entering: dict[int, bool] | None = None

    def copied(self) -> "Record":
        twin = object.__new__(Record)
        # No slots: every truck is copied in every tick, and a whole dictionary is copied at once.
        twin.__dict__ = self.__dict__.copy()
        twin.held = dict(self.held)
        twin.reserved_ms = dict(self.reserved_ms)
        return twin

    def placed(self, track: Track, held: dict[int, int], at_um: int) -> None:
        """Put the truck at the start of a route, where it stands; its old route no longer counts."""
        self.track, self.held, self.base, self.granted, self.acted = track, dict(held), 0, 0, 0
        self.at_um = self.hold_um = self.farthest_um = self.target_um = at_um
        self.bound_um = at_um - self.short_um
        self.doubt = self.retraction = self.progress = None
        self.pending = self.pending_since_ms = None
        self.waiting = self.waiting_since_ms = self.request_ms = None
        self.reserve_anew()
        self.changed()

    def set_aside(self) -> None:
        """The truck is no longer in the hall and has no route."""
        self.track = self.pending = self.pending_since_ms = self.progress = None
        self.base = self.granted = self.acted = 0
        self.at_um = self.hold_um = self.farthest_um = self.target_um = 0
        self.waiting = self.waiting_since_ms = self.request_ms = None
        self.refused_cycle = self.refused_versions = ()
        self.absent = True
        self.reserve_anew()
        self.changed()

    def go_on_with(self, track: Track, held: dict[int, int]) -> None:
        """The same route from the end of the grant on, with more held on it."""
        granted = self.granted
        self.track, self.held, self.base, self.granted = track, held, 0, 0
        self.shift_reserved(granted)
        self.changed()

    def shift_reserved(self, granted: int) -> None:
        """Count standing positions from the one that was `granted` until now."""
        self.reserved = max(0, self.reserved - granted)
        self.reserved_ms = {k - granted: since for k, since in self.reserved_ms.items() if k > granted}

    def reserve_anew(self) -> None:
        """Reserve nothing beyond the grant."""
        self.reserved, self.reserved_ms = self.granted, {}

    def note_stop(self, before: "Record", now_ms: int) -> None:
        """End of a tick: note since when the truck stands with its code."""
        if self.stop_code != before.stop_code:
            self.stopped_ms = None if self.stop_code is None else now_ms

    def changed(self) -> None:
        """Clear caches after a change of what is held or of the grant."""
        self._edges = self._zones = self.entering = None

    @property
    def edges(self) -> frozenset[int]:
        """The edges of which the truck keeps cells."""
        if self._edges is None:
            cells = self.site.cells
            self._edges = frozenset(int(cells.edge[cell]) for cell in self.keeps if cell < len(cells))
        return self._edges

    @property
    def zones(self) -> tuple[int, ...]:
        """The nodes whose discs the truck keeps."""
        if self._zones is None:
            first, beyond = len(self.site.cells), self.site.token(0)
            self._zones = tuple([resource - first for resource in self.keeps if first <= resource < beyond])
        return self._zones

    @property
    def keeps(self) -> list[int]:
        """All that is closed to other trucks: what is held, and what is released but not acknowledged."""
        return [*self.held, *(() if self.retraction is None else self.retraction.resources)]

    @property
    def grant_um(self) -> int:
        """The end of the grant: the largest pivot position the truck may reach."""
        return 0 if self.track is None else self.track.stands[self.granted]

    @property
    def reserved_um(self) -> int:
        """The end of the reservation, which orders the queue; at least the end of the grant."""
        return 0 if self.track is None else self.track.stands[max(self.reserved, self.granted)]

    @property
    def asked_ms(self) -> int | None:
        """Since when a truck requests its next unit: since it reserved it, or had to wait for it."""
        since_ms = self.request_ms
        reserved = self.reserved_ms.get(self.granted + 1)
        if since_ms is None or reserved is None:
            return reserved if since_ms is None else since_ms
        return min(since_ms, reserved)

    @property
    def passed_um(self) -> int:
        """What a truck at the end of its grant has certainly passed: no more is ever released, whatever it reports."""
        return -self.short_um if self.track is None else self.track.bounds[self.granted]

    @property
    def act(self) -> Act | None:
        """The next act of the truck in a node on its route."""
        acts = () if self.track is None else self.track.acts
        return acts[self.acted] if self.acted < len(acts) else None

    @property
    def at_rest(self) -> bool:
        """Whether the truck stands at the end of its route and holds no more than that needs."""
        return self.track is None or self.granted == len(self.track.stands) - 1

    @property
    def stuck_at(self) -> str:
        """The last command of a stuck truck."""
        return "GO" if self.crawl_urad is None else "TURN"

    @property
    def rejoin_um(self) -> int | None:
        """Where on its route a truck beside its line is sent back to it."""
        rejoin = None if self.doubt is None else self.doubt.rejoin
        return None if rejoin is None else rejoin.target_um

    @property
    def failed(self) -> bool:
        """Whether the truck has failed: it keeps what it has and needs nothing."""
        return self.doubt is not None or self.stop_code in FAILURES

    @property
    def removed_ms(self) -> int | None:
        """When an operator removed the truck; None once it goes on again."""
        doubt = self.doubt if self.track is None else None
        return None if doubt is None or doubt.low_um < NOWHERE_UM else doubt.since_ms

    @property
    def is_out(self) -> bool:
        """Whether the truck was removed and has not reported since."""
        return self.removed_ms is not None and self.report_ms <= self.removed_ms

    @property
    def stands_since_ms(self) -> int | None:
        """Since when the truck stops, or else waits."""
        return self.waited_since_ms if self.stop_code is None else self.stopped_ms

    @property
    def waited_since_ms(self) -> int | None:
        """Since when the truck waits for a unit or for the admission of a route."""
        waiting, pending = self.waiting_since_ms, self.pending_since_ms
        if waiting is None or pending is None:
            return pending if waiting is None else waiting
        return min(waiting, pending)
