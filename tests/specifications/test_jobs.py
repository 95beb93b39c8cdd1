"""The specification of the job scheduler, section by section, with the bodies that it prints."""

import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct
from typer.testing import CliRunner

from pendula.cli.commands.jobs import target
from pendula.cli.program import run
from pendula.jobs import Handlers, JobRefused, Scheduler, Worker, handler
from pendula.jobs.calls import Calls
from pendula.jobs.model import Durability, Policy
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.handlers import Context, Done
from pendula.jobs.worker.worker import INTERVAL_SEC
from pendula.kernel.time import format_utc, parse_utc
from pendula.server.settings import Settings
from tests.governance.plain_replies import governed
from tests.server.job_servers import Jobs, ManualClock, error_of, serving
from tests.specifications.printed import printed

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "specifications"
DAY = 86_400
MIA = {"x-pendula-user": "mia"}
GATES = ("persona_conflict_gate", "risk_gate", "cognition_gate")
COGNITION: dict[str, Any] = {
    "object_type": "cognition",
    "object_id": "cg_123",
    "falsify_if": "a counter-example",
    "review_interval": "P7D",
    "expires_at": "2036-01-01T00:00:00Z",
    "evidence_refs": ["ev_1"],
}
UNSURE = {**COGNITION, "status": "needs_revalidate", "epistemic_state": "uncertain"}
QUICK = Policy(durability=Durability.NORMAL)


class Bodies(Struct, frozen=True):
    """The bodies that the specification prints, as text."""

    object: str
    enqueue: str
    pull: str
    ack: str
    fail: str

    def __getitem__(self, name: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(getattr(self, name))
        return body


@pytest.fixture(params=["printed", "examples"])
def bodies(request: pytest.FixtureRequest) -> Bodies:
    """As printed in the specification, and from our own files."""
    if request.param == "printed":
        return Bodies(*printed("jobs", "json"))
    return Bodies(*((EXAMPLES / f"jobs-{name}.json").read_text() for name in Bodies.__struct_fields__))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[Jobs]:
    async with serving(Settings(data=str(tmp_path / "data")), QUICK) as found:
        yield found
        assert check(found.service.calls.store) == []


async def answered(jobs: Jobs, path: str, body: Any, status: int = 200) -> dict[str, Any]:
    """The response of a path to a body; text is sent unchanged."""
    content = body if isinstance(body, str) else json.dumps(body)
    headers = {**MIA, "content-type": "application/json"}
    answer = await jobs.client.post(f"/scheduler/{path}", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def delivered(jobs: Jobs, bodies: Bodies) -> dict[str, Any]:
    """The job of the specification's enqueue, delivered by its pull."""
    await answered(jobs, "jobs", bodies.enqueue, 201)
    jobs.clock.turn_to("2026-02-21T00:00:10Z")
    [job] = (await answered(jobs, "jobs/pull", bodies.pull))["jobs"]
    return dict(job)


async def due(jobs: Jobs, **query: Any) -> list[dict[str, Any]]:
    return list((await jobs.get("jobs", **query)).json()["jobs"])


async def open_gates(jobs: Jobs, **verdicts: str) -> None:
    for gate in GATES:
        body = {"gate": gate, "verdict": verdicts.get(gate, "pass"), "reason": "for a test"}
        assert (await jobs.client.put("/scheduler/gates", json=body, headers=MIA)).status_code == 200


# 1 Boundary


@pytest.mark.anyio
@pytest.mark.section("1 Boundary", interface="HTTP")
async def test_1_every_action_on_every_type_of_object_is_accepted_and_no_other_word(jobs: Jobs, bodies: Bodies) -> None:
    """Jobs are about memories, experiences and cognitions, and verify, revalidate, decay, archive or check them for
    reinstatement.
    """
    types, actions = (bodies["object"][name].split("|") for name in ("object_type", "action"))
    for kind in types:
        for action in actions:
            await answered(
                jobs, "jobs", {**bodies["enqueue"], "object_type": kind, "object_id": kind, "action": action}, 201
            )

    for name, allowed in (("object_type", types), ("action", actions)):
        wrong = await jobs.post("jobs", {**bodies["enqueue"], name: "other"})
        [fault] = error_of(wrong)["details"]["fields"]
        assert (fault["field"], sorted(fault["allowed"])) == (name, sorted(allowed))


# 2 Core object


@pytest.mark.anyio
@pytest.mark.section("2 Core object", interface="HTTP")
async def test_2_a_job_has_the_members_of_the_specification(jobs: Jobs, bodies: Bodies) -> None:
    """A job has an id, its object, its action, time and priority, its attempts, its key, its status and its last
    error.
    """
    job = (await answered(jobs, "jobs", bodies.enqueue, 201))["job"]

    core = bodies["object"]
    assert core.keys() <= job.keys()
    assert job["job_id"].startswith("job_")
    assert {name: job[name] for name in bodies["enqueue"]} == bodies["enqueue"]
    assert (job["attempt"], job["max_attempts"], job["last_error"]) == (core["attempt"], core["max_attempts"], None)
    assert job["idempotency_key"] == "cg_123:revalidate:2026-02-21T00:00:00Z"
    assert job["status"] == core["status"].split("|")[0]


@pytest.mark.anyio
@pytest.mark.section("2 Core object", interface="HTTP")
async def test_2_each_status_of_the_specification_is_one_that_a_list_can_be_asked_for(
    jobs: Jobs, bodies: Bodies
) -> None:
    """A job is queued, running, succeeded, failed or a dead letter; its priority is low, medium or high."""
    for status in bodies["object"]["status"].split("|"):
        assert await due(jobs, status=status) == []
    for n, priority in enumerate(bodies["object"]["priority"].split("|")):
        body = {**bodies["enqueue"], "object_id": f"cg_{n}", "priority": priority}
        assert (await answered(jobs, "jobs", body, 201))["job"]["priority"] == priority


# 3.1 Enqueue


@pytest.mark.anyio
@pytest.mark.section("3.1 Enqueue", interface="HTTP")
async def test_3_1_the_same_key_is_not_enqueued_twice(jobs: Jobs, bodies: Bodies) -> None:
    """A job is stored; a second one with the same idempotency key is not."""
    first = await answered(jobs, "jobs", bodies.enqueue, 201)
    second = await answered(jobs, "jobs", bodies.enqueue)

    assert (first["deduplicated"], second["deduplicated"]) == (False, True)
    assert second["job"]["job_id"] == first["job"]["job_id"]
    assert len(await due(jobs)) == 1


@pytest.mark.anyio
@pytest.mark.section("3.1 Enqueue", interface="HTTP")
async def test_3_1_a_time_in_the_past_is_refused_and_now_is_not(jobs: Jobs, bodies: Bodies) -> None:
    """The time of a job is not earlier than now."""
    jobs.clock.turn_to("2026-02-21T00:00:00.000001Z")
    refused = error_of(await jobs.post("jobs", bodies["enqueue"]))
    accepted = await answered(jobs, "jobs", {**bodies["enqueue"], "run_at": jobs.clock.text}, 201)

    assert (refused["status"], refused["code"]) == (422, "run_at_in_past")
    assert accepted["job"]["run_at"] == jobs.clock.text


# 3.2 Pull due jobs


@pytest.mark.anyio
@pytest.mark.section("3.2 Pull due jobs", interface="HTTP")
async def test_3_2_due_jobs_come_by_time_then_priority_and_run(jobs: Jobs, bodies: Bodies) -> None:
    """Queued jobs that are due come by their time, then by their priority, and are running."""
    for name, at, priority in (
        ("later", "2026-02-21T00:00:11Z", "high"),
        ("a", "2026-02-21T00:00:00Z", "low"),
        ("b", "2026-02-21T00:00:00Z", "high"),
        ("c", "2026-02-20T23:59:59Z", "low"),
        ("d", "2026-02-21T00:00:00Z", "medium"),
    ):
        body = {**bodies["enqueue"], "object_id": name, "run_at": at, "priority": priority}
        await answered(jobs, "jobs", body, 201)
    jobs.clock.turn_to("2026-02-21T00:00:10Z")

    found = await answered(jobs, "jobs/pull", bodies.pull)

    assert [job["object_id"] for job in found["jobs"]] == ["c", "b", "d", "a"]
    assert {(job["status"], job["worker_id"]) for job in found["jobs"]} == {("running", "worker-1")}
    assert [job["object_id"] for job in await due(jobs, status="running")] == ["d", "c", "b", "a"]
    assert (await answered(jobs, "jobs/pull", bodies.pull))["jobs"] == []


@pytest.mark.anyio
@pytest.mark.section("3.2 Pull due jobs", interface="HTTP")
async def test_3_2_a_pull_takes_no_more_than_its_limit(jobs: Jobs, bodies: Bodies) -> None:
    """A pull takes at most `limit` jobs."""
    for n in range(3):
        await answered(jobs, "jobs", {**bodies["enqueue"], "object_id": f"cg_{n}"}, 201)
    jobs.clock.turn_to("2026-02-21T00:00:10Z")

    assert (await answered(jobs, "jobs/pull", {**bodies["pull"], "limit": 2}))["count"] == 2


# 3.3 Ack


@pytest.mark.anyio
@pytest.mark.section("3.3 Ack", interface="HTTP")
@pytest.mark.parametrize("under", [None, COGNITION, UNSURE], ids=["ungoverned", "candidate", "uncertain"])
async def test_3_3_ack_writes_next_action_at_back(jobs: Jobs, bodies: Bodies, under: dict[str, Any] | None) -> None:
    """The ack sets the job to succeeded, writes next_action_at back to the object and links the audit event.

    The same on an object under governance, in a state from which the action leads on and in one from which it does not.
    """
    if under is not None:
        await answered(jobs, "objects", under, 201)
    job = await delivered(jobs, bodies)

    acked = await answered(jobs, f"jobs/{job['job_id']}/ack", bodies.ack)

    shown = (await jobs.get("objects/cognition/cg_123")).json()
    assert (acked["job"]["status"], acked["job"]["audit_event_id"]) == ("succeeded", "aud_789")
    assert acked["object"]["next_action_at"] == bodies["ack"]["next_action_at"]
    assert (shown.get("object") or shown)["next_action_at"] == bodies["ack"]["next_action_at"]
    followup = (await jobs.get(f"jobs/{acked['followup_job_id']}")).json()["job"]
    assert (followup["status"], followup["run_at"]) == ("queued", bodies["ack"]["next_action_at"])
    [event] = [one for one in (await jobs.get("audit", job_id=job["job_id"])).json()["events"]
               if one["after"].get("status") == "succeeded"]  # fmt: skip
    assert event["after"]["audit_event_id"] == "aud_789"


@pytest.mark.anyio
@pytest.mark.section("3.3 Ack", interface="HTTP")
async def test_3_3_a_job_that_takes_ten_minutes_is_finished_by_the_printed_ack(jobs: Jobs, bodies: Bodies) -> None:
    """A client that knows no leases finishes a job that takes longer than a minute."""
    job = await delivered(jobs, bodies)
    jobs.clock.pass_by(600)
    assert (await answered(jobs, "jobs/pull", {"worker_id": "worker-2"}))["jobs"] == []

    acked = await answered(jobs, f"jobs/{job['job_id']}/ack", bodies.ack)

    assert acked["job"]["status"] == "succeeded"


@pytest.mark.anyio
@pytest.mark.section("3.3 Ack", interface="HTTP")
async def test_3_3_a_worker_with_a_clock_ahead_leaves_no_governed_object_without_a_job(
    jobs: Jobs, bodies: Bodies
) -> None:
    """The object of the job has a next time; a governed one also if the ack gives none."""
    created = await answered(jobs, "objects", UNSURE, 201)
    at = parse_utc(created["object"]["next_action_at"])
    jobs.clock.turn_to(format_utc(at - 2_000_000))
    [job] = (await answered(jobs, "jobs/pull", {**bodies["pull"], "now": format_utc(at)}))["jobs"]

    acked = await answered(jobs, f"jobs/{job['job_id']}/ack", {"result": "succeeded"})

    assert acked["object"]["next_action_at"] > format_utc(at)
    assert (await jobs.get(f"jobs/{acked['followup_job_id']}")).json()["job"]["status"] == "queued"


# 3.4 Fail and retry


@pytest.mark.anyio
@pytest.mark.section("3.4 Fail and retry", interface="HTTP")
async def test_3_4_a_failed_job_is_retried_after_its_delay_and_ends_as_a_dead_letter(
    jobs: Jobs, bodies: Bodies
) -> None:
    """A fail raises the attempt; with attempts left the job is queued again `retry_delay_sec` later, else it is a dead
    letter and an alert is raised.
    """
    job = await delivered(jobs, bodies)
    found = []
    for _ in range(3):
        failed = (await answered(jobs, f"jobs/{job['job_id']}/fail", bodies.fail))["job"]
        found.append((failed["status"], failed["attempt"], failed["run_at"], failed["last_error"]))
        jobs.clock.turn_to(failed["run_at"])
        jobs.clock.pass_by(1)
        await answered(jobs, "jobs/pull", {"worker_id": "worker-1"})

    error = bodies["fail"]["error"]
    assert found == [
        ("queued", 1, "2026-02-21T00:05:00Z", error),
        ("queued", 2, "2026-02-21T00:10:00Z", error),
        ("dead_letter", 3, "2026-02-21T00:10:00Z", error),
    ]
    [alert] = (await jobs.get("alerts")).json()["alerts"]
    assert (alert["alert"], alert["job_id"], alert["last_error"]) == ("job.dead_letter", job["job_id"], error)


# 4 Scheduling policy


@pytest.mark.anyio
@pytest.mark.section("4 Scheduling policy", interface="HTTP")
async def test_4_only_due_jobs_are_delivered(jobs: Jobs, bodies: Bodies) -> None:
    """Due first: only due jobs are considered."""
    await answered(jobs, "jobs", bodies.enqueue, 201)
    jobs.clock.turn_to("2026-02-21T00:00:10Z")

    early = await answered(jobs, "jobs/pull", {**bodies["pull"], "now": "2026-02-20T23:59:59.999999Z"})
    at_once = await answered(jobs, "jobs/pull", {**bodies["pull"], "now": bodies["enqueue"]["run_at"]})

    assert (early["count"], at_once["count"]) == (0, 1)


@pytest.mark.anyio
@pytest.mark.section("4 Scheduling policy", interface="HTTP")
async def test_4_of_jobs_due_together_the_urgent_are_delivered_first(jobs: Jobs, bodies: Bodies) -> None:
    """Priority: high before medium before low."""
    for priority in ("low", "medium", "high"):
        await answered(jobs, "jobs", {**bodies["enqueue"], "object_id": priority, "priority": priority}, 201)
    jobs.clock.turn_to("2026-02-21T00:00:10Z")

    found = [(await answered(jobs, "jobs/pull", {**bodies["pull"], "limit": 1}))["jobs"] for _ in range(3)]

    assert [job["priority"] for [job] in found] == ["high", "medium", "low"]


@pytest.mark.section("4 Scheduling policy", interface="library")
def test_4_an_effect_is_applied_once_for_a_key_however_often_the_job_is_delivered(tmp_path: Path) -> None:
    """Idempotent execution: one key has no second effect."""
    clock, effects = ManualClock(), []

    @handler("memory", "decay", backoff=[0])
    def decay(context: Context) -> None:
        effects.append(context.once(lambda transaction: transaction.change_object("faded", state="faded").version))
        if context.job.attempt == 0:
            raise OSError("after the effect")

    with library(tmp_path / "jobs.db", clock) as scheduler:
        scheduler.enqueue(object_type="memory", object_id="m", action="decay")
        Worker(scheduler, Handlers([decay]), once=True, ticks=clock).run()
        clock.pass_by(10)
        Worker(scheduler, Handlers([decay]), once=True, ticks=clock).run()

        assert effects == [1, 1]
        assert scheduler.object("memory", "m").version == 1


@pytest.mark.anyio
@pytest.mark.section("4 Scheduling policy", interface="HTTP")
async def test_4_dead_letters_delay_no_other_job(jobs: Jobs, bodies: Bodies) -> None:
    """Failure isolation: a job beyond its attempts is a dead letter and blocks nothing."""
    for n in range(5):
        await answered(jobs, "jobs", {**bodies["enqueue"], "object_id": f"bad {n}", "max_attempts": 1}, 201)
    good = {**bodies["enqueue"], "object_id": "good", "run_at": "2026-02-21T00:00:05Z"}
    await answered(jobs, "jobs", good, 201)
    jobs.clock.turn_to("2026-02-21T00:00:10Z")
    for job in (await answered(jobs, "jobs/pull", {**bodies["pull"], "limit": 5}))["jobs"]:
        await answered(jobs, f"jobs/{job['job_id']}/fail", bodies.fail)

    assert len(await due(jobs, status="dead_letter")) == 5
    [job] = (await answered(jobs, "jobs/pull", bodies.pull))["jobs"]
    assert job["object_id"] == "good"


# 5 Boundary with the state machine


@pytest.mark.anyio
@pytest.mark.section("5 Boundary with the state machine", interface="HTTP")
async def test_5_an_ack_changes_no_state_and_forbidden_jobs_are_not_delivered(jobs: Jobs, bodies: Bodies) -> None:
    """The scheduler is responsible for time and retries, the state machine for transitions."""
    await answered(jobs, "objects", UNSURE, 201)
    job = await delivered(jobs, bodies)
    acked = await answered(jobs, f"jobs/{job['job_id']}/ack", bodies.ack)
    shown = (await jobs.get("objects/show/cognition/cg_123")).json()
    poisoned = {"object_type": "memory", "object_id": "m", "status": "rejected_poisoned", "evidence_refs": ["ev_1"]}
    await answered(jobs, "objects", poisoned, 201)
    wrong = {"object_type": "memory", "object_id": "m", "action": "reinstate-check"}
    forbidden = (await answered(jobs, "jobs", wrong, 201))["job"]["job_id"]
    pulled = await answered(jobs, "jobs/pull", {"worker_id": "worker-1", "actions": ["reinstate-check"]})

    assert acked["job"]["outcome"] == "noop"
    assert (shown["object"]["status"], shown["object"]["epistemic_state"]) == ("needs_revalidate", "uncertain")
    ended = (await jobs.get(f"jobs/{forbidden}")).json()["job"]
    assert (pulled["jobs"], ended["status"]) == ([], "failed")
    assert ended["last_error"].startswith("illegal_transition")


@pytest.mark.anyio
@pytest.mark.section("5 Boundary with the state machine", interface="HTTP")
async def test_5_the_trail_has_before_and_after_with_evidence(jobs: Jobs, bodies: Bodies) -> None:
    """The auditor stores the state before and after, and the evidence."""
    await answered(jobs, "objects", UNSURE, 201)
    job = await delivered(jobs, bodies)
    await answered(jobs, f"jobs/{job['job_id']}/ack", bodies.ack)

    events = (await jobs.get("audit", object_type="cognition", object_id="cg_123")).json()["events"]
    [changed] = [
        event for event in events if event["event_type"] == "state_transition" and event["job_id"] == job["job_id"]
    ]

    assert changed["before"]["next_action_at"] != changed["after"]["next_action_at"]
    assert changed["after"]["next_action_at"] == bodies["ack"]["next_action_at"]
    assert set(changed["evidence_refs"]) == {"ev_1", f"scheduler_job:{job['job_id']}"}


# 6 Smallest implementation


@pytest.mark.section("6 Smallest implementation", interface="library")
def test_6_jobs_are_one_table_of_a_sqlite_file_with_an_index_by_status_and_time(tmp_path: Path) -> None:
    """Jobs are stored in one table of SQLite, with an index on status and run_at."""
    Scheduler.open(tmp_path / "jobs.db").close()

    with closing(sqlite3.connect(tmp_path / "jobs.db")) as look:
        columns = [row[1] for row in look.execute("PRAGMA table_info(jobs)")]
        indexes = [row[1] for row in look.execute("PRAGMA index_list(jobs)")]
        indexed = [[row[2] for row in look.execute(f"PRAGMA index_info({name})")][:2] for name in indexes]

    assert {"status", "run_at", "priority", "attempt", "idempotency_key"} <= set(columns)
    assert ["status", "run_at"] in indexed


@pytest.mark.section("6 Smallest implementation", interface="library")
def test_6_a_worker_is_a_loop_that_writes_back_in_one_transaction(tmp_path: Path) -> None:
    """A worker of one process polls at an interval, and state is written back through one service."""
    clock = ManualClock()

    @handler("cognition", "revalidate")
    def revalidate(context: Context) -> Done:
        return Done(next_action_at="2026-02-28T00:00:00Z")

    with library(tmp_path / "jobs.db", clock) as scheduler:
        governed(scheduler).as_user("mia").create(**UNSURE)
        scheduler.enqueue(object_type="cognition", object_id="cg_123", action="revalidate")
        tally = Worker(scheduler, Handlers([revalidate]), once=True, ticks=clock).run()
        shown = governed(scheduler).show("cognition", "cg_123")["object"]

    assert (INTERVAL_SEC, tally.succeeded) == (5, 1)
    assert shown["next_action_at"] == "2026-02-28T00:00:00Z"


# 7 Metrics


@pytest.mark.anyio
@pytest.mark.section("7 Metrics", interface="HTTP")
async def test_7_the_five_metrics_count_due_jobs_and_outcomes(jobs: Jobs, bodies: Bodies) -> None:
    """The metrics: number of due jobs, lag of the earliest, rates of success and of retries, and number of
    dead letters.
    """
    for n, attempts in enumerate((3, 3, 1, 3)):
        body = {**bodies["enqueue"], "object_id": f"cg_{n}", "max_attempts": attempts}
        await answered(jobs, "jobs", body, 201)
    jobs.clock.turn_to("2026-02-21T00:00:10Z")
    one, two, three = (await answered(jobs, "jobs/pull", {**bodies["pull"], "limit": 3}))["jobs"]
    await answered(jobs, f"jobs/{one['job_id']}/ack", {"result": "succeeded"})
    await answered(jobs, f"jobs/{two['job_id']}/fail", bodies.fail)
    await answered(jobs, f"jobs/{three['job_id']}/fail", bodies.fail)

    metrics = (await jobs.get("metrics")).json()

    assert (metrics["jobs_due_count"], metrics["jobs_lag_seconds"]) == (1, 10)
    assert metrics["job_success_rate"] == 0.5, "one succeeded, one is a dead letter"
    assert metrics["job_retry_rate"] == pytest.approx(1 / 3, abs=1e-4)
    assert metrics["dead_letter_count"] == 1


# 8 Safety and governance


@pytest.mark.anyio
@pytest.mark.section("8 Safety and governance", interface="HTTP")
async def test_8_before_a_job_on_a_high_risk_object_the_newest_gates_are_read(jobs: Jobs, bodies: Bodies) -> None:
    """A job on an object of high risk reads the newest state of the persona and cognition gates before it is executed.

    For every worker: a gate that blocks makes the pull return nothing, and a gate that blocks after it stops the
    ack.
    """
    await open_gates(jobs, persona_conflict_gate="block")
    await answered(jobs, "objects", {**COGNITION, "risk_tier": "high"}, 201)
    blocked = (await answered(jobs, "jobs", bodies.enqueue, 201))["job"]["job_id"]
    jobs.clock.turn_to("2026-02-21T00:00:10Z")
    none = await answered(jobs, "jobs/pull", bodies.pull)
    await open_gates(jobs)
    second = (await answered(jobs, "jobs", {**bodies["enqueue"], "run_at": jobs.clock.text}, 201))["job"]["job_id"]
    [job] = (await answered(jobs, "jobs/pull", bodies.pull))["jobs"]
    await open_gates(jobs, cognition_gate="block")
    acked = await answered(jobs, f"jobs/{second}/ack", bodies.ack)

    ended = (await jobs.get(f"jobs/{blocked}")).json()["job"]
    assert (none["jobs"], ended["status"], ended["delivery_count"]) == ([], "failed", 0)
    assert ended["last_error"] == "gate_blocked: persona_conflict_gate"
    assert "gate_blocked: persona_conflict_gate" in (await jobs.get(f"jobs/{blocked}/why")).json()["sentence"]
    assert (job["job_id"], acked["job"]["status"]) == (second, "failed")
    assert acked["job"]["last_error"] == "gate_blocked: cognition_gate"


@pytest.mark.anyio
@pytest.mark.section("8 Safety and governance", interface="HTTP")
async def test_8_automatic_verification_of_uncertain_objects_keeps_its_budget(jobs: Jobs, bodies: Bodies) -> None:
    """The automatic verification of an uncertain object never exceeds auto_verify_budget."""
    await answered(jobs, "objects", {**UNSURE, "auto_verify_budget": 2}, 201)
    for n in range(10):
        body = {**bodies["enqueue"], "action": "verify", "idempotency_key": f"{n}"}
        await answered(jobs, "jobs", body, 201)
    jobs.clock.turn_to("2026-02-21T00:00:10Z")
    deliveries = 0
    for _ in range(12):
        for job in (await answered(jobs, "jobs/pull", bodies.pull))["jobs"]:
            deliveries += 1
            await answered(jobs, f"jobs/{job['job_id']}/ack", {"result": "succeeded"})

    ended = await due(jobs, action="verify")
    assert deliveries == 2
    assert sorted(job["outcome"] for job in ended) == ["budget_exhausted"] * 8 + ["noop"] * 2


@pytest.mark.anyio
@pytest.mark.section("8 Safety and governance", interface="HTTP")
async def test_8_unknowable_objects_are_not_verified_repeatedly(jobs: Jobs, bodies: Bodies) -> None:
    """An ontic_unknowable object is not retried forever: a limit ends it."""
    await answered(jobs, "objects", {**UNSURE, "unknown_type": "ontic_unknowable"}, 201)
    body = {**bodies["enqueue"], "action": "verify", "max_attempts": 100}
    [job_id] = [(await answered(jobs, "jobs", body, 201))["job"]["job_id"]]
    jobs.clock.turn_to("2026-02-21T00:00:10Z")
    deliveries = 0
    for _ in range(4):
        for job in (await answered(jobs, "jobs/pull", {"worker_id": "worker-1", "actions": ["verify"]}))["jobs"]:
            deliveries += 1
            await answered(jobs, f"jobs/{job['job_id']}/fail", bodies.fail)
        jobs.clock.pass_by(301)

    ended = (await jobs.get(f"jobs/{job_id}")).json()["job"]
    refused = error_of(await jobs.post("jobs", {**body, "run_at": jobs.clock.text}))
    assert (deliveries, ended["outcome"]) == (1, "ontic_closed")
    assert refused["code"] == "ontic_verification_closed"


@pytest.mark.section("8 Safety and governance", interface="library")
def test_8_a_plain_handler_of_a_governed_object_keeps_its_budget(tmp_path: Path) -> None:
    """The same holds for our worker with a handler that does not use governance."""
    clock, entered = ManualClock(), []

    @handler("cognition", "verify")
    def verify(context: Context) -> None:
        entered.append(context.job.job_id)

    with library(tmp_path / "jobs.db", clock) as scheduler:
        governed(scheduler).as_user("mia").create(**UNSURE, auto_verify_budget=2)
        for n in range(4):
            scheduler.defer("cognition", "cg_123", "verify", idempotency_key=f"{n}")
        for _ in range(5):
            Worker(scheduler, Handlers([verify]), once=True, ticks=clock).run()

    assert len(entered) == 2


# 9 Open items


@pytest.mark.anyio
@pytest.mark.section("9 Open items", interface="HTTP")
async def test_9_a_job_is_leased_to_one_worker_and_its_token_proves_the_lease(jobs: Jobs, bodies: Bodies) -> None:
    """Leases for distributed workers, an item for a later version, are implemented."""
    job = await delivered(jobs, bodies)
    jobs.clock.pass_by(901)
    [again] = (await answered(jobs, "jobs/pull", {"worker_id": "worker-2"}))["jobs"]

    late = await jobs.post(f"jobs/{job['job_id']}/ack", {**bodies["ack"], "lease_token": job["lease_token"]})
    unproved = await jobs.post(f"jobs/{job['job_id']}/ack", bodies["ack"])

    assert again["delivery_count"] == 2
    assert (error_of(late)["code"], error_of(unproved)["code"]) == ("lease_lost", "lease_token_required")
    await answered(jobs, f"jobs/{job['job_id']}/ack", {**bodies["ack"], "lease_token": again["lease_token"]})


# The same in the library and on the command line


def library(path: Path, clock: Callable[[], int]) -> Scheduler:
    return Scheduler(Calls(SqliteStore(path, durability=Durability.NORMAL), QUICK, clock))


@pytest.mark.section("3 Calls", interface="library")
def test_3_the_printed_bodies_are_the_arguments_of_the_library(tmp_path: Path, bodies: Bodies) -> None:
    """The four calls accept the unchanged printed bodies, also on a governed cognition."""
    clock = ManualClock()
    with library(tmp_path / "jobs.db", clock) as scheduler:
        governed(scheduler).as_user("mia").create(**UNSURE)
        scheduler.enqueue(**bodies["enqueue"])
        clock.turn_to("2026-02-21T00:00:10Z")
        [job] = scheduler.pull(**bodies["pull"]).jobs
        failed = scheduler.fail(job.job_id, **bodies["fail"])
        clock.turn_to("2026-02-21T00:05:00Z")
        [again] = scheduler.pull(**{**bodies["pull"], "now": None}).jobs
        acked = scheduler.ack(again.job_id, **bodies["ack"])
        with pytest.raises(JobRefused):
            scheduler.enqueue(**{**bodies["enqueue"], "run_at": "2026-02-21T00:04:59Z"})

    assert (failed.job.status, failed.job.run_at) == ("queued", "2026-02-21T00:05:00Z")
    assert (again.job_id, acked.job.status) == (job.job_id, "succeeded")
    assert acked.object.next_action_at == bodies["ack"]["next_action_at"]


class Printed(Struct, frozen=True):
    """The result of one run of the program."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Callable[..., Printed], ManualClock]:
    """`pendula jobs` on a store, with a clock of the test."""
    clock = ManualClock()
    monkeypatch.setattr(target, "SelfCheckingClock", lambda: SimpleNamespace(now=clock))
    monkeypatch.setattr("pendula.jobs.scheduler.hold_clock", lambda *_: None)
    Scheduler.open(tmp_path / "jobs.db").close()

    def call(*arguments: object, entered: str = "") -> Printed:
        given = ["jobs", *map(str, arguments), "--db", str(tmp_path / "jobs.db"), "--json"]
        with CliRunner().isolation(input=entered) as (out, err, _):
            code = run(given)
            sys.stdout.flush()
            sys.stderr.flush()
            return Printed(code, out.getvalue().decode(), err.getvalue().decode())

    return call, clock


@pytest.mark.section("3 Calls", interface="command line")
@pytest.mark.parametrize("by", ["file", "standard input"])
def test_3_the_printed_bodies_are_files_of_the_command_line(
    program: tuple[Callable[..., Printed], ManualClock], tmp_path: Path, bodies: Bodies, by: str
) -> None:
    """The four calls accept the unchanged printed bodies, from a file or pasted."""
    call, clock = program

    def with_body(name: str, *job: str) -> Printed:
        if by == "standard input":
            return call(name, *job, "--body", "-", entered=getattr(bodies, name))
        (tmp_path / f"{name}.json").write_text(getattr(bodies, name))
        return call(name, *job, "--body", tmp_path / f"{name}.json")

    stored = with_body("enqueue").document
    clock.turn_to("2026-02-21T00:00:10Z")
    [job] = with_body("pull").document["jobs"]
    failed = with_body("fail", job["job_id"]).document
    clock.turn_to("2026-02-21T00:05:00Z")
    [again] = call("pull", "--worker", "worker-1").document["jobs"]
    acked = with_body("ack", again["job_id"]).document

    assert stored["job"]["job_id"] == job["job_id"] == again["job_id"]
    assert failed["job"]["run_at"] == "2026-02-21T00:05:00Z"
    assert acked["job"]["status"] == "succeeded"
    assert acked["object"]["next_action_at"] == bodies["ack"]["next_action_at"]


@pytest.mark.section("3.1 Enqueue", interface="command line")
def test_3_1_the_command_line_refuses_a_time_in_the_past(
    program: tuple[Callable[..., Printed], ManualClock], bodies: Bodies
) -> None:
    """The time of a job is not earlier than now."""
    call, clock = program
    clock.turn_to("2026-02-21T00:00:01Z")

    refused = call("enqueue", "--body", "-", entered=bodies.enqueue)

    assert (refused.code, json.loads(refused.err)["error"]["code"]) == (1, "run_at_in_past")
