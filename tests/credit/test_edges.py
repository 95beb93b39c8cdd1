"""Corners where a run could go wrong in silence: hubs, many injections, huge limits, failing helpers, odd commands."""

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest

from pendula.credit.commands import Clear, CloseLine, Commands, OpenLine, Pay, SetIntensity, Stop, Tick
from pendula.credit.engine import Run
from pendula.credit.events import ClearingDecision, Event, TxUpdated
from pendula.credit.ledger.book import Book
from pendula.credit.ledger.payment import Cashier, Drifted
from pendula.credit.ledger.routing import Route, Work, shortest
from pendula.credit.money import MOST
from pendula.credit.planning.planner import Market, Planner
from pendula.credit.runs.headless import Headless, RunRefused, made
from pendula.credit.settings import InvalidSetting, Settings, changed
from pendula.credit.state import network
from pendula.documents import from_value
from pendula.kernel.canonical import Json
from tests.credit.conftest import headless, saved
from tests.credit.conftest import network as scenario_of
from tests.credit.ledger.test_payment import book


def told(run: Headless, ticks: int = 1) -> list[Event]:
    found: list[Event] = []
    run.step(ticks, found.extend)
    return found


def test_a_hub_is_wired_once_and_not_once_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = Book._open_in

    def counted(self: Book, v: int) -> None:
        nonlocal calls
        calls += 1
        real(self, v)

    monkeypatch.setattr(Book, "_open_in", counted)
    lines = scenario_of(*(("hub", f"p{number}", 5) for number in range(300)))
    for line in lines["trustlines"]:  # type: ignore[union-attr]
        line["policy"] = {"can_be_intermediate": False}  # type: ignore[index]

    headless(lines)

    assert 0 < calls <= 301


def test_many_injections_build_the_network_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def adding(names: range) -> list[Json]:
        return [
            {
                "op": "add_participant",
                "participant": {"id": f"n{name:03}", "type": "person"},
                "initial_trustlines": [{"sponsor": "a", "equivalent": "UAH", "limit": 3}],
            }
            for name in names
        ]

    def run_of(events: list[Json]) -> Headless:
        return headless(scenario_of(("a", "b", 10), events=events), enable_inject="on")

    at_once = run_of([{"time": 0, "type": "inject", "effects": adding(range(50))}])
    one_by_one = run_of([{"time": 0, "type": "inject", "effects": adding(range(n, n + 1))} for n in range(50)])
    builds = 0
    real = network.Network.rebuild

    def counted(self: network.Network, *arguments: Any) -> None:
        nonlocal builds
        builds += 1
        real(self, *arguments)

    monkeypatch.setattr(network.Network, "rebuild", counted)
    at_once.step(1)
    assert builds == 1
    one_by_one.step(1)

    assert at_once.run.digests() == one_by_one.run.digests()
    assert len(at_once.run.network.people) == 52


@pytest.mark.req("SIM-PAY-2")
@pytest.mark.req("SIM-STO-8")
def test_a_limit_that_grows_stays_an_amount_and_can_be_restored() -> None:
    drift: Json = {"trust_drift": {"enabled": True, "growth_rate": 1, "max_growth": 10**15}}
    large = "999999999999"
    run = headless(
        scenario_of(("B", "A", large), ("C", "B", large), ("A", "C", large), settings=drift), routing_max_hops="1"
    )
    for _ in range(14):
        for sender, receiver in (("A", "B"), ("B", "C"), ("C", "A")):
            run.do(Pay(sender, receiver, "UAH", "1"))
        run.do(Clear())

    assert max(run.run.network.desks["UAH"].book.limit) <= MOST
    assert Run.from_state(run.plan.json, run.run.state()).state() == run.run.state()


@pytest.mark.req("SIM-DET-14")
def test_the_decimal_context_of_the_process_changes_nothing() -> None:
    drift: Json = {"trust_drift": {"enabled": True, "growth_rate": Decimal("0.0567"), "decay_rate": Decimal("0.0234")}}
    scenario = scenario_of(("B", "A", 5), ("C", "B", 5), ("A", "C", 5), settings=drift)

    def digests() -> dict[str, str]:
        run = headless(scenario, intensity=100, clearing_every_n_ticks="2")
        run.step(20)
        return run.run.digests()

    expected = digests()
    with localcontext(prec=2):
        assert digests() == expected


class Broken:
    """Somebody who is asked and fails."""

    def ask(self, name: str, question: Json) -> Json:
        raise RuntimeError(name)


@pytest.mark.req("SIM-CLR-11")
@pytest.mark.parametrize("command", [Tick(3), Tick(5), Clear()])
@pytest.mark.parametrize("setting", [{"clearing_mode": "optimal"}, {"clearing_yardstick": "on"}])
def test_a_solver_that_raises_leaves_the_run_where_it_was(command: Commands, setting: dict[str, str]) -> None:
    options = changed(Settings(), {"clearing_every_n_ticks": "2", **setting})
    scenario = scenario_of(("B", "A", 50), ("C", "B", 50), ("A", "C", 50))
    run = Headless(made(from_value(scenario), seed=3, settings=options))
    run.step(1)
    run.ask(Broken())
    before = run.run.state()

    with pytest.raises(RuntimeError):
        run.do(command)

    assert run.run.state() == before


def test_lines_that_block_nobody_on_the_way_cost_no_search() -> None:
    names = [f"p{number:03}" for number in range(60)]
    lines = [(one, other, 5) for at, one in enumerate(names) for other in names[at + 1 : at + 9]]
    plain, blocking = book(*lines), book(*lines)
    blocking.policy[0] = blocking.policy[0].__class__(blocked=("nobody",))
    blocking.has_blocked = True
    for sender, receiver in ((59, 0), (30, 2), (0, 59)):
        first, second = Work(10**9), Work(10**9)
        assert shortest(plain, sender, receiver, 6, first) == shortest(blocking, sender, receiver, 6, second)
        assert second.spent == first.spent


def test_settings_too_fine_to_compute_with_are_refused_in_a_configuration_too() -> None:
    config: Any = made(from_value(scenario_of(("a", "b", 1)))).json
    config["settings"]["adaptive_no_capacity_low"] = Decimal("1e-200")

    with pytest.raises(InvalidSetting):
        Run.create(config)


@pytest.mark.req("SIM-INT-6")
@pytest.mark.req("SIM-PAY-18")
@pytest.mark.parametrize(
    "command",
    [
        SetIntensity(150),
        SetIntensity(-1),
        SetIntensity(True),
        Tick(0),
        Clear(max_depth=0),
        Pay("a", "b", "UAH", 1.5),  # type: ignore[arg-type]
        Pay("a", "b", "UAH", "1", "bad key \n"),
        Pay("a", "b", "UAH", "1", ""),
        Stop("\ud800"),
    ],
)
def test_commands_out_of_their_form_are_refused_and_leave_no_trace(command: Commands) -> None:
    run = headless(scenario_of(("a", "b", 10)))
    before = run.run.state()

    with pytest.raises(RunRefused):
        run.do(command)

    assert run.run.state() == before


def test_planning_does_not_walk_in_circles_where_nobody_can_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    run = headless(scenario_of(("a", "b", 1)), intensity=100, actions_per_tick_max="1000000")
    run.do(Pay("b", "a", "UAH", "1"))
    planner, seen = run.run.network.planner, 0
    assert isinstance(planner, Planner)

    for _ in planner._hopeful(planner._accepting(()), 50_000_000):
        seen += 1

    assert seen == 0


@pytest.mark.req("SIM-ACT-6")
def test_a_very_long_tick_of_the_demonstration_shows_no_more_than_the_budget() -> None:
    options = changed(Settings(), {"tick_ms_base": "1000000000"})
    run = Headless(made(from_value(scenario_of(("b", "a", 10))), seed=4, mode="fixtures", settings=options))

    counts = [sum(isinstance(one, TxUpdated) for one in told(run)) for _ in range(3)]

    assert counts[1:] == [20, 20]


@pytest.mark.req("SIM-CLR-5")
def test_a_search_that_runs_out_of_work_before_it_clears_anything_says_so() -> None:
    run = headless(
        scenario_of(("B", "A", 10), ("C", "B", 10), ("A", "C", 10)),
        routing_max_hops="1",
        clearing_every_n_ticks="1",
        clearing_time_budget_ms="1",
        work_units_per_ms="2",
    )
    for sender, receiver in (("A", "B"), ("B", "C"), ("C", "A")):
        run.do(Pay(sender, receiver, "UAH", "1"))

    run.step(2)

    assert [one.code for one in run.result().diagnostics] == ["nothing_cleared"]


def test_a_line_that_is_opened_again_is_as_new() -> None:
    run = headless(scenario_of(("b", "a", 10), ("c", "a", 1)))
    run.do(CloseLine("b", "a", "UAH"))
    run.do(OpenLine("b", "a", "UAH", "10.005"))
    run.do(OpenLine("a", "b", "UAH", "10.005"))

    trust = run.run.network.desks["UAH"].trust
    again, fresh = (run.run.network.desks["UAH"].book.line(*ends) for ends in (("b", "a"), ("a", "b")))

    assert again is not None
    assert fresh is not None
    assert trust.original[again] == trust.original[fresh] == 10 * 10**8


@pytest.mark.req("SIM-PAY-16")
def test_what_a_delta_check_tells_are_changes_and_not_positions() -> None:
    ledger_ = book(("B", "A", 100), ("C", "B", 100))
    ledger_.move(0, 10**8)
    way = tuple(sorted((0, 1), key=lambda h: ledger_.debtor[h]))

    drifted = Cashier(ledger_, Settings()).carry_out((Route(way, 10**8),), 0, 1, 10**8)

    assert isinstance(drifted, Drifted)
    assert (drifted.expected, drifted.actual) == (10**8, 0)


@pytest.mark.req("SIM-ADP-11")
def test_a_busy_caller_keeps_a_tick_from_clearing_and_the_window_grows_all_the_same() -> None:
    adaptive = {"clearing_policy": "adaptive", "adaptive_inflight_threshold": "2", "adaptive_window_ticks": "5"}
    options = changed(Settings(), {**adaptive, "adaptive_warmup_fallback_cadence": "1"})
    run = Headless(made(from_value(scenario_of(("b", "a", 10))), seed=1, settings=options))
    run.step(1)

    busy = run.do(Tick(in_flight=3)).events
    calm = run.do(Tick(in_flight=2)).events

    reasons = [[one.reason for one in events if isinstance(one, ClearingDecision)] for events in (busy, calm)]
    assert reasons == [["CLEARING_SKIPPED_GUARDRAIL"], ["WARMUP_FALLBACK_RUN"]]
    assert len(saved(run.run)["policies"]["UAH"]["window"]) == 3


@pytest.mark.req("SIM-ADP-12")
def test_a_call_that_fails_counts_as_one_without_volume() -> None:
    class Silent:
        def ask(self, name: str, question: Json) -> Json:
            return None

    adaptive = {"clearing_policy": "adaptive", "clearing_mode": "optimal", "adaptive_warmup_fallback_cadence": "1"}
    run = Headless(made(from_value(scenario_of(("b", "a", 10))), seed=1, settings=changed(Settings(), adaptive)))
    run.ask(Silent())
    run.step(2)

    policy = saved(run.run)["policies"]["UAH"]
    assert (policy["last_call"], policy["last_volume"], policy["zero_streak"]) == (1, 0, 1)
    assert policy["last_work"] > 0
    assert [one.code for one in run.result().diagnostics] == ["optimal_clearing_failed"]


@pytest.mark.req("SIM-PROF-4")
def test_presets_are_used_for_what_a_scenario_leaves_open_and_can_be_switched_off() -> None:
    plain = scenario_of(("b", "a", 100))
    known = scenario_of(("b", "a", 100))
    known["participants"][0]["behaviorProfileId"] = "household"  # type: ignore[index]

    def plan(scenario: dict[str, Json], presets: str) -> str:
        run = headless(scenario, intensity=100, profile_presets=presets)
        run.step(3)
        assert run.run.counters.attempts_total
        return run.run.digests()["plan"]

    assert plan(known, "off") == plan(plain, "off") == plan(plain, "on")
    assert plan(known, "on") != plan(plain, "on")


@pytest.mark.req("SIM-PROF-13")
@pytest.mark.req("SIM-PROF-14")
def test_the_most_that_may_be_wanted_is_what_both_ends_have_left() -> None:
    """a may owe b 100 and c 40; it owes b 30. b is owed 30 of at most 100. c owes a 5."""
    books = book(("b", "a", 100), ("c", "a", 40), ("a", "c", 20))
    lines = {(books.people.names[books.creditor[h]], books.people.names[books.debtor[h]]): h for h in range(3)}
    books.move(lines["b", "a"], 30 * 10**8)
    books.move(lines["a", "c"], 5 * 10**8)
    market = Market(books)
    market.refresh()

    assert market.most(0, 1, Fraction(0)) == 70 * 10**8, "the limit of 100 less the debt of 30"
    assert market.most(0, 2, Fraction(0)) == 40 * 10**8, "the line to c has room for 40"
    assert market.most(0, 2, Fraction(3, 20)) == 40 * 10**8, "c owes a, but no bonus lifts it above the limit"
    assert market.most(2, 0, Fraction(1, 10)) == 15 * 10**8, "a owes c nothing: no bonus"
    books.move(lines["c", "a"], 0)
    books.move(lines["b", "a"], 60 * 10**8)
    assert market.most(0, 2, Fraction(0)) == 10 * 10**8
    assert market.most(0, 2, Fraction(1, 2)) == 15 * 10**8, "c owes a: half as much again"


@pytest.mark.req("SIM-PROF-13")
def test_what_a_receiver_is_owed_by_others_counts_too() -> None:
    """a may owe b 100, b may owe c 50 and owes it 20; between a and c there is no line."""
    books = book(("b", "a", 100), ("c", "b", 50))
    books.move(books.hop[1][2], 20 * 10**8)
    market = Market(books)
    market.refresh()

    assert market.most(0, 2, Fraction(0)) == 30 * 10**8
