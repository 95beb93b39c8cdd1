"""Continue a run with other settings from a tick on, and compare.

    other = fork(run, change_settings(run.settings, {"clearing_policy": "adaptive"}))
    compare_runs(run, other, ticks=50).first_difference["ledger"]

Up to the fork both are one run; differences afterwards come from the settings. Forking does not change the original
run; `compare_runs` steps both.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from pendula.credit.engine import Run
from pendula.credit.money import atoms_of_sum, text, text_8
from pendula.credit.runs.headless import ClearingRow, Diagnostic, Headless, RunPlan
from pendula.credit.settings import InvalidSetting, Settings, check_settings, differing_settings
from pendula.credit.state.counters import Counters
from pendula.kernel.canonical import decode, encode
from pendula.kernel.engine import NoOutside
from pendula.kernel.errors import InputRefused

Metrics = dict[str, dict[str, str | None]]


class ForkRefused(InputRefused):
    """The run cannot continue with other settings. Facts: `tick`, `state`."""

    code = "fork_refused"


class Cleared(Struct, frozen=True):
    """Totals of the clearing of a branch."""

    calls: int
    cleared_cycles: int
    cleared_amount: str
    debt_reduction: str


class Branch(Struct, frozen=True):
    """One of two runs after the fork: counters of the whole run, clearing and diagnostics since the fork."""

    state: str
    counters: Counters
    digests: dict[str, str]
    metrics: Metrics
    clearing: tuple[ClearingRow, ...]
    cleared: Cleared
    diagnostics: tuple[Diagnostic, ...]


class Difference(Struct, frozen=True):
    """The fork's numbers minus the original's; null if one of them is undefined."""

    counters: dict[str, int]
    metrics: Metrics
    cleared: Cleared


class Comparison(Struct, frozen=True):
    """Two runs that are equal up to `tick`, after `ticks` more.

    `settings` has both values of each that differs; `first_difference` the first tick after which the digest of the
    plan or of the ledger differs, null if none.
    """

    tick: int
    ticks: int
    settings: dict[str, tuple[str, str]]
    first_difference: dict[str, int | None]
    original: Branch
    fork: Branch
    difference: Difference


def fork(run: Run, settings: Settings) -> Run:
    """A second run at the same tick, with other settings from there on; raises `InvalidSetting`, `ForkRefused`."""
    if run.state_word != "running":
        raise ForkRefused(
            f"The run is {run.state_word} before tick {run.tick}; fork it at an earlier tick",
            tick=run.tick,
            state=run.state_word,
        )
    if settings.tick_ms_base != run.settings.tick_ms_base:
        raise InvalidSetting(
            "The length of a tick cannot change within a run",
            variable="SIMULATOR_TICK_MS_BASE",
            value=str(settings.tick_ms_base),
            allowed=str(run.settings.tick_ms_base),
        )
    # A copy through bytes: the two runs share no state.
    other = type(run).from_state(decode(encode(run.config)), run.state())
    other.use(check_settings(settings))
    other.outside = NoOutside()
    return other


def compare_runs(original: Run, other: Run, ticks: int, watch: Callable[[int], None] | None = None) -> Comparison:
    """Step both, tick by tick, and compare; calls `watch` with the number of finished ticks.

    Each asks its own `outside`. Raises `ForkRefused` unless both are at the same tick.
    """
    if original.tick != other.tick:
        message = f"One run is at tick {original.tick}, the other at {other.tick}; both must be at the same tick"
        raise ForkRefused(message, tick=original.tick, state=original.state_word)
    tick, settings = original.tick, differing_settings(original.settings, other.settings)
    both = _headless(original), _headless(other)
    first: dict[str, int | None] = dict.fromkeys(original.digests())
    for done in range(ticks):
        for headless in both:
            headless.step(1)
        left, right = original.digests(), other.digests()
        for name, at in first.items():
            if at is None and left[name] != right[name]:
                first[name] = tick + done
        if watch is not None:
            watch(done + 1)
    branches = _branch(both[0]), _branch(both[1])
    return Comparison(tick, ticks, settings, first, *branches, _difference(*branches))


def _headless(run: Run) -> Headless:
    return Headless(RunPlan(run.config, run.scenario, (), "request"), run)


def _branch(headless: Headless) -> Branch:
    result = headless.result()
    return Branch(
        state=result.state,
        counters=result.counters,
        digests=result.digests,
        metrics=result.metrics,
        clearing=result.clearing,
        cleared=_cleared(result.clearing),
        diagnostics=result.diagnostics,
    )


def _difference(original: Branch, other: Branch) -> Difference:
    before, after = (msgspec.structs.asdict(branch.counters) for branch in (original, other))
    return Difference(
        {name: after[name] - before[name] for name in before},
        {
            code: {key: _less(values[key], original.metrics.get(code, {}).get(key)) for key in values}
            for code, values in other.metrics.items()
        },
        Cleared(
            other.cleared.calls - original.cleared.calls,
            other.cleared.cleared_cycles - original.cleared.cleared_cycles,
            text(atoms_of_sum(other.cleared.cleared_amount) - atoms_of_sum(original.cleared.cleared_amount)),
            text(atoms_of_sum(other.cleared.debt_reduction) - atoms_of_sum(original.cleared.debt_reduction)),
        ),
    )


def _less(value: str | None, other: str | None) -> str | None:
    if value is None or other is None:
        return None
    return text_8(atoms_of_sum(value) - atoms_of_sum(other))


def _cleared(rows: Sequence[ClearingRow]) -> Cleared:
    return Cleared(
        len(rows),
        sum(row.cleared_cycles for row in rows),
        text(sum(atoms_of_sum(row.cleared_amount) for row in rows)),
        text(sum(atoms_of_sum(row.debt_reduction) for row in rows)),
    )
