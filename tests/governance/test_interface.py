"""Governance applies to the specified calls: a client that uses only pull, ack and fail is governed too."""

from pathlib import Path
from typing import Any

import pytest

from pendula import governance
from pendula.jobs import Handlers, JobRefused, Policy, Scheduler, Worker, handler
from pendula.jobs.messages import plain
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.handlers import Context
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import DAY, WHOLE, VerifierRig
from tests.jobs.interfaces import INTERFACES

SECONDS = len("2026-02-20T12:00:00")  # the clock of a test advances by a microsecond on each reading
UNSURE = {**WHOLE, "status": "needs_revalidate", "epistemic_state": "uncertain"}


@pytest.fixture
def rig(tmp_path: Path) -> Any:
    made = VerifierRig(tmp_path)
    yield made
    assert check(made.scheduler.calls.store) == []
    made.scheduler.close()


def enqueue(rig: VerifierRig, action: str, count: int = 1, kind: str = "cognition", **members: Any) -> list[str]:
    jobs = [
        rig.scheduler.enqueue(
            object_type=kind, object_id="o", action=action, idempotency_key=f"{action} {n}", **members
        )
        for n in range(count)
    ]
    return [job.job.job_id for job in jobs]


def pulled(rig: VerifierRig, **members: Any) -> list[dict[str, Any]]:
    return [plain(job) for job in rig.scheduler.pull(worker_id="worker-1", **members).jobs]


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-4")
def test_a_blocked_job_is_not_delivered(rig: VerifierRig) -> None:
    rig.open_gates(persona_conflict_gate="block")
    rig.user.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])
    [job_id] = enqueue(rig, "verify", kind="memory")

    assert pulled(rig) == []

    job = rig.scheduler.show(job_id).job
    assert (job.status, job.delivery_count) == ("failed", 0)
    assert job.last_error == "gate_blocked: persona_conflict_gate"
    assert "gate_blocked: persona_conflict_gate" in rig.scheduler.why(job_id).sentence
    [event] = [one for one in rig.events("memory", "o") if one["event_type"] == "decision_gate"]
    assert (event["job_id"], event["after"]["outcome"]) == (job_id, "blocked")
    assert [one["alert"] for one in rig.scheduler.alerts().alerts] == ["governance.escalation"]


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-4", "JOB-USE-8")
def test_a_deferred_job_waits_and_names_the_gate(rig: VerifierRig) -> None:
    rig.open_gates()
    rig.user.set_gate("social_gate", "defer", "it is night")
    rig.user.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])
    [job_id] = enqueue(rig, "verify", kind="memory")
    due = rig.scheduler.why(job_id)

    assert pulled(rig) == []

    assert (due.reason, "social_gate puts it off" in due.sentence) == ("waits_for_gate", True)
    job, why = rig.scheduler.show(job_id).job, rig.scheduler.why(job_id)
    assert (job.status, job.attempt, job.outcome) == ("queued", 0, "deferred")
    assert job.run_at[:SECONDS] == rig.clock.text(3600)[:SECONDS]
    assert (why.reason, why.facts["run_at"]) == ("waits_for_gate", job.run_at)
    rig.user.set_gate("social_gate", "pass", "it is day")
    rig.clock.pass_by(3600)
    assert [one["job_id"] for one in pulled(rig)] == [job_id]


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-3")
def test_an_unset_gate_fails_an_attempt_without_a_delivery(rig: VerifierRig) -> None:
    rig.user.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])
    [job_id] = enqueue(rig, "verify", kind="memory", max_attempts=2)

    found = []
    for _ in range(3):
        assert pulled(rig) == []
        job = rig.scheduler.show(job_id).job
        found.append((job.status, job.attempt, job.delivery_count))
        rig.clock.pass_by(3600)

    assert found == [("queued", 1, 0), ("dead_letter", 2, 0), ("dead_letter", 2, 0)]
    metrics = rig.scheduler.metrics(window_sec=86_400)
    assert (metrics.job_success_rate, metrics.job_retry_rate) == (0, 0.5)


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-6", "JOB-GATE-7")
def test_a_budget_of_two_and_ten_verify_jobs_give_two_deliveries(rig: VerifierRig) -> None:
    rig.user.create("cognition", "o", **UNSURE, auto_verify_budget=2)
    jobs = enqueue(rig, "verify", 10)

    given = []
    for _ in range(12):
        for job in pulled(rig):
            given.append(job["job_id"])
            rig.scheduler.ack(job["job_id"], result="succeeded")

    assert given == jobs[:2]
    ends = [rig.scheduler.show(one).job for one in jobs[2:]]
    assert {(job.status, job.outcome, job.delivery_count) for job in ends} == {("succeeded", "budget_exhausted", 0)}
    shown = rig.user.show("cognition", "o")["object"]
    assert shown["verify_budget_left"] == 0
    assert shown["next_action_at"][:SECONDS] == rig.clock.text(7 * DAY)[:SECONDS], "the end of its uncertainty"
    [event] = [one for one in rig.events("cognition", "o") if one["job_id"] == jobs[2] and "outcome" in one["after"]]
    assert (event["event_type"], event["after"]["outcome"]) == ("decision_gate", "budget_exhausted")


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-6")
def test_every_failed_attempt_takes_a_unit_of_the_budget(rig: VerifierRig) -> None:
    rig.user.create("cognition", "o", **UNSURE, auto_verify_budget=2)
    [job_id] = enqueue(rig, "verify", max_attempts=100)

    tries = 0
    for _ in range(5):
        for job in pulled(rig):
            tries += job["job_id"] == job_id
            rig.scheduler.fail(job["job_id"], error="timeout while verifying evidence", retry_delay_sec=300)
        rig.clock.pass_by(301)

    assert tries == 2
    assert rig.scheduler.show(job_id).job.outcome == "budget_exhausted"


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-12", "JOB-GATE-13")
def test_an_unknowable_object_is_delivered_once_whatever_its_max_attempts(rig: VerifierRig) -> None:
    rig.user.create("cognition", "o", **UNSURE, unknown_type="ontic_unknowable")
    [job_id] = enqueue(rig, "verify", max_attempts=100)

    tries = 0
    for _ in range(5):
        for job in pulled(rig):
            tries += 1
            rig.scheduler.fail(job["job_id"], error="timeout while verifying evidence", retry_delay_sec=300)
        rig.clock.pass_by(301)

    assert tries == 1
    job, shown = plain(rig.scheduler.show(job_id).job), rig.user.show("cognition", "o")["object"]
    assert (job["status"], job["outcome"], job["delivery_count"]) == ("succeeded", "ontic_closed", 1)
    assert (shown["closed"], shown["status"]) == ("cannot be known", "stale")
    with pytest.raises(JobRefused) as refused:
        enqueue(rig, "revalidate")
    assert refused.value.code == "ontic_verification_closed"


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-13")
def test_an_ack_closes_an_unknowable_object_at_its_verification_limit(rig: VerifierRig) -> None:
    rig.user.create("cognition", "o", **UNSURE, unknown_type="ontic_unknowable")
    enqueue(rig, "verify")
    [job] = pulled(rig)

    acked = rig.scheduler.ack(job["job_id"], result="succeeded")

    assert (acked.job.status, acked.job.outcome) == ("succeeded", "ontic_closed")
    assert rig.user.show("cognition", "o")["object"]["closed"] == "cannot be known"


@pytest.mark.req("JOB-ACK-1", "JOB-GATE-9", "JOB-GATE-13")
def test_an_ack_that_plans_a_verification_of_a_closed_object_still_leaves_a_job(rig: VerifierRig) -> None:
    rig.user.create("cognition", "o", **UNSURE, unknown_type="ontic_unknowable")
    enqueue(rig, "verify")
    [job] = pulled(rig)
    rig.scheduler.ack(job["job_id"], result="succeeded")
    enqueue(rig, "reinstate-check")
    [job] = pulled(rig)
    at = rig.clock.text(DAY)

    acked = rig.scheduler.ack(job["job_id"], result="succeeded", next_action_at=at, next_action="verify")

    followup = rig.scheduler.show(str(acked.followup_job_id)).job
    assert (followup.action, followup.run_at) == ("reinstate-check", at)


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-2")
def test_a_gate_changed_after_the_pull_stops_the_ack(rig: VerifierRig) -> None:
    rig.open_gates()
    rig.user.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])
    enqueue(rig, "verify", kind="memory")
    [job] = pulled(rig)
    rig.user.set_gate("risk_gate", "block", "the harbour warns")

    acked = rig.scheduler.ack(job["job_id"], result="succeeded", next_action_at=rig.clock.text(60))

    assert (acked.job.status, acked.job.last_error) == ("failed", "gate_blocked: risk_gate")
    assert str(acked.object.next_action_at)[:SECONDS] == rig.clock.text(DAY)[:SECONDS]
    with pytest.raises(JobRefused) as refused:
        rig.scheduler.ack(job["job_id"], result="succeeded")
    assert refused.value.code == "job_not_running"


@pytest.mark.req("JOB-ACK-1", "JOB-ACK-7")
def test_the_ack_of_the_specification_works_on_a_governed_cognition(rig: VerifierRig) -> None:
    rig.user.create("cognition", "o", **UNSURE)
    enqueue(rig, "revalidate")
    [job] = pulled(rig)
    at = rig.clock.text(7 * DAY)

    acked = rig.scheduler.ack(job["job_id"], result="succeeded", audit_event_id="aud_789", next_action_at=at)

    assert (acked.job.status, acked.job.audit_event_id) == ("succeeded", "aud_789")
    assert acked.object.next_action_at == at
    followup = rig.scheduler.show(str(acked.followup_job_id)).job
    assert (followup.run_at, followup.action) == (at, "revalidate")
    again = rig.scheduler.enqueue(object_type="cognition", object_id="o", action="revalidate", run_at=at)
    assert (again.deduplicated, again.job.job_id) == (True, acked.followup_job_id)
    assert rig.user.show("cognition", "o")["object"]["status"] == "needs_revalidate"


@pytest.mark.req("JOB-ACK-1", "JOB-GATE-9")
@pytest.mark.parametrize("members", [{}, {"next_action_at": None}], ids=["left out", "null"])
def test_a_pull_with_a_clock_ahead_leaves_every_object_its_job(rig: VerifierRig, members: dict[str, Any]) -> None:
    rig.user.create("cognition", "o", **UNSURE)
    rig.clock.pass_by(DAY - 2)
    [job] = pulled(rig, now=rig.clock.text(2))

    acked = rig.scheduler.ack(job["job_id"], result="succeeded", **members)

    assert str(acked.object.next_action_at) > rig.clock.text(0)
    assert rig.scheduler.show(str(acked.followup_job_id)).job.status == "queued"


@pytest.mark.req("JOB-GATE-9")
@pytest.mark.parametrize("end", ["dead letter", "failed", "cancelled", "lease"])
def test_an_object_whose_planned_job_is_never_done_gets_another(rig: VerifierRig, end: str) -> None:
    own = rig.user.create("cognition", "o", **UNSURE)["followup_job_id"]
    if end == "cancelled":
        rig.scheduler.cancel(own)
    for _ in range(0 if end == "cancelled" else 3):
        rig.clock.pass_by(DAY)
        for job in pulled(rig, lease_sec=60):
            if end == "lease":
                rig.clock.pass_by(61)
            elif job["job_id"] == own:
                rig.scheduler.fail(own, error="x", retry_delay_sec=0, retryable=end != "failed")

    assert rig.scheduler.show(own).job.status in ("failed", "dead_letter", "succeeded")
    rig.clock.pass_by(400)
    [waiting] = [job for job in rig.scheduler.list(object_id="o").jobs if job.status in ("queued", "running")]
    assert waiting.scheduled_for == rig.user.show("cognition", "o")["object"]["next_action_at"]


@pytest.mark.req("JOB-GATE-9", "JOB-STO-12")
def test_check_finds_an_overdue_object_without_a_waiting_job(tmp_path: Path) -> None:
    rig = VerifierRig(tmp_path)
    own = rig.user.create("cognition", "o", **UNSURE)["followup_job_id"]
    rig.end_without_replacement(own)
    before = check(rig.scheduler.calls.store)
    rig.clock.pass_by(DAY)
    rig.scheduler.enqueue(object_type="memory", object_id="m", action="decay")

    [finding] = check(rig.scheduler.calls.store)

    assert before == [], "its date has not come"
    assert (finding.code, finding.where) == ("object_forgotten", "cognition o")
    assert check(rig.scheduler.calls.store, followups=False) == []
    rig.user.attach_evidence("cognition", "o", "ev_2")
    assert check(rig.scheduler.calls.store) == []
    rig.scheduler.close()


@pytest.mark.req("JOB-GATE-1a", "JOB-GATE-6", "JOB-WRK-4")
def test_a_plain_handler_is_governed(tmp_path: Path) -> None:
    entered: list[str] = []

    @handler("cognition", "verify")
    def verify(context: Context) -> None:
        entered.append(context.job.job_id)

    with Scheduler.open(tmp_path / "jobs.db", Policy()) as scheduler:
        governed(scheduler).as_user("mia").create("cognition", "o", **UNSURE, auto_verify_budget=2)
        jobs = [scheduler.defer("cognition", "o", "verify", idempotency_key=f"{n}").job_id for n in range(4)]
        while scheduler.count(status="queued", action="verify").count:
            Worker(scheduler, Handlers([verify]), once=True).run()

        assert entered == jobs[:2]
        assert check(scheduler.calls.store) == []


@pytest.mark.req("JOB-GATE-1a")
def test_a_gate_changed_while_a_plain_handler_runs_counts_as_a_failure(tmp_path: Path) -> None:
    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        user = governed(scheduler).as_user("mia")
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
def test_withheld_jobs_do_not_delay_others(rig: VerifierRig) -> None:
    rig.open_gates(risk_gate="block")
    for n in range(30):
        rig.user.create("memory", f"shut {n}", risk_tier="high", evidence_refs=["ev_1"])
        rig.scheduler.enqueue(object_type="memory", object_id=f"shut {n}", action="verify")
    rig.scheduler.enqueue(object_type="memory", object_id="free", action="verify")

    assert [job["object_id"] for job in pulled(rig, limit=10)] == ["free"]


@pytest.mark.parametrize("interface", list(INTERFACES))
def test_a_finish_after_a_begin_that_was_not_entered_repeats_the_end(tmp_path: Path, interface: str) -> None:
    client: Any
    with INTERFACES[interface](tmp_path, Policy()) as (client, _):
        objects = governance.governed(client).as_user("ada")
        for gate in ("persona_conflict_gate", "risk_gate", "cognition_gate"):
            objects.set_gate(gate, "pass", reason="a calm day")
        objects.create("memory", "o", risk_tier="high", evidence_refs=["ev_1"])
        client.enqueue(object_type="memory", object_id="o", action="verify")
        [job] = client.pull(worker_id="worker-1").jobs
        objects.set_gate("risk_gate", "block", reason="a warning")
        begun = objects.begin(job.job_id, worker_id="worker-1", lease_token=job.lease_token)

        ended = objects.finish(
            job.job_id,
            worker_id="worker-1",
            lease_token=job.lease_token,
            finding="passed",
            reason="looked into",
            version=begun.version,
            gates=begun.gates,
        )

        assert (begun.entered, ended.already_ended, ended.job.last_error) == (False, True, "gate_blocked: risk_gate")
