"""Two settings over many seeds, paired by seed: medians, differences with intervals, a verdict, curves.

    adaptive = change_settings(Settings(), {"clearing_policy": "adaptive"})
    compare(document, Settings(), adaptive, seeds=range(1, 21)).verdict

The interval of a difference is that of the sign test: of the n sorted paired differences, the k-th from below and the
k-th from above, with the largest k for which the median of all seeds is between them with a probability of at least
0.95. That probability is a binomial sum and is reported as the coverage. Fewer than six pairs cannot reach 0.95; then
the interval is the whole range. The test assumes no distribution and needs no random numbers, and its ends are observed
differences: exact fractions, rounded only for output. A bootstrap may be narrower, but is right only in the limit.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from itertools import zip_longest

from msgspec import Struct

from pendula.credit.money import ATOMS
from pendula.credit.reading import read_scenario
from pendula.credit.settings import ClearingPolicy, Settings, change_settings, differing_settings
from pendula.credit.studies.figures import (
    WINDOW,
    Columns,
    Figures,
    Kind,
    Measure,
    Task,
    Trail,
    columns_of,
    in_order,
    job_of,
    measures,
    median,
    median_interval,
    quantile,
    seeds_of,
    share,
    spread,
    text_of,
    written,
)
from pendula.documents import Document
from pendula.kernel.errors import WrongUsage
from pendula.spreading import Watch, Where

MARGIN = Fraction(2, 100)
LEAST_SEEDS = 5
LEAST_SKIP = 30
SHOWN = {1: "higher", -1: "lower", 0: "no difference"}
SERVED_TITLE = f"Paid, of what was wanted, over {WINDOW} ticks"

COMPARED = (
    *("committed_rate", "no_capacity_rate", "errors", "clearing_calls", "mean_interval", "mean_cost"),
    *("total_work", "wanted_", "volume_", "served_share_", "cleared_cycles", "cleared_amount_"),
    *("debt_reduction_", "total_debt_"),
)


class Row(Struct, frozen=True):
    """One measure: both medians, the median of the paired differences (B less A) and its interval.

    `pairs` is the number of seeds with the measure on both sides, `coverage` the probability that the interval contains
    the median. `shown` tells whether the interval excludes zero with 0.95 or more: "higher", "lower", "no difference"
    or, without any pair, "not measured".
    """

    measure: str
    meaning: str
    a: str | None
    b: str | None
    difference: str | None
    low: str | None
    high: str | None
    coverage: str | None
    pairs: int
    shown: str


class Check(Struct, frozen=True):
    """One condition of the verdict."""

    name: str
    passed: bool
    sentence: str


class Verdict(Struct, frozen=True):
    """Whether B does as well as A: it passes if every check does.

    `sound` and `no_worse` summarise the two groups of checks. `worth_its_calls` is an additional check for an adaptive
    side B: its rate against a static cadence with the nearest number of calls.
    """

    passed: bool
    checks: tuple[Check, ...]
    sound: bool
    no_worse: bool
    worth_its_calls: Check | None = None


class Curve(Struct, frozen=True):
    """Median and quartiles over seeds at each tick; None if undefined. Exact."""

    low: tuple[Fraction | None, ...]
    middle: tuple[Fraction | None, ...]
    high: tuple[Fraction | None, ...]


class Panel(Struct, frozen=True):
    """One chart over ticks for both sides; `unit` is empty for a rate."""

    title: str
    unit: str
    a: Curve
    b: Curve


class Comparison(Struct, frozen=True):
    """The comparison of two settings; `settings` has both values of each difference, `columns` all runs of both sides.

    `same` explains why nothing differs if both sides have the same digests with every seed.
    """

    scenario_id: str
    names: tuple[str, str]
    settings: dict[str, tuple[str, str]]
    seeds: tuple[int, ...]
    ticks: int
    skip: int
    rows: tuple[Row, ...]
    verdict: Verdict
    columns: Columns
    panels: tuple[Panel, ...]
    same: str | None = None


def compare(
    document: Document,
    a: Settings,
    b: Settings,
    seeds: Iterable[int] = range(1, 21),
    ticks: int = 120,
    workers: int = 1,
    *,
    skip: int = LEAST_SKIP,
    names: tuple[str, str] = ("A", "B"),
    dask: str | None = None,
    intensity: int = 100,
    lenient: bool = False,
    behaviour: str | None = None,
    watch: Watch | None = None,
) -> Comparison:
    """Run both settings with each seed, from the ledger of the scenario, and compare them after `skip` ticks.

    A `behaviour` plans the payments of both sides. Raises `WrongUsage` if the settings are equal, `UnknownBehaviour`,
    and what `spread` raises.
    """
    settings = differing_settings(a, b)
    if not settings:
        raise WrongUsage("Both sides have the same settings; there is nothing to compare")
    scenario = read_scenario(document, lenient=lenient)
    all_seeds = seeds_of(seeds)
    job = job_of(document, ticks, skip, intensity, lenient, trail=True, behaviour=behaviour)
    tasks = [Task(side, seed, name) for side, name in zip((a, b), names, strict=True) for seed in all_seeds]
    where = Where(workers, dask)
    results = spread(job, tasks, where, watch)
    left, right = results[: len(all_seeds)], results[len(all_seeds) :]
    cadence = matching_cadence(b, right, len(scenario.equivalents), range(skip, ticks))
    calendar = [] if cadence is None else [Task(cadence, seed, "the nearest cadence") for seed in all_seeds]
    all_measures = measures(sorted(scenario.equivalents))
    return Comparison(
        scenario_id=scenario.id,
        names=names,
        settings=settings,
        seeds=all_seeds,
        ticks=ticks,
        skip=skip,
        rows=tuple(
            _row(measure, left, right)
            for start in COMPARED
            for measure in all_measures
            if measure.name.startswith(start)
        ),
        verdict=judge(left, right, skip, spread(job, calendar, where) if calendar else ()),
        columns=_columns(all_measures, names, left, right),
        panels=tuple(_panels(left, right, sorted(scenario.equivalents))),
        same=why_same((a, b), left, right),
    )


def why_same(sides: tuple[Settings, Settings], left: Sequence[Figures], right: Sequence[Figures]) -> str | None:
    """A sentence if both sides have the same digests with every seed, else None."""
    if any((a.plan, a.ledger) != (b.plan, b.ledger) for a, b in zip(left, right, strict=True)):
        return None
    differences = [
        (name, settings.adaptive_no_capacity_high)
        for name, settings, runs in zip("AB", sides, (left, right), strict=True)
        if settings.clearing_policy is ClearingPolicy.ADAPTIVE and not any(figures.active for figures in runs)
    ]
    if len(differences) != 1:
        return "Both sides have equal results with every seed: the different settings had no effect"
    ((name, high),) = differences
    return f"{name} was never active: adaptive equals the static cadence below adaptive_no_capacity_high ({high})"


def matching_cadence(
    settings: Settings, figures: Sequence[Figures], equivalents: int, counted: range
) -> Settings | None:
    """Static settings with the nearest number of calls; ties go to the cadence closest to that of the settings.

    None for static settings.
    """
    if settings.clearing_policy is not ClearingPolicy.ADAPTIVE:
        return None
    calls = median(Fraction(run.calls) for run in figures)
    assert calls is not None

    def off(every: int) -> tuple[Fraction, int, int]:
        # Tick 0 has no calls.
        times = (counted.stop - 1) // every - max(0, counted.start - 1) // every
        return abs(times * equivalents - calls), abs(every - settings.clearing_every_n_ticks), every

    every = min(range(1, counted.stop + 1), key=off)
    calendar = {"clearing_policy": "static", "clearing_every_n_ticks": str(every)}
    return change_settings(settings, calendar)


def judge(left: Sequence[Figures], right: Sequence[Figures], skip: int, calendar: Sequence[Figures] = ()) -> Verdict:
    """Judge whether B is no worse than A: medians compared exactly, with margins of 0.02."""
    errors = sum(run.errors for run in (*left, *right))
    over = sum(run.over_budget for run in (*left, *right))
    sound = (
        Check("seeds", len(left) >= LEAST_SEEDS, f"{len(left)} seeds; at least {LEAST_SEEDS}"),
        Check("skip", skip >= LEAST_SKIP, f"the first {skip} ticks skipped; at least {LEAST_SKIP}"),
        Check("errors", errors == 0, f"{errors} technical errors on both sides; none allowed"),
        Check("budgets", over == 0, f"{over} clearing calls beyond their budget; none allowed"),
    )
    no_worse = (
        _no_worse("committed_rate", left, right, _committed, 1),
        _no_worse("no_capacity_rate", left, right, lambda run: share(run.no_capacity, run.attempts), -1),
    )
    halves = [all(check.passed for check in half) for half in (sound, no_worse)]
    worth = _no_worse("worth_its_calls", calendar, right, _committed, 1, "the nearest cadence") if calendar else None
    return Verdict(all(halves), sound + no_worse, sound=halves[0], no_worse=halves[1], worth_its_calls=worth)


def _committed(figures: Figures) -> Fraction | None:
    return share(figures.committed, figures.attempts)


def _no_worse(
    name: str,
    left: Sequence[Figures],
    right: Sequence[Figures],
    rate: Callable[[Figures], Fraction | None],
    good: int,
    called: str = "A",
) -> Check:
    """`good` is 1 if more is better, -1 if less is."""
    a, b = median(map(rate, left)), median(map(rate, right))
    if a is None or b is None:
        return Check(name, False, "no payment was tried, so there is no rate")
    bound = a - good * MARGIN
    sign = "≥" if good > 0 else "≤"
    margin = "-" if good > 0 else "+"
    sentence = f"B {_four(b)} {sign} {called} {_four(a)} {margin} {_four(MARGIN)}"
    return Check(name, (b - bound) * good >= 0, sentence)


def _four(value: Fraction) -> str:
    """With four digits, half to even."""
    parts = round(value * 10_000)
    return f"{parts // 10_000}.{parts % 10_000:04d}"


def _row(measure: Measure, left: Sequence[Figures], right: Sequence[Figures]) -> Row:
    a, b = [_number(measure, figures) for figures in left], [_number(measure, figures) for figures in right]
    differences = in_order(map(_difference, a, b))
    interval = median_interval(differences)
    return Row(
        measure=measure.name,
        meaning=measure.meaning,
        a=text_of(median(a)),
        b=text_of(median(b)),
        difference=text_of(median(differences)),
        low=text_of(interval and interval.low),
        high=text_of(interval and interval.high),
        coverage=text_of(interval and interval.coverage),
        pairs=len(differences),
        shown=SHOWN[interval.side] if interval else "not measured",
    )


def _difference(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else b - a


def _number(measure: Measure, figures: Figures) -> Fraction | None:
    value = measure.of(figures)
    assert not isinstance(value, str)
    return None if value is None else Fraction(value)


def _columns(
    all_measures: Sequence[Measure], names: tuple[str, str], left: Sequence[Figures], right: Sequence[Figures]
) -> Columns:
    kinds = {"side": Kind.TEXT, "seed": Kind.INTEGER} | {measure.name: measure.kind for measure in all_measures}
    rows: list[list[int | str | None]] = [
        [name, figures.seed, *(written(measure.of(figures)) for measure in all_measures)]
        for name, side in zip(names, (left, right), strict=True)
        for figures in side
    ]
    return columns_of(kinds, rows)


def _panels(left: Sequence[Figures], right: Sequence[Figures], codes: Sequence[str]) -> Iterable[Panel]:
    def panel(title: str, unit: str, values: Callable[[Trail], Sequence[Fraction | None]]) -> Panel:
        a, b = (_curve([values(run.trail) for run in side if run.trail is not None]) for side in (left, right))
        return Panel(title, unit, a, b)

    yield panel(f"Committed rate over {WINDOW} ticks", "", lambda trail: trail.committed_rates)
    for code in codes:
        yield panel(f"{SERVED_TITLE}, {code}", "", partial(Trail.served_shares, code=code))
    for code in codes:
        yield panel("Total debt", code, partial(_debts, code=code))


def _debts(trail: Trail, code: str) -> list[Fraction | None]:
    return [Fraction(debt, ATOMS) for debt in trail.debts[code]]


def _curve(rows: Sequence[Sequence[Fraction | None]]) -> Curve:
    """Quartiles per tick; runs that a guardrail ended have fewer ticks."""
    at_tick = [in_order(values) for values in zip_longest(*rows)]
    low, middle, high = (tuple(quantile(values, Fraction(part, 4)) for values in at_tick) for part in (1, 2, 3))
    return Curve(low, middle, high)
