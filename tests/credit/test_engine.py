"""A run: clock, states, counters, guardrails, events of the timeline, metrics."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pendula.credit.authoring.villages import village
from pendula.credit.commands import Commands, Freeze, Pause, Pay, Restart, Resume, SetIntensity, Stop, Tick
from pendula.credit.engine import Run
from pendula.credit.events import (
    AuditDrift,
    ClearingDecision,
    ClearingDone,
    ClearingPlan,
    Event,
    Note,
    RunStatus,
    Ticked,
    TopologyChanged,
    TxFailed,
    TxUpdated,
)
from pendula.credit.model import Code
from pendula.credit.money import text
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.credit.state.counters import Counters, too_many, too_many_failed_ticks
from pendula.documents import Document, from_value
from pendula.kernel.canonical import Json
from pendula.kernel.rng import reseedable
from tests.credit.conftest import headless, network, saved

Public = Callable[[str], Document]


def events_of(run: Headless, ticks: int = 1) -> list[Event]:
    events: list[Event] = []
    run.step(ticks, events.extend)
    return events


def notes(events: list[Event]) -> list[dict[str, Any]]:
    return [dict(event.scenario) for event in events if isinstance(event, Note)]


@pytest.mark.req("SIM-TIME-1")
@pytest.mark.req("SIM-TIME-2")
@pytest.mark.req("SIM-TIME-3")
@pytest.mark.req("SIM-TIME-4")
@pytest.mark.parametrize(("base", "ticks", "expected"), [("1000", 184, 184_000), ("250", 4, 1000), ("1000", 3, 3000)])
def test_virtual_time_is_the_number_of_ticks_times_their_length(base: str, ticks: int, expected: int) -> None:
    run = headless(network(("a", "b", 1)), tick_ms_base=base)

    events = events_of(run, ticks)

    assert run.run.sim_time_ms == expected
    first, last = events[0], events[-1]
    assert isinstance(first, Ticked)
    assert isinstance(last, Ticked)
    assert (first.tick_index, first.sim_time_ms) == (0, 0)
    assert last.tick_index == ticks - 1


@pytest.mark.req("SIM-TIME-6")
@pytest.mark.req("SIM-INT-3")
def test_time_passes_without_payments_at_intensity_zero() -> None:
    run = headless(network(("a", "b", 10)), intensity=0)

    events = events_of(run, 10)

    assert run.run.sim_time_ms == 10_000
    assert {type(event) for event in events} == {Ticked}
    assert run.run.state_word == "running"


STATES: list[tuple[list[Commands], Commands, str]] = [
    ([], Pause(), "paused"),
    ([Pause()], Resume(), "running"),
    ([], Stop(), "stopped"),
    ([Pause()], Stop(), "stopped"),
    ([Stop()], Restart(), "running"),
    ([Pause()], Restart(), "running"),
    ([], Restart(), "running"),
    ([Pause()], Pause(), "paused"),
    ([], Resume(), "running"),
    ([Stop()], Stop(), "stopped"),
    ([Stop()], Pause(), "stopped"),
    ([Stop()], Resume(), "stopped"),
]


@pytest.mark.req("SIM-RUN-2")
@pytest.mark.req("SIM-RUN-3")
@pytest.mark.req("SIM-RUN-8")
@pytest.mark.parametrize(("before", "command", "expected"), STATES)
def test_commands_lead_to_the_expected_state(before: list[Commands], command: Commands, expected: str) -> None:
    run = headless(network(("a", "b", 1)))
    for earlier in before:
        run.do(earlier)

    outcome = run.do(command)

    assert run.run.state_word == expected
    (status,) = outcome.events
    assert isinstance(status, RunStatus)
    assert status.state == expected


@pytest.mark.req("SIM-RUN-3")
@pytest.mark.req("SIM-ERR-2")
def test_a_run_in_error_accepts_only_a_restart() -> None:
    run = run_out_of_work()
    assert run.run.state_word == "error"

    for command in (Pause(), Resume(), Stop()):
        run.do(command)
        assert run.run.state_word == "error"
    assert run.run.apply(SetIntensity(5)).refusal is not None
    run.do(Restart())

    assert run.run.state_word == "running"
    assert run.run.last_error is None


def test_a_stopped_run_plans_no_more_and_has_a_stop_reason() -> None:
    run = headless(network(("a", "b", 10)), intensity=100)
    run.step(2)
    run.do(Stop("tests", "enough"))

    outcome = run.run.apply(Tick())

    assert outcome.refusal is not None
    assert outcome.refusal.code == "run_conflict"
    assert run.run.tick == 2
    assert run.run.why({"run": True}).facts["stop_reason"] == "enough"


@pytest.mark.req("SIM-RUN-1")
def test_the_status_of_a_run_has_its_counters() -> None:
    status: Any = headless(network(("a", "b", 10)), intensity=30).do(Resume()).answer

    assert {
        "run_id", "scenario_id", "state", "tick_index", "sim_time_ms", "intensity_percent", "attempts_total",
        "committed_total", "rejected_total", "errors_total", "timeouts_total", "dropped_total", "last_error",
    } <= set(status)  # fmt: skip
    assert (status["state"], status["intensity_percent"], status["last_error"]) == ("running", 30, None)


@pytest.mark.req("SIM-RUN-4")
def test_a_run_has_its_own_copy_of_the_scenario() -> None:
    scenario = network(("a", "b", 10))
    plan = plan_run(from_value(scenario), seed=1)
    run = Run.create(plan.json)

    run.apply(Freeze("a"))

    assert Run.create(plan.json).network.people.active == [True, True]
    assert run.network.people.active == [False, True]


@pytest.mark.req("SIM-RUN-5")
@pytest.mark.req("SIM-ACT-2")
def test_a_tick_emits_its_payments_in_plan_order_and_then_its_clearing() -> None:
    options = change_settings(Settings(), {"amount_cap": "500", "clearing_every_n_ticks": "5"})
    run = Headless(plan_run(from_value(village(40, 1)), seed=3, settings=options))
    seen = 0

    for _ in range(40):
        events = events_of(run)
        payments = [event.seq for event in events if isinstance(event, TxUpdated | TxFailed)]
        assert payments == list(range(len(payments)))
        kinds = [type(event) for event in events]
        if ClearingPlan in kinds:
            seen += 1
            at = kinds.index(ClearingPlan)
            assert not {TxUpdated, TxFailed} & set(kinds[at:])
            assert kinds.index(ClearingDone) == at + 1
        assert kinds[-1] is Ticked
    assert seen


@pytest.mark.req("SIM-ACT-3")
def test_each_attempt_is_counted_once() -> None:
    counters = Counters()

    for code in [None] * 6 + [Code.ROUTING_NO_CAPACITY] * 3 + [Code.PAYMENT_TIMEOUT]:
        counters.count(code)

    totals = counters.attempts_total, counters.committed_total, counters.rejected_total
    assert totals == (10, 6, 3)
    assert (counters.errors_total, counters.timeouts_total) == (1, 1)


def run_out_of_work(**settings: str) -> Headless:
    """A run in which every route search exceeds its work limit."""
    ways = network(("X", "S", 40), ("R", "X", 40), ("S", "R", 40))
    options = {"routing_timeout_ms": "1", "work_units_per_ms": "1", "amount_cap": "30", **settings}
    run = Headless(plan_run(from_value(ways), seed=1, settings=change_settings(Settings(), options)))
    run.step(1)
    return run


@pytest.mark.req("SIM-ERR-4")
@pytest.mark.req("SIM-GUARD-4")
def test_too_many_timeouts_end_a_run_within_the_tick() -> None:
    run = run_out_of_work()

    assert run.run.state_word == "error"
    assert run.run.counters.timeouts_total == 5
    assert run.run.last_error is not None
    assert run.run.last_error.code == "PAYMENT_TIMEOUT"
    assert run_out_of_work(max_timeouts_per_tick="0").run.state_word == "running"


@pytest.mark.req("SIM-ERR-4")
def test_too_many_errors_and_failed_ticks_end_a_run() -> None:
    many = too_many(Counters(errors_total=200), 0, Settings())
    failed = too_many_failed_ticks(3, Settings())

    assert many is not None
    assert (many.code, many.details["kind"]) == ("INTERNAL_ERROR", "REAL_MODE_TOO_MANY_ERRORS")
    assert failed is not None
    assert (failed.code, failed.details["kind"]) == ("INTERNAL_ERROR", "REAL_MODE_TICK_FAILED")
    assert too_many(Counters(errors_total=199), 4, Settings()) is None
    assert too_many(Counters(errors_total=500), 0, change_settings(Settings(), {"max_errors_total": "0"})) is None
    assert too_many_failed_ticks(9, change_settings(Settings(), {"max_consec_tick_failures": "0"})) is None


@pytest.mark.req("SIM-ERR-1")
@pytest.mark.req("SIM-ACT-8")
def test_refusals_never_end_a_run_and_are_noted_when_they_are_all_there_is() -> None:
    """a tries to pay c, two hops away, with one hop allowed; b never pays."""
    profiles: Json = [
        {"id": "far", "props": {"recipient_group_weights": {"far": 1}}},
        {"id": "still", "props": {"tx_rate": 0}},
    ]
    scenario = network(("b", "a", 10), ("c", "b", 10), behaviorProfiles=profiles)
    scenario["participants"] = [
        {"id": "a", "type": "person", "behaviorProfileId": "far"},
        {"id": "b", "type": "person", "behaviorProfileId": "still"},
        {"id": "c", "type": "person", "groupId": "far"},
    ]
    run = headless(scenario, intensity=100, routing_max_hops="1")

    events = events_of(run, 12)

    assert run.run.state_word == "running"
    assert run.run.counters.rejected_total == run.run.counters.attempts_total == 240
    assert [note["ticks"] for note in notes(events) if note["kind"] == "all_rejected"] == [5, 10]


@pytest.mark.req("SIM-GUARD-2")
def test_payments_above_the_rate_are_dropped_and_counted_separately() -> None:
    scenario = network(("a", "b", 1000))
    run = headless(scenario, intensity=100, max_payments_per_sec="3", tick_ms_base="2000", on_limit="drop")

    events = events_of(run, 2)

    counters = run.run.counters
    assert (counters.attempts_total, counters.dropped_total) == (12, 28)
    assert [event.dropped for event in events if isinstance(event, Ticked)] == [14, 14]


@pytest.mark.req("SIM-GUARD-3")
@pytest.mark.parametrize("budget", [1, 7, 20])
def test_planning_examines_exactly_fifty_positions_per_budgeted_payment(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rate this small is never accepted, so every position is examined."""
    examined = 0

    def counting() -> Any:
        draw, reseed = reseedable()

        def seeded(number: int) -> None:
            nonlocal examined
            examined += 1
            reseed(number)

        return draw, seeded

    monkeypatch.setattr("pendula.credit.planning.planner.reseedable", counting)
    scenario = network(("a", "b", 1000), behaviorProfiles=[{"id": "slow", "props": {"tx_rate": Decimal("1e-9")}}])
    scenario["participants"][1]["behaviorProfileId"] = "slow"  # type: ignore[index]
    run = headless(scenario, intensity=100, actions_per_tick_max=str(budget))

    run.step(3)

    assert run.run.counters.attempts_total == 0
    assert examined == 3 * 50 * budget


@pytest.mark.req("SIM-ACT-1")
def test_a_run_attempts_only_payments_and_clearings() -> None:
    lines = (("b", "a", 50), ("c", "b", 50), ("a", "c", 50))
    run = headless(network(*lines), intensity=100, clearing_policy="adaptive", clearing_every_n_ticks="2")
    events = events_of(run, 8)

    payments = [event for event in events if isinstance(event, TxUpdated | TxFailed)]
    calls = [event for event in events if isinstance(event, ClearingDecision) and event.should_run]
    assert payments
    assert calls
    for payment in payments:
        assert isinstance(payment.seq, int)
        assert all((payment.sender, payment.receiver, payment.equivalent))
        assert Decimal(payment.amount) > 0
    for call in calls:
        assert (call.equivalent, call.max_depth > 0, call.time_budget_ms > 0) == ("UAH", True, True)
    allowed = TxUpdated | TxFailed | ClearingDecision | ClearingPlan | ClearingDone | Ticked
    assert all(isinstance(event, allowed) for event in events)


@pytest.mark.req("SIM-INT-2")
def test_a_budget_can_stay_partly_unused(public: Public) -> None:
    run = Headless(
        plan_run(
            public("trust-drift-decay-minimal"), seed=1, settings=change_settings(Settings(), {"amount_cap": "500"})
        )
    )

    (ticked,) = [event for event in events_of(run, 1) if isinstance(event, Ticked)]

    assert (ticked.budget, ticked.planned, ticked.committed) == (20, 20, 1)


EVENTS: list[Json] = [
    {"time": 2000, "type": "note", "description": "second", "metadata": {"a": 1}},
    {"time": 1500, "type": "payment"},
    {"time": 0, "type": "clearing"},
    {"time": "day_10", "type": "note"},
    {"time": 0, "type": "inject", "effects": [{"op": "freeze_participant", "participant_id": "a"}]},
]


@pytest.mark.req("SIM-SCN-8")
@pytest.mark.req("SIM-SCN-9")
@pytest.mark.req("SIM-SCN-11")
def test_events_fire_once_when_they_are_due() -> None:
    run = headless(network(("a", "b", 1), events=EVENTS))

    fired = [[(note["event_index"], note["kind"]) for note in notes(events_of(run))] for _ in range(4)]

    assert fired == [[(4, "inject")], [], [(0, "note")], []]
    assert run.run.network.people.active == [True, True], "injections are off unless they are switched on"


def run_injections(effects: list[Json], **metadata: Json) -> tuple[Headless, list[Event]]:
    event: Json = {"time": 0, "type": "inject", "effects": effects, "metadata": metadata}
    run = headless(network(("b", "a", 100), ("a", "b", 100), events=[event]), enable_inject="1")
    return run, events_of(run)


def debt(amount: Json, creditor: str = "b", debtor: str = "a") -> Json:
    return {"op": "inject_debt", "from": creditor, "to": debtor, "equivalent": "UAH", "amount": amount}


@pytest.mark.req("SIM-SCN-12")
def test_a_debt_that_does_not_fit_is_skipped_alone() -> None:
    run, events = run_injections([debt(90), debt(20), debt("0.019"), debt(0), debt(1, "b", "q")])

    (note,) = notes(events)
    assert (note["applied"], note["skipped"], note["total"]) == (2, 3, "90.01")
    assert [text(owed) for _, _, owed in run.run.network.ledgers["UAH"].book.debt_rows()] == ["90.01"]


@pytest.mark.req("SIM-SCN-12")
def test_an_injected_debt_pays_back_first_and_stays_within_its_total() -> None:
    run, events = run_injections([debt(30), debt(50, "a", "b"), debt(30)], max_total_amount=100)

    (note,) = notes(events)
    assert (note["applied"], note["skipped"], note["total"]) == (2, 1, "80.00")
    assert list(run.run.network.ledgers["UAH"].book.debt_rows()) == [("b", "a", 20 * 10**8)]
    assert not [event for event in events if isinstance(event, AuditDrift)], "what was injected is no drift"
    (netted,) = notes(run_injections([debt(30), debt(130, "a", "b"), debt("0.01", "a", "b")])[1])
    assert (netted["applied"], netted["skipped"], netted["total"]) == (2, 1, "160.00"), (
        "30 paid back, 100 owed: the limit"
    )


@pytest.mark.req("SIM-SCN-13")
@pytest.mark.req("SIM-SCN-14")
def test_an_injection_adds_and_freezes_and_reports_both() -> None:
    effects: list[Json] = [
        {
            "op": "add_participant",
            "participant": {"id": "c", "type": "person"},
            "initial_trustlines": [
                {"sponsor": "a", "equivalent": "uah", "limit": 7},
                {"sponsor": "b", "equivalent": "UAH", "limit": 9, "direction": "new_credits_sponsor"},
                {"sponsor": "b", "equivalent": "UAH", "limit": 0},
            ],
        },
        {"op": "add_participant", "participant": {"id": "a", "type": "person"}},
        {"op": "create_trustline", "from": "a", "to": "b", "equivalent": "UAH", "limit": 5},
        {"op": "freeze_participant", "participant_id": "b"},
    ]
    run, events = run_injections(effects)

    (change,) = [event for event in events if isinstance(event, TopologyChanged)]
    assert [node.pid for node in change.payload.added_nodes] == ["c"]
    assert [(edge.from_pid, edge.to_pid, edge.limit) for edge in change.payload.added_edges] == [
        ("a", "c", "7.00"),
        ("c", "b", "9.00"),
    ]
    assert change.payload.frozen_nodes == ("b",)
    assert len(change.payload.frozen_edges) == 3
    (note,) = notes(events)
    assert (note["applied"], note["skipped"]) == (2, 2)
    book = run.run.network.ledgers["UAH"].book
    assert {book.status[h].value for h in range(len(book))} == {"active", "frozen"}
    assert list(run.run.broken()) == []


@pytest.mark.req("SIM-MET-2")
def test_a_tick_has_the_metrics_of_its_network() -> None:
    run = headless(network(("b", "a", 10), ("c", "b", 10)), intensity=100, amount_cap="4")
    ticked = next(event for event in events_of(run) if isinstance(event, Ticked))
    values = ticked.metrics["UAH"]

    book = run.run.network.ledgers["UAH"].book
    whole = ticked.committed + ticked.rejected
    assert values["success_rate"] == f"{round(100 * ticked.committed / whole, 8):.8f}"
    assert values["total_debt"] == f"{book.total / 10**8:.8f}"
    assert (values["active_participants"], values["active_trustlines"]) == ("3.00000000", "2.00000000")
    assert values["clearing_volume"] == "0.00000000"
    assert values["bottlenecks_score"] == "0.00000000"
    assert values["avg_route_length"] is not None


@pytest.mark.req("SIM-MET-2")
def test_missing_measurements_are_null() -> None:
    run = headless(network(("b", "a", 10)))
    values = next(event for event in events_of(run) if isinstance(event, Ticked)).metrics["UAH"]

    assert [values[name] for name in ("success_rate", "avg_route_length", "bottlenecks_score")] == [None] * 3


@pytest.mark.req("SIM-EVT-16")
def test_an_unexplained_ledger_change_is_found_at_the_end_of_the_tick() -> None:
    run = headless(network(("b", "a", 10)))
    run.run.network.ledgers["UAH"].book.move(0, 3 * 10**8)

    (drift,) = [event for event in events_of(run) if isinstance(event, AuditDrift)]

    assert (drift.severity, drift.total_drift, drift.source) == ("critical", "6.00", "post_tick_audit")
    assert [(row.participant_id, row.drift) for row in drift.drifts] == [("a", "-3.00"), ("b", "3.00")]


@pytest.mark.req("SIM-EVT-5")
def test_patches_show_current_positions_and_lines() -> None:
    run = headless(network(("b", "a", 10), ("a", "b", 4)))

    (event,) = run.do(Pay("a", "b", "UAH", "9")).events

    assert isinstance(event, TxUpdated)
    assert isinstance(event.node_patch, tuple)
    assert isinstance(event.edge_patch, tuple)
    assert [(node.id, node.net_balance, node.net_sign) for node in event.node_patch] == [
        ("a", "-9.00", -1),
        ("b", "9.00", 1),
    ]
    assert [(edge.source, edge.target, edge.used, edge.available) for edge in event.edge_patch] == [
        ("b", "a", "9.00", "1.00"),
        ("a", "b", "0.00", "4.00"),
    ]


@pytest.mark.req("SIM-ACT-6")
def test_the_demonstration_emits_clearings_and_payments_without_a_ledger() -> None:
    plan = plan_run(from_value(network(("b", "a", 10), ("c", "b", 10))), seed=4, mode="fixtures", intensity=100)
    run = Headless(plan)

    events = events_of(run, 150)

    announced = [event.tick_index for event in events if isinstance(event, ClearingPlan)]
    done = [event.tick_index for event in events if isinstance(event, ClearingDone)]
    assert announced == [25, 72, 119]
    assert done == [27, 74, 121]
    payments = [event for event in events if isinstance(event, TxUpdated)]
    assert 130 < len(payments) < 300, "at full intensity one comes every 500 to 1100 ms"
    assert run.run.network.ledgers["UAH"].book.total == 0


@pytest.mark.req("SIM-TEST-10")
@pytest.mark.req("SIM-TEST-9")
@pytest.mark.parametrize("ticks", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_hundreds_of_ticks_of_the_village_keep_every_invariant(public: Public, ticks: int) -> None:
    options = change_settings(Settings(), {"amount_cap": "500"})
    plan = plan_run(public("greenfield-village-100-realistic-v2"), seed=42, settings=options, patches=False)
    run = Headless(plan)
    cents = 0

    for _ in range(ticks // 10):
        for event in events_of(run, 10):
            if isinstance(event, TxUpdated | TxFailed):
                whole, _, fraction = event.amount.partition(".")
                assert len(fraction) == 2
                assert 50 <= int(whole) <= 500
                cents += 1
        assert list(run.run.broken()) == []

    assert run.run.tick == ticks
    assert cents > ticks


@pytest.mark.req("SIM-ADP-17")
def test_a_restart_clears_the_memory_of_the_policy() -> None:
    run = headless(network(("b", "a", 1)), intensity=100, clearing_policy="adaptive", adaptive_window_ticks="3")
    run.step(10)
    assert len(saved(run.run)["policies"]["UAH"]["window"]) == 3

    run.do(Restart())

    remembered = saved(run.run)["policies"]["UAH"]
    assert (remembered["window"], remembered["last_call"]) == ([], None)


def test_the_public_village_meets_the_targets_except_for_its_households(public: Public) -> None:
    """Payments between households are about 1 % and miss their target: the chains of the file prevent them."""
    options = change_settings(Settings(), {"amount_cap": "500"})
    plan = plan_run(
        public("greenfield-village-100-realistic-v2"), seed=42, intensity=50, settings=options, patches=False
    )
    run = Headless(plan)

    paid = [float(event.amount) for event in events_of(run, 150) if isinstance(event, TxUpdated)]

    counters = run.run.counters
    assert 0.60 <= counters.committed_total / counters.attempts_total <= 0.80
    assert 100 <= sum(paid) / len(paid) <= 500
    assert max(paid) <= 500
    assert 2 <= len(run.clearing) * 60 / 150 <= 5


@pytest.mark.req("SIM-TEST-16")
def test_the_state_of_a_long_run_does_not_grow() -> None:
    plan = plan_run(
        from_value(village(12, 1)), seed=1, settings=change_settings(Settings(), {"amount_cap": "500"}), patches=False
    )
    run = Run.create(plan.json)
    run.apply(Tick(200))
    early = len(run.state())

    for _ in range(8):
        run.apply(Tick(100))

    assert run.tick == 1000
    assert len(run.state()) <= early * 1.05
