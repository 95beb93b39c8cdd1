"""Fleets in warehouses that always have tasks, and the cost of their ticks."""

import gc
from dataclasses import dataclass
from pathlib import Path
from time import process_time, thread_time
from typing import TYPE_CHECKING

from bench.measuring.progress import Watch
from pendula.fleet import compile_map
from pendula.fleet.compiler.generated_maps import built_warehouse
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.engine import FleetEngine
from pendula.fleet.runs import Recording, recording_disk
from pendula.fleet.scenarios.model import Robot, Scenario
from pendula.fleet.scenarios.running import Run
from pendula.fleet.tasks import TaskStream
from pendula.fleet.tick import TickInputs, TickOutputs
from pendula.fleet.tick.params import TrafficParams
from pendula.kernel.canonical import Json

if TYPE_CHECKING:
    from pendula.fleet.compiler.generated_maps import Sample

# The number of parks and of trucks, and about the number of nodes.
FLEETS = {20: 300, 100: 1_000, 200: 1_000}
# If half of the trucks did not wait, one tick replaces the median.
PERIOD_MS = 100


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU milliseconds of the ticks of a run, in order; waits of trucks; the number of finished tasks."""

    ticks: list[float]
    whole_s: float
    simulated_s: float
    tasks: int
    longest_wait_s: float
    longest_over_median: float

    def percentile(self, share: int) -> float:
        ordered = sorted(self.ticks)
        return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


def endless(sample: "Sample", name: str, duration_ms: int, params: TrafficParams | None = None) -> Scenario:
    """The fleet of a sample map with streams that never end."""
    streams = tuple(
        TaskStream(stream.stream_id, stream.pick_node_ids, stream.drop_node_ids) for stream in sample.fleet.streams
    )
    robots = tuple(Robot(truck.robot_id, truck.park_node_id, truck.profile_id) for truck in sample.fleet.trucks)
    return Scenario(
        name=name,
        title=name,
        source=sample.source,
        profiles=(FL_STD,),
        robots=robots,
        streams=streams,
        duration_ms=duration_ms,
        traffic=params or TrafficParams(),
    )


@dataclass(frozen=True, slots=True)
class JournalCosts:
    """CPU milliseconds of ticks: of the decisions alone, and of everything until commands may be sent, with events,
    digests and writes. `written` are bytes of the journal."""

    bare: list[float]
    whole: list[float]
    written: int
    truck_seconds: int

    def ratio(self, share: int) -> float:
        return percentile(self.whole, share) / percentile(self.bare, share)

    @property
    def mean_ratio(self) -> float:
        return sum(self.whole) / sum(self.bare)


def percentile(values: list[float], share: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


def drive_recorded(trucks: int, duration_ms: int, directory: Path, watch: Watch) -> JournalCosts:
    """A run through a journal on a real disk: the cost of a tick alone and with the journal, in the same run."""
    sample = built_warehouse(trucks, FLEETS[trucks])
    opened: list[Recording] = []

    def make_applier(engine: FleetEngine, config: Json) -> Recording:
        opened.append(Recording.begin(engine, config, recording_disk(directory)))
        return opened[0]

    scenario = endless(sample, f"{trucks} trucks", duration_ms)
    run = Run(scenario, compile_map(sample.source, [FL_STD]), make_applier)
    applied, emitted, whole = Stopwatch(), Stopwatch(), Stopwatch()
    # The whole engine except its events. Not the decisions alone: the records of the previous tick are freed after the
    # events, and would be counted as costs of the journal.
    applied.around(run.engine, "apply")
    emitted.around(run.engine, "_events")
    whole.around(opened[0], "apply")
    gc.collect()
    gc.freeze()
    for _ in range(duration_ms // scenario.traffic.tick_period_ms):
        run.step()
        for stopwatch in (applied, emitted, whole):
            stopwatch.lap()
        watch(run.now_ms / duration_ms)
    gc.unfreeze()
    opened[0].close()
    written = sum(path.stat().st_size for path in directory.glob("*.journal"))
    bare = [all_of_it - emit_ms for all_of_it, emit_ms in zip(applied.laps, emitted.laps, strict=True)]
    return JournalCosts(bare, whole.laps, written, trucks * duration_ms // 1000)


class Stopwatch:
    """CPU milliseconds of this thread within some calls, lap by lap."""

    def __init__(self) -> None:
        self.laps: list[float] = []
        self._spent = 0.0

    def around(self, owner: object, name: str) -> None:
        """Count the calls of a method of this object."""
        called = getattr(owner, name)

        def timed(*arguments: object, **named: object) -> object:
            begin = thread_time()
            try:
                return called(*arguments, **named)
            finally:
                self._spent += thread_time() - begin

        setattr(owner, name, timed)

    def lap(self) -> None:
        self.laps.append(self._spent * 1000)
        self._spent = 0.0


def drive(trucks: int, duration_ms: int, watch: Watch) -> Costs:
    """A run in which every tick is measured, the trucks and the judge are not. Objects that exist before it are
    frozen for the garbage collector, as in any long-running program: it would walk the whole map every time."""
    sample = built_warehouse(trucks, FLEETS[trucks])
    run = Run(endless(sample, f"{trucks} trucks", duration_ms), compile_map(sample.source, [FL_STD]))
    ticks: list[float] = []
    tick = run.traffic.tick

    def measured(inputs: TickInputs) -> TickOutputs:
        begin = process_time()
        outputs = tick(inputs)
        ticks.append((process_time() - begin) * 1000)
        return outputs

    run.traffic.tick = measured  # type: ignore[method-assign]
    gc.collect()
    gc.freeze()
    begin = process_time()
    result = run.run(duration_ms, lambda now_ms: watch(now_ms / duration_ms))
    whole = process_time() - begin
    gc.unfreeze()
    metrics = result.form["metrics"]
    assert not any(invariant["violations"] for invariant in result.form["invariants"].values()), result.form[
        "violations"
    ]
    return Costs(
        ticks=ticks,
        whole_s=whole,
        simulated_s=duration_ms / 1000,
        tasks=result.form["tasks"]["done"],
        longest_wait_s=metrics["longestWaitMs"] / 1000,
        longest_over_median=metrics["longestWaitMs"] / max(PERIOD_MS, metrics["medianLongestWaitMs"]),
    )
