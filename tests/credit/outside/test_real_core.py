"""A run against a small payment core over HTTP: payments and clearing, several calls at once, the rate limit."""

from typing import Any

import pytest

from pendula.credit.engine import Run as Engine
from pendula.credit.events import AuditDrift, ClearingDecision, ClearingDone, Event, Note, Ticked, TxFailed, TxUpdated
from pendula.credit.model import Code, clearing_key
from pendula.credit.outside import Answers, PaymentService
from pendula.credit.runs.headless import Headless, plan_run, simulate
from pendula.credit.runs.recording import Recording
from pendula.credit.settings import Settings, change_settings
from pendula.documents import from_value
from pendula.kernel.canonical import Json
from pendula.kernel.disk import RealDisk
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from tests.campaigns import campaign_after
from tests.credit.core import Core, serving_core
from tests.credit.misbehaving import network

NETWORK = network()
CIRCLE: Json = [
    {"from": creditor, "to": debtor}
    for creditor, debtor in (("ann", "bea"), ("bea", "cid"), ("cid", "dan"), ("dan", "ann"))
]
PATIENT: dict[str, Any] = {"connect_seconds": 30.0, "lookup_seconds": 30.0}


class Run:
    """A run that pays and clears through a core, and its events."""

    def __init__(self, core: Core, *, total_seconds: float = 30.0, **settings: str) -> None:
        values = {"actions_per_tick_max": "12", "clearing_every_n_ticks": "3", "amount_cap": "3", **settings}
        options = change_settings(Settings(), values)
        self.headless = Headless(plan_run(from_value(NETWORK), seed=42, settings=options, engine="external"))
        self.service = PaymentService(
            core.url, total_seconds=total_seconds, per_second=options.max_payments_per_sec, **PATIENT
        )
        self.headless.ask(Answers(self.headless.run, payments=self.service))
        self.events: list[Event] = []

    def step(self, ticks: int) -> None:
        self.headless.step(ticks, self.events.extend)

    def debts(self) -> list[tuple[str, str, int]]:
        return list(self.headless.run.network.ledgers["UAH"].book.debt_rows())

    def of(self, *kinds: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]


@pytest.mark.req("SIM-PAY-24")
def test_a_run_against_a_core_equals_a_run_of_the_embedded_engine() -> None:
    with serving_core(NETWORK) as core:
        run = Run(core)
        run.step(10)

        embedded = simulate(from_value(NETWORK), seed=42, ticks=10, settings=run.headless.run.settings)

        assert run.headless.run.digests() == embedded.digests
        assert run.debts() == core.debts("UAH")
        done = run.of(ClearingDone)
        assert done
        assert [(event.tick_index, event.cleared_amount) for event in done] == [
            (row.tick, row.cleared_amount) for row in embedded.clearing
        ]
        assert core.paths.count("/clearing") == 3
        assert run.of(AuditDrift) == []


@pytest.mark.req("SIM-GUARD-1", "SIM-PAY-24", "SIM-ACT-2")
def test_concurrent_calls_give_the_same_results_in_the_same_order() -> None:
    with serving_core(NETWORK) as alone, serving_core(NETWORK, 0.02, expect=4) as together:
        single, four = Run(alone), Run(together, max_in_flight="4")
        single.step(6)
        four.step(6)

        untimed = [[event for event in run.events if not isinstance(event, Ticked)] for run in (single, four)]
        assert untimed[0] == untimed[1]
        assert four.headless.run.digests() == single.headless.run.digests()
        assert four.debts() == together.debts("UAH") == alone.debts("UAH")
        assert (alone.most_inside, together.most_inside) == (1, 4)


@pytest.mark.req("SIM-GUARD-1")
def test_calls_in_flight_stay_within_the_limit() -> None:
    with serving_core(NETWORK, 0.01, expect=3) as core:
        run = Run(core, max_in_flight="3", clearing_enabled="off")
        run.step(4)

        assert core.most_inside == 3
        assert [event.seq for event in run.of(TxUpdated, TxFailed)] == list(range(12)) * 4


@pytest.mark.req("SIM-ADP-11", "SIM-GUARD-2")
def test_calls_in_flight_reach_the_adaptive_policy() -> None:
    adaptive: Any = {"clearing_policy": "adaptive", "adaptive_inflight_threshold": "2"}
    with serving_core(NETWORK) as one, serving_core(NETWORK) as other:
        few, many = Run(one, max_in_flight="2", **adaptive), Run(other, max_in_flight="3", **adaptive)
        few.step(2)
        many.step(2)

        assert {event.in_flight for event in few.of(ClearingDecision)} == {2}
        assert "CLEARING_SKIPPED_GUARDRAIL" not in {event.reason for event in few.of(ClearingDecision)}
        assert {event.in_flight for event in many.of(ClearingDecision)} == {3}
        assert {event.reason for event in many.of(ClearingDecision)} == {"CLEARING_SKIPPED_GUARDRAIL"}


@pytest.mark.req("SIM-GUARD-2", "SIM-PAY-24")
def test_calls_per_second_stay_within_the_rate() -> None:
    with serving_core(NETWORK) as core:
        run = Run(core, max_payments_per_sec="8", actions_per_tick_max="5", clearing_every_n_ticks="0")
        run.step(4)

        arrivals = core.arrivals
        assert len(arrivals) == 20
        assert all(later - earlier >= 1.0 for earlier, later in zip(arrivals, arrivals[8:], strict=False))


@pytest.mark.req("SIM-ERR-4", "SIM-PAY-24", "SIM-ADP-12")
def test_a_core_that_never_answers_ends_the_run_by_timeouts() -> None:
    with serving_core(NETWORK) as core:
        core.hang = True
        run = Run(core, total_seconds=0.2, max_in_flight="4")
        run.service.lookup_seconds = 30.0
        run.step(2)

        assert run.headless.run.state_word == "error"
        error = run.headless.run.last_error
        assert error is not None
        assert error.code == Code.PAYMENT_TIMEOUT
        assert run.headless.run.counters.timeouts_total >= 5


@pytest.mark.req("SIM-ADP-12", "SIM-CLR-11")
def test_a_clearing_that_times_out_clears_nothing_and_is_reported() -> None:
    with serving_core(NETWORK) as core:
        run = Run(core, clearing_hard_timeout_sec="0", clearing_time_budget_ms="1", clearing_every_n_ticks="1")
        run.step(1)
        core.hang = True
        run.headless.run.use(change_settings(run.headless.run.settings, {"actions_per_tick_max": "1"}))
        run.service.total_seconds = 0.2
        run.step(1)

        notes = [event.scenario for event in run.of(Note) if event.scenario["kind"] == "clearing_failed"]
        assert [(note["equivalent"], note["code"]) for note in notes] == [("UAH", "PAYMENT_TIMEOUT")]
        assert run.of(ClearingDone) == []


@pytest.mark.req("SIM-PAY-24", "SIM-ADP-3")
def test_the_duration_of_an_outside_clearing_is_recorded_and_replayed(tmp_path: Any) -> None:
    values = {"clearing_policy": "adaptive", "adaptive_window_ticks": "1", "clearing_every_n_ticks": "1"}
    values |= {"adaptive_no_capacity_high": "0.01", "adaptive_no_capacity_low": "0", "amount_cap": "3"}
    options = change_settings(Settings(), values)
    plan = plan_run(from_value(NETWORK), seed=42, settings=options, engine="external")
    with serving_core(NETWORK) as core:
        outside = Answers(None, payments=PaymentService(core.url, total_seconds=30, **PATIENT))
        with Recording.begin(plan, RealDisk(tmp_path / "journal"), outside) as recording:
            recording.step(12)
            costs = [value["clearing_cost_ms"] for value in recording.headless.run.measured.values()]
            digests = recording.headless.run.digests()

    report = replay(FileJournal.open(RealDisk(tmp_path / "journal", make=False)), lambda _: Engine)

    assert report.first_difference is None
    assert all(cost is None or cost.endswith(".00000000") for cost in costs)
    assert digests["ledger"]


@pytest.mark.parametrize(
    "cycles",
    [
        [{"cleared_amount": "1", "edges": [{"from": "ann", "to": "bea"}]}],
        [{"cleared_amount": "1000", "edges": [{"from": "bea", "to": "ann"}, {"from": "ann", "to": "bea"}]}],
        [{"cleared_amount": "1", "edges": CIRCLE}],
        [{"cleared_amount": "x", "edges": []}],
        [3],
    ],
)
@pytest.mark.req("SIM-CLR-3", "SIM-PAY-24")
def test_a_clearing_that_does_not_fit_the_ledger_is_a_drift_and_changes_nothing(cycles: Json) -> None:
    class Wrong:
        def ask(self, name: str, question: Json) -> Json:
            return {"cycles": cycles, "cost_ms": 3} if name == "clear" else {"timeout": True}

    options = change_settings(Settings(), {"clearing_every_n_ticks": "1", "max_timeouts_per_tick": "0"})
    run = Headless(plan_run(from_value(NETWORK), seed=1, settings=options, engine="external"))
    run.ask(Wrong())
    events: list[Event] = []
    run.step(2, events.extend)

    assert [event.source for event in events if isinstance(event, AuditDrift)] == ["delta_check"]
    assert run.run.network.ledgers["UAH"].book.total == 0


@pytest.mark.req("SIM-PAY-24")
@pytest.mark.parametrize("status", campaign_after(2, [202, 408, 409, 500]))
def test_a_clearing_without_a_definite_answer_is_looked_up(status: int) -> None:
    with serving_core(NETWORK) as core:
        run = Run(core)
        core.clearing_status = status
        run.step(7)

        assert core.paths.count("/clearing") > 1
        assert run.of(ClearingDone) != []
        assert run.debts() == core.debts("UAH")
        assert run.service.unsettled == {}


@pytest.mark.req("SIM-PAY-24")
@pytest.mark.parametrize("status", [408, 409])
def test_a_clearing_with_an_unknown_result_stays_unsettled(status: int) -> None:
    with serving_core(NETWORK) as core:
        run = Run(core, clearing_every_n_ticks="2")
        core.clearing_status, core.knows_clearings = status, False
        run.step(3)
        [key] = run.service.unsettled

        core.knows_clearings = True

        assert run.service.settle()[key] is not None
        assert run.service.unsettled == {}


def test_clearings_of_runs_with_long_names_have_distinct_keys() -> None:
    names = [f"experiment-2026-village-of-twenty-people-{letter}" for letter in "AB"]

    assert len({clearing_key(name, "plan_b164c995396a") for name in names}) == 2
