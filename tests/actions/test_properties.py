"""Laws over random worlds: the engine against the slow oracle, and against itself on another path."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.actions import RunResult, Start, World
from pendula.actions.runs.batch import config_of
from pendula.kernel.canonical import encode
from pendula.testing import over_seeds
from tests.actions.closed_form import closed_form
from tests.actions.oracle import Oracle
from tests.actions.scenarios import (
    HORIZON,
    SEEDS,
    commands_of,
    comparable,
    declared,
    engine_run,
    epoch_of,
    expected,
    fresh,
    scenario,
    unshrunk,
    watched,
)
from tests.actions.worlds import day, does, lasting


def compare_with_oracle(seed: int) -> None:
    case = scenario(seed)

    assert comparable(engine_run(case)) == expected(case)


@pytest.mark.req("ACT-EVT-1", "ACT-EVT-3", "ACT-EVT-4", "ACT-DATA-6", "ACT-LOCK-2", "ACT-LOCK-6", "ACT-INT-6")
def test_the_engine_agrees_with_the_oracle() -> None:
    assert over_seeds(compare_with_oracle, range(500)) == 500


def compare_watched_with_oracle(seed: int) -> None:
    case = watched(seed)

    assert comparable(engine_run(case)) == expected(case)


@pytest.mark.req("ACT-USE-1", "ACT-USE-2", "ACT-USE-4", "ACT-USE-7")
def test_the_engine_agrees_with_the_oracle_under_live_requests() -> None:
    """Locks with a capacity, waits for resources, cancelled submissions, alarms in the minute of a start."""
    assert over_seeds(compare_watched_with_oracle, range(120)) == 120


def compare_declared_with_oracle(seed: int) -> None:
    case = declared(seed)

    assert comparable(engine_run(case)) == expected(case)


@pytest.mark.req("ACT-DUR-4", "ACT-EVT-5", "ACT-INT-4", "ACT-LOCK-8", "ACT-VIS-2")
def test_the_engine_agrees_with_the_oracle_on_declared_rules() -> None:
    """Follow-ups, daily and conditional modifiers, expiries, holds after a preemption, forced cancellations."""
    assert over_seeds(compare_declared_with_oracle, range(200)) == 200


def test_declared_worlds_cover_every_declared_feature() -> None:
    seen: set[str] = set()
    for seed in range(80):
        case = declared(seed)
        for one_day in Oracle(case.document, case.follow, case.live).days:
            for event in one_day.events:
                meta = event["meta"]
                seen.update(name for name in ("reason", "forced") if name in meta)
                seen.update("known" for _ in [0] if str(meta.get("knowledge", "")).startswith("action:"))
                seen.update("followed" for _ in [0] if "/" in event["action_id"])
            seen.update(code for _, code, _ in one_day.diagnostics)
        seen.update("after" for action in Oracle(case.document, case.follow, case.live).admitted if action.after_cause)

    assert seen >= {"reason", "forced", "known", "followed", "after", "NotInterruptible"}


@pytest.mark.long
def test_the_engine_agrees_with_the_oracle_twenty_thousand_times() -> None:
    assert over_seeds(compare_with_oracle, range(500, 10_500)) == 10_000
    assert over_seeds(compare_watched_with_oracle, range(120, 10_120)) == 10_000
    assert over_seeds(compare_declared_with_oracle, range(200, 5_200)) == 5_000


def test_watched_worlds_cover_every_live_feature() -> None:
    seen: set[str] = set()
    for seed in range(60):
        case = watched(seed)
        for one_day in Oracle(case.document, case.follow, case.live).days:
            seen.update(code for _, code in one_day.rejections)
            seen.update("several" for held, _ in one_day.locks.values() if len(held) > 1)
            for before, event in pairwise(one_day.events):
                if (before["type"], event["type"]) == ("start", "interrupt") and before["t"] == event["t"]:
                    seen.add("broken off in its minute")
        short = [action for action in Oracle(case.document, case.follow, case.live).admitted if not action.reserved]
        seen.update("in line" for _ in short)

    assert seen >= {"Cancelled", "several", "broken off in its minute", "in line"}


@unshrunk
@given(SEEDS, st.integers(3, 25))
def test_a_watched_world_restored_at_every_step_continues_unchanged(seed: int, step: int) -> None:
    case = (declared if seed % 3 == 0 else watched)(seed)
    world, again = fresh(case), fresh(case)
    for command in commands_of(case, step=step):
        restored = World.from_state(config_of(case.document), again.state())
        restored.outside = again.outside

        assert encode(restored.apply(command)) == encode(world.apply(command))
        again = restored
    assert again.state() == world.state()


def test_random_worlds_cover_every_feature() -> None:
    seen: set[str] = set()
    for seed in range(200):
        for one in Oracle(scenario(seed).document, scenario(seed).follow).days:
            seen.update(event["type"] for event in one.events)
            seen.update(code for _, code in one.rejections)
            seen.update(code for _, code, _ in one.diagnostics)
            seen.update(event["meta"].get("resume", "") for event in one.events)
            seen.update("segment" for event in one.events if event["meta"].get("segment", 0) > 1)
            seen.update("followed" for event in one.events if event["action_id"].startswith("F"))
            seen.update("late" for event in one.events if "late" in event["meta"])
            seen.update("deferred" for _ in one.deferred)
            seen.update("carried_in" for _ in one.carried_in)

    assert seen >= {"start", "end", "interrupt", "visibility_change", "auto", "manual", "drop", "segment", "followed"}
    assert seen >= {"CannotAcquireLock", "InsufficientResources", "DuplicateActionId", "UnknownVerb", "UnknownLock"}
    assert seen >= {"preempt_refused", "interrupt_ignored", "NotCancellable", "NotResumable", "InvalidDuration"}
    assert seen >= {"late", "deferred", "carried_in"}


# Laws that need no oracle


def world_events(result: RunResult) -> list[tuple[int, Any]]:
    """Every event with its minute of the run."""
    return [(event.t + number * HORIZON, event) for number, epoch in enumerate(result.epochs) for event in epoch.events]


@pytest.mark.req("ACT-LOCK-1")
@unshrunk
@given(SEEDS)
def test_no_lock_is_ever_held_by_two(seed: int) -> None:
    case = scenario(seed)
    defs, exclusive = case.document["action_defs"], case.document["options"]["actor_exclusive"]
    held: dict[str, str] = {}
    for _, event in world_events(engine_run(case)):
        locks = [*defs[event.verb]["locks"], *([f"actor:{event.actor}"] if exclusive else [])]
        kind = event.__struct_config__.tag
        if kind == "start":
            assert not held.keys() & set(locks)
            held.update((lock, event.action_id) for lock in locks)
        elif kind in ("end", "interrupt"):
            for lock in locks:
                assert held.pop(lock) == event.action_id


@pytest.mark.req("ACT-INT-4", "ACT-INT-7")
@unshrunk
@given(SEEDS)
def test_interrupts_neither_lose_nor_gain_minutes(seed: int) -> None:
    case = scenario(seed)
    began: dict[str, int] = {}
    spent: dict[str, int] = {}
    wanted: dict[str, int] = {}
    for minute, event in world_events(engine_run(case)):
        name, kind = event.action_id, event.__struct_config__.tag
        if kind == "start":
            wanted.setdefault(name, event.meta["d"])
            began[name] = minute
            assert event.meta["d"] == wanted[name] - spent.get(name, 0)
        elif kind in ("end", "interrupt"):
            spent[name] = spent.get(name, 0) + minute - began[name]
            assert kind == "interrupt" or spent[name] == wanted[name]
            assert kind == "end" or 1 <= event.meta["d_rem"] == wanted[name] - spent[name]
        if event.meta.get("segment", 0):
            assert case.document["action_defs"][event.verb]["interruptible"]


@pytest.mark.req("ACT-LOCK-3", "ACT-LOCK-4")
@unshrunk
@given(SEEDS)
def test_queues_have_no_overtaking(seed: int) -> None:
    case = scenario(seed)
    calm = {
        name: {**one, "preempts": False, "interrupts": [], "wait": "queue"}
        for name, one in case.document["action_defs"].items()
    }
    result = engine_run(case.with_(action_defs=calm, interrupts=[], commands=[]))

    last: dict[str, int] = {}
    for _, event in world_events(result):
        if isinstance(event, Start):
            for lock in calm[event.verb]["locks"]:
                assert last.get(lock, -1) < event.meta["admission"]
                last[lock] = event.meta["admission"]


@pytest.mark.req("ACT-EVT-1", "ACT-DATA-3")
@unshrunk
@given(SEEDS)
def test_events_are_in_their_global_order(seed: int) -> None:
    ranks = {"end": 0, "interrupt": 1, "visibility_change": 2, "start": 3}
    result = engine_run(scenario(seed))
    places = [
        (event.epoch, event.t, ranks[str(event.__struct_config__.tag)], event.meta["admission"], event.seq)
        for _, event in world_events(result)
    ]

    assert places == sorted(places)
    assert [place[-1] for place in places] == list(range(len(places)))


@pytest.mark.req("ACT-RES-1")
@unshrunk
@given(SEEDS)
def test_resources_are_conserved(seed: int) -> None:
    case = scenario(seed)
    world = fresh(case)
    for command in commands_of(case, step=7):
        world.apply(command)
        assert not list(world.broken())
        for stock in world.current.resources.stocks.values():
            assert stock.available + stock.reserved + stock.consumed - stock.produced == stock.initial
            assert min(stock.available, stock.reserved, stock.consumed, stock.produced) >= 0


@pytest.mark.req("ACT-LOCK-5")
@pytest.mark.parametrize("part", range(10))
def test_without_interrupts_the_closed_form_holds(part: int) -> None:
    for seed in range(part * 100, part * 100 + 100):
        luck = Random(seed)
        locks = [luck.sample("abcd", luck.randint(0, 3)) for _ in range(luck.randint(1, 30))]
        durations = [luck.randint(1, 40) for _ in locks]
        submitted = [luck.randint(0, 60) for _ in locks]
        defs = {f"v{n}": lasting(durations[n], *locks[n]) for n in range(len(locks))}
        result = day(defs, *(does(f"v{n}", submitted[n]) for n in range(len(locks))))
        order = sorted(range(len(locks)), key=lambda n: submitted[n])

        wanted = closed_form([(submitted[n], durations[n], locks[n]) for n in order])

        times = {(event.action_id, event.__struct_config__.tag): event.t for event in result.events}
        assert [(times[f"v{n}", "start"], times[f"v{n}", "end"]) for n in order] == wanted


SIX_HOURS = {"slots": 6, "slot_minutes": 60}
OPEN_LOAD = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 20), st.lists(st.sampled_from("abcd"), max_size=3, unique=True)),
    min_size=1,
    max_size=12,
)


@pytest.mark.req("ACT-LOCK-5")
@given(OPEN_LOAD)
def test_oracle_and_closed_form_agree_too(load: list[tuple[int, int, list[str]]]) -> None:
    defs = {f"v{n}": lasting(duration, *locks) for n, (_, duration, locks) in enumerate(load)}
    actions = [does(f"v{n}", submitted) for n, (submitted, _, _) in enumerate(load)]
    order = sorted(range(len(load)), key=lambda n: load[n][0])
    found = Oracle({"epoch": epoch_of(0, 360), "action_defs": defs, "actions_submitted": actions, "options": SIX_HOURS})
    times = {(event["action_id"], event["type"]): event["t"] for event in found.days[0].events}

    assert [(times[f"v{n}", "start"], times[f"v{n}", "end"]) for n in order] == closed_form([load[n] for n in order])
