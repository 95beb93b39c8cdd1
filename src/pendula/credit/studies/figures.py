"""Figures of runs: counted tick by tick, exact, the same on every machine; as columns, and their medians.

The first `skip` ticks count only in the digests and in the final debts. Rates, means and intervals are fractions, and
are rounded only for output.

Runs of one scenario are distributed: a run depends only on its scenario, seed and settings. Each worker receives the
scenario once, as canonical JSON. Runs of one seed are consecutive and share their draws.

Columns have flat names and one kind each, ready for CSV, Parquet or a data frame:

kind      in Python and JSON                                   in Parquet
integer   a whole number, or null                              INT64
decimal   a text with a point and eight digits, or null        DECIMAL(38, 8)
text      a text                                               STRING
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from enum import StrEnum
from fractions import Fraction
from io import StringIO
from math import comb
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from pendula import __version__, spreading
from pendula.credit.commands import BehaviourName
from pendula.credit.engine import Run
from pendula.credit.events import ClearingDecision, ClearingDone, Event, TxFailed
from pendula.credit.model import Code
from pendula.credit.money import ATOMS, atoms_of_sum
from pendula.credit.outside import Answers
from pendula.credit.outside.behaviours import find_behaviour
from pendula.credit.planning.planner import Draws
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import ClearingMode, ClearingPolicy, Settings
from pendula.credit.state.clearing_policy import Why, hard_timeout_ms
from pendula.credit.state.counters import Demand
from pendula.credit.studies.variations import vary
from pendula.credit.tick.draft import ratio
from pendula.documents import Document, from_value
from pendula.kernel.canonical import Json, decode, digest, encode
from pendula.kernel.errors import WrongUsage
from pendula.spreading import Stopped, Watch, Where

Value: TypeAlias = int | str | Fraction | None

WINDOW = 10  # ticks over which a rate is plotted: a single tick has too few payments


class Kind(StrEnum):
    """The type of a column; a decimal is text with eight digits after the point."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    TEXT = "text"


class Trail(Struct, frozen=True):
    """Values per tick from the first on: payments made and finished; debts and demand by equivalent, in atoms."""

    committed: list[int]
    finished: list[int]
    debts: dict[str, list[int]]
    wanted: dict[str, list[int]]
    served: dict[str, list[int]]

    @property
    def committed_rates(self) -> list[Fraction | None]:
        return window_rates(self.committed, self.finished)

    def served_shares(self, code: str) -> list[Fraction | None]:
        return window_rates(self.served[code], self.wanted[code])


def window_rates(part: Sequence[int], whole: Sequence[int]) -> list[Fraction | None]:
    """At each tick, the share over the window that ends there."""
    windows = (slice(max(0, tick + 1 - WINDOW), tick + 1) for tick in range(len(whole)))
    return [share(sum(part[window]), sum(whole[window])) for window in windows]


class Figures(Struct, frozen=True):
    """One run; amounts in atoms by equivalent, `work` in work units, `intervals` in ticks.

    `over_budget` counts clearing calls beyond the limits of their settings, `active` the ticks, from the first on, in
    which the adaptive policy was active.
    """

    seed: int
    ticks: int
    state: str
    attempts: int
    committed: int
    rejected: int
    errors: int
    timeouts: int
    dropped: int
    no_capacity: int
    no_route_at_all: int
    calls: int
    work: int
    over_budget: int
    intervals: tuple[int, ...]
    cycles: int
    cleared: dict[str, int]
    reduced: dict[str, int]
    debts: dict[str, int]
    demand: dict[str, Demand]
    plan: str
    ledger: str
    trail: Trail | None = None
    active: int = 0


class Measure(Struct, frozen=True):
    """One column: its name, its meaning, and its value in the figures."""

    name: str
    meaning: str
    kind: Kind
    of: Callable[[Figures], Value]


def measures(equivalents: Sequence[str]) -> tuple[Measure, ...]:
    """All measures of a run; amounts have one per equivalent."""
    return (
        _counted("ticks", "ticks that were run"),
        _counted("state", "running, or error if a guardrail ended the run", Kind.TEXT),
        _counted("attempts", "payments tried"),
        _counted("committed", "payments made"),
        _counted("rejected", "payments refused"),
        _counted("no_capacity", "payments refused for lack of capacity"),
        _counted("no_route_at_all", "refused, and no clearing can help"),
        _counted("errors", "technical errors"),
        _counted("timeouts", "errors that were timeouts"),
        _counted("dropped", "planned payments that were not tried"),
        _quotient("committed_rate", "made, of those tried", lambda run: (run.committed, run.attempts)),
        _quotient("no_capacity_rate", "without capacity, of tried", lambda run: (run.no_capacity, run.attempts)),
        _counted("clearing_calls", "clearing calls", member="calls"),
        _quotient(
            *("mean_interval", "ticks between two calls in one equivalent"),
            lambda run: (sum(run.intervals), len(run.intervals)),
        ),
        _quotient("mean_cost", "work units of a call", lambda run: (run.work, run.calls)),
        _counted("total_work", "work units of all calls", member="work"),
        _counted("over_budget", "calls beyond their budget"),
        _counted("cleared_cycles", "cycles of debt that were cleared", member="cycles"),
        *(measure for code in equivalents for measure in _amounts(code)),
        _counted("plan_digest", "SHA-256 of all planned payments", Kind.TEXT, "plan"),
        _counted("ledger_digest", "SHA-256 of the ledger after each tick", Kind.TEXT, "ledger"),
    )


def _amounts(code: str) -> tuple[Measure, ...]:
    return (
        _quotient(f"wanted_{code}", "demand before the ledger capped it", lambda run: (run.demand[code].wanted, ATOMS)),
        _quotient(f"volume_{code}", "paid amounts", lambda run: (run.demand[code].volume, ATOMS)),
        _quotient(
            *(f"served_share_{code}", "paid share of the demand"),
            lambda run: (run.demand[code].served, run.demand[code].wanted),
        ),
        _quotient(
            f"cleared_amount_{code}", "sum of the amounts of cleared cycles", lambda run: (run.cleared[code], ATOMS)
        ),
        _quotient(f"debt_reduction_{code}", "reduction of debts", lambda run: (run.reduced[code], ATOMS)),
        _quotient(f"total_debt_{code}", "debts at the end", lambda run: (run.debts[code], ATOMS)),
    )


def _counted(name: str, meaning: str, kind: Kind = Kind.INTEGER, member: str = "") -> Measure:
    """A member of the figures as it is."""
    return Measure(name, meaning, kind, attrgetter(member or name))


def _quotient(name: str, meaning: str, parts: Callable[[Figures], tuple[int, int]]) -> Measure:
    return Measure(name, meaning, Kind.DECIMAL, lambda figures: share(*parts(figures)))


def share(part: int, whole: int) -> Fraction | None:
    """The exact quotient; None if `whole` is 0."""
    return Fraction(part, whole) if whole else None


def written(value: Value) -> int | str | None:
    """The column form of a value."""
    return text_of(value) if isinstance(value, Fraction) else value


def text_of(value: Fraction | None) -> str | None:
    return None if value is None else ratio(value.numerator, value.denominator)


def figures_of(
    document: Document,
    settings: Settings,
    seed: int,
    ticks: int,
    *,
    skip: int = 0,
    intensity: int = 100,
    lenient: bool = False,
    trail: bool = False,
    behaviour: BehaviourName | None = None,
    draws: Draws | None = None,
    stop: Callable[[], bool] | None = None,
) -> Figures:
    """Run a scenario and count; `trail` records the data of curves, `stop` is checked before each tick.

    `draws`, shared by runs of one seed, speed up all but the first of them. Raises `Stopped` if `stop` returns true,
    and errors of the run.
    """
    plan = plan_run(
        document, seed=seed, intensity=intensity, settings=settings, lenient=lenient, patches=False, behaviour=behaviour
    )
    headless = Headless(plan)
    headless.run.network.only_count()
    if draws is not None:
        headless.run.network.share(draws)
    headless.ask(Answers(headless.run))
    count = _Count(headless.run, skip, trail)
    for _ in range(ticks):
        if stop is not None and stop():
            raise Stopped
        headless.step(1, count.tick)
    return count.figures()


class _Count:
    """Counts the figures of one run tick by tick."""

    def __init__(self, run: Run, skip: int, trail: bool) -> None:
        self._run, self._skip = run, skip
        codes = tuple(run.network.ledgers)
        self._before = self._seen = astuple(run.counters)
        self._demand_before = self._demand_seen = _demand(run)
        self._no_capacity = self._never = self._calls = self._work = self._over = self._cycles = 0
        self._cleared, self._reduced = dict.fromkeys(codes, 0), dict.fromkeys(codes, 0)
        self._last_call: dict[str, int] = {}
        self._intervals: list[int] = []
        self._active = 0
        debts, wanted, served = ({code: list[int]() for code in codes} for _ in range(3))
        self._trail = Trail([], [], debts, wanted, served) if trail else None

    def tick(self, events: Sequence[Event]) -> None:
        """Count a finished tick, or one in which a guardrail ended the run."""
        run, counters, demand = self._run, astuple(self._run.counters), _demand(self._run)
        tick = run.tick - (run.state_word == "running")
        self._active += run.clearing_active
        if tick >= self._skip:
            self._count(tick, events)
        else:
            self._before, self._demand_before = counters, demand
        if self._trail is not None:
            self._trail.finished.append(counters[0] - self._seen[0])
            self._trail.committed.append(counters[1] - self._seen[1])
            for code, fresh in _grown(demand, self._demand_seen).items():
                self._trail.debts[code].append(run.network.ledgers[code].book.total)
                self._trail.wanted[code].append(fresh.wanted)
                self._trail.served[code].append(fresh.served)
        self._seen, self._demand_seen = counters, demand

    def _count(self, tick: int, events: Sequence[Event]) -> None:
        decisions: dict[str, ClearingDecision] = {}
        done: dict[str, ClearingDone] = {}
        for event in events:
            match event:
                case TxFailed(error=error):
                    never = "no_route_at_all" in error.details
                    self._never += never
                    self._no_capacity += error.code == Code.ROUTING_NO_CAPACITY and not never
                case ClearingDecision():
                    decisions[event.equivalent] = event
                case ClearingDone():
                    done[event.equivalent] = event
                    self._cycles += event.cleared_cycles
                    self._cleared[event.equivalent] += atoms_of_sum(event.cleared_amount)
                    self._reduced[event.equivalent] += atoms_of_sum(event.debt_reduction)
                case _:
                    pass
        for code, last in self._run.last_clearing.items():
            call: Any = last
            if call["tick"] == tick:
                self._called(code, tick, call["work"], decisions.get(code), done.get(code))

    def _called(
        self, code: str, tick: int, work: int, decision: ClearingDecision | None, done: ClearingDone | None
    ) -> None:
        since = tick - self._last_call[code] if code in self._last_call else None
        self._calls += 1
        self._work += work
        if since is not None:
            self._intervals.append(since)
        self._over += not within_budget(self._run.settings, work, since, decision, done)
        self._last_call[code] = tick

    def figures(self) -> Figures:
        run = self._run
        attempts, committed, rejected, errors, timeouts, dropped = (
            now - before for now, before in zip(astuple(run.counters), self._before, strict=True)
        )
        digests = run.digests()
        return Figures(
            seed=run.seed,
            ticks=run.tick,
            state=run.state_word,
            attempts=attempts,
            committed=committed,
            rejected=rejected,
            errors=errors,
            timeouts=timeouts,
            dropped=dropped,
            no_capacity=self._no_capacity,
            no_route_at_all=self._never,
            calls=self._calls,
            work=self._work,
            over_budget=self._over,
            intervals=tuple(self._intervals),
            cycles=self._cycles,
            cleared=self._cleared,
            reduced=self._reduced,
            debts={code: ledger.book.total for code, ledger in run.network.ledgers.items()},
            plan=digests["plan"],
            ledger=digests["ledger"],
            demand=_grown(_demand(run), self._demand_before),
            trail=self._trail,
            active=self._active,
        )


def _demand(run: Run) -> dict[str, Demand]:
    """A copy of the current demand."""
    return {code: copy(demand) for code, demand in run.demand.items()}


def _grown(now: Mapping[str, Demand], before: Mapping[str, Demand]) -> dict[str, Demand]:
    return {
        code: Demand(*(a - b for a, b in zip(astuple(demand), astuple(before[code]), strict=True)))
        for code, demand in now.items()
    }


def within_budget(
    settings: Settings, work: int, since: int | None, decision: ClearingDecision | None, done: ClearingDone | None
) -> bool:
    """Whether a call respected the depth, work and interval of its settings."""
    depth, budget_ms = settings.clearing_max_depth, settings.clearing_time_budget_ms
    if settings.clearing_policy is ClearingPolicy.ADAPTIVE:
        if decision is None or not decision.should_run:
            return False
        if decision.reason != Why.BACKGROUND_RUN:
            depth = min(depth, settings.adaptive_max_depth_max, decision.max_depth)
            budget_ms = min(budget_ms, settings.adaptive_time_budget_ms_max, decision.time_budget_ms)
        if (decision.max_depth, decision.time_budget_ms) != (depth, budget_ms):
            return False
        if since is not None and since < settings.adaptive_min_interval_ticks:
            return False
    if settings.clearing_mode is ClearingMode.OPTIMAL:
        return True
    allowed = min(budget_ms, hard_timeout_ms(budget_ms, settings.clearing_hard_timeout_sec))
    # A cycle of at most `depth` debts reduces the debts by at most `depth` times its amount.
    shallow = done is None or atoms_of_sum(done.debt_reduction) <= depth * atoms_of_sum(done.cleared_amount)
    return work <= allowed * settings.work_units_per_ms and shallow


class Columns(Struct, frozen=True):
    """A table by columns: kinds and values by name, both in the order of the columns."""

    kinds: dict[str, Kind]
    values: dict[str, list[int | str | None]]

    def __len__(self) -> int:
        return max(map(len, self.values.values()), default=0)

    def rows(self) -> list[tuple[int | str | None, ...]]:
        return list(zip(*self.values.values(), strict=True))

    @property
    def document(self) -> dict[str, Any]:
        """The JSON form, with the order of the columns."""
        return {"order": list(self.values), "kinds": self.kinds, "values": self.values}

    @property
    def digest(self) -> str:
        """SHA-256 of the values; the same on every machine and with any number of workers."""
        return digest(self.document)

    def csv(self) -> str:
        """RFC 4180 with line feeds: a line of names, a line per row, null as an empty field."""
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.values)
        writer.writerows(self.rows())
        return text.getvalue()


def columns_of(kinds: dict[str, Kind], rows: list[list[int | str | None]]) -> Columns:
    """Columns from rows with values in the order of `kinds`."""
    return Columns(kinds, {name: [row[at] for row in rows] for at, name in enumerate(kinds)})


CONFIDENCE = Fraction(95, 100)
_HALF = Fraction(1, 2)


class Interval(NamedTuple):
    """An interval of the median and its coverage; both ends are observed values."""

    low: Fraction
    high: Fraction
    coverage: Fraction

    @property
    def side(self) -> int:
        """1 or -1 if the interval excludes zero with enough confidence, else 0."""
        if self.coverage < CONFIDENCE:
            return 0
        return (self.low > 0) - (self.high < 0)


def median(values: Iterable[Fraction | None]) -> Fraction | None:
    """The median of the values that are not None; None without values."""
    return quantile(in_order(values), _HALF)


def in_order(values: Iterable[Fraction | None]) -> list[Fraction]:
    return sorted(value for value in values if value is not None)


def quantile(ordered: Sequence[Fraction], part: Fraction) -> Fraction | None:
    """The quantile, interpolated linearly between neighbours."""
    if not ordered:
        return None
    place = part * (len(ordered) - 1)
    at = int(place)
    if at == place:
        return ordered[at]
    return ordered[at] + (place - at) * (ordered[at + 1] - ordered[at])


def median_interval(ordered: Sequence[Fraction]) -> Interval | None:
    """The interval of the sign test: the k-th value from below and from above, with the largest k that is sure enough.

    With fewer than six values, which cannot reach `CONFIDENCE`, the whole range and its coverage; None without values.
    """
    count = len(ordered)
    if not count:
        return None
    # The median is outside if fewer than k of `count` fair coins show the same side.
    outside, rank = 1, 1
    while _coverage(outside + comb(count, rank), count) >= CONFIDENCE:
        outside += comb(count, rank)
        rank += 1
    return Interval(ordered[rank - 1], ordered[count - rank], _coverage(outside, count))


def _coverage(outside: int, count: int) -> Fraction:
    return max(1 - Fraction(2 * outside, 2**count), Fraction(0))


class Task(Struct, frozen=True):
    """One run; `about` describes its settings in messages. `changes` are variations of the scenario."""

    settings: Settings
    seed: int
    about: str
    changes: tuple[tuple[str, str], ...] = ()


class Job(Struct, frozen=True):
    """Everything that all runs share; the scenario as canonical JSON."""

    scenario: bytes
    ticks: int
    skip: int = 0
    intensity: int = 100
    lenient: bool = False
    trail: bool = False
    behaviour: BehaviourName | None = None

    def open(self) -> "_Bench":
        return _Bench(self)

    def words(self, task: Task) -> str:
        return f"the run with {task.about}, seed {task.seed}"

    def facts(self, task: Task) -> dict[str, Json]:
        return {"settings": task.about, "seed": task.seed}

    def order(self, tasks: Sequence[Task]) -> list[int]:
        """Runs of one seed are consecutive."""
        seeds = {seed: order for order, seed in enumerate(dict.fromkeys(task.seed for task in tasks))}
        return sorted(range(len(tasks)), key=lambda at: (seeds[tasks[at].seed], at))

    def signature(self) -> str:
        return _signature()


class _Bench:
    """The parsed scenario, and the draws of the last seed."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._document = from_value(decode(job.scenario), "scenario")
        self._draws, self._seed = Draws(), -1

    def run(self, task: Task, stop: Callable[[], bool] | None = None) -> Figures:
        if task.seed != self._seed:
            self._draws, self._seed = Draws(), task.seed
        job = self._job
        return figures_of(
            from_value(vary(decode(job.scenario), task.changes), "scenario") if task.changes else self._document,
            task.settings,
            task.seed,
            job.ticks,
            skip=job.skip,
            intensity=job.intensity,
            lenient=job.lenient,
            trail=job.trail,
            behaviour=job.behaviour,
            draws=self._draws,
            stop=stop,
        )


def job_of(
    document: Document,
    ticks: int,
    skip: int,
    intensity: int,
    lenient: bool,
    trail: bool = False,
    behaviour: str | None = None,
) -> Job:
    """The job of a document; raises `WrongUsage` if no tick is left to count, and `UnknownBehaviour`."""
    if not 0 <= skip < ticks:
        raise WrongUsage(f"{skip} of {ticks} ticks are skipped; at least one must be counted", ticks=ticks, skip=skip)
    if not 0 <= intensity <= 100:
        raise WrongUsage(f"The intensity is {intensity}; it must be 0 to 100 per cent", intensity=intensity)
    named = None if behaviour is None else BehaviourName(behaviour, find_behaviour(behaviour).version)
    return Job(encode(document.value), ticks, skip, intensity, lenient=lenient, trail=trail, behaviour=named)


def seeds_of(seeds: Iterable[int]) -> tuple[int, ...]:
    """Different seeds, none of them negative; raises `WrongUsage`."""
    distinct = tuple(seeds)
    if not distinct or len(set(distinct)) < len(distinct) or min(distinct) < 0:
        raise WrongUsage("The seeds must be distinct and not negative", seeds=list(distinct[:100]))
    return distinct


def spread(job: Job, tasks: Sequence[Task], where: Where, watch: Watch | None = None) -> list[Figures]:
    """The figures of each task, in order; calls `watch` with the number of finished tasks.

    From a script, more than one worker needs the script's own `if __name__ == "__main__":`, because each worker is a
    fresh interpreter that imports it. Raises `TaskFailed`, `WorkerLost`, `ClusterFailed`, `MissingExtra`.
    """
    if where.dask is None:
        _require_solver(tasks)
    return spreading.spread(job, tasks, where, watch)


def _require_solver(tasks: Sequence[Task]) -> None:
    """Raise for missing extras before anything runs."""
    if any(task.settings.needs_solver for task in tasks):
        from pendula.credit.outside.answers import OrTools

        OrTools()


def _signature() -> str:
    """Equal signatures guarantee equal runs."""
    return f"{__version__} (decisions {Run.decisions})"
