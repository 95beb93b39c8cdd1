"""Every combination of some settings with every seed: one run each, one row each.

    grid = {"clearing_every_n_ticks": ["5", "25"], "clearing_policy": ["static", "adaptive"]}
    sweep(read_file("village.json"), grid, seeds=range(1, 6), ticks=120, workers=4).csv()

Rows are in the order of the grid: the first setting changes slowest, seeds fastest.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product

from msgspec import Struct

from pendula.credit.money import ATOMS
from pendula.credit.reading import read_scenario
from pendula.credit.settings import (
    BY_NAME,
    InvalidSetting,
    Setting,
    Settings,
    change_settings,
    near_settings,
    setting_called,
    setting_texts,
)
from pendula.credit.settings import Kind as SettingKind
from pendula.credit.studies.figures import (
    Columns,
    Kind,
    Task,
    columns_of,
    job_of,
    measures,
    median,
    seeds_of,
    spread,
    text_of,
    written,
)
from pendula.credit.studies.variations import changed_document, names_a_place, variation
from pendula.documents import Document
from pendula.kernel.errors import InputRefused, LimitExceeded
from pendula.spreading import RUNS_MOST, Watch, Where

# The kinds of the columns of settings; all others are text.
KINDS = {
    SettingKind.INTEGER: Kind.INTEGER,
    SettingKind.DECIMAL: Kind.DECIMAL,
    SettingKind.AMOUNT: Kind.DECIMAL,
}


class InvalidGrid(InputRefused):
    """The grid is invalid. Facts: `setting`, and `value` if it is the cause."""

    code = "invalid_grid"


class Combination(Struct, frozen=True):
    """One point of the grid: varied values as text by name, all settings, and changes of the scenario."""

    values: dict[str, str]
    settings: Settings
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def about(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.values.items()) or "the settings as they are"


def sweep(
    document: Document,
    grid: Mapping[str, Sequence[str]],
    seeds: Iterable[int],
    ticks: int,
    workers: int = 1,
    *,
    dask: str | None = None,
    settings: Settings | None = None,
    skip: int = 0,
    intensity: int = 100,
    lenient: bool = False,
    changes: Sequence[tuple[str, str]] = (),
    behaviour: str | None = None,
    watch: Watch | None = None,
) -> Columns:
    """A row per combination and seed: varied values, seed, all measures, digests of plan and ledger.

    The grid maps settings, by name or by variable, or paths of the scenario (`variations`) to values as text. Other
    settings are those of `settings`, and `changes` apply to the scenario. A `behaviour` plans the payments of every
    run; worker processes know the behaviours that the module of the script registers. The scenario and all
    combinations are checked before anything runs. Raises `DocumentRefused`, `InvalidGrid`, `InvalidSetting`,
    `UnknownBehaviour`, and what `spread` raises.
    """
    document = changed_document(document, changes, lenient=lenient)
    scenario = read_scenario(document, lenient=lenient)
    all_seeds = seeds_of(seeds)
    points = combinations(grid, settings or Settings(), len(all_seeds))
    for wanted_changes in dict.fromkeys(point.changes for point in points if point.changes):
        read_scenario(changed_document(document, wanted_changes, lenient=lenient), lenient=lenient)
    job = job_of(document, ticks, skip, intensity, lenient, behaviour=behaviour)
    tasks = [Task(point.settings, seed, point.about, point.changes) for point in points for seed in all_seeds]
    results = spread(job, tasks, Where(workers, dask), watch)
    all_measures = measures(sorted(scenario.equivalents))
    axes = list(points[0].values)
    kinds = {name: KINDS.get(BY_NAME[name].kind, Kind.TEXT) if name in BY_NAME else Kind.TEXT for name in axes} | {
        "seed": Kind.INTEGER
    }
    clash = [measure.name for measure in all_measures if measure.name in kinds]
    assert not clash, f"a setting and a measure are both called {clash}"
    rows = [
        [*(_axis(name, task) for name in axes), task.seed, *(written(measure.of(figures)) for measure in all_measures)]
        for task, figures in zip(tasks, results, strict=True)
    ]
    return columns_of(kinds | {measure.name: measure.kind for measure in all_measures}, rows)


def _axis(name: str, task: Task) -> int | str | None:
    """The varied value of a column: a setting, or a value at a path of the scenario."""
    return _cell(BY_NAME[name], task.settings) if name in BY_NAME else dict(task.changes)[name]


def summarise(columns: Columns, varied: Sequence[str]) -> Columns:
    """One row per combination: the number of runs, and the median over seeds of each numeric measure.

    `varied` are the columns that identify combinations. Medians are decimals.
    """
    groups: dict[tuple[int | str | None, ...], list[int]] = {}
    for at in range(len(columns)):
        groups.setdefault(tuple(columns.values[name][at] for name in varied), []).append(at)
    skipped = {*varied, "seed"}
    numbers = [name for name, kind in columns.kinds.items() if kind is not Kind.TEXT and name not in skipped]
    kinds = (
        {name: columns.kinds[name] for name in varied} | {"runs": Kind.INTEGER} | dict.fromkeys(numbers, Kind.DECIMAL)
    )
    rows = [
        [*values, len(places), *(_middle([columns.values[name][at] for at in places]) for name in numbers)]
        for values, places in groups.items()
    ]
    return columns_of(kinds, rows)


def _middle(values: Sequence[int | str | None]) -> int | str | None:
    return written(median(None if value is None else Fraction(value) for value in values))


def combinations(grid: Mapping[str, Sequence[str]], settings: Settings, seeds: int = 1) -> list[Combination]:
    """Every point of the grid; raises `InvalidGrid`, `InvalidSetting` or, for too many runs, `LimitExceeded`."""
    axes = _axes(grid)
    count = seeds
    for values in axes.values():
        count *= len(values)
    if count > RUNS_MOST:
        message = f"Too many runs: {count}; the limit is {RUNS_MOST}"
        raise LimitExceeded(message, limit="runs", value=count, allowed=RUNS_MOST)
    points = [_point(dict(zip(axes, values, strict=True)), settings) for values in product(*axes.values())]
    first: dict[object, Combination] = {}
    for point in points:
        twin = first.setdefault((point.settings, point.changes), point)
        if twin is not point:
            message = f"{twin.about} and {point.about} are the same settings; each would run twice"
            raise InvalidGrid(message, setting=next(iter(axes)))
    return points


def _axes(grid: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    axes: dict[str, Sequence[str]] = {}
    for key, values in grid.items():
        name = variation(key).path if names_a_place(key) else _setting(key).name
        if name in axes:
            raise InvalidGrid(f"The setting {name} varies twice", setting=name)
        if not values:
            raise InvalidGrid(f"The setting {name} has no values to vary over", setting=name)
        axes[name] = values
    return axes


def _setting(key: str) -> Setting:
    setting = setting_called(key)
    if setting is None:
        raise InvalidGrid(f"No setting is called {key!r}{near_settings(key)}", setting=key)
    return setting


def _point(values: dict[str, str], settings: Settings) -> Combination:
    try:
        changes = tuple((name, value) for name, value in values.items() if name not in BY_NAME)
        mine = {name: value for name, value in values.items() if name in BY_NAME}
        return Combination(values, change_settings(settings, mine), changes)
    except InvalidSetting as refused:
        about = ", ".join(f"{name}={value}" for name, value in values.items())
        raise InvalidSetting(f"With {about}: {refused.message}", **refused.details) from None


def _cell(setting: Setting, settings: Settings) -> int | str | None:
    """The column value of a setting; null if it is unset or there is no cap."""
    value = getattr(settings, setting.name)
    if value is None:
        return None
    if setting.kind in (SettingKind.DECIMAL, SettingKind.AMOUNT):
        return text_of(Fraction(value) / (ATOMS if setting.kind is SettingKind.AMOUNT else 1))
    return int(value) if setting.kind is SettingKind.INTEGER else setting_texts(settings)[setting.variable]
