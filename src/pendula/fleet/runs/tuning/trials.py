"""Trials: every number of trucks with every strength of the one-way preference, parameters and seeds.

A trial keeps map, trucks, streams and world of the scenario; streams never end, and tasks, events and expectations are
left out. A smaller fleet has the first trucks by name.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from pendula import __version__
from pendula.documents import DocumentRefused, Format, read_bytes
from pendula.fleet.compiler.compile import compile_map
from pendula.fleet.engine import FleetEngine
from pendula.fleet.runs.tuning.figures import TrialFigures, figures_of
from pendula.fleet.scenarios import Run, Scenario
from pendula.fleet.scenarios.reading.traffic_params import TRAFFIC_PARAMS, read_traffic_params
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tasks import TaskStream
from pendula.fleet.tick import TrafficParams, TrafficRefused
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import counted, suggestion
from pendula.spreading import Watch, Where, spread

MOST = 10_000


class InvalidTrial(InputRefused):
    """An invalid combination. Facts: the wrong parameter."""

    code = "invalid_trial"


class Trial(Struct, frozen=True):
    """One run. `one_way_milli`: extra cost, in thousandths, of a lane against the direction of all streams."""

    trucks: int
    one_way_milli: int
    changes: tuple[tuple[str, str], ...] = ()
    seed: int = 0

    @property
    def words(self) -> str:
        more = "".join(f", {name}={value}" for name, value in self.changes)
        return f"{counted(self.trucks, 'truck')}, one-way {self.one_way_milli}{more}"


class Trials(Struct, frozen=True):
    """The scenario and duration of all runs."""

    scenario: Scenario
    duration_ms: int

    def open(self) -> "_Bench":
        return _Bench(self)

    def words(self, task: Trial) -> str:
        return f"the run with {task.words}, seed {task.seed}"

    def facts(self, task: Trial) -> dict[str, Json]:
        return {"settings": task.words, "seed": task.seed}

    def order(self, tasks: Sequence[Trial]) -> list[int]:
        """The longest runs first, which are those with the most trucks: cores are then idle for the shortest time."""
        return sorted(range(len(tasks)), key=lambda at: (-tasks[at].trucks, at))

    def signature(self) -> str:
        return f"{__version__} (decisions {FleetEngine.decisions})"


class _Bench:
    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._site = _compiled(trials.scenario)

    def run(self, task: Trial, stop: Callable[[], bool] | None = None) -> TrialFigures:
        scenario = trial_scenario(self._trials.scenario, task, self._trials.duration_ms)
        try:
            run = Run(scenario, self._site)
        except TrafficRefused as refused:
            return TrialFigures(refused=refused.message)
        return figures_of(run, self._trials.duration_ms, stop)


_SITES: dict[bytes, CompiledMap] = {}


def _compiled(scenario: Scenario) -> CompiledMap:
    """The map of a scenario, compiled once per process: on a cluster each task opens the bench again."""
    key = _key(scenario)
    if key not in _SITES:
        _SITES.clear()
        _SITES[key] = compile_map(scenario.source, scenario.profiles, scenario.compile_params)
    return _SITES[key]


def _key(scenario: Scenario) -> bytes:
    return repr((scenario.source, scenario.profiles, scenario.compile_params)).encode()


def trials_of(
    scenario: Scenario,
    trucks: Sequence[int],
    one_way: Sequence[int],
    grid: Mapping[str, Sequence[str]],
    seeds: Sequence[int],
) -> list[Trial]:
    """Every combination. Raises `InvalidTrial` for more trucks than the scenario has, and for unknown parameters."""
    most = len(scenario.robots)
    wrong = [count for count in trucks if not 1 <= count <= most]
    if wrong or not trucks:
        raise InvalidTrial(f"The scenario has {most} trucks; 1 to {most} can be tried", trucks=list(trucks))
    for name, values in grid.items():
        for value in values:
            traffic_with(scenario.traffic, ((name, value),))
    changes = [tuple(zip(grid, values, strict=True)) for values in product(*grid.values())]
    made = [Trial(n, milli, change, seed) for n, milli, change, seed in product(trucks, one_way, changes, seeds)]
    if not 1 <= len(made) <= MOST:
        raise InvalidTrial(f"{len(made)} runs are not possible; choose 1 to {MOST}", runs=len(made))
    return made


def run_trials(
    scenario: Scenario, trials: Sequence[Trial], duration_ms: int, where: Where, watch: Watch | None = None
) -> list[TrialFigures]:
    """The figures of each trial, in order. Raises what `spread` raises."""
    return spread(Trials(scenario, duration_ms), trials, where, watch)


def trial_scenario(scenario: Scenario, trial: Trial, duration_ms: int) -> Scenario:
    """The scenario of a trial."""
    robots = tuple(sorted(scenario.robots, key=lambda robot: robot.robot_id)[: trial.trucks])
    active = {robot.robot_id for robot in robots}
    return replace(
        scenario,
        robots=robots,
        streams=tuple(
            _for_trucks(stream, active)
            for stream in scenario.streams
            if not stream.robot_ids or active & {*stream.robot_ids}
        ),
        tasks=(),
        events=(),
        expect=(),
        duration_ms=duration_ms,
        seed=trial.seed,
        dispatch=replace(scenario.dispatch, one_way_milli=trial.one_way_milli),
        traffic=traffic_with(scenario.traffic, trial.changes),
    )


def _for_trucks(stream: TaskStream, active: set[str]) -> TaskStream:
    return replace(stream, last_ms=None, robot_ids=tuple(name for name in stream.robot_ids if name in active))


def traffic_with(usual: TrafficParams, changes: Sequence[tuple[str, str]]) -> TrafficParams:
    """Traffic parameters with changes in the names and units of the contract. Raises `InvalidTrial`."""
    for name, _ in changes:
        if name not in TRAFFIC_PARAMS:
            meant = suggestion(name, tuple(TRAFFIC_PARAMS))
            raise InvalidTrial(f"Traffic has no parameter {name!r}{meant}", parameter=name)
    if not changes:
        return usual
    text = "\n".join(f"{name}: {value}" for name, value in changes)
    try:
        return read_traffic_params(read_bytes(text.encode(), Format.YAML, "parameters"), usual)
    except DocumentRefused as refused:
        raise InvalidTrial(f"{changes[0][0]}={changes[0][1]}: {refused.message}", parameter=changes[0][0]) from None
