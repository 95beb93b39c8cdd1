"""Random runs: a LIVE map, a fleet, tasks, noise and trucks that stop by themselves, all drawn from one seed; and the
smallest run that still fails, as a scenario file."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler.generated_maps import Sample, live_map
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.scenarios import Run, Scenario
from pendula.fleet.scenarios.model import Robot, ScenarioEvent
from pendula.fleet.simulator import FaultKind, WorldSettings
from pendula.fleet.tasks import TaskOrder
from pendula.fleet.tick import NodeLockPolicy, TrafficParams

# The number of runs that share a map: compiling one takes as long as some seconds of traffic.
RUNS_PER_MAP = 5
SHORTEST_MS = 1_000


@dataclass(frozen=True)
class Case:
    """The parameters from which a run is drawn; shrinking reduces them."""

    map_seed: int
    parks: int
    trucks: tuple[int, ...]
    tasks: tuple[TaskOrder, ...]
    stands: tuple[ScenarioEvent, ...]
    duration_ms: int
    seed: int
    policy: NodeLockPolicy = NodeLockPolicy.TURNING
    noisy: bool = True
    tick_ms: int = 100

    @property
    def robots(self) -> tuple[Robot, ...]:
        every = sample(self.map_seed, self.parks).fleet.trucks
        chosen = [every[number] for number in self.trucks]
        return tuple(Robot(truck.robot_id, truck.park_node_id, truck.profile_id) for truck in chosen)

    def scenario(self) -> Scenario:
        names = {robot.robot_id for robot in self.robots}
        # Coarse steps are cheap, and the judge checks between them.
        noise = WorldSettings(
            step_ms=100,
            localization_permille=900,
            tracking_permille=900,
            heading_permille=900,
            telemetry_loss_ppm=10_000,
            command_loss_ppm=10_000,
            operation_permille=200,
        )
        return Scenario(
            name=f"random-{self.seed}",
            title="",
            source=sample(self.map_seed, self.parks).source,
            profiles=(FL_STD,),
            robots=self.robots,
            tasks=self.tasks,
            events=tuple(event for event in self.stands if event.robot_id in names),
            duration_ms=self.duration_ms,
            seed=self.seed,
            traffic=TrafficParams(node_lock_policy=self.policy, tick_period_ms=self.tick_ms),
            world=noise if self.noisy else WorldSettings(step_ms=100),
        )

    def file(self) -> str:
        """The run as a scenario file."""
        scenario = self.scenario()
        world = scenario.world
        members = {
            "contractVersion": "1.0.0",
            "name": scenario.name,
            "sample": {"name": "live-map", "seed": self.map_seed, "parks": self.parks},
            "params": {"nodeLockPolicy": self.policy.value, "tickPeriodMs": self.tick_ms},
            "robots": [{"robotId": robot.robot_id, "parkNodeId": robot.park_node_id} for robot in scenario.robots],
            "streams": [],
            "tasks": [_task_form(task) for task in scenario.tasks],
            "events": [
                {"atMs": event.at_ms, "type": event.type.value, "robotId": event.robot_id, "forMs": event.for_ms}
                for event in scenario.events
                # A file contains no events after its end.
                if event.at_ms <= scenario.duration_ms
            ],
            "world": {
                "stepMs": world.step_ms,
                "localizationShare": world.localization_permille / 1000,
                "trackingShare": world.tracking_permille / 1000,
                "headingShare": world.heading_permille / 1000,
                "operationShare": world.operation_permille / 1000,
                "telemetryLoss": world.telemetry_loss_ppm / 1_000_000,
                "commandLoss": world.command_loss_ppm / 1_000_000,
            },
            "durationMs": scenario.duration_ms,
            "seed": scenario.seed,
        }
        return "".join(f"{name}: {json.dumps(value)}\n" for name, value in members.items())


def _task_form(order: TaskOrder) -> dict[str, object]:
    return {
        "taskId": order.task_id,
        "pickNodeId": order.pick_node_id,
        "dropNodeId": order.drop_node_id,
        "atMs": order.at_ms,
        "pickDurationMs": order.pick_ms,
        "dropDurationMs": order.drop_ms,
    }


@cache
def sample(map_seed: int, parks: int) -> Sample:
    return live_map(map_seed, parks)


@cache
def site(map_seed: int, parks: int) -> CompiledMap:
    return compile_map(sample(map_seed, parks).source, (FL_STD,))


def drawn(seed: int, most_trucks: int, duration_ms: int) -> Case:
    """A run for every seed. Its map is shared with neighbouring seeds, its trucks and tasks are not."""
    map_seed = seed // RUNS_PER_MAP
    parks = 2 + map_seed % (most_trucks - 1)
    random = Random(seed)
    every = sample(map_seed, parks)
    trucks = tuple(sorted(random.sample(range(parks), random.randint(min(2, parks), parks))))
    stations = sorted({node for stream in every.fleet.streams for node in stream.pick_node_ids})
    per_truck = 1 + duration_ms // 60_000
    tasks = tuple(
        _drawn_task(random, f"T{number:03}", stations, duration_ms) for number in range(len(trucks) * per_truck)
    )
    name = every.fleet.trucks[random.choice(trucks)].robot_id
    stand = ScenarioEvent(random.randrange(5_000, 40_000), FaultKind.STAND, name, random.randrange(1_000, 9_000))
    policy = NodeLockPolicy.EVERY if seed % 8 == 0 else NodeLockPolicy.TURNING
    # The longest allowed period is the hardest on trucks, and costs half as much.
    tick_ms = 100 if seed % 4 == 0 else 200
    return Case(map_seed, parks, trucks, tasks, (stand,), duration_ms, seed, policy, tick_ms=tick_ms)


def _drawn_task(random: Random, name: str, stations: list[str], duration_ms: int) -> TaskOrder:
    pick, drop = random.sample(stations, 2)
    # Most exist from the start, so that trucks meet.
    at_ms = random.choice((0, 0, random.randrange(max(duration_ms // 2, 1))))
    pick_ms, drop_ms = random.randrange(500, 4_000), random.randrange(500, 3_000)
    return TaskOrder(name, pick, drop, at_ms=at_ms, pick_ms=pick_ms, drop_ms=drop_ms)


def failures(case: Case, watch: Callable[[Run], Iterator[str]] | None = None) -> tuple[str, ...]:
    """The faults of a run: invariants broken according to the judge, to traffic or to a watcher of the tests."""
    run = Run(case.scenario(), site(case.map_seed, case.parks))
    seen = [] if watch is None else list(watch(run))
    unmet = run.run().unmet
    incidents = [f"{breach.invariant} at {breach.at_ms} ms: {breach.sentence}" for breach in run.measures.breaches[:3]]
    alarms = [code for code in run.measures.alerts if code.startswith("DEADLOCK")]
    return (*unmet, *incidents, *alarms, *seen)


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case that fails: shorter, with fewer trucks, tasks and faults, while anything can be removed."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(case):
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """The greatest steps first."""
    if case.duration_ms > SHORTEST_MS:
        yield replace(case, duration_ms=max(case.duration_ms // 2, SHORTEST_MS))
    for gone in case.trucks if len(case.trucks) > 1 else ():
        yield replace(case, trucks=tuple(truck for truck in case.trucks if truck != gone))
    half = len(case.tasks) // 2
    if half > 1:
        yield replace(case, tasks=case.tasks[:half])
        yield replace(case, tasks=case.tasks[half:])
    for number in range(len(case.tasks)):
        yield replace(case, tasks=(*case.tasks[:number], *case.tasks[number + 1 :]))
    if case.stands:
        yield replace(case, stands=())
    if case.noisy:
        yield replace(case, noisy=False)
    if case.duration_ms > SHORTEST_MS:
        yield replace(case, duration_ms=case.duration_ms * 9 // 10 // 100 * 100)


def report(case: Case, watch: Callable[[Run], Iterator[str]] | None = None) -> str:
    """Empty for a run without faults; otherwise the faults, and the smallest run that fails, as a file."""
    found = failures(case, watch)
    if not found:
        return ""
    smallest = shrunk(case, lambda smaller: bool(failures(smaller, watch)))
    return "\n".join((*found, f"the smallest run that fails: {failures(smallest, watch)}", smallest.file()))
