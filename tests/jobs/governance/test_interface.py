"""Governance applies to the specified calls: a client that uses only pull, ack and fail is governed too."""

from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import Handlers, JobRefused, Policy, Scheduler, Worker, handler
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.handlers import Context
from tests.jobs.governance.living import DAY, WHOLE, Town

SECONDS = len("2026-02-20T12:00:00")  # the clock of a test advances by a microsecond on each reading
UNSURE = {**WHOLE, "status": "needs_revalidate", "epistemic_state": "uncertain"}


@pytest.fixture
def town(tmp_path: Path) -> Any:
    made = Town(tmp_path)
    yield made
    assert check(made.scheduler.calls.store) == []
    made.scheduler.close()


def enqueue(town: Town, action: str, count: int = 1, kind: str = "cognition", **members: Any) -> list[str]:
    jobs = [
        town.scheduler.enqueue(
            object_type=kind, object_id="o", action=action, idempotency_key=f"{action} {n}", **members
        )
        for n in range(count)
    ]
    return [job["job"]["job_id"] for job in jobs]


def pulled(town: Town, **members: Any) -> list[dict[str, Any]]:
    return list(town.scheduler.pull(worker_id="worker-1", **members)["jobs"])


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-4")
def test_a_blocked_job_is_not_delivered(town: Town) -> None:
    town.open_gates(persona_conflict_gate="block")
    town.user.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])
    [job_id] = enqueue(town, "verify", kind="memory")

    assert pulled(town) == []

    job = town.scheduler.show(job_id)["job"]
    assert (job["status"], job["delivery_count"]) == ("failed", 0)
    assert job["last_error"] == "gate_blocked: persona_conflict_gate"
    assert "gate_blocked: persona_conflict_gate" in town.scheduler.why(job_id)["sentence"]
    [event] = [one for one in town.events("memory", "o") if one["event_type"] == "decision_gate"]
    assert (event["job_id"], event["after"]["outcome"]) == (job_id, "blocked")
    assert [one["alert"] for one in town.scheduler.alerts()["alerts"]] == ["governance.escalation"]


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-4", "JOB-USE-8")
def test_a_deferred_job_waits_and_names_the_gate(town: Town) -> None:
    town.open_gates()
    town.user.set_gate("social_gate", "defer", "it is night")
    town.user.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])
    [job_id] = enqueue(town, "verify", kind="memory")
    due = town.scheduler.why(job_id)

    assert pulled(town) == []

    assert (due["reason"], "social_gate puts it off" in due["sentence"]) == ("waits_for_gate", True)
    job, why = town.scheduler.show(job_id)["job"], town.scheduler.why(job_id)
    assert (job["status"], job["attempt"], job["outcome"]) == ("queued", 0, "deferred")
    assert job["run_at"][:SECONDS] == town.clock.text(3600)[:SECONDS]
    assert (why["reason"], why["facts"]["run_at"]) == ("waits_for_gate", job["run_at"])
    town.user.set_gate("social_gate", "pass", "it is day")
    town.clock.pass_by(3600)
    assert [one["job_id"] for one in pulled(town)] == [job_id]


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-3")
def test_an_unset_gate_fails_an_attempt_without_a_delivery(town: Town) -> None:
    town.user.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])
    [job_id] = enqueue(town, "verify", kind="memory", max_attempts=2)

    found = []
    for _ in range(3):
        assert pulled(town) == []
        job = town.scheduler.show(job_id)["job"]
        found.append((job["status"], job["attempt"], job["delivery_count"]))
        town.clock.pass_by(3600)

    assert found == [("queued", 1, 0), ("dead_letter", 2, 0), ("dead_letter", 2, 0)]
    metrics = town.scheduler.metrics(window_sec=86_400)
    assert (metrics["job_success_rate"], metrics["job_retry_rate"]) == (0, 0.5)


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-6", "JOB-GATE-7")
def test_a_budget_of_two_and_ten_verify_jobs_give_two_deliveries(town: Town) -> None:
    town.user.create("cognition", "o", **UNSURE, auto_verify_budget=2)
    jobs = enqueue(town, "verify", 10)

    given = []
    for _ in range(12):
        for job in pulled(town):
            given.append(job["job_id"])
            town.scheduler.ack(job["job_id"], result="succeeded")

    assert given == jobs[:2]
    ends = [town.scheduler.show(one)["job"] for one in jobs[2:]]
    assert {(job["status"], job["outcome"], job["delivery_count"]) for job in ends} == {
        ("succeeded", "budget_exhausted", 0)
    }
    shown = town.user.show("cognition", "o")["object"]
    assert shown["verify_budget_left"] == 0
    assert shown["next_action_at"][:SECONDS] == town.clock.text(7 * DAY)[:SECONDS], "the end of its uncertainty"
    [event] = [one for one in town.events("cognition", "o") if one["job_id"] == jobs[2] and "outcome" in one["after"]]
    assert (event["event_type"], event["after"]["outcome"]) == ("decision_gate", "budget_exhausted")


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-6")
def test_every_failed_attempt_takes_a_unit_of_the_budget(town: Town) -> None:
    town.user.create("cognition", "o", **UNSURE, auto_verify_budget=2)
    [job_id] = enqueue(town, "verify", max_attempts=100)

    tries = 0
    for _ in range(5):
        for job in pulled(town):
            tries += job["job_id"] == job_id
            town.scheduler.fail(job["job_id"], error="timeout while verifying evidence", retry_delay_sec=300)
        town.clock.pass_by(301)

    assert tries == 2
    assert town.scheduler.show(job_id)["job"]["outcome"] == "budget_exhausted"


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-12", "JOB-GATE-13")
def test_an_unknowable_object_is_delivered_once_whatever_its_max_attempts(town: Town) -> None:
    town.user.create("cognition", "o", **UNSURE, unknown_type="ontic_unknowable")
    [job_id] = enqueue(town, "verify", max_attempts=100)

    tries = 0
    for _ in range(5):
        for job in pulled(town):
            tries += 1
            town.scheduler.fail(job["job_id"], error="timeout while verifying evidence", retry_delay_sec=300)
        town.clock.pass_by(301)

    assert tries == 1
    job, shown = town.scheduler.show(job_id)["job"], town.user.show("cognition", "o")["object"]
    assert (job["status"], job["outcome"], job["delivery_count"]) == ("succeeded", "ontic_closed", 1)
    assert (shown["closed"], shown["status"]) == ("cannot be known", "stale")
    with pytest.raises(JobRefused) as refused:
        enqueue(town, "revalidate")
    assert refused.value.code == "ontic_verification_closed"


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-13")
def test_an_ack_closes_an_unknowable_object_at_its_verification_limit(town: Town) -> None:
    town.user.create("cognition", "o", **UNSURE, unknown_type="ontic_unknowable")
    enqueue(town, "verify")
    [job] = pulled(town)

    acked = town.scheduler.ack(job["job_id"], result="succeeded")

    assert (acked["job"]["status"], acked["job"]["outcome"]) == ("succeeded", "ontic_closed")
    assert town.user.show("cognition", "o")["object"]["closed"] == "cannot be known"


@pytest.mark.req("JOB-ACK-1", "JOB-GATE-9", "JOB-GATE-13")
def test_an_ack_that_plans_a_verification_of_a_closed_object_still_leaves_a_job(town: Town) -> None:
    town.user.create("cognition", "o", **UNSURE, unknown_type="ontic_unknowable")
    enqueue(town, "verify")
    [job] = pulled(town)
    town.scheduler.ack(job["job_id"], result="succeeded")
    enqueue(town, "reinstate-check")
    [job] = pulled(town)
    at = town.clock.text(DAY)

    acked = town.scheduler.ack(job["job_id"], result="succeeded", next_action_at=at, next_action="verify")

    followup = town.scheduler.show(acked["followup_job_id"])["job"]
    assert (followup["action"], followup["run_at"]) == ("reinstate-check", at)


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-2")
def test_a_gate_changed_after_the_pull_stops_the_ack(town: Town) -> None:
    town.open_gates()
    town.user.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])
    enqueue(town, "verify", kind="memory")
    [job] = pulled(town)
    town.user.set_gate("risk_gate", "block", "the harbour warns")

    acked = town.scheduler.ack(job["job_id"], result="succeeded", next_action_at=town.clock.text(60))

    assert (acked["job"]["status"], acked["job"]["last_error"]) == ("failed", "gate_blocked: risk_gate")
    assert acked["object"]["next_action_at"][:SECONDS] == town.clock.text(DAY)[:SECONDS]
    with pytest.raises(JobRefused) as refused:
        town.scheduler.ack(job["job_id"], result="succeeded")
    assert refused.value.code == "job_not_running"


@pytest.mark.req("JOB-ACK-1", "JOB-ACK-7")
def test_the_ack_of_the_specification_works_on_a_governed_cognition(town: Town) -> None:
    town.user.create("cognition", "o", **UNSURE)
    enqueue(town, "revalidate")
    [job] = pulled(town)
    at = town.clock.text(7 * DAY)

    acked = town.scheduler.ack(job["job_id"], result="succeeded", audit_event_id="aud_789", next_action_at=at)

    assert (acked["job"]["status"], acked["job"]["audit_event_id"]) == ("succeeded", "aud_789")
    assert acked["object"]["next_action_at"] == at
    followup = town.scheduler.show(acked["followup_job_id"])["job"]
    assert (followup["run_at"], followup["action"]) == (at, "revalidate")
    again = town.scheduler.enqueue(object_type="cognition", object_id="o", action="revalidate", run_at=at)
    assert (again["deduplicated"], again["job"]["job_id"]) == (True, acked["followup_job_id"])
    assert town.user.show("cognition", "o")["object"]["status"] == "needs_revalidate"


@pytest.mark.req("JOB-ACK-1", "JOB-GATE-9")
@pytest.mark.parametrize("members", [{}, {"next_action_at": None}], ids=["left out", "null"])
def test_a_pull_with_a_clock_ahead_leaves_every_object_its_job(town: Town, members: dict[str, Any]) -> None:
    town.user.create("cognition", "o", **UNSURE)
    town.clock.pass_by(DAY - 2)
    [job] = pulled(town, now=town.clock.text(2))

    acked = town.scheduler.ack(job["job_id"], result="succeeded", **members)

    assert acked["object"]["next_action_at"] > town.clock.text(0)
    assert town.scheduler.show(acked["followup_job_id"])["job"]["status"] == "queued"


@pytest.mark.req("JOB-GATE-9")
@pytest.mark.parametrize("end", ["dead letter", "failed", "cancelled", "lease"])
def test_an_object_whose_planned_job_is_never_done_gets_another(town: Town, end: str) -> None:
    own = town.user.create("cognition", "o", **UNSURE)["followup_job_id"]
    if end == "cancelled":
        town.scheduler.cancel(own)
    for _ in range(0 if end == "cancelled" else 3):
        town.clock.pass_by(DAY)
        for job in pulled(town, lease_sec=60):
            if end == "lease":
                town.clock.pass_by(61)
            elif job["job_id"] == own:
                town.scheduler.fail(own, error="x", retry_delay_sec=0, retryable=end != "failed")

    assert town.scheduler.show(own)["job"]["status"] in ("failed", "dead_letter", "succeeded")
    town.clock.pass_by(400)
    [waiting] = [job for job in town.scheduler.list(object_id="o")["jobs"] if job["status"] in ("queued", "running")]
    assert waiting["scheduled_for"] == town.user.show("cognition", "o")["object"]["next_action_at"]


@pytest.mark.req("JOB-GATE-9", "JOB-STO-12")
def test_check_finds_an_overdue_object_without_a_waiting_job(tmp_path: Path) -> None:
    town = Town(tmp_path)
    own = town.user.create("cognition", "o", **UNSURE)["followup_job_id"]
    town.lose(own)
    before = check(town.scheduler.calls.store)
    town.clock.pass_by(DAY)
    town.scheduler.enqueue(object_type="memory", object_id="m", action="decay")

    [finding] = check(town.scheduler.calls.store)

    assert before == [], "its date has not come"
    assert (finding.code, finding.where) == ("object_forgotten", "cognition o")
    assert check(town.scheduler.calls.store, followups=False) == []
    town.user.attach_evidence("cognition", "o", "ev_2")
    assert check(town.scheduler.calls.store) == []
    town.scheduler.close()


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-6", "JOB-WRK-4")
def test_a_plain_handler_is_governed(tmp_path: Path) -> None:
    entered: list[str] = []

    @handler("cognition", "verify")
    def verify(context: Context) -> None:
        entered.append(context.job["job_id"])

    with Scheduler.open(tmp_path / "jobs.db", Policy()) as scheduler:
        scheduler.objects.as_user("mia").create("cognition", "o", **UNSURE, auto_verify_budget=2)
        jobs = [scheduler.defer("cognition", "o", "verify", idempotency_key=f"{n}")["job_id"] for n in range(4)]
        while scheduler.count(status="queued", action="verify")["count"]:
            Worker(scheduler, Handlers([verify]), once=True).run()

        assert entered == jobs[:2]
        assert check(scheduler.calls.store) == []


@pytest.mark.req("JOB-GATE-1a")
def test_a_gate_changed_while_a_plain_handler_runs_counts_as_a_failure(tmp_path: Path) -> None:
    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        user = scheduler.objects.as_user("mia")
        for gate in ("persona_conflict_gate", "risk_gate", "cognition_gate"):
            user.set_gate(gate, "pass", "for a test")
        user.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])

        @handler("memory", "verify")
        def verify(context: Context) -> None:
            user.set_gate("risk_gate", "block", "the harbour warns")

        scheduler.defer("memory", "o", "verify")
        tally = Worker(scheduler, Handlers([verify]), once=True).run()

    assert (tally.succeeded, tally.failed) == (0, 1)


@pytest.mark.req("JOB-GATE-1a", "JOB-FAIL-10")
def test_withheld_jobs_do_not_delay_others(town: Town) -> None:
    town.open_gates(risk_gate="block")
    for n in range(30):
        town.user.create("memory", f"shut {n}", risk_tier="high", evidence_refs=["ev_1"])
        town.scheduler.enqueue(object_type="memory", object_id=f"shut {n}", action="verify")
    town.scheduler.enqueue(object_type="memory", object_id="free", action="verify")

    assert [job["object_id"] for job in pulled(town, limit=10)] == ["free"]
