"""User-defined behaviours: their view, their proposals, and their failures."""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any, cast

import pytest

from pendula.credit.commands import Config, Pay, Tick
from pendula.credit.engine import Run
from pendula.credit.events import Event, Note, TxFailed, TxUpdated
from pendula.credit.money import InvalidAmount
from pendula.credit.outside import behaviours as registry
from pendula.credit.outside.answers import Answers
from pendula.credit.outside.behaviours import (
    BehaviourFailed,
    BehaviourOutside,
    Draw,
    InvalidBehaviour,
    Line,
    Member,
    NotInNetwork,
    OtherBehaviourVersion,
    Proposal,
    UnknownBehaviour,
    View,
    find_behaviour,
    propose,
    register_behaviour,
)
from pendula.credit.runs.headless import Headless, RunPlan, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.credit.studies import compare, sweep
from pendula.documents import from_value
from pendula.kernel.canonical import encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver, EngineDefect
from pendula.kernel.engine import NoAnswerSource
from pendula.kernel.errors import WorldBroken, WrongUsage
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from pendula.kernel.rng import action_generator, tick_generator, tick_seed

Plan = Callable[[View, Draw], Iterable[Any]]

SCENARIO: dict[str, Any] = {
    "schema_version": "scenario/1",
    "scenario_id": "triangle",
    "equivalents": ["HOUR", "UAH"],
    "participants": [
        {"id": "cid", "type": "business", "groupId": "shops", "behaviorProfileId": "retail"},
        {"id": "ann", "type": "person"},
        {"id": "bea", "type": "person", "groupId": "homes"},
        {"id": "dan", "type": "person", "status": "frozen"},
    ],
    "trustlines": [
        {"from": "bea", "to": "ann", "limit": "10.005", "equivalent": "UAH"},
        {"from": "cid", "to": "bea", "limit": 20, "equivalent": "UAH"},
        {"from": "ann", "to": "cid", "limit": 5, "equivalent": "HOUR"},
        {"from": "dan", "to": "ann", "limit": 7, "equivalent": "UAH"},
    ],
    "events": [
        {
            "time": 1000,
            "type": "inject",
            "effects": [{"op": "inject_debt", "from": "cid", "to": "bea", "equivalent": "UAH", "amount": "1.00"}],
        },
        {"time": 4000, "type": "inject", "effects": [{"op": "freeze_participant", "participant_id": "cid"}]},
    ],
}


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


class CountingBehaviour:
    """A behaviour that plans by a function and counts its calls."""

    version = 3

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.calls = 0

    def plan(self, view: View, draw: Draw) -> Iterable[Proposal]:
        self.calls += 1
        return self._plan(view, draw)


def plan_of(plan: Plan, **settings: str) -> tuple[RunPlan, CountingBehaviour]:
    behaviour = CountingBehaviour(plan)
    register_behaviour("mine", behaviour)
    values = {"actions_per_tick_max": "10", "enable_inject": "on", **settings}
    return plan_run(
        from_value(SCENARIO), seed=42, settings=change_settings(Settings(), values), behaviour="mine"
    ), behaviour


def step_run(plan: Plan, ticks: int = 1, **settings: str) -> tuple[Headless, list[Event]]:
    headless = Headless(plan_of(plan, **settings)[0])
    headless.ask(Answers(headless.run))
    events: list[Event] = []
    headless.step(ticks, events.extend)
    return headless, events


def look_at_tick(look: Callable[[View, Draw], Any], before: Iterable[Pay] = (), ticks: int = 1) -> Any:
    """The value of `look` at the last of some ticks."""
    values: list[Any] = []

    def plan(view: View, draw: Draw) -> list[Proposal]:
        values.append(look(view, draw))
        return []

    headless = Headless(plan_of(plan)[0])
    headless.ask(Answers(headless.run))
    for payment in before:
        headless.do(payment)
    headless.step(ticks)
    return values[-1]


def journal_of(plan: RunPlan, folder: Path) -> FileJournal:
    return FileJournal.create(
        RealDisk(folder), scheduler=Run.scheduler, decisions=Run.decisions, time_unit=Run.time_unit, config=plan.json
    )


def test_proposals_become_payments_in_order() -> None:
    _, events = step_run(lambda *_: [propose("ann", "cid", "UAH", Decimal("2.5")), propose("bea", "cid", "UAH", "3")])

    paid = [(event.seq, event.sender, event.receiver, event.amount) for event in events if isinstance(event, TxUpdated)]
    assert paid == [(0, "ann", "cid", "2.50"), (1, "bea", "cid", "3.00")]


@pytest.mark.req("SIM-PAY-17")
@pytest.mark.parametrize(
    ("proposal", "code", "amount"),
    [
        (propose("ann", "cid", "EUR", "1"), "EQUIVALENT_NOT_FOUND", "1.00"),
        (propose("ann", "stranger", "UAH", "1"), "PARTICIPANT_NOT_FOUND", "1.00"),
        (propose("a\ud800", "cid", "UAH", "1"), "PARTICIPANT_NOT_FOUND", "1.00"),
        (propose("x" * 10_000, "cid", "UAH", "1"), "PARTICIPANT_NOT_FOUND", "1.00"),
        (propose("ann", "ann", "UAH", "1"), "INVALID_INPUT", "1.00"),
        (propose("ann", "bea", "UAH", "0"), "INVALID_INPUT", "0.00"),
        (propose("ann", "bea", "UAH", "-1"), "INVALID_INPUT", "-1.00"),
        (propose("ann", "bea", "UAH", "1.005"), "INVALID_INPUT", "1.005"),
        (propose("ann", "bea", "UAH", "ten"), "INVALID_INPUT", "ten"),
        (propose("ann", "bea", "UAH", Decimal("NaN")), "INVALID_INPUT", None),
        (propose("ann", "bea", "UAH", Decimal("1E+999")), "INVALID_INPUT", None),
        (propose("ann", "bea", "UAH", 10**5000), "INVALID_INPUT", None),
        (propose("ann", "bea", "UAH", cast(Any, 1.5)), "INVALID_INPUT", None),
        (propose("ann", "bea", "UAH", True), "INVALID_INPUT", None),
        (Proposal("ann", "bea", "UAH", cast(Any, 1.5)), "INVALID_INPUT", None),
        (propose("ann", "bea", "HOUR", "1"), "ROUTING_NO_ROUTE", "1.00"),
        (propose("ann", "bea", "UAH", "10.01"), "ROUTING_NO_CAPACITY", "10.01"),
        (propose("ann", "dan", "UAH", "1"), "ROUTING_NO_ROUTE", "1.00"),
    ],
)
def test_an_invalid_proposal_is_a_failed_payment_with_a_code(proposal: Proposal, code: str, amount: str | None) -> None:
    headless, events = step_run(lambda *_: [proposal, propose("bea", "cid", "UAH", 1)])

    (failed,) = [event for event in events if isinstance(event, TxFailed)]
    assert failed.error.code == code
    assert amount is None or failed.amount == amount
    assert len(encode(failed)) < 1000
    assert headless.run.counters.rejected_total == headless.run.counters.committed_total == 1


@pytest.mark.parametrize(
    "answer", [None, 7, "ann", ("ann", "bea", "UAH", "1"), {}, Proposal(cast(Any, 7), "b", "UAH", "1")]
)
def test_an_answer_that_is_no_proposal_is_noted_and_skipped(answer: object) -> None:
    headless, events = step_run(lambda *_: [answer, propose("bea", "cid", "UAH", 1)])

    notes = [event.scenario for event in events if isinstance(event, Note)]
    assert {"kind": "behaviour_answered_badly", "behaviour": "mine", "invalid": 1} in notes
    assert headless.run.counters.committed_total == 1


@pytest.mark.req("SIM-INT-2")
def test_a_behaviour_is_read_up_to_the_budget() -> None:
    asked: list[int] = []

    def eager(view: View, draw: Draw) -> Iterator[Proposal]:
        for number in range(1000):
            asked.append(number)
            yield propose("bea", "cid", "UAH", "0.01")

    headless, _ = step_run(eager)

    assert headless.run.counters.attempts_total == len(asked) == 10


def test_the_header_has_name_and_version_of_the_behaviour(tmp_path: Path) -> None:
    plan, _ = plan_of(lambda *_: [])

    journal = journal_of(plan, tmp_path)

    header: Any = journal.header.config
    assert header["behaviour"] == {"name": "mine", "version": 3}
    journal.close()


@pytest.mark.req("SIM-DET-2")
def test_replay_of_a_journal_calls_no_behaviour(tmp_path: Path) -> None:
    def plan(view: View, draw: Draw) -> Iterator[Proposal]:
        for position in range(view.budget):
            luck = draw.at(position)
            cents = Decimal(luck.randint(1, 300)) / 100
            yield propose(*luck.choice([("ann", "bea"), ("bea", "cid"), ("ann", "cid"), ("cid", "ann")]), "UAH", cents)

    plan_made, behaviour = plan_of(plan)
    journal = journal_of(plan_made, tmp_path)
    driver: Driver[Any, Any] = Driver(Run.create(plan_made.json), journal, outside=Answers(lambda: driver.engine))
    for _ in range(3):
        driver.submit(Tick(2), by="test")
    driver.close()
    registry._registered.clear()
    again = FileJournal.open(RealDisk(tmp_path))

    report = replay(again, lambda _: Run)

    assert (report.commands, report.first_difference) == (3, None)
    assert behaviour.calls == 6
    again.close()


@pytest.mark.req("SIM-DET-1")
def test_two_runs_of_one_behaviour_are_equal() -> None:
    def plan(view: View, draw: Draw) -> Iterator[Proposal]:
        people = [participant.id for participant in view.participants]
        for _ in range(view.budget):
            yield propose(draw.tick.choice(people), draw.tick.choice(people), "UAH", f"0.{draw.tick.randint(10, 99)}")

    first = step_run(plan, 5)[0].result()
    registry._registered.clear()

    assert step_run(plan, 5)[0].result() == first
    assert first.counters.committed_total > 0


def failing_at(tick: int) -> Plan:
    def plan(view: View, draw: Draw) -> Iterator[Proposal]:
        yield propose("bea", "cid", "UAH", 1)
        if view.tick == tick:
            raise KeyError("my mistake")

    return plan


def test_an_exception_without_a_journal_names_behaviour_and_tick_and_pays_nothing() -> None:
    headless = Headless(plan_of(failing_at(2))[0])
    headless.ask(Answers(headless.run))
    headless.step(2)
    before = headless.run.state()

    with pytest.raises(BehaviourFailed, match=r"'mine' failed at tick 2: KeyError\('my mistake'\)") as failed:
        headless.step(1)

    assert (failed.value.behaviour, failed.value.tick) == ("mine", 2)
    assert isinstance(failed.value.__cause__, KeyError)
    assert headless.run.state() == before


def test_a_run_without_a_journal_repeats_the_failed_tick() -> None:
    plan, behaviour = plan_of(failing_at(1))
    headless = Headless(plan)
    headless.ask(Answers(headless.run))
    headless.step(1)
    for _ in range(2):
        with pytest.raises(BehaviourFailed, match="tick 1"):
            headless.step(1)

    assert behaviour.calls == 2


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupted_run_without_a_journal_rejects_further_commands(end: type[BaseException]) -> None:
    ends = [end()]

    def plan(view: View, draw: Draw) -> Iterator[Proposal]:
        yield propose("bea", "cid", "UAH", 1)
        if view.tick == 1 and ends:
            raise ends.pop()

    headless = Headless(plan_of(plan)[0])
    headless.ask(Answers(headless.run))
    with pytest.raises(end):
        headless.do(Tick(3))

    with pytest.raises(WorldBroken, match="interrupted"):
        headless.do(Tick())
    with pytest.raises(WorldBroken, match="interrupted"):
        headless.run.state()


def test_a_behaviour_cannot_command_its_own_run() -> None:
    def plan(view: View, draw: Draw) -> list[Proposal]:
        headless.do(Tick())
        return []

    headless = Headless(plan_of(plan)[0])
    headless.ask(Answers(headless.run))
    before = headless.run.state()

    with pytest.raises(BehaviourFailed, match="in the middle of a command"):
        headless.do(Tick())

    assert headless.run.state() == before


class ReprFails(Exception):
    """The repr of an exception is user code, too."""

    def __repr__(self) -> str:
        raise ValueError("no words")


def test_an_exception_whose_repr_fails_is_named_by_its_class() -> None:
    def plan(view: View, draw: Draw) -> list[Proposal]:
        raise ReprFails

    headless = Headless(plan_of(plan)[0])
    headless.ask(Answers(headless.run))

    with pytest.raises(BehaviourFailed, match="failed at tick 0: ReprFails"):
        headless.do(Tick())


def test_an_exception_with_a_journal_leaves_no_trace_of_the_tick(tmp_path: Path) -> None:
    plan, behaviour = plan_of(failing_at(1))
    journal = journal_of(plan, tmp_path)
    driver: Driver[Any, Any] = Driver(Run.create(plan.json), journal, outside=Answers(lambda: driver.engine))
    driver.submit(Tick(), by="test")
    driver.flush()
    before = driver.engine.state()

    with pytest.raises(EngineDefect, match="'mine' failed at tick 1"):
        driver.submit(Tick(3), by="test")

    assert driver.engine.state() == before
    # The view shows the run that the driver rebuilt, not the discarded one.
    behaviour._plan = lambda view, _: [propose("ann", "cid", "UAH", view.debt("bea", "cid", "UAH"))]
    ticket = driver.submit(Tick(), by="test")
    driver.flush()
    paid = [event for event in ticket.outcome.events if isinstance(event, TxUpdated)]
    assert [event.amount for event in paid] == ["2.00"]
    driver.close()
    again = FileJournal.open(RealDisk(tmp_path))
    assert replay(again, lambda _: Run).first_difference is None
    again.close()


@pytest.mark.parametrize("answer", [None, 7])
def test_a_plan_that_is_not_iterable_is_a_failure(answer: Any) -> None:
    with pytest.raises(BehaviourFailed, match="not iterable"):
        step_run(lambda *_: answer)


def test_a_run_of_another_version_is_rejected() -> None:
    plan, behaviour = plan_of(lambda *_: [])
    headless = Headless(plan)
    headless.ask(Answers(headless.run))
    behaviour.version = 4

    with pytest.raises(OtherBehaviourVersion) as refused:
        headless.step(1)

    assert (refused.value.wanted, refused.value.registered) == (3, 4)
    assert behaviour.calls == 0


def test_an_answer_for_another_run_is_rejected() -> None:
    plan, _ = plan_of(lambda *_: [])
    headless, other = Headless(plan), Headless(plan)
    headless.ask(Answers(headless.run))
    headless.step(1)
    headless.ask(Answers(other.run))

    with pytest.raises(WrongUsage):
        headless.step(1)


def test_a_behaviour_answers_only_plan_questions() -> None:
    with pytest.raises(NoAnswerSource):
        BehaviourOutside(lambda: cast(Run, None)).ask("pay", {})


def test_an_unknown_behaviour_is_rejected_with_the_known_names() -> None:
    with pytest.raises(UnknownBehaviour, match="none is registered"):
        find_behaviour("mine")
    register_behaviour("b", CountingBehaviour(lambda *_: []))
    register_behaviour("a", CountingBehaviour(lambda *_: []))

    with pytest.raises(UnknownBehaviour, match="known are a, b") as refused:
        plan_run(from_value(SCENARIO), behaviour="mine")

    assert refused.value.known == ["a", "b"]


def test_a_name_is_replaced_only_on_request() -> None:
    first, second = CountingBehaviour(lambda *_: []), CountingBehaviour(lambda *_: [])
    register_behaviour("mine", first)
    register_behaviour("mine", first)

    with pytest.raises(InvalidBehaviour, match="replace"):
        register_behaviour("mine", second)
    assert find_behaviour("mine") is first
    register_behaviour("mine", second, replace=True)
    assert find_behaviour("mine") is second


class Unversioned:
    def plan(self, view: View, draw: Draw) -> list[Proposal]:
        return []


class TextVersion(Unversioned):
    version = "1"


class BooleanVersion(Unversioned):
    version = True


class WithoutPlan:
    version = 1


@pytest.mark.parametrize("what", [Unversioned(), TextVersion(), BooleanVersion(), WithoutPlan(), None])
def test_an_invalid_behaviour_cannot_be_registered(what: Any) -> None:
    with pytest.raises(InvalidBehaviour):
        register_behaviour("mine", what)


@pytest.mark.parametrize("name", ["", "two words", "x" * 81, "ä"])
def test_names_of_behaviours_are_plain(name: str) -> None:
    with pytest.raises(InvalidBehaviour):
        register_behaviour(name, CountingBehaviour(lambda *_: []))


def test_the_view_shows_the_run_in_the_order_of_ids_and_codes() -> None:
    tick, time, budget, cap, codes = look_at_tick(
        lambda view, _: (view.tick, view.sim_time_ms, view.budget, view.cap, view.equivalents), ticks=3
    )

    assert (tick, time, budget, cap, codes) == (2, 2000, 10, Decimal("3.00"), ("HOUR", "UAH"))


def test_the_view_shows_participants_with_group_profile_and_status() -> None:
    assert look_at_tick(lambda view, _: view.participants) == (
        Member("ann", "person", None, None, True),
        Member("bea", "person", "homes", None, True),
        Member("cid", "business", "shops", "retail", True),
        Member("dan", "person", None, None, False),
    )


def test_the_view_shows_lines_with_their_debts() -> None:
    assert look_at_tick(lambda view, _: view.lines, [Pay("ann", "bea", "UAH", "0.005")]) == (
        Line("HOUR", "ann", "cid", Decimal(5), Decimal(0), True),
        Line("UAH", "bea", "ann", Decimal("10.005"), Decimal("0.005"), True),
        Line("UAH", "cid", "bea", Decimal(20), Decimal(0), True),
        Line("UAH", "dan", "ann", Decimal(7), Decimal(0), False),
    )


def test_the_view_shows_exact_debts_capacities_and_positions() -> None:
    def look(view: View, draw: Draw) -> dict[str, Decimal]:
        with localcontext() as context:
            context.prec = 2
            return {
                "debt": view.debt("ann", "bea", "UAH"),
                "no debt": view.debt("bea", "ann", "UAH"),
                "capacity": view.capacity("ann", "bea", "UAH"),
                "no line": view.capacity("ann", "cid", "UAH"),
                "frozen": view.capacity("ann", "dan", "UAH"),
                "middle": view.position("bea", "UAH"),
                "end": view.position("ann", "UAH"),
            }

    assert look_at_tick(look, [Pay("ann", "cid", "UAH", "1.23456789")]) == {
        "debt": Decimal("1.23456789"),
        "no debt": 0,
        "capacity": Decimal("8.77043211"),
        "no line": 0,
        "frozen": 0,
        "middle": 0,
        "end": Decimal("-1.23456789"),
    }


def test_the_view_includes_the_events_of_its_tick() -> None:
    moments: list[Any] = []

    def plan(view: View, draw: Draw) -> list[Proposal]:
        moments.append((view.debt("bea", "cid", "UAH"), view.reachable("ann", "UAH")))
        return []

    step_run(plan, 5)

    both, bea_only = ("bea", "cid"), ("bea",)
    assert moments == [(0, both), (1, both), (1, both), (1, both), (1, bea_only)]


def test_the_view_shows_reachable_participants_and_payable_amounts() -> None:
    def look(view: View, draw: Draw) -> list[Any]:
        return [
            view.reachable("ann", "UAH"),
            view.reachable("cid", "UAH"),
            view.can_pay("ann", "cid", "UAH", Decimal("10.005")),
            view.can_pay("ann", "cid", "UAH", "10.00500001"),
            view.can_pay("ann", "dan", "UAH", 1),
            view.can_pay("ann", "ann", "UAH", 1),
            view.can_pay("ann", "cid", "UAH", 0),
        ]

    assert look_at_tick(look) == [("bea", "cid"), (), True, False, False, False, False]


def test_reading_the_view_changes_nothing() -> None:
    headless = Headless(plan_of(lambda *_: [])[0])
    run = headless.run
    headless.do(Pay("ann", "cid", "UAH", "2"))
    before, capacities = run.state(), list(run.network.ledgers["UAH"].book.capacity)
    view = View(run, 5)

    looks = view.participants, view.lines, view.reachable("ann", "UAH"), view.can_pay("ann", "cid", "UAH", 3)

    assert all(looks)
    assert run.state() == before
    assert run.network.ledgers["UAH"].book.capacity == capacities
    assert run.network.ledgers["UAH"].book.reserved == {}
    with pytest.raises(AttributeError):
        view.tick = 7  # type: ignore[misc]


@pytest.mark.parametrize(
    "look",
    [
        lambda view: view.debt("ann", "stranger", "UAH"),
        lambda view: view.capacity("stranger", "ann", "UAH"),
        lambda view: view.position("ann", "EUR"),
        lambda view: view.reachable("stranger", "UAH"),
        lambda view: view.can_pay("ann", "bea", "EUR", 1),
    ],
)
def test_the_view_raises_for_unknown_names(look: Callable[[View], Any]) -> None:
    view = View(Run.create(plan_run(from_value(SCENARIO), seed=1).json), 1)

    with pytest.raises(NotInNetwork):
        look(view)


@pytest.mark.parametrize("amount", [1.5, True, None, "ten"])
def test_the_view_takes_exact_amounts_only(amount: Any) -> None:
    view = View(Run.create(plan_run(from_value(SCENARIO), seed=1).json), 1)

    with pytest.raises(InvalidAmount):
        view.can_pay("ann", "bea", "UAH", amount)


@pytest.mark.req("SIM-DET-5", "SIM-DET-6", "SIM-DET-7")
def test_draws_depend_on_tick_and_position_alone() -> None:
    draw = Draw(42, 2)
    other = Draw(42, 2)
    other.at(0).random()

    assert draw.tick.random() == tick_generator(42, 2).random() == 0.5815068561101447
    assert draw.at(5).random() == draw.at(5).random() == action_generator(tick_seed(42, 2), 5).random()
    assert other.tick.random() == 0.5815068561101447


def test_a_run_without_a_behaviour_asks_for_none() -> None:
    plan = plan_run(from_value(SCENARIO), seed=1)

    assert isinstance(plan.config, Config)
    assert plan.config.behaviour is None
    headless = Headless(plan)
    headless.step(2)
    assert headless.run.counters.attempts_total > 0


def test_a_sweep_and_a_comparison_take_a_behaviour() -> None:
    register_behaviour("mine", CountingBehaviour(lambda view, draw: [propose("ann", "bea", "UAH", "1")]))

    swept = sweep(from_value(SCENARIO), {"clearing_every_n_ticks": ["2", "3"]}, (1, 2), 4, behaviour="mine")
    plain = sweep(from_value(SCENARIO), {"clearing_every_n_ticks": ["2", "3"]}, (1, 2), 4)
    often = change_settings(Settings(), {"clearing_every_n_ticks": "2"})
    compared = compare(from_value(SCENARIO), Settings(), often, (1, 2), 4, skip=0, behaviour="mine")

    assert swept.values["attempts"] == [4] * 4
    assert len(set(swept.values["plan_digest"])) == 1, "the same proposals for every seed"
    assert swept.values["wanted_UAH"] == ["4.00000000"] * 4
    assert plain.values["plan_digest"] != swept.values["plan_digest"]
    assert compared.columns.values["plan_digest"] == swept.values["plan_digest"]
    with pytest.raises(UnknownBehaviour, match="'yours'; known are mine"):
        sweep(from_value(SCENARIO), {}, (1,), 1, behaviour="yours")
