"""The number of trucks and the parameters with the highest throughput, by trials in virtual time."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pendula import __version__, svg
from pendula.documents import DocumentRefused, Format, read_bytes
from pendula.fleet.compiler.compile import compile_map
from pendula.fleet.contracts import Phase
from pendula.fleet.engine import FleetEngine
from pendula.fleet.map.planner import Planner
from pendula.fleet.map.routes import opposite_edges
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.scenarios import Run, Scenario
from pendula.fleet.scenarios.reading import TRAFFIC_PARAMS, read_traffic_params
from pendula.fleet.tasks import TaskStream
from pendula.fleet.tasks.assignment import against_the_stream_us
from pendula.fleet.tick import TickOutputs, TrafficParams, TrafficRefused
from pendula.fleet.tick.reasons import code_of, resource_id
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import counted, suggestion
from pendula.spreading import Stopped, Watch, Where, spread

# The directions in which a one-way preference sends the trucks of a scenario, for its map.


def preferred_edges(scenario: Scenario, trucks: int, milli: int) -> tuple[str, ...]:
    """The preferred edges of lanes with two directions, where most trips of the first trucks by name go one way. Empty
    if no lane is driven both ways, or without a preference."""
    if not milli:
        return ()
    site = compile_map(scenario.source, scenario.profiles, scenario.compile_params)
    robots = sorted(scenario.robots, key=lambda robot: robot.robot_id)[:trucks]
    active = {robot.robot_id for robot in robots}
    streams = [stream for stream in scenario.streams if not stream.robot_ids or active & {*stream.robot_ids}]
    rests = [site.node_number[robot.park_node_id] for robot in robots]
    opposite, edges = opposite_edges(site), site.network.edges
    profile = next(profile for profile in scenario.profiles if profile.profile_id == robots[0].profile_id)
    dearer = against_the_stream_us(site, Planner(site, profile), streams, rests, milli)
    return tuple(sorted({edges[other].key for edge in dearer for other in opposite[edge] if other not in dearer}))


# Results of one trial: tasks done, the longest wait, reasons and places of waits, and the load of stations.

HOUR_MS = 3_600_000
_WORKING = frozenset({Phase.LOADING, Phase.UNLOADING})


class TrialFigures(Struct, frozen=True):
    """Results of one run. `waits`: total wait of all trucks by reason and resource; `busy`: time of loading and
    unloading by node. `refused`: why the fleet cannot run on the map."""

    simulated_ms: int = 0
    tasks: int = 0
    longest_wait_ms: int = 0
    waits: tuple[tuple[str, str, int], ...] = ()
    busy: tuple[tuple[str, int], ...] = ()
    violations: int = 0
    refused: str | None = None

    @property
    def tasks_per_hour(self) -> int:
        return self.tasks * HOUR_MS // max(self.simulated_ms, 1)


class FigureCounter:
    """Counts waits and busy nodes tick by tick."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._period_ms = run.scenario.traffic.tick_period_ms
        self.waits: Counter[tuple[str, str]] = Counter()
        self.busy: Counter[str] = Counter()

    def note(self, outputs: TickOutputs) -> None:
        site = self._run.site
        for record in outputs.scene.records:
            waiting, code = record.waiting, code_of(record)
            if waiting is not None and code is not None and waiting.resource is not None:
                self.waits[resource_id(site, waiting.resource), code] += self._period_ms
        nodes = {driver.node for driver in self._run.dispatch.drivers if driver.phase in _WORKING}
        for node in sorted(nodes):
            self.busy[site.network.nodes[node].id] += self._period_ms


def figures_of(run: Run, duration_ms: int, stop: Callable[[], bool] | None = None) -> TrialFigures:
    """Run to the end of the duration; raises `Stopped` when `stop` returns true."""
    counter = FigureCounter(run)
    while run.now_ms < duration_ms:
        if stop is not None and stop():
            raise Stopped
        counter.note(run.step())
    form = run.result().form
    return TrialFigures(
        simulated_ms=run.now_ms,
        tasks=form["tasks"]["done"],
        longest_wait_ms=form["metrics"]["longestWaitMs"],
        waits=tuple((name, code, ms) for (name, code), ms in sorted(counter.waits.items())),
        busy=tuple(sorted(counter.busy.items())),
        violations=sum(invariant["violations"] for invariant in form["invariants"].values()),
    )


# Trials: every number of trucks with every strength of the one-way preference, parameters and seeds.
# A trial keeps map, trucks, streams and world of the scenario; streams never end, and tasks, events and expectations
# are left out. A smaller fleet has the first trucks by name.

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


# The best trial, and recommendations: how many trucks are enough, and what to change on the map.
# Each sentence names the numbers it rests on. Rates are means over seeds; waits are the longest of any seed.

# Smallest shares of time, in percent, of a busy station and of a wait in the recommendations.
BUSY_PERCENT = 80
WAITED_PERCENT = 8
# Another truck that adds less than this, in percent, adds nothing.
GAIN_PERCENT = 3
MOST_SENTENCES = 6
# A rate over fewer tasks is not significant.
FEW_TASKS = 10
_REMEDIES: Mapping[str, str] = {
    "WAIT_EDGE_DIRECTION": "make it one-way, or give it a second lane",
    "WAIT_SPACING": "trucks queue there: add a waiting place before it or a detour so that others can pass",
    "WAIT_CONFLICT": "two lanes come too close there: move them apart",
    "WAIT_NODE": "trucks stop or turn in it: lead the lane straight through, or move the station off the crossing",
    "WAIT_CRITICAL_SECTION": "only one truck fits in it: add a second stand, or an exit at its far end",
    "WAIT_EXIT_ROOM": "a truck has no space behind it to leave: lengthen the exit",
    "WAIT_QUEUE_ORDER": "trucks queue there: add a waiting place before it or a detour so that others can pass",
    "WAIT_SAFE_STATE": "trucks wait so as not to block each other: add a bay or a loop where they can pass",
}


class Row(Struct, frozen=True, rename="camel"):
    """Trials that differ only by seed."""

    trucks: int
    one_way_milli: int
    changes: tuple[tuple[str, str], ...]
    tasks_per_hour: int
    longest_wait_ms: int
    violations: int
    acceptable: bool
    refused: str | None = None
    # All tasks, of which the rate is the mean.
    tasks: int = 0


class Outcome(Struct, frozen=True, rename="camel"):
    """`best` is None if no trial was acceptable."""

    rows: tuple[Row, ...]
    best: Row | None
    sentences: tuple[str, ...]

    def form(self) -> dict[str, Json]:
        return {
            "rows": [_form(row) for row in self.rows],
            "best": None if self.best is None else _form(self.best),
            "sentences": list(self.sentences),
        }


def _form(row: Row) -> dict[str, Json]:
    return {
        "trucks": row.trucks,
        "oneWayMilli": row.one_way_milli,
        "params": dict(row.changes),
        "tasks": row.tasks,
        "tasksPerHour": row.tasks_per_hour,
        "longestWaitMs": row.longest_wait_ms,
        "violations": row.violations,
        "acceptable": row.acceptable,
        "refused": row.refused,
    }


def outcome_of(trials: Sequence[Trial], figures: Sequence[TrialFigures], longest_wait_ms: int) -> Outcome:
    """Rows in the order of the trials. The best row has the most tasks an hour of those in which no truck waited
    longer; ties are broken by fewer trucks, then the shorter wait, then order."""
    groups: dict[tuple[int, int, tuple[tuple[str, str], ...]], list[TrialFigures]] = {}
    for trial, result in zip(trials, figures, strict=True):
        groups.setdefault((trial.trucks, trial.one_way_milli, trial.changes), []).append(result)
    rows = tuple(_row(key, results, longest_wait_ms) for key, results in groups.items())
    good = [row for row in rows if row.acceptable]
    best = min(good, key=lambda row: (-row.tasks_per_hour, row.trucks, row.longest_wait_ms), default=None)
    sentences = [*_of_few_tasks(rows), *_of_refusals(rows)]
    if best is not None:
        results = groups[best.trucks, best.one_way_milli, best.changes]
        sentences += [*_of_trucks(rows, best), *_of_stations(results), *_of_waits(results, best.trucks)]
    return Outcome(rows, best, tuple(sentences[:MOST_SENTENCES]))


def _row(
    key: tuple[int, int, tuple[tuple[str, str], ...]], results: Sequence[TrialFigures], longest_wait_ms: int
) -> Row:
    refused = next((result.refused for result in results if result.refused is not None), None)
    simulated = sum(result.simulated_ms for result in results)
    longest = max(result.longest_wait_ms for result in results)
    violations = sum(result.violations for result in results)
    return Row(
        *key,
        tasks_per_hour=sum(result.tasks for result in results) * HOUR_MS // max(simulated, 1),
        longest_wait_ms=longest,
        violations=violations,
        acceptable=refused is None and not violations and longest <= longest_wait_ms,
        refused=refused,
        tasks=sum(result.tasks for result in results),
    )


def _of_few_tasks(rows: Sequence[Row]) -> list[str]:
    """Warn of the rate with the fewest tasks, if they are too few."""
    least = min((row for row in rows if row.refused is None), key=lambda row: (row.tasks, row.trucks), default=None)
    if least is None or least.tasks >= FEW_TASKS:
        return []
    both = f"{counted(least.tasks, 'task')} with {counted(least.trucks, 'truck')}"
    return [f"these results rest on few tasks, {both}: raise --minutes or --seeds to reach at least {FEW_TASKS} tasks"]


def _of_refusals(rows: Sequence[Row]) -> list[str]:
    """The smallest refused number of trucks, with the reason."""
    refused = min((row for row in rows if row.refused is not None), key=lambda row: row.trucks, default=None)
    if refused is None:
        return []
    changed = ", ".join(f"{name}={value}" for name, value in refused.changes)
    settings = f" with {changed}" if changed else ""
    return [f"{counted(refused.trucks, 'truck')} cannot run on this map{settings}: {refused.refused}"]


def _of_trucks(rows: Sequence[Row], best: Row) -> list[str]:
    """Whether fewer trucks do as much, and whether more trucks do more."""
    most = {row.trucks: 0 for row in rows}
    for row in rows:
        most[row.trucks] = max(most[row.trucks], row.tasks_per_hour if row.refused is None else 0)
    enough = next(count for count in sorted(most) if 100 * most[count] >= (100 - GAIN_PERCENT) * most[best.trucks])
    rests = {row.trucks: row.tasks for row in rows if row.tasks_per_hour == most[row.trucks]}
    sentences = []
    if enough < best.trucks:
        both = f"{most[enough]} against {most[best.trucks]} tasks an hour"
        done = f"{rests[enough]} and {rests[best.trucks]} tasks were done"
        sentences.append(f"{counted(enough, 'truck')} do nearly as much as {best.trucks}: {both}; {done}")
    more = [count for count in sorted(most) if count > best.trucks]
    if more and most[more[-1]] <= best.tasks_per_hour:
        both = f"{most[more[-1]]} tasks an hour with {more[-1]}; {rests.get(more[-1], 0)} tasks were done"
        sentences.append(f"more than {counted(best.trucks, 'truck')} add nothing: {both}")
    return sentences


def _of_stations(results: Sequence[TrialFigures]) -> list[str]:
    busy: Counter[str] = Counter()
    for result in results:
        busy.update(dict(result.busy))
    whole = sum(result.simulated_ms for result in results)
    return [
        f"{node} is loading or unloading {100 * ms // max(whole, 1)} % of the time: add a second station beside it;"
        " more trucks do not help"
        for node, ms in sorted(busy.items(), key=lambda pair: (-pair[1], pair[0]))
        if 100 * ms >= BUSY_PERCENT * whole
    ]


def _of_waits(results: Sequence[TrialFigures], trucks: int) -> list[str]:
    """Where trucks lose the most time, with the reason that costs the most there."""
    lost: Counter[tuple[str, str]] = Counter()
    for result in results:
        lost.update({(name, code): ms for name, code, ms in result.waits})
    places: Counter[str] = Counter()
    for (name, _), ms in lost.items():
        places[name] += ms
    whole = trucks * sum(result.simulated_ms for result in results)
    sentences = []
    for name, ms in sorted(places.items(), key=lambda pair: (-pair[1], pair[0])):
        if 100 * ms < WAITED_PERCENT * whole:
            break
        code = min((code for place, code in lost if place == name), key=lambda code: (-lost[name, code], code))
        remedy = _REMEDIES.get(code, "see `pendula fleet why`")
        sentences.append(f"trucks spend {100 * ms // whole} % of their time waiting for {name} ({code}): {remedy}")
    return sentences


# Throughput over trucks as one SVG: a line for each strength of the one-way preference, the longest wait at each dot.
# Plain SVG without scripts, readable on light and on dark paper. Of equal lines the first is the widest, so that all
# are visible; a wait without space is only in the tooltip of its dot. The same outcome gives the same bytes.

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 640, 80, 400
# From the axis to the first dot, for the labels of its waits.
INSET = 24
COLOURS = 6
DOT = 5.0
STROKE = 2.0
# Visible width of a lower mark on each side of the one above it.
RIM = 2.0
LABEL_SIZE = 10
LETTER = 6.0
_STEPS = (1, 2, 5)
_STYLE = (
    "svg{--paper:#fff;--ink:#1c2733;--soft:#66717e;--line:#e3e7ec;--c0:#1f66c1;--c1:#c2500a;--c2:#2c7a3f;--c3:#8a3fa8;"
    "--c4:#a8831b;--c5:#5b6470;font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif;font-size:12px}"
    "@media(prefers-color-scheme:dark){svg{--paper:#14191f;--ink:#e8edf2;--soft:#98a4b1;--line:#2b333d;--c0:#6cb0ff;"
    "--c1:#ff9d57;--c2:#7fd08f;--c3:#d597ee;--c4:#e5c05a;--c5:#b3bcc6}}"
    "text{fill:var(--ink)}.paper{fill:var(--paper)}.soft{fill:var(--soft)}.grid{stroke:var(--line)}"
    ".h1{font-size:17px;font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}"
    ".line{fill:none;stroke-linecap:round}.best{fill:none;stroke:var(--ink);stroke-width:2}"
    + "".join(f".line.c{k}{{stroke:var(--c{k})}}.dot.c{k},text.c{k}{{fill:var(--c{k})}}" for k in range(COLOURS))
    + ".not{fill:var(--paper);stroke:var(--soft);stroke-width:2}"
)


class _Scale:
    def __init__(self, rows: Sequence[Row]) -> None:
        self.trucks = sorted({row.trucks for row in rows})
        self.step = _step(max(row.tasks_per_hour for row in rows))
        self.most = self.step * (max(row.tasks_per_hour for row in rows) // self.step + 1)

    def across(self, trucks: int) -> float:
        first, last = self.trucks[0], self.trucks[-1]
        if first == last:
            return (LEFT + RIGHT) / 2
        return LEFT + INSET + (RIGHT - LEFT - 2 * INSET) * (trucks - first) / (last - first)

    def down(self, tasks: int) -> float:
        return BOTTOM - (BOTTOM - TOP) * tasks / self.most

    def dot(self, row: Row) -> svg.Dot:
        return self.across(row.trucks), self.down(row.tasks_per_hour)


def throughput_svg(outcome: Outcome, title: str) -> str:
    """The picture, 860 pixels wide. Of trials that differ only by parameters it shows the best."""
    rows = [row for row in _shown(outcome.rows) if row.refused is None]
    summary = _summary(outcome)
    parts = [
        svg.opening(WIDTH, HEIGHT, f"{title}: {summary}"),
        f"<style>{_STYLE}</style>",
        svg.box(0, 0, WIDTH, HEIGHT, "paper"),
        svg.words(20, 32, title, "h1"),
        svg.words(20, 54, summary, "soft"),
    ]
    if rows:
        parts += _plot(rows, outcome.best)
    return "".join([*parts, "</svg>\n"])


def _summary(outcome: Outcome) -> str:
    best = outcome.best
    if best is None:
        return "no trial was acceptable"
    return (
        f"best: {counted(best.trucks, 'truck')}, one-way {best.one_way_milli}, {best.tasks_per_hour} tasks an hour, "
        f"longest wait {best.longest_wait_ms // 1000} s"
    )


def _shown(rows: Sequence[Row]) -> list[Row]:
    """The best row of every number of trucks and strength."""
    best: dict[tuple[int, int], Row] = {}
    for row in rows:
        key = (row.one_way_milli, row.trucks)
        if key not in best or _value(row) > _value(best[key]):
            best[key] = row
    return [best[key] for key in sorted(best)]


def _value(row: Row) -> tuple[bool, int]:
    return row.acceptable, row.tasks_per_hour


def _plot(rows: Sequence[Row], best: Row | None) -> Iterator[str]:
    scale = _Scale(rows)
    for tasks in range(0, scale.most + 1, scale.step):
        yield svg.line(LEFT, scale.down(tasks), RIGHT, scale.down(tasks), "grid")
        yield svg.words(LEFT - 8, scale.down(tasks) + 4, str(tasks), "soft end")
    for trucks in scale.trucks:
        yield svg.words(scale.across(trucks), BOTTOM + 20, str(trucks), "soft mid")
    yield svg.words((LEFT + RIGHT) / 2, BOTTOM + 42, "trucks", "soft mid")
    yield svg.words(LEFT, TOP - 10, "tasks an hour; at each dot the longest wait; hollow: not acceptable", "soft")
    curves = [
        [row for row in rows if row.one_way_milli == milli] for milli in sorted({row.one_way_milli for row in rows})
    ]
    yield from _lines(curves, scale)
    yield from _dots(curves, scale)
    yield from _waits(curves, scale)
    for number, curve in enumerate(curves):
        yield svg.words(RIGHT + 24, TOP + 20 * number + 8, f"one-way {curve[0].one_way_milli}", _colour(number))
    if best is not None:
        yield svg.circle(scale.dot(best), DOT + RIM * len(curves) + RIM, "best")


def _colour(number: int) -> str:
    return f"c{number % COLOURS}"


def _lines(curves: Sequence[Sequence[Row]], scale: _Scale) -> Iterator[str]:
    """Each segment of each line; of equal segments the first is the widest and the lowest."""
    segments = [
        (number, (scale.dot(first), scale.dot(second)))
        for number, curve in enumerate(curves)
        for first, second in pairwise(curve)
    ]
    above = Counter(ends for _, ends in segments)
    for number, ends in segments:
        above[ends] -= 1
        yield svg.path(svg.trace(ends), f"line {_colour(number)}", STROKE + 2 * RIM * above[ends])


def _dots(curves: Sequence[Sequence[Row]], scale: _Scale) -> Iterator[str]:
    above = Counter(scale.dot(row) for curve in curves for row in curve)
    for number, curve in enumerate(curves):
        for row in curve:
            dot = scale.dot(row)
            above[dot] -= 1
            label = f"{counted(row.trucks, 'truck')}, one-way {row.one_way_milli}: {row.tasks_per_hour} tasks an hour"
            mark = svg.circle(dot, DOT + RIM * above[dot], f"dot {_colour(number)}" if row.acceptable else "not")
            yield svg.tooltip(f"{label}, longest wait {row.longest_wait_ms // 1000} s", mark)


def _waits(curves: Sequence[Sequence[Row]], scale: _Scale) -> Iterator[str]:
    """The longest wait at each dot, above or below it where there is space."""
    reach = DOT + RIM * len(curves)
    taken = [_around(scale.dot(row), 2 * DOT, 2 * DOT) for curve in curves for row in curve]
    for number, curve in enumerate(curves):
        for row in curve:
            text = f"{row.longest_wait_ms // 1000} s"
            x, y = scale.dot(row)
            steps = [reach + LABEL_SIZE * (0.6 + 1.1 * away) for away in range(len(curves) + 1)]
            places = [
                _around((x, y + side * step), LETTER * len(text), LABEL_SIZE) for step in steps for side in (-1, 1)
            ]
            free = [box for box in places if box.inside() and not any(box.meets(other) for other in taken)]
            if free:
                taken.append(free[0])
                yield svg.words(x, free[0].bottom - 1, text, f"mid {_colour(number)}", size=LABEL_SIZE)


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def inside(self) -> bool:
        return self.top > TOP - 8 and self.bottom < BOTTOM + 6


def _around(dot: svg.Dot, width: float, height: float) -> _Box:
    return _Box(dot[0] - width / 2, dot[1] - height / 2, dot[0] + width / 2, dot[1] + height / 2)


def _step(most: int) -> int:
    """A round step that makes four to ten lines."""
    size = 1
    while True:
        for step in _STEPS:
            if step * size * 10 > most:
                return step * size
        size *= 10
