"""Fleets that always have tasks, map by map and under one of several rules: tasks done, and waits of trucks.

All rules drive the same maps, tasks and options, and the judge watches all but the trucks without interaction. Under a
rule that lets trucks jam, the figure counts the tasks before the jam.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
from msgspec.structs import replace

from bench.fleet_throughput_tours import TourPlayer, TourRecorder
from pendula.fleet import compile_map
from pendula.fleet.checker import Judge
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.generated_maps import Sample, built_warehouse, spur_grid
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.model import Fleet, Stream, Truck
from pendula.fleet.scenarios.model import Robot, Scenario
from pendula.fleet.scenarios.running import Run
from pendula.fleet.tasks import DispatchParams, TaskStream
from pendula.fleet.tick import Traffic, phases, track, traffic
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.traffic.grants import Rule
from pendula.fleet.traffic.lock_state import Exclusion


class Kind(StrEnum):
    """The rule by which trucks share the floor. FREE: none; they drive through each other."""

    OURS = "witness"
    BANKER = "a banker's check to rest"
    ACYCLIC = "the acyclic test alone"
    WHOLE_PATHS = "reserving whole paths"
    FREE = "no interaction"
    SHORTEST = "no interaction, shortest ways"


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of a run: tasks an hour, the longest wait of any truck, and that divided by the median of all
    trucks."""

    tasks_an_hour: float
    longest_s: float
    longest_over_median: float


def _hall(trucks: int) -> Sample:
    return Sample(samples.reference_hall(), samples.reference_fleet(trucks))


def _hall_one_stream() -> Sample:
    fleet = samples.reference_fleet(3)
    return Sample(samples.reference_hall(), Fleet(fleet.trucks, fleet.streams[:1]))


def _two_way_warehouse(trucks: int) -> Sample:
    """Single-lane aisles driven both ways: from the stations above to those at the side, and back."""
    parks = [*(f"P{number:03}" for number in range(13)), *(f"W{number:03}" for number in range(7))]
    robots = tuple(Truck(f"R{number:03}", "FL-STD", park) for number, park in enumerate(parks[:trucks], 1))
    streams = tuple(Stream(f"S{k}", (f"T{2 * k:03}",), (f"E{k:03}",)) for k in range(6))
    back = tuple(Stream(f"B{k}", (f"E{k:03}",), (f"T{2 * k + 1:03}",)) for k in range(6))
    return Sample(samples.warehouse(), Fleet(robots, (*streams, *back)))


MAPS: dict[str, Callable[[], Sample]] = {
    "reference_hall, opposed streams, 3 trucks": lambda: _hall(3),
    "reference_hall, opposed streams, 4 trucks": lambda: _hall(4),
    "reference_hall, one stream, 3 trucks": _hall_one_stream,
    "12 m grid with spurs, 20 trucks": spur_grid,
    "one-way warehouse, 20 trucks": lambda: built_warehouse(20, 300),
    "one-way warehouse, 30 trucks": lambda: built_warehouse(30, 300),
    "two-way warehouse, 10 trucks": lambda: _two_way_warehouse(10),
    "two-way warehouse, 20 trucks": lambda: _two_way_warehouse(20),
    "one-way warehouse, 100 trucks": lambda: built_warehouse(100, 1_000),
    "one-way warehouse, 200 trucks": lambda: built_warehouse(200, 1_000),
}


# Tasks may overtake each other, under every rule.
OVERTAKE_MS = 600_000


def endless(sample: Sample, name: str, duration_ms: int, seed: int) -> Scenario:
    """Streams of equal size that never end: together a few tasks more than there are trucks."""
    trucks, streams = sample.fleet.trucks, sample.fleet.streams
    most = 1 + -(-len(trucks) // len(streams))
    return Scenario(
        name=name,
        title=name,
        source=sample.source,
        profiles=(FL_STD,),
        robots=tuple(Robot(truck.robot_id, truck.park_node_id, truck.profile_id) for truck in trucks),
        streams=tuple(
            TaskStream(stream.stream_id, stream.pick_node_ids, stream.drop_node_ids, max_concurrent=most)
            for stream in streams
        ),
        duration_ms=duration_ms,
        traffic=TrafficParams(),
        dispatch=DispatchParams(overtake_ms=OVERTAKE_MS),
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class Errand:
    """One run: a map by its name, a rule, a duration and a seed; `alone`: its tours are driven again without
    interaction."""

    name: str
    kind: Kind
    duration_ms: int
    seed: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Beside:
    """The same tasks by the same trucks in the same order without interaction: their share of the time, on the
    ways the fleet drove and on the shortest."""

    free: float
    shortest: float


_SITES: dict[str, tuple[Sample, CompiledMap]] = {}


def placed(name: str) -> tuple[Sample, CompiledMap]:
    """A map and its fleet; each is compiled once in a process."""
    if name not in _SITES:
        sample = MAPS[name]()
        _SITES[name] = sample, compile_map(sample.source, [FL_STD])
    return _SITES[name]


def drive(errand: Errand) -> tuple[Figures, Beside | None]:
    """A run under a rule, and the time its trucks would have needed alone, if requested."""
    sample, site = placed(errand.name)
    scenario = endless(sample, errand.name, errand.duration_ms, errand.seed)
    if errand.kind in _RULES:
        # These rules keep no witness that could be replayed.
        scenario = replace(scenario, traffic=TrafficParams(refuge=False))
    roads: list[TourRecorder] = []
    with _ruled(errand.kind):
        run = Run(scenario, site, lambda engine, _: _kept(roads, TourRecorder(engine)))
        form = run.run(errand.duration_ms).form
    assert not any(invariant["violations"] for invariant in form["invariants"].values()), form["violations"]
    figures = _figures(form, errand.duration_ms)
    if not errand.alone:
        return figures, None
    return figures, Beside(_share(scenario, site, roads[0], Kind.FREE), _share(scenario, site, roads[0], Kind.SHORTEST))


def _share(scenario: Scenario, site: CompiledMap, ours: TourRecorder, kind: Kind) -> float:
    """The share of the time that the same tours take without interaction. The assignment of tasks stays: a fleet that
    waits nowhere would take other tasks, and be no yardstick for these."""
    tours = ours.tours()
    if not tours:
        return 1.0
    streams = tuple(replace(stream, last_ms=-1) for stream in scenario.streams)
    alone = replace(scenario, streams=streams)
    if kind is Kind.SHORTEST:
        alone = replace(alone, dispatch=replace(alone.dispatch, opposition_milli=0, one_way_milli=0))
    roads: list[TourPlayer] = []
    with _ruled(kind):
        run = Run(alone, site, lambda engine, _: _kept(roads, TourPlayer(engine, tours)))
        while run.now_ms < scenario.duration_ms and roads[0].is_busy:
            run.step()
    # A truck that does not finish by the end needed all of the time.
    needed = sum(roads[0].ended.get(robot, scenario.duration_ms) for robot in tours)
    return needed / sum(ours.ended[robot] for robot in tours)


R = TypeVar("R")


def _kept(roads: list[R], road: R) -> R:
    roads.append(road)
    return road


def _figures(form: dict[str, Any], duration_ms: int) -> Figures:
    metrics = form["metrics"]
    longest, middle = metrics["longestWaitMs"], metrics["medianLongestWaitMs"]
    return Figures(form["tasks"]["done"] * 3_600_000 / duration_ms, longest / 1000, longest / max(PERIOD_MS, middle))


# If half of the trucks did not wait, one tick replaces the median.
PERIOD_MS = 100
_RULES = {Kind.BANKER: Rule.BANKER, Kind.ACYCLIC: Rule.ACYCLIC}


@contextmanager
def _ruled(kind: Kind) -> Iterator[None]:
    """Make traffic follow another rule for a while."""
    match kind:
        case Kind.OURS:
            yield
        case Kind.BANKER | Kind.ACYCLIC:
            with patch.object(Traffic, "rule", _RULES[kind]):
                yield
        case Kind.WHOLE_PATHS:
            with patch.object(track, "_stands", _only_stops(track._stands)):
                yield
        case Kind.FREE | Kind.SHORTEST:
            unchecked = patch.object(phases, "broken", lambda *_: iter(()))
            with patch.object(traffic, "Exclusion", _Nothing), unchecked, patch.object(Judge, "look", lambda *_: ()):
                yield


class _Nothing(Exclusion):
    """A relation in which nothing excludes anything."""

    @classmethod
    def of_site(cls, site: CompiledMap) -> "_Nothing":
        count = site.token(len(site.sections))
        return cls(np.zeros(count + 1, np.int64), np.zeros(0, np.int64), np.ones(count, np.int64))


def _only_stops(stands: Callable[..., tuple[tuple[int, ...], list[bool]]]) -> Callable[..., Any]:
    """Standing positions only where a truck has arrived: a unit is the whole way there."""

    def found(ground: Any, whole: Any, acts: Any, uses: Any, granted_um: int) -> tuple[tuple[int, ...], list[bool]]:
        at, marks = stands(ground, whole, acts, uses, granted_um)
        stops = {act.s_um for act in acts if act.stop}
        kept = [k for k in range(len(at)) if k == 0 or at[k] in stops]
        return tuple(at[k] for k in kept), [marks[k] for k in kept]

    return found
