"""FLT-TEST-24: ten trucks that are never out of tasks, bad radio, and one that jumps every ten minutes."""

from collections.abc import Callable
from random import Random

from pendula.fleet import compile_map
from pendula.fleet.engine import FleetEngine
from pendula.fleet.samples import FL_STD
from pendula.fleet.samples.live_maps import spur_grid
from pendula.fleet.scenarios import Run, Scenario
from pendula.fleet.scenarios.model import Robot
from pendula.fleet.scenarios.running import Road
from pendula.fleet.simulator.faults import Fault, FaultKind
from pendula.fleet.simulator.settings import WorldSettings
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tasks.model import TaskStream
from pendula.kernel.canonical import Json

TRUCKS = 10
GRID = (5, 4)
JUMP_EVERY_MS = 600_000
# So long after the last task is made everything has to have come to its end.
AFTERWARDS_MS = 1_200_000
RADIO = WorldSettings(
    telemetry_latency_ms=(0, 400), telemetry_loss_ppm=10_000, command_latency_ms=(0, 400), command_loss_ppm=10_000
)


def chaos(duration_ms: int, seed: int, most: int = 2) -> tuple[Scenario, CompiledMap]:
    """Streams that offer the next task as soon as somebody is free, for so long; each so many at most at a time."""
    sample = spur_grid(*GRID)
    streams = tuple(
        TaskStream(
            one.stream_id, one.pick_node_ids, one.drop_node_ids, 3_000, 2_000, max_concurrent=most, last_ms=duration_ms
        )
        for one in sample.fleet.streams
    )
    robots = tuple(
        Robot(one.robot_id, one.profile_id, one.park_node_id, one.park_node_id) for one in sample.fleet.trucks[:TRUCKS]
    )
    scenario = Scenario(
        name="chaos",
        title="chaos",
        source=sample.source,
        profiles=(FL_STD,),
        robots=robots,
        streams=streams,
        duration_ms=duration_ms + AFTERWARDS_MS,
        world=RADIO,
        seed=seed,
    )
    return scenario, compile_map(sample.source, [FL_STD])


MakeRoad = Callable[[FleetEngine, Json], Road]


class Chaos:
    """One run, tick by tick, with its jumps."""

    def __init__(
        self, duration_ms: int, seed: int, road: MakeRoad | None = None, *, first_ms: int = 90_000, most: int = 2
    ) -> None:
        scenario, site = chaos(duration_ms, seed, most)
        self.run = Run(scenario, site, road)
        self.jumps = 0
        self._chance = Random(seed)
        self._next_ms = first_ms

    def live(self) -> None:
        while self.run.now_ms < self.run.scenario.duration_ms and not self.run.is_over:
            if self.run.now_ms >= self._next_ms:
                self._jump()
            self.run.step()

    def _jump(self) -> None:
        self._next_ms += JUMP_EVERY_MS
        self.jumps += 1
        aside = [self._chance.choice((-1, 1)) * self._chance.randint(700_000, 2_500_000) for _ in range(2)]
        fault = Fault(FaultKind.POSE_JUMP, self._chance.randint(500, 8_000), *aside)
        self.run.world.trouble_with(self._chance.randrange(TRUCKS), fault)
