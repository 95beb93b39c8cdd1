"""Actions beside SimPy, in one run: the same instances, locks and durations, the same starts and ends on both sides.

First the start and the end of every action and every line of the log are compared. Then the sides take turns. SimPy
only schedules processes; ours also validates, keeps ids, answers why, saves and replays.
"""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from bench import actions_figures as figures
from bench import actions_loads as loads
from bench import actions_ours as ours
from bench.actions_loads import Closed, Open
from bench.measuring.cpu_time import Rounds, Work
from pendula.cli.benchmarks import Progress, Row, Target, compared

PEERS: tuple[str, ...] = ("simpy",)

ROUNDS, QUICK_ROUNDS = 7, 3
BARE = {"closed": Target(">=", Decimal(2)), "open": Target(">=", Decimal(5))}
LOGGED = {"closed": Target(">=", Decimal(3)), "open": Target(">=", Decimal("4.5"))}

FAIRNESS = {
    "closed": "one lock an action, for which SimPy needs no condition; SimPy takes ends of a minute by admission, by a "
    "Timeout of that priority, as the schedules would differ without; ours also asks for each next action in the form "
    "that journals record, and checks ids and limits; the more ends share a minute, the larger our lead",
    "open": "none to three of 50 locks an action, two submissions in five minutes, so that the locks keep up: most "
    "minutes have one event, and our lead is smallest; SimPy awaits several locks with AllOf and one alone, and "
    "begins one process an action before the first minute, as ours is given all submissions; ours also checks ids, "
    "limits and definitions",
    "open, 500 locks": "a world ten times as busy, for comparison; printed, not judged",
}


def run(quick: bool, progress: Progress) -> list[Row]:
    share = 5 if quick else 1
    rounds = QUICK_ROUNDS if quick else ROUNDS
    given: dict[str, Closed | Open] = {
        "closed": loads.closed(each=loads.ACTIONS_EACH // share),
        "open": loads.opened(loads.SUBMISSIONS // share),
        "open, 500 locks": loads.opened(loads.SUBMISSIONS // share, locks=500),
    }
    found: list[Row] = []
    for name, load in given.items():
        progress(f"{name} load, {load.actions} actions: do both sides agree?")
        assert_agreement(load)
        progress(f"{name} load, {load.actions} actions")
        found += _beside_simpy(name, load, Rounds(_sides(load), rounds))
    return found + figures.rows(quick, progress)


def assert_agreement(load: Closed | Open) -> None:
    """Compare every start, end and line of the log, except for the order of lines within a minute."""
    from bench import actions_simpy as simpy_side

    times = simpy_side.Times()
    simpy_side.kept(load, times)
    assert ours.times(load) == times.found, "the sides do not give the same schedule"
    log = simpy_side.Log(json.dumps)
    simpy_side.kept(load, log)
    assert _sorted_lines(ours.logged(load)[1]) == _sorted_lines(log.lines), "the sides do not write the same lines"


def _sorted_lines(lines: list[Any]) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in lines]
    for record in records:
        del record["seq"]
    return sorted(records, key=lambda one: (one["epoch"], one["t"], one["type"], one["meta"]["admission"]))


def _sides(load: Closed | Open) -> Mapping[str, Work]:
    from bench import actions_simpy as simpy_side

    def logged(dumps: Callable[[Any], Any]) -> Work:
        return lambda: simpy_side.kept(load, simpy_side.Log(dumps))

    sides: dict[str, Work] = {
        "ours": lambda: ours.schedule(load),
        "SimPy": lambda: simpy_side.schedule(load),
        "ours, logged": lambda: ours.logged(load),
        "SimPy, json": logged(json.dumps),
        "SimPy, msgspec": logged(msgspec.json.encode),
    }
    match load:
        case Closed():
            sides["ours, processes"] = lambda: ours.processes(load)
        case Open():
            sides["SimPy, one source"] = lambda: simpy_side.from_one_source(load)
    return sides


def _beside_simpy(name: str, load: Closed | Open, measured: Rounds) -> list[Row]:
    def row(title: str, mine: str, theirs: str, target: Target | None = None, fairness: str = "") -> Row:
        return compared(
            f"{name}: {title}",
            load.actions / measured.seconds(mine),
            load.actions / measured.seconds(theirs),
            "actions/s",
            against=theirs,
            ratio=measured.times_faster(mine, theirs),
            target=target,
            fairness=fairness,
        )

    events = "event list and log lines"
    found = [
        row("schedule only", "ours", "SimPy", BARE.get(name), FAIRNESS[name]),
        row(events, "ours, logged", "SimPy, json", LOGGED.get(name)),
        row(f"{events}, msgspec on both sides", "ours, logged", "SimPy, msgspec"),
        row(f"{events}, bare SimPy", "ours, logged", "SimPy"),
    ]
    if isinstance(load, Closed):
        note = "each step of a process passes through canonical bytes and back, as with a journal"
        found.append(row("processes of the live form", "ours, processes", "SimPy", fairness=note))
    else:
        note = "SimPy begins each process at its time: fewer timeouts wait at once"
        found.append(row("schedule only, SimPy from one source", "ours", "SimPy, one source", fairness=note))
    return found
