"""The best trial, and recommendations: how many trucks are enough, and what to change on the map.

Each sentence names the numbers it rests on. Rates are means over seeds; waits are the longest of any seed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from pendula.fleet.runs.tuning.figures import HOUR_MS, Figures
from pendula.fleet.runs.tuning.trials import Trial
from pendula.kernel.canonical import Json
from pendula.kernel.wording import counted

# From which share of the time on, in hundredths, a station or a wait is worth a sentence.
BUSY_PERCENT = 80
WAITED_PERCENT = 8
# A truck more that adds less than this, in hundredths, adds nothing.
GAIN_PERCENT = 3
MOST_SENTENCES = 6
# A rate that rests on fewer tasks says little.
FEW_TASKS = 10

_REMEDIES: Mapping[str, str] = {
    "WAIT_EDGE_DIRECTION": "make it one-way, or give it a second lane",
    "WAIT_SPACING": "trucks queue there: a waiting place before it, or another way round, would let others pass",
    "WAIT_CONFLICT": "two lanes come too close there: move them apart",
    "WAIT_NODE": "trucks stop or turn in it: a way straight through, or a station away from the crossing, would help",
    "WAIT_CRITICAL_SECTION": "one truck at a time is in it: a second stand, or a way out at its far end, would help",
    "WAIT_EXIT_ROOM": "there is no room behind it for a truck to leave it: lengthen the way out",
    "WAIT_QUEUE_ORDER": "trucks queue there: a waiting place before it, or another way round, would let others pass",
    "WAIT_SAFE_STATE": "trucks wait lest they block each other: a bay or a loop there gives them where to pass",
}


class Row(Struct, frozen=True, rename="camel"):
    """Trials that differ by their seed alone."""

    trucks: int
    one_way_milli: int
    changes: tuple[tuple[str, str], ...]
    tasks_per_hour: int
    longest_wait_ms: int
    violations: int
    acceptable: bool
    refused: str | None = None
    # All that the rate rests on.
    tasks: int = 0


class Outcome(Struct, frozen=True, rename="camel"):
    """`best` is None where no trial was acceptable."""

    rows: tuple[Row, ...]
    best: Row | None
    sentences: tuple[str, ...]

    def form(self) -> dict[str, Json]:
        return {
            "rows": [_form(one) for one in self.rows],
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


def outcome_of(trials: Sequence[Trial], figures: Sequence[Figures], longest_wait_ms: int) -> Outcome:
    """Rows in the order of the trials. The best one has the most tasks an hour of those in which no truck waited
    longer; of equals the one with fewer trucks, then with the shorter wait, then the first."""
    groups: dict[tuple[int, int, tuple[tuple[str, str], ...]], list[Figures]] = {}
    for trial, one in zip(trials, figures, strict=True):
        groups.setdefault((trial.trucks, trial.one_way_milli, trial.changes), []).append(one)
    rows = tuple(_row(key, found, longest_wait_ms) for key, found in groups.items())
    good = [row for row in rows if row.acceptable]
    best = min(good, key=lambda row: (-row.tasks_per_hour, row.trucks, row.longest_wait_ms), default=None)
    sentences = [*_of_few_tasks(rows), *_of_refusals(rows)]
    if best is not None:
        found = groups[best.trucks, best.one_way_milli, best.changes]
        sentences += [*_of_trucks(rows, best), *_of_stations(found), *_of_waits(found, best.trucks)]
    return Outcome(rows, best, tuple(sentences[:MOST_SENTENCES]))


def _row(key: tuple[int, int, tuple[tuple[str, str], ...]], found: Sequence[Figures], longest_wait_ms: int) -> Row:
    refused = next((one.refused for one in found if one.refused is not None), None)
    simulated = sum(one.simulated_ms for one in found)
    longest = max(one.longest_wait_ms for one in found)
    violations = sum(one.violations for one in found)
    return Row(
        *key,
        tasks_per_hour=sum(one.tasks for one in found) * HOUR_MS // max(simulated, 1),
        longest_wait_ms=longest,
        violations=violations,
        acceptable=refused is None and not violations and longest <= longest_wait_ms,
        refused=refused,
        tasks=sum(one.tasks for one in found),
    )


def _of_few_tasks(rows: Sequence[Row]) -> list[str]:
    """Whether a rate rests on so few tasks that one more or less changes everything."""
    least = min((row for row in rows if row.refused is None), key=lambda row: (row.tasks, row.trucks), default=None)
    if least is None or least.tasks >= FEW_TASKS:
        return []
    both = f"{counted(least.tasks, 'task')} with {counted(least.trucks, 'truck')}"
    return [f"all of this rests on few tasks, {both}: give --minutes or --seeds more, {FEW_TASKS} tasks at least"]


def _of_refusals(rows: Sequence[Row]) -> list[str]:
    """The least number of trucks that may not run, why, and its remedy."""
    refused = min((row for row in rows if row.refused is not None), key=lambda row: row.trucks, default=None)
    if refused is None:
        return []
    changed = ", ".join(f"{name}={value}" for name, value in refused.changes)
    settings = f" with {changed}" if changed else ""
    return [f"{counted(refused.trucks, 'truck')} cannot run on this map{settings}: {refused.refused}"]


def _of_trucks(rows: Sequence[Row], best: Row) -> list[str]:
    """Whether fewer trucks would do as much, and whether more would do more."""
    most = {row.trucks: 0 for row in rows}
    for row in rows:
        most[row.trucks] = max(most[row.trucks], row.tasks_per_hour if row.refused is None else 0)
    enough = next(count for count in sorted(most) if 100 * most[count] >= (100 - GAIN_PERCENT) * most[best.trucks])
    rests = {row.trucks: row.tasks for row in rows if row.tasks_per_hour == most[row.trucks]}
    said = []
    if enough < best.trucks:
        both = f"{most[enough]} against {most[best.trucks]} tasks an hour"
        done = f"{rests[enough]} and {rests[best.trucks]} tasks were done"
        said.append(f"{counted(enough, 'truck')} do nearly as much as {best.trucks}: {both}; {done}")
    more = [count for count in sorted(most) if count > best.trucks]
    if more and most[more[-1]] <= best.tasks_per_hour:
        both = f"{most[more[-1]]} tasks an hour with {more[-1]}; {rests.get(more[-1], 0)} tasks were done"
        said.append(f"more than {counted(best.trucks, 'truck')} add nothing: {both}")
    return said


def _of_stations(found: Sequence[Figures]) -> list[str]:
    busy: Counter[str] = Counter()
    for one in found:
        busy.update(dict(one.busy))
    whole = sum(one.simulated_ms for one in found)
    return [
        f"{node} is loading or unloading {100 * ms // max(whole, 1)} % of the time: a second station beside it would"
        " allow more, more trucks will not"
        for node, ms in sorted(busy.items(), key=lambda one: (-one[1], one[0]))
        if 100 * ms >= BUSY_PERCENT * whole
    ]


def _of_waits(found: Sequence[Figures], trucks: int) -> list[str]:
    """Where trucks lose the most time, with the reason that costs the most there."""
    lost: Counter[tuple[str, str]] = Counter()
    for one in found:
        lost.update({(name, code): ms for name, code, ms in one.waits})
    places: Counter[str] = Counter()
    for (name, _), ms in lost.items():
        places[name] += ms
    whole = trucks * sum(one.simulated_ms for one in found)
    said = []
    for name, ms in sorted(places.items(), key=lambda one: (-one[1], one[0])):
        if 100 * ms < WAITED_PERCENT * whole:
            break
        code = min((code for place, code in lost if place == name), key=lambda code: (-lost[name, code], code))
        remedy = _REMEDIES.get(code, "look at it with `pendula fleet why`")
        said.append(f"trucks spend {100 * ms // whole} % of their time waiting for {name} ({code}): {remedy}")
    return said
