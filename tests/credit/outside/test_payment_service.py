"""A run that pays through a service: the ledger of the run stays correct under every fault of the service."""

import random
import re
import ssl
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.credit.commands import Tick
from pendula.credit.engine import Run
from pendula.credit.events import AuditDrift, Event, Note, RunStatus, TxFailed, TxUpdated
from pendula.credit.model import Code, idempotency_key
from pendula.credit.outside.answers import Answers
from pendula.credit.outside.payment_service import ANSWER_BYTES_MOST, PaymentService
from pendula.credit.runs.headless import Headless, RunPlan, plan_run, simulate
from pendula.credit.settings import Settings, change_settings
from pendula.documents import from_value
from pendula.kernel.canonical import Json, encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver
from pendula.kernel.engine import NoAnswerSource
from pendula.kernel.errors import WrongUsage
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from tests.credit.conftest import saved
from tests.credit.misbehaving import Act, Service, network, serving
from tests.server.certificate import CERTIFICATE, KEY

PATIENT: dict[str, Any] = {"total_seconds": 20.0, "connect_seconds": 20.0, "lookup_seconds": 20.0}
HASTY: dict[str, Any] = {**PATIENT, "total_seconds": 0.15}
QUESTION: dict[str, Json] = {"from": "ann", "to": "bea", "equivalent": "UAH", "amount": "2.50"}

PAID = (
    Act.BEHAVE,
    Act.PAY_WITHOUT_ANSWER,
    Act.PAY_AND_DISCONNECT,
    Act.PAY_AND_DRIP,
    Act.PAY_AND_NOT_JSON,
    Act.PAY_AND_FAIL,
    Act.ANSWER_TWICE,
    Act.ANSWER_HALF,
)
UNPAID = {
    Act.NO_ANSWER: Code.PAYMENT_TIMEOUT,
    Act.DISCONNECT: Code.PAYMENT_TIMEOUT,
    Act.NOT_HTTP: Code.PAYMENT_TIMEOUT,
    Act.NOT_JSON: Code.INTERNAL_ERROR,
    Act.HUGE: Code.INTERNAL_ERROR,
    Act.NESTED: Code.INTERNAL_ERROR,
    Act.FAIL: Code.INTERNAL_ERROR,
    Act.REDIRECT: Code.INTERNAL_ERROR,
    Act.ANOTHER_PAYMENT: Code.INTERNAL_ERROR,
    Act.REFUSE: Code.ROUTING_NO_CAPACITY,
    Act.BUSY: Code.CONFLICT,
}
SLOW = (Act.NO_ANSWER, Act.PAY_WITHOUT_ANSWER, Act.PAY_AND_DRIP)


def plan(payments: int = 5, **settings: str) -> RunPlan:
    values = {"actions_per_tick_max": str(payments), "clearing_enabled": "off", "amount_cap": "5", **settings}
    return plan_run(from_value(network()), seed=42, settings=change_settings(Settings(), values), engine="external")


class Watched:
    """A run that pays through a service, and all its events."""

    def __init__(self, service: Service, plan: RunPlan, times: dict[str, Any] = PATIENT) -> None:
        self.headless = Headless(plan)
        self.run = self.headless.run
        self.payments = PaymentService(service.url, **times)
        self.headless.ask(Answers(self.run, self.payments))
        self.events: list[Event] = []

    def step(self, ticks: int = 1) -> None:
        self.headless.step(ticks, self.events.extend)

    def failures(self) -> list[str]:
        return [event.error.code for event in self.events if isinstance(event, TxFailed)]

    def debts(self) -> list[tuple[str, str, int]]:
        return list(self.run.network.ledgers["UAH"].book.debt_rows())

    def counts(self) -> tuple[int, int, int, int, int]:
        """Attempts, committed, rejected, errors, timeouts."""
        counters = self.run.counters
        done = counters.attempts_total, counters.committed_total, counters.rejected_total
        return *done, counters.errors_total, counters.timeouts_total


@pytest.fixture
def good_service() -> Iterator[Service]:
    with serving() as service:
        yield service


def ask_service(service: Service, key: str = "k1", **options: Any) -> Json:
    return ask_payment(PaymentService(service.url, **{**PATIENT, **options}), {**QUESTION, "idempotency_key": key})


def ask_payment(payments: PaymentService, question: Json) -> Json:
    """The answer without the cause of a missing result."""
    answer: Any = payments.ask("pay", question)
    return {name: value for name, value in answer.items() if name != "trouble"}


@pytest.mark.req("SIM-PAY-24")
def test_a_run_through_a_service_equals_an_embedded_run(good_service: Service) -> None:
    outside = Watched(good_service, plan(20))
    embedded = simulate(from_value(network()), seed=42, ticks=5, settings=outside.run.settings)

    outside.step(5)

    assert outside.run.digests() == embedded.digests
    assert outside.debts() == good_service.debts()
    assert 0 < outside.counts()[1] < 100
    assert len(good_service.posts) == 100


@pytest.mark.req("SIM-PAY-20", "SIM-PAY-24")
@pytest.mark.parametrize("act", PAID)
def test_a_payment_made_by_the_service_is_always_committed(act: Act) -> None:
    with serving(act) as service:
        watched = Watched(service, plan(1), HASTY if act in SLOW else PATIENT)

        watched.step()

        assert watched.counts() == (1, 1, 0, 0, 0)
        assert watched.debts() == service.debts() != []
        assert len(service.posts) == len(service.effects) == 1
        assert len(service.looks) == (act not in (Act.BEHAVE, Act.ANSWER_TWICE))
        assert watched.payments.unsettled == {}


@pytest.mark.req("SIM-PAY-20", "SIM-ERR-3")
@pytest.mark.parametrize("act", UNPAID)
def test_a_payment_not_made_by_the_service_leaves_no_debt(act: Act) -> None:
    with serving(act) as service:
        watched = Watched(service, plan(1), HASTY if act in SLOW else PATIENT)

        watched.step()

        assert watched.failures() == [UNPAID[act]]
        assert watched.debts() == service.debts() == []
        assert service.posts == [idempotency_key(watched.run.config.run_id, 0, *failed_payment(watched), 0)]
        assert not list(watched.run.broken())


def failed_payment(watched: Watched) -> tuple[str, str, str, int]:
    (failed,) = [event for event in watched.events if isinstance(event, TxFailed)]
    return failed.sender, failed.receiver, failed.equivalent, int(failed.amount.replace(".", "")) * 10**6


@pytest.mark.req("SIM-PAY-20", "SIM-PAY-16")
@pytest.mark.parametrize("act", [Act.UNKNOWN_LINES, Act.WRONG_SUM])
def test_invalid_routes_move_nothing(act: Act) -> None:
    with serving(act) as service:
        watched = Watched(service, plan(1))

        watched.step()

        assert watched.failures() == ["INTERNAL_ERROR"]
        assert watched.debts() == []
        assert not list(watched.run.broken())


@pytest.mark.req("SIM-PAY-16", "SIM-PAY-3")
def test_routes_beyond_the_capacity_of_the_ledger_are_a_drift() -> None:
    with serving(limit=1000) as service:
        watched = Watched(service, plan(20, max_errors_total="0"))

        watched.step(5)

        drifts = [event for event in watched.events if isinstance(event, AuditDrift)]
        assert drifts
        assert {drift.source for drift in drifts} == {"delta_check"}
        assert watched.failures().count("INTERNAL_ERROR") == len(drifts)
        assert watched.debts() != service.debts()
        assert not list(watched.run.broken())


@pytest.mark.req("SIM-PAY-16", "SIM-ERR-4")
def test_a_payment_beyond_the_capacity_names_the_line() -> None:
    with serving(limit=1000) as service:
        watched = Watched(service, plan(20, max_errors_total="0"))

        watched.step(5)

        (failed, *_) = [event for event in watched.events if isinstance(event, TxFailed)]
        details: Any = failed.error.details
        assert Decimal(details["found"]) < Decimal(details["expected"])
        line = f"the line of {details['line']['to']} to {details['line']['from']}"
        expected = f"The service moved {details['expected']} over {line}, which has {details['found']} left in the run"
        assert failed.message == expected


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (Act.UNKNOWN_LINES, "which the run does not have"),
        (Act.WRONG_SUM, r"routes of the service carry \S+ instead of"),
    ],
)
def test_invalid_routes_are_described(act: Act, message: str) -> None:
    with serving(act) as service:
        watched = Watched(service, plan(1))

        watched.step()

        (failed,) = [event for event in watched.events if isinstance(event, TxFailed)]
        assert re.search(message, failed.message), failed.message
        assert failed.error.details


@pytest.mark.req("SIM-ACT-3", "SIM-ERR-2")
def test_each_attempt_is_counted_once_and_a_timeout_twice() -> None:
    with serving(*[Act.BEHAVE] * 6, *[Act.REFUSE] * 3, Act.DISCONNECT) as service:
        watched = Watched(service, plan(10))

        watched.step()

        assert watched.counts() == (10, 6, 3, 1, 1)
        assert watched.debts() == service.debts()


@pytest.mark.req("SIM-ERR-1")
def test_refusals_alone_never_end_a_run() -> None:
    with serving(forever=Act.REFUSE) as service:
        watched = Watched(service, plan(20, max_errors_total="1", max_timeouts_per_tick="1"))

        watched.step(4)

        assert watched.run.state_word == "running"
        assert watched.counts() == (80, 0, 80, 0, 0)


@pytest.mark.req("SIM-ERR-4", "SIM-ERR-2", "SIM-GUARD-4")
def test_a_service_that_never_answers_ends_the_run_in_the_first_tick() -> None:
    with serving(forever=Act.NO_ANSWER) as service:
        service.drops_lookups = True
        watched = Watched(service, plan(20), {**PATIENT, "total_seconds": 0.05})

        watched.step(3)

        assert watched.run.state_word == "error"
        assert watched.run.last_error is not None
        assert watched.run.last_error.code == "PAYMENT_TIMEOUT"
        assert watched.run.tick == 0
        assert watched.counts() == (5, 0, 0, 5, 5)
        assert isinstance(watched.events[-1], RunStatus)


@pytest.mark.req("SIM-ERR-4")
def test_too_many_errors_in_total_end_the_run() -> None:
    with serving(forever=Act.FAIL) as service:
        watched = Watched(service, plan(5, max_errors_total="12"))

        watched.step(9)

        assert watched.run.last_error is not None
        assert watched.run.last_error.details == {"kind": "REAL_MODE_TOO_MANY_ERRORS", "errors": 12, "limit": 12}
        assert watched.counts() == (12, 0, 0, 12, 0)
        assert watched.run.tick == 2


@pytest.mark.req("SIM-ERR-6")
def test_a_payment_is_retried_only_if_the_settings_say_so() -> None:
    with serving(Act.DISCONNECT) as service:
        watched = Watched(service, plan(1))

        watched.step()

        assert watched.counts() == (1, 0, 0, 1, 1)
        assert len(service.posts) == 1


@pytest.mark.req("SIM-ERR-6", "SIM-PAY-18")
def test_retries_use_one_key_and_take_effect_once() -> None:
    with serving(Act.DISCONNECT, Act.PAY_AND_DISCONNECT, Act.PAY_AND_DISCONNECT) as service:
        service.drops_lookups = True
        watched = Watched(service, plan(1, payment_retries="3"))

        watched.step()

        assert watched.counts() == (1, 1, 0, 0, 0)
        assert Counter(service.posts) == {service.posts[0]: 4}
        assert service.effects == service.posts[:1]
        assert watched.debts() == service.debts()
        assert watched.payments.unsettled == {}


@pytest.mark.req("SIM-ERR-6", "SIM-PAY-18")
def test_a_request_under_one_key_is_equal_at_every_attempt(good_service: Service) -> None:
    question = {**QUESTION, "idempotency_key": "k1"}
    payments = PaymentService(good_service.url, **PATIENT)

    answers = [payments.ask("pay", {**question, "attempt": attempt}) for attempt in range(3)]

    assert answers[0] == answers[1] == answers[2]
    assert good_service.effects == ["k1"]


@pytest.mark.req("SIM-PAY-20")
def test_a_conflict_with_an_earlier_attempt_is_no_refusal() -> None:
    with serving(Act.DISCONNECT, Act.BUSY) as service:
        watched = Watched(service, plan(1, payment_retries="1"))

        watched.step()

        assert watched.failures() == ["PAYMENT_TIMEOUT"]
        assert list(watched.payments.unsettled) == service.posts[:1]


@pytest.mark.req("SIM-PAY-20")
def test_a_refusal_after_a_lost_attempt_counts_if_no_payment_is_known() -> None:
    with serving(Act.DISCONNECT, Act.REFUSE) as service:
        watched = Watched(service, plan(1, payment_retries="1"))

        watched.step()

        assert watched.failures() == ["ROUTING_NO_CAPACITY"]
        assert watched.payments.unsettled == {}


@pytest.mark.req("SIM-PAY-20")
def test_a_refusal_after_a_committed_attempt_returns_the_payment() -> None:
    with serving(Act.PAY_AND_DISCONNECT, Act.REFUSE) as service:
        service.drops_lookups = True
        payments = PaymentService(service.url, **PATIENT)
        question = {**QUESTION, "idempotency_key": "k1"}
        first = ask_payment(payments, question)
        service.drops_lookups = False

        second: Any = ask_payment(payments, question)

        assert first == {"timeout": True}
        assert second["status"] == "COMMITTED"


@pytest.mark.req("SIM-PAY-20")
def test_an_unclear_payment_is_remembered_and_can_be_settled_later() -> None:
    with serving(Act.PAY_AND_DISCONNECT, Act.PAY_AND_FAIL, Act.DISCONNECT) as service:
        service.drops_lookups = True
        payments = PaymentService(service.url, **PATIENT)
        answers = [ask_payment(payments, {**QUESTION, "idempotency_key": key}) for key in ("a", "b", "c")]
        before, nothing = payments.unsettled, payments.settle()
        service.drops_lookups = False

        after: Any = payments.settle()

        assert answers == [{"timeout": True}, {"unclear": "http_500"}, {"timeout": True}]
        assert before == {"a": QUESTION, "b": QUESTION, "c": QUESTION}
        assert nothing == {}
        assert [after["a"]["status"], after["b"]["status"], after["c"]] == ["COMMITTED", "COMMITTED", None]
        assert payments.unsettled == {}


@pytest.mark.req("SIM-PAY-20")
def test_a_lookup_without_a_result_is_not_trusted_during_an_open_call() -> None:
    with serving(Act.PAY_AND_DISCONNECT) as service:
        service.knows_no_keys = True
        payments = PaymentService(service.url, **PATIENT)

        answer = ask_payment(payments, {**QUESTION, "idempotency_key": "k1"})

        assert answer == {"timeout": True}
        assert payments.unsettled == {"k1": QUESTION}


@pytest.mark.req("SIM-PAY-20")
def test_a_failure_after_a_lost_attempt_leaves_the_payment_unclear() -> None:
    with serving(Act.PAY_AND_DISCONNECT, Act.FAIL) as service:
        service.knows_no_keys = True
        payments = PaymentService(service.url, **PATIENT)
        question = {**QUESTION, "idempotency_key": "k1"}

        answers = [ask_payment(payments, question) for _ in range(2)]

        assert answers == [{"timeout": True}, {"unclear": "http_500"}]
        assert payments.unsettled == {"k1": QUESTION}


@pytest.mark.req("SIM-PAY-23")
def test_a_failed_tick_is_rolled_back_and_the_next_plans_again() -> None:
    with serving(*[Act.BEHAVE] * 7, Act.FAIL_THE_TICK) as service:
        watched = Watched(service, plan(5))
        watched.step()
        service.begin()
        counts, digests = watched.counts(), watched.run.digests()
        watched.events.clear()

        watched.step()

        assert [event.scenario["kind"] for event in watched.events if isinstance(event, Note)] == ["tick_failed"]
        assert (watched.counts(), watched.run.digests()) == (counts, digests)
        assert watched.debts() == service.debts() != []
        assert watched.run.tick == 2
        assert watched.run.state_word == "running"

        watched.step()

        assert watched.counts()[0] == 10
        assert watched.debts() == service.debts()
        assert len(set(service.posts)) == len(service.posts) == 13
        assert saved(watched.run)["failed_ticks"] == 0


@pytest.mark.req("SIM-PAY-23", "SIM-ERR-4")
def test_three_failed_ticks_in_a_row_end_the_run() -> None:
    with serving(forever=Act.FAIL_THE_TICK) as service:
        service.begin()
        watched = Watched(service, plan(5))

        watched.step(9)

        assert watched.run.state_word == "error"
        assert watched.run.last_error is not None
        assert watched.run.last_error.code == "INTERNAL_ERROR"
        assert watched.run.last_error.details == {"kind": "REAL_MODE_TICK_FAILED", "failed_ticks": 3, "limit": 3}
        assert len(service.posts) == 3
        assert watched.debts() == []


@pytest.mark.req("SIM-PAY-20", "SIM-PAY-3")
@pytest.mark.parametrize("seed", range(6))
def test_both_ledgers_agree_after_any_mixture_of_faults(seed: int) -> None:
    luck = random.Random(seed)
    quick = [act for act in (*PAID, *UNPAID) if act not in SLOW]
    with serving(*luck.choices([Act.BEHAVE, *quick], k=60)) as service:
        watched = Watched(service, plan(12, payment_retries="1", max_timeouts_per_tick="0", max_errors_total="0"))

        watched.step(5)

        assert watched.debts() == service.debts() != []
        assert len(set(service.effects)) == len(service.effects)
        assert sum(watched.counts()[1:4]) == watched.counts()[0] == 60
        assert min(watched.counts()[1:4]) > 0, "some were committed, some refused, some failed"
        assert len(service.posts) > 60, "some were retried"
        unsettled = list(watched.payments.unsettled)
        assert unsettled
        assert watched.payments.settle() == dict.fromkeys(unsettled), "none of them was committed"
        assert not list(watched.run.broken())


@pytest.mark.req("SIM-PAY-24")
def test_a_run_through_a_service_replays_byte_for_byte_without_it(tmp_path: Path) -> None:
    made_plan = plan(6, payment_retries="1", max_timeouts_per_tick="0")
    disk = RealDisk(tmp_path / "journal")
    journal = FileJournal.create(
        disk, scheduler="credit", decisions=Run.decisions, time_unit="tick", config=made_plan.json
    )
    acts = *PAID, *UNPAID, Act.UNKNOWN_LINES, Act.FAIL_THE_TICK
    with serving(*(act for act in acts if act not in SLOW)) as service:
        service.begin()
        answers = Answers(lambda: driver.engine, PaymentService(service.url, **PATIENT))
        driver: Driver[Any, Any] = Driver(Run.create(made_plan.json), journal, outside=answers)
        for _ in range(4):
            driver.submit(Tick(), by="test")
        driver.submit(Tick(2), by="test")
        state, posts = driver.engine.state(), len(service.posts)
        driver.close()
    again = FileJournal.open(RealDisk(tmp_path / "journal"))

    report = replay(again, lambda _: Run)

    assert report.first_difference is None
    assert (report.commands, report.snapshots) == (5, 1)
    assert Driver.recover(again, lambda _: Run).engine.state() == state
    assert len(service.posts) == posts > 20
    again.close()


@pytest.mark.req("SIM-ERR-5")
def test_texts_of_the_service_never_reach_events() -> None:
    with serving(Act.REFUSE, Act.FAIL, limit=1) as service:
        watched = Watched(service, plan(20))

        watched.step(5)

        assert watched.counts()[2] > 1
        assert not any(b"secret" in encode(event) for event in watched.events)


@pytest.mark.req("SIM-ERR-3")
@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (422, {"error": {"code": "E001"}}, "ROUTING_NO_ROUTE"),
        (422, {"error": {"code": "TRUSTLINE_NOT_ACTIVE"}}, "TRUSTLINE_NOT_ACTIVE"),
        (422, {"error": {"code": "TOO_LATE"}}, "PAYMENT_REJECTED"),
        (400, {}, "INVALID_INPUT"),
        (401, {"detail": "no token"}, "UNAUTHORIZED"),
        (403, {"error": "no"}, "FORBIDDEN"),
        (404, {}, "INTERNAL_ERROR"),
        (409, {"error": {"code": 7}}, "CONFLICT"),
        (429, {}, "PAYMENT_REJECTED"),
    ],
)
def test_refusals_get_a_known_code(status: int, body: dict[str, Any], code: str) -> None:
    with serving(Act.REFUSE) as service:
        service.refusal = status, body

        answer = ask_service(service)

        assert answer == {"status": "ABORTED", "error": {"code": code}}
        assert service.looks == []


@pytest.mark.parametrize("status", [202, 408])
def test_an_answer_that_the_payment_is_pending_counts_as_a_timeout(status: int) -> None:
    with serving(Act.REFUSE) as service:
        service.refusal = status, {"status": "PENDING"}

        assert ask_service(service) == {"timeout": True}
        assert service.looks == ["k1"]


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ({"status": "ABORTED"}, {"status": "ABORTED", "error": {"code": "PAYMENT_REJECTED"}}),
        ({"status": "ABORTED", "error": {"code": "E007"}}, {"status": "ABORTED", "error": {"code": "PAYMENT_TIMEOUT"}}),
        (
            {
                "status": "COMMITTED",
                "amount": "2.5",
                "routes": [{"path": ["ann", "bea"], "amount": "2.50"}],
                "fee": 0.1,
            },
            {"status": "COMMITTED", "routes": [{"path": ["ann", "bea"], "amount": "2.50"}]},
        ),
        ({"status": "COMMITTED", "amount": "2.51", "routes": []}, None),
        ({"status": "COMMITTED", "amount": "NaN", "routes": []}, None),
        ({"status": "COMMITTED", "routes": [{"path": ["ann", 7], "amount": "2.50"}]}, None),
        ({"status": "COMMITTED", "routes": [{"path": ["ann", "bea"], "amount": 2.5}]}, None),
        ({"status": "COMMITTED", "routes": [{"path": ["ann", "\ud800"], "amount": "2.50"}]}, None),
        ({"status": "DONE"}, None),
        ({"status": "COMMITTED", "routes": [], "tx_id": "x" * ANSWER_BYTES_MOST}, None),
    ],
)
def test_only_results_in_the_form_of_the_contract_are_accepted(result: dict[str, Any], answer: Json) -> None:
    with serving(Act.REFUSE) as service:
        service.refusal = 200, result

        reply = ask_service(service)

        assert reply == (answer or {"status": "ABORTED", "error": {"code": "INTERNAL_ERROR"}})
        encode(reply)


def test_a_failed_tick_is_accepted_only_in_the_form_of_the_contract() -> None:
    with serving(Act.REFUSE, Act.REFUSE) as service:
        service.refusal = 503, {"tick_failed": False}
        first = ask_service(service)
        service.refusal = 500, {"tick_failed": True}

        assert first == ask_service(service) == {"status": "ABORTED", "error": {"code": "INTERNAL_ERROR"}}


@pytest.mark.req("SIM-PAY-24")
def test_key_and_token_are_sent_in_headers(good_service: Service) -> None:
    ask_service(good_service, "sim:0123", token="s3cret")

    assert good_service.headers[0]["Idempotency-Key"] == "sim:0123"
    assert good_service.headers[0]["Authorization"] == "Bearer s3cret"
    assert good_service.posts == ["sim:0123"]


def test_an_unreachable_service_is_an_error_and_leaves_nothing_unclear(good_service: Service) -> None:
    with serving() as gone:
        payments = PaymentService(gone.url, **PATIENT)

    answer = ask_payment(payments, {**QUESTION, "idempotency_key": "k1"})

    assert answer == {"status": "ABORTED", "error": {"code": "INTERNAL_ERROR"}}
    assert payments.unsettled == {}


@pytest.mark.req("SIM-ERR-4", "SIM-ERR-5")
@pytest.mark.parametrize(
    ("status", "cause"),
    [(404, "HTTP 404 without a result"), (200, "HTTP 200 without a result"), (500, "HTTP 500 without a result")],
)
def test_a_server_that_is_no_payment_service_is_named_with_its_status(status: int, cause: str) -> None:
    with serving(forever=Act.REFUSE) as service:
        service.refusal = status, {"secret": "of another server"}
        service.knows_no_keys = True
        watched = Watched(service, plan(2))

        watched.step()

        url = f"{service.url}/payments"
        (failed, *_) = [event for event in watched.events if isinstance(event, TxFailed)]
        engine = {"code": "engine_failed", "url": url, "cause": "no_result", "status": status}
        assert failed.error.details == {"kind": "service_failed", "engine": engine}
        assert failed.message == f"The payment service failed: {cause} ({url})"
        (warning,) = [warning for warning in watched.headless.diagnostics if warning.code == "engine_failed"]
        assert warning.message == f"The payment service {url} brought no result: {cause}."


@pytest.mark.req("SIM-ERR-5")
def test_errors_show_the_display_name_of_a_service() -> None:
    with serving() as gone:
        payments = PaymentService(gone.url, **PATIENT, called="core")

    answer: Any = payments.ask("pay", {**QUESTION, "idempotency_key": "k1"})

    trouble = {"code": "engine_unreachable", "url": "core/payments", "cause": "connection_refused"}
    assert answer["trouble"] == trouble


def test_a_service_lost_after_a_lost_attempt_leaves_the_payment_unclear() -> None:
    with serving(Act.PAY_AND_DISCONNECT) as service:
        service.drops_lookups = True
        payments = PaymentService(service.url, **PATIENT)
        ask_payment(payments, {**QUESTION, "idempotency_key": "k1"})

    answer = ask_payment(payments, {**QUESTION, "idempotency_key": "k1"})

    assert answer == {"timeout": True}
    assert list(payments.unsettled) == ["k1"]


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts of a server, and of a caller that trusts it."""
    (tmp_path / "certificate.pem").write_text(CERTIFICATE)
    (tmp_path / "key.pem").write_text(KEY)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    return server, ssl.create_default_context(cadata=CERTIFICATE)


def test_payments_use_tls_with_a_trusted_certificate(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with serving(tls=tls[0]) as service:
        answer: Any = ask_service(service, tls=tls[1])

        assert answer["status"] == "COMMITTED"


def test_an_untrusted_certificate_receives_no_request(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    with serving(tls=tls[0]) as service:
        answer = ask_service(service)

        assert answer == {"status": "ABORTED", "error": {"code": "INTERNAL_ERROR"}}
        assert service.posts == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "127.0.0.1:80",
        "http://",
        "http://127.0.0.1:x",
        "http://me:hush@127.0.0.1",
        "http://127.0.0.1/?a=b",
        "http://127.0.0.1/#a",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\u00e4",
        "",
    ],
)
def test_an_invalid_address_is_rejected(url: str) -> None:
    with pytest.raises(WrongUsage) as refused:
        PaymentService(url)

    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("options", [{"token": "two words"}, {"token": ""}, {"total_seconds": 0}])
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(WrongUsage):
        PaymentService("http://127.0.0.1:1", **options)


@pytest.mark.req("SIM-ERR-6")
def test_the_time_limit_of_a_payment_comes_from_the_settings() -> None:
    settings = change_settings(Settings(), {"payment_total_timeout_sec": "7"})

    payments = PaymentService.with_settings("http://127.0.0.1:1", settings)

    assert payments.total_seconds == 7


def test_a_service_answers_payments_only(good_service: Service) -> None:
    with pytest.raises(NoAnswerSource):
        PaymentService(good_service.url).ask("plan", {})


def test_a_run_without_a_service_names_the_missing_service() -> None:
    headless = Headless(plan(1))
    headless.ask(Answers(headless.run))

    with pytest.raises(NoAnswerSource, match="PaymentService"):
        headless.step(1)


def test_clearing_questions_go_to_the_solver_alone() -> None:
    class Solver:
        def ask(self, name: str, question: Json) -> Json:
            return [name, question]

    answers = Answers(Run.create(plan().json), solver=Solver())

    assert answers.ask("optimal_clearing", {"edges": []}) == ["optimal_clearing", {"edges": []}]
    with pytest.raises(NoAnswerSource, match="weather"):
        answers.ask("weather", None)


def test_committed_payments_have_the_routes_of_the_service(good_service: Service) -> None:
    watched = Watched(good_service, plan(5))

    watched.step()

    made_payments = [event for event in watched.events if isinstance(event, TxUpdated)]
    given = [result["routes"] for _, result in good_service.results.values() if result["status"] == "COMMITTED"]
    assert [encode(event.routes) for event in made_payments] == [encode(routes) for routes in given]
