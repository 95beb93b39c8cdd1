"""The best trial, and recommendations: how many trucks are enough, and what to change on the map.

Each sentence names the numbers it rests on. Rates are means over seeds; waits are the longest of any seed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from pendula.fleet.runs.tuning.figures import HOUR_MS, TrialFigures
from pendula.fleet.runs.tuning.trials import Trial
from pendula.kernel.canonical import Json
from pendula.kernel.wording import counted

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
