"""FLT-TEST-24: ten trucks with endless tasks, bad radio, and a jump every ten minutes."""

from collections.abc import Callable
from functools import cache
from random import Random

from msgspec.structs import replace

from pendula.fleet import compile_map
from pendula.fleet.compiler.generated_maps import spur_grid
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.engine import FleetEngine
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.scenarios import Run, Scenario
from pendula.fleet.scenarios.model import Robot
from pendula.fleet.scenarios.running import Applier
from pendula.fleet.simulator.truck import Fault, FaultKind, WorldSettings
from pendula.fleet.tasks.model import TaskStream
from pendula.fleet.tick import TrafficParams
from pendula.kernel.canonical import Json

TRUCKS = 10
GRID = (5, 4)
JUMP_EVERY_MS = 600_000
# The first one comes when everybody is under way.
FIRST_JUMP_MS = 90_000
# So long after the last task is made everything has to have come to its end.
AFTERWARDS_MS = 1_200_000
RADIO = WorldSettings(
    telemetry_latency_ms=(0, 400), telemetry_loss_ppm=10_000, command_latency_ms=(0, 400), command_loss_ppm=10_000
)


def chaos(offered_ms: int, seed: int, most: int, tick_ms: int) -> tuple[Scenario, CompiledMap]:
    """Streams with a new task for every free truck, up to a duration and a number of open tasks each."""
    sample = spur_grid(*GRID)
    streams = tuple(
        TaskStream(
            one.stream_id, one.pick_node_ids, one.drop_node_ids, 3_000, 2_000, max_concurrent=most, last_ms=offered_ms
        )
        for one in sample.fleet.streams
    )
    robots = tuple(Robot(one.robot_id, one.park_node_id, one.profile_id) for one in sample.fleet.trucks[:TRUCKS])
    scenario = Scenario(
        name="chaos",
        title="chaos",
        source=sample.source,
        profiles=(FL_STD,),
        robots=robots,
        streams=streams,
        duration_ms=offered_ms + AFTERWARDS_MS,
        # Two steps a tick; the judge looks between them.
        world=replace(RADIO, step_ms=tick_ms // 2),
        seed=seed,
        traffic=TrafficParams(tick_period_ms=tick_ms),
    )
    return scenario, site()


@cache
def site() -> CompiledMap:
    return compile_map(spur_grid(*GRID).source, [FL_STD])


MakeApplier = Callable[[FleetEngine, Json], Applier]


class Chaos:
    """One run, tick by tick, with its jumps; tasks are offered for so long, and it lasts until all of them are done."""

    def __init__(
        self, offered_ms: int, seed: int, make_applier: MakeApplier | None = None, *, most: int = 2, tick_ms: int = 100
    ) -> None:
        self.run = Run(*chaos(offered_ms, seed, most, tick_ms), make_applier)
        # Who jumped, and when.
        self.jumps: list[tuple[str, int]] = []
        self._chance = Random(seed)
        self._next_ms = FIRST_JUMP_MS

    def live(self, least_ms: int = 0) -> None:
        """To the end, and for so long at least."""
        run = self.run
        while run.now_ms < least_ms or (run.now_ms < run.scenario.duration_ms and not run.is_over):
            if run.now_ms >= self._next_ms:
                self._jump()
            run.step()

    def _jump(self) -> None:
        self._next_ms += JUMP_EVERY_MS
        aside = [self._chance.choice((-1, 1)) * self._chance.randint(700_000, 2_500_000) for _ in range(2)]
        fault = Fault(FaultKind.POSE_JUMP, self._chance.randint(500, 8_000), *aside)
        truck = self._chance.randrange(TRUCKS)
        self.jumps.append((self.run.robots[truck].robot_id, self.run.now_ms))
        self.run.world.start_fault(truck, fault)
