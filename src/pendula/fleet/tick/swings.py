"""How much trucks oscillate (FLT-OSC-10): the worst case in any window of time.

Moving up in a queue is no oscillation: changes between GO and HOLD count together only if the truck has driven less
than the spacing of two trucks between them. A hold point or target that moves on with its truck is none either; only
moving back counts. Counting restarts for a truck that is stopped for safety, or that stands at the start of its next
trip: it stopped to load, not for others.

A free lane that turns is no oscillation: FLT-OSC-9 gives it to the other direction at once unless a truck of the former
direction is within reach. It flips if a truck waits to drive it one way and another one drives it the other way.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from pendula.fleet.contracts import CommandMode
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.model import MoveStyle
from pendula.fleet.tick.records import Record

WINDOW_MS = 10_000
LONG_WINDOW_MS = 60_000
# What is counted in a short window, and what in a long one.
_SHORT = ("goHoldChanges", "holdBackUm", "targetBackUm")
# A truck that drove no farther in a tick stands.
_STILL_UM = 1_000
NAMES = (*_SHORT, "directionFlips", "replans")


@dataclass(slots=True)
class _Seen:
    """A truck as of the last tick; nothing is compared with a stopped truck."""

    mode: CommandMode | None = None
    route: tuple[str, int] | None = None
    # The lane that a waiting truck drives next, and its direction.
    wants: tuple[int, bool] | None = None
    hold_um: int = 0
    target_um: int = 0
    driven_um: int = 0
    # How far it drove in the last tick.
    step_um: int = 0
    at: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Swings:
    """`worst`: by name the most in any window, the truck or lane, and when."""

    site: CompiledMap
    worst: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    _windows: dict[tuple[str, str], deque[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(deque))
    _seen: dict[int, _Seen] = field(default_factory=lambda: defaultdict(_Seen))
    _lanes: frozenset[int] = frozenset()
    # The direction of every lane, and the truck that drove it last.
    _directions: dict[int, tuple[bool, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lanes = through_lanes(self.site)

    def most(self, name: str) -> int:
        return self.worst.get(name, (0, "", 0))[0]

    @property
    def form(self) -> dict[str, int]:
        return {name: self.most(name) for name in NAMES}

    def note(self, record: Record, mode: CommandMode, now_ms: int) -> None:
        """Note the mode of a truck in a tick."""
        if record.stop_code is not None:
            self._seen.pop(record.number, None)
            return
        seen = self._seen[record.number]
        route = None if record.track is None else (record.track.plan.route_id, record.track.plan.revision)
        starts = route is not None and (seen.route is None or route[0] != seen.route[0])
        if starts and seen.step_um <= _STILL_UM:
            seen.mode = None
        if mode is not seen.mode:
            self._mode(seen, record, mode, now_ms)
        seen.wants = _next_lane(record)
        if route is not None and route == seen.route:
            if seen.hold_um > record.hold_um:
                self._count("holdBackUm", record.robot_id, seen.hold_um - record.hold_um, now_ms)
            if seen.target_um > record.target_um:
                self._count("targetBackUm", record.robot_id, seen.target_um - record.target_um, now_ms)
        seen.route, seen.hold_um, seen.target_um = route, record.hold_um, record.target_um

    def note_routes(self, accepted: Sequence[RoutePlan], now_ms: int) -> None:
        for plan in accepted:
            if plan.revision > 1:
                self._count("replans", plan.robot_id, 1, now_ms)

    def note_places(self, places: Sequence[tuple[int, int]], now_ms: int) -> None:
        """Note the positions of trucks: how far they have driven, and the directions of through lanes. The same truck
        may come back out of a lane."""
        network = self.site.network
        for number, (edge, on) in enumerate(places):
            seen = self._seen[number]
            seen.step_um = abs(on - seen.at[1]) if edge == seen.at[0] else on
            seen.driven_um += seen.step_um
            seen.at = edge, on
            group = network.group_of[edge]
            if group in self._lanes and 0 < on < network.edges[edge].path.length_um:
                forward = network.edges[edge].forward_on_axis
                before, last = self._directions.get(group, (forward, number))
                if before is not forward and last != number and self._is_wanted(group, before, number):
                    self._count("directionFlips", network.groups[group].key, 1, now_ms)
                self._directions[group] = forward, number

    def _is_wanted(self, group: int, forward: bool, but: int) -> bool:
        """Whether a truck other than `but` waits to drive a lane in a direction."""
        return any(seen.wants == (group, forward) for number, seen in self._seen.items() if number != but)

    def _mode(self, seen: _Seen, record: Record, mode: CommandMode, now_ms: int) -> None:
        act = record.act
        # A truck that stops to turn or to work does not hold for another one.
        held = record.waiting is not None and (act is None or record.hold_um < act.s_um)
        if not (mode is CommandMode.GO or (mode is CommandMode.HOLD and held)):
            return
        if seen.mode is not None:
            self._count("goHoldChanges", record.robot_id, 1, now_ms, seen.driven_um)
        seen.mode = mode

    def _count(self, name: str, of: str, much: int, now_ms: int, driven_um: int = 0) -> None:
        window = self._windows[name, of]
        window.append((now_ms, much, driven_um))
        since = now_ms - (WINDOW_MS if name in _SHORT else LONG_WINDOW_MS)
        spacing = self.site.envelope.spacing_um(MoveStyle.FORWARD, MoveStyle.FORWARD)
        while window[0][0] <= since or window[0][2] <= driven_um - spacing:
            window.popleft()
        total = sum(entry[1] for entry in window)
        if total > self.most(name):
            self.worst[name] = total, of, now_ms


def _next_lane(record: Record) -> tuple[int, bool] | None:
    """The lane behind the present one of a waiting truck, and its direction; None for a truck that does not wait."""
    if record.waiting is None or record.track is None:
        return None
    network = record.site.network
    edge = next((segment.edge for segment in record.track.segments if segment.route_s0_um >= record.at_um), None)
    return None if edge is None else (network.group_of[edge], network.edges[edge].forward_on_axis)


def through_lanes(site: CompiledMap) -> frozenset[int]:
    """The two-way groups that are no dead ends: into a dead end every truck goes to come back."""
    network = site.network

    def is_through(edges: Sequence[int]) -> bool:
        first = network.edges[edges[0]]
        both = len({network.edges[edge].forward_on_axis for edge in edges}) > 1
        return both and network.degree(first.start) > 1 and network.degree(first.end) > 1

    return frozenset(number for number, group in enumerate(network.groups) if is_through(group.edges))
