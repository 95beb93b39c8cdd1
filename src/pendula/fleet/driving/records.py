"""What traffic knows of each truck between two ticks: its way, how far it came, what it holds, what it waits for.

`held` gives for every resource the position at which it is passed, on the track the truck is on. A record is copied
before a tick and the copies take its place when the tick has succeeded, so a failed tick changes nothing.
"""

from dataclasses import dataclass, field

from msgspec import Struct

from pendula.fleet.contracts.traffic import Phase, PriorityClass, RobotHealth, RobotStatus
from pendula.fleet.driving.doubts import NOWHERE_UM, Doubt
from pendula.fleet.driving.stops import FAILURES
from pendula.fleet.driving.track import Track
from pendula.fleet.driving.uses import Act
from pendula.fleet.routing.progress import Progress
from pendula.fleet.routing.route_plan import Pose, RoutePlan
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.profiles import RobotProfile


class Waiting(Struct, frozen=True):
    """Why a truck got no further unit: a code of FLT-OBS-8, the resource of its own that is not to be had, the truck
    in its way and what that one holds; for WAIT_SAFE_STATE the cycle, which is empty where the truck is cut off."""

    code: str
    resource: int | None
    by: int | None
    theirs: int | None
    cycle: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Retraction:
    """What a truck gives back once it has acknowledged the command that moved its stop line before it."""

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
    # Where the truck stands while it has no route.
    node: int
    # How far ahead of itself it asks for units.
    asked_um: int = 0
    track: Track | None = None
    # The position of the locks that is position 0 of the track.
    base: int = 0
    # How many acts of the track are done.
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
    # Whether its place is trusted, what stops it until somebody clears it, who may be where it has a right to be.
    doubt: Doubt | None = None
    latched: str | None = None
    foreign: int | None = None
    # Whether the two stand too close to each other since the start; looked up anew in every tick.
    too_close: bool = False
    # Whether people hold it, said that it is not there, and whether it has to be heard before anybody moves.
    paused: bool = False
    absent: bool = False
    unheard: bool = True
    # Since when a truck that was never heard is waited for, and whether an alert has said so.
    awaited_ms: int | None = None
    missed: bool = False
    # Reports in a row that could not be taken, when it last acknowledged something new, and since when it is here.
    bad_reports: int = 0
    ack_ms: int | None = None
    crawl_um: int = 0
    # How it looked then, where it was to turn; kept when it is stuck, which says at what.
    crawl_urad: int | None = None
    crawl_ms: int | None = None
    # Since when it drives on though it has to stop, and whether that was told.
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
    # The trucks that stood against the route that waits, and how they were then.
    refused_cycle: tuple[int, ...] = ()
    refused_versions: tuple[int, ...] = ()
    # When a route may be tried again, when it is though nothing has changed, and when a refused unit is.
    retry_ms: int = 0
    sleep_ms: int = 0
    again_ms: int = 0
    waiting: Waiting | None = None
    waiting_since_ms: int | None = None
    request_ms: int | None = None
    last_grant_ms: int = 0
    # When the truck was last sent another way because trucks waited for each other.
    rerouted_ms: int | None = None
    # Whom it waits for, since when, and how far that was told.
    blocked_by: int | None = None
    blocked_ms: int = 0
    escalated: int = 0
    retraction: Retraction | None = None
    # The last standing position that is reserved, and since when each one beyond the grant is.
    reserved: int = 0
    reserved_ms: dict[int, int] = field(default_factory=dict)
    priority: PriorityClass = PriorityClass.IDLE
    rank: int = 0

    # What the first cell of a waiting truck's next unit excludes, and what the whole unit does; made when needed, kept
    # while the truck waits.
    ripe: frozenset[int] | None = None
    ripe_whole: frozenset[int] | None = None
    # What follows from what is held and from the next unit, kept as long as both stay.
    _edges: frozenset[int] | None = None
    _zones: tuple[int, ...] | None = None
    entering: dict[int, bool] | None = None

    def copied(self) -> "Record":
        twin = object.__new__(Record)
        # All members at once, for which they are no slots: every truck is copied in every tick. A whole dictionary is
        # copied in one piece, and one that is updated entry by entry.
        twin.__dict__ = self.__dict__.copy()
        twin.held = dict(self.held)
        twin.reserved_ms = dict(self.reserved_ms)
        return twin

    def placed(self, track: Track, held: dict[int, int], at_um: int) -> None:
        """Puts the truck at the beginning of a way, where it stands; nothing of its old way counts any more."""
        self.track, self.held, self.base, self.granted, self.acted = track, dict(held), 0, 0, 0
        self.at_um = self.hold_um = self.farthest_um = self.target_um = at_um
        self.bound_um = at_um - self.short_um
        self.doubt = self.retraction = self.progress = None
        self.pending = self.pending_since_ms = None
        self.waiting = self.waiting_since_ms = self.request_ms = None
        self.reserve_anew()
        self.changed()

    def set_aside(self) -> None:
        """The truck is not in the hall any more, and has no way."""
        self.track = self.pending = self.pending_since_ms = self.progress = None
        self.base = self.granted = self.acted = 0
        self.at_um = self.hold_um = self.farthest_um = self.target_um = 0
        self.waiting = self.waiting_since_ms = self.request_ms = None
        self.refused_cycle = self.refused_versions = ()
        self.absent = True
        self.reserve_anew()
        self.changed()

    def go_on_with(self, track: Track, held: dict[int, int]) -> None:
        """The same way from the end of the grant on, with more held on it."""
        granted = self.granted
        self.track, self.held, self.base, self.granted = track, held, 0, 0
        self.shift_reserved(granted)
        self.changed()

    def shift_reserved(self, granted: int) -> None:
        """Standing positions are counted from one that was `granted` until now."""
        self.reserved = max(0, self.reserved - granted)
        self.reserved_ms = {k - granted: since for k, since in self.reserved_ms.items() if k > granted}

    def reserve_anew(self) -> None:
        """Nothing is reserved beyond the grant any more."""
        self.reserved, self.reserved_ms = self.granted, {}

    def note_stop(self, before: "Record", now_ms: int) -> None:
        """A tick is over: since when the truck stands with the code that it has after it."""
        if self.stop_code != before.stop_code:
            self.stopped_ms = None if self.stop_code is None else now_ms

    def changed(self) -> None:
        """What is held, or the end of the grant, is not what it was."""
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
        """The nodes whose discs the truck keeps to itself."""
        if self._zones is None:
            first, beyond = len(self.site.cells), self.site.token(0)
            self._zones = tuple([one - first for one in self.keeps if first <= one < beyond])
        return self._zones

    @property
    def keeps(self) -> list[int]:
        """All that nobody else may have: what is held, and what is given back but not acknowledged."""
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
        """Since when a truck asks for its next unit: since it reserved it, or had to wait for it."""
        asked = self.request_ms
        reserved = self.reserved_ms.get(self.granted + 1)
        if asked is None or reserved is None:
            return reserved if asked is None else asked
        return min(asked, reserved)

    @property
    def passed_um(self) -> int:
        """What a truck at the end of its grant has passed for certain: more is never released, whatever is reported."""
        return -self.short_um if self.track is None else self.track.bounds[self.granted]

    @property
    def act(self) -> Act | None:
        """The next thing the truck has to do in a node on its way."""
        acts = () if self.track is None else self.track.acts
        return acts[self.acted] if self.acted < len(acts) else None

    @property
    def at_rest(self) -> bool:
        """Whether the truck stands at the end of its way and holds no more than that takes."""
        return self.track is None or self.granted == len(self.track.stands) - 1

    @property
    def stuck_at(self) -> str:
        """What a stuck truck was told to do."""
        return "GO" if self.crawl_urad is None else "TURN"

    @property
    def rejoin_um(self) -> int | None:
        """Where on its way a truck that is beside its line is sent back to it."""
        rejoin = None if self.doubt is None else self.doubt.rejoin
        return None if rejoin is None else rejoin.target_um

    @property
    def failed(self) -> bool:
        """Whether nobody can count on the truck: it keeps what it has and needs nothing."""
        return self.doubt is not None or self.stop_code in FAILURES

    @property
    def removed_ms(self) -> int | None:
        """When a person said that the truck was taken out of the hall; None once it goes on from somewhere again."""
        doubt = self.doubt if self.track is None else None
        return None if doubt is None or doubt.low_um < NOWHERE_UM else doubt.since_ms

    @property
    def is_out(self) -> bool:
        """Whether the truck was taken out of the hall, and nothing was heard of it since."""
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
