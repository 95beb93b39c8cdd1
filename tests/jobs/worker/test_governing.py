"""Workers on governed objects: steps before a verifier, effects of its verdict, and calls without effect."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Unpack

import pytest

from pendula.governance.objects import GovernedObjects
from pendula.jobs import AsyncContext, AsyncScheduler, AsyncWorker, Policy, Verdict
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.messages import Renewed, plain
from pendula.jobs.model import Durability
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import RenewMembers
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.delivery import Delivery, Ending, Failed
from pendula.jobs.worker.handlers import Context, Handlers, handler, verifier
from pendula.jobs.worker.worker import Worker
from pendula.kernel.errors import WrongUsage
from pendula.server.schedulers.jobs.routes import jobs_scheduler
from pendula.server.settings import Settings
from tests.governance.plain_replies import governed
from tests.jobs.interfaces import ManualClock
from tests.jobs.workers import Rested, Silent, Virtual, calls_on, close_all, virtual
from tests.jobs.workers import worked as worked_at_once
from tests.server.living import LiveServer

DAY = 86_400
QUICK = Policy(durability=Durability.NORMAL)
PASSED = Verdict("passed", "looked into", ("ev_2",))
DOUBTED: dict[str, Any] = {"status": "needs_revalidate", "unknown_type": "out_of_scope", "evidence_refs": ["ev_1"]}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


def verifies(function: Callable[[Any], Any], kind: str = "memory", action: str = "verify", **options: Any) -> Handlers:
    return Handlers([verifier(kind, action, **options)(function)])


def worked(client: Virtual, handlers: Handlers, jobs: int, **options: Any) -> Rested:
    """The last of the workers that did `jobs` jobs, each one at its due time."""
    for _ in range(jobs):
        coming = client.calls.store.read(lambda look: look.next_time())
        client.clock.now = max(client.clock.now, coming or 0)
        worker = worked_at_once(client, handlers, 1, **options)
    return worker


def known(client: Scheduler, kind: str = "memory") -> dict[str, Any]:
    return dict(governed(client).show(kind, "m")["object"])


def jobs_of(client: Scheduler, **query: Any) -> list[dict[str, Any]]:
    return [plain(job) for job in client.list(object_id="m", **query).jobs]


def made(client: Scheduler, kind: str = "memory", **members: Any) -> None:
    governed(client).as_user("mia").create(kind, "m", **{"evidence_refs": ["ev_1"], **members})


def open_gates(client: Scheduler, **verdicts: str) -> None:
    for gate in ("persona_conflict_gate", "risk_gate", "cognition_gate"):
        governed(client).as_user("mia").set_gate(gate, verdicts.get(gate, "pass"), "for a test")


@pytest.mark.req("JOB-WRK-3")
def test_a_verdict_ends_the_job_and_changes_the_object_in_one_call(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    made(client, risk_tier="medium")
    seen: list[Any] = []

    def verify(context: Context) -> Verdict:
        seen.append((context.object["status"], context.mode, context.job.object_id))
        return PASSED

    worker = worked(client, verifies(verify), 1)

    assert (seen, worker.tally.succeeded) == ([("candidate", None, "m")], 1)
    assert (known(client)["status"], known(client)["evidence_refs"]) == ("verified", ["ev_1", "ev_2"])
    assert [(job["action"], job["status"]) for job in jobs_of(client)] == [("decay", "queued"), ("verify", "succeeded")]
    assert check(client.calls.store) == []


class Noting(Virtual):
    """Records its calls in order."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.recorded: list[str] = []

    def renew(self, job_id: str, **members: Unpack[RenewMembers]) -> Renewed:
        self.recorded.append("lease")
        return super().renew(job_id, **members)

    @property
    def objects(self) -> Any:
        return Heard(governed(self), self.recorded.append)


class Heard:
    """Governed objects that record each step before it runs; `before` can raise."""

    def __init__(self, objects: GovernedObjects, before: Callable[[str], None]) -> None:
        self._objects = objects
        self._before = before

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._objects, name)
        if name not in ("begin", "finish", "settle"):
            return call

        def noted(job_id: str, **members: Any) -> dict[str, Any]:
            self._before(name)
            return dict(call(job_id, **members))

        return noted


@pytest.mark.req("JOB-WRK-4")
def test_steps_run_in_order_lease_gates_budget_verifier_change(tmp_path: Path) -> None:
    client = Noting(*calls_on(tmp_path))
    made(client, "cognition", **DOUBTED)
    note = client.recorded.append

    def step(delivery: Delivery) -> None:
        note("own gate")

    def verify(context: Context) -> Verdict:
        note(f"verifier with {context.object['verify_budget_left']} left")
        return Verdict("inconclusive", "not clear")

    client.clock.pass_by(DAY)
    worked(client, verifies(verify, "cognition", "revalidate"), 1, gates=[step])

    assert client.recorded == ["own gate", "begin", "verifier with 1 left", "finish"]


@pytest.mark.req("JOB-WRK-4")
@pytest.mark.parametrize("refusing", ["own gate", "gate", "budget", "object"])
def test_no_step_runs_after_a_rejected_one(tmp_path: Path, refusing: str) -> None:
    client = Noting(*calls_on(tmp_path))
    open_gates(client, risk_gate="block" if refusing == "gate" else "pass")
    budget = 0 if refusing == "budget" else 2
    if refusing == "object":
        client.defer("cognition", "m", "revalidate")
    else:
        made(client, "cognition", **{**DOUBTED, "risk_tier": "high", "auto_verify_budget": budget})

    def own_gate(delivery: Delivery) -> Ending | None:
        return Failed({"error": "not today"}) if refusing == "own gate" else None

    def verify(_: Context) -> Verdict:
        raise AssertionError("entered")

    client.clock.pass_by(DAY)
    handlers = verifies(verify, "cognition", "revalidate")
    tally = Worker(client, handlers, once=True, gates=[own_gate], ticks=client.clock).run()

    # Gates and budget are checked before the delivery; the worker finds out which objects are not governed.
    assert client.recorded == (["begin"] if refusing == "object" else [])
    [*_, job] = jobs_of(client)
    errors = {"own gate": "not today", "gate": "gate_blocked: risk_gate", "budget": None}
    if refusing == "object":
        assert (job["status"], job["last_error"].partition(":")[0]) == ("failed", "object_not_found")
    else:
        assert job["last_error"] == errors[refusing]
        assert known(client, "cognition")["verify_budget_left"] == (1 if refusing == "own gate" else budget)
    assert tally.succeeded == 0


@pytest.mark.req("JOB-GATE-6", "JOB-WRK-7")
def test_a_verifier_that_raises_fails_the_job_and_uses_its_unit(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    made(client, "cognition", **DOUBTED)

    def verify(_: Context) -> Verdict:
        raise RuntimeError("no answer")

    worker = worked(client, verifies(verify, "cognition", "revalidate"), 1)

    [job] = jobs_of(client)
    assert (job["status"], job["attempt"], worker.tally.failed) == ("queued", 1, 1)
    assert job["last_error"].startswith("RuntimeError: no answer")
    assert known(client, "cognition")["verify_budget_left"] == 1


def test_an_answer_that_is_not_a_verdict_is_a_failure_with_a_reason(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    made(client)

    worked(client, verifies(lambda _: None), 1)

    again, job = jobs_of(client)
    assert (job["status"], known(client)["status"]) == ("failed", "candidate")
    assert "a verifier returns a Verdict, not NoneType" in job["last_error"]
    assert (again["status"], again["run_at"]) == ("queued", known(client)["next_action_at"])


@pytest.mark.parametrize("evidence", ["ev_2", {"ev_2"}, None, 7], ids=["text", "set", "None", "int"])
def test_evidence_that_is_not_a_list_of_references_is_rejected(tmp_path: Path, evidence: Any) -> None:
    client = virtual(tmp_path)
    made(client)

    worked(client, verifies(lambda _: Verdict("passed", "looked into", evidence)), 1)

    _, job = jobs_of(client)
    assert (job["status"], known(client)["evidence_refs"]) == ("failed", ["ev_1"])
    assert "the evidence of a verdict is a tuple of references" in job["last_error"]


def test_a_verdict_of_a_str_subclass_is_stored_as_plain_text(tmp_path: Path) -> None:
    class Word(str):
        __slots__ = ()

    client = virtual(tmp_path)
    made(client)

    worker = worked(client, verifies(lambda _: Verdict(Word("passed"), Word("seen"), (Word("ev_2"),))), 1)

    assert (worker.tally.succeeded, known(client)["evidence_refs"]) == (1, ["ev_1", "ev_2"])
    assert known(client)["status"] == "verified"


def test_a_verdict_rejected_by_the_store_is_a_failure_with_a_reason(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    made(client)

    worked(client, verifies(lambda _: Verdict("passed", "")), 1)

    [job] = jobs_of(client)
    assert (job["status"], job["attempt"]) == ("queued", 1)
    assert job["last_error"].startswith("the answer of the handler was rejected: invalid_field")


@pytest.mark.req("JOB-SM-14")
def test_the_worker_settles_decay_and_archive_itself(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    made(client, status="active", half_life="P1D", expires_at="2026-03-01T00:00:00Z")

    worker = worked(client, Handlers(), 2, govern=True)

    assert (known(client)["status"], known(client)["next_action_at"]) == ("archived", None)
    assert [job["outcome"] for job in jobs_of(client)] == ["transitioned", "transitioned"]
    assert worker.tally.succeeded == 1
    assert check(client.calls.store) == []


def test_a_handler_for_decay_runs_instead_of_the_settling(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.defer("memory", "m", "decay")
    client.defer("experience", "m", "decay")
    called: list[str] = []
    own = Handlers([handler("memory", "decay")(lambda context: called.append(context.job.object_type))])

    worked(client, own, 2, govern=["experience"])

    assert called == ["memory"]
    assert [job["status"] for job in jobs_of(client)] == ["failed", "succeeded"]


def test_only_the_named_types_are_settled(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    worker = Worker(client, Handlers(), govern=["memory"])

    assert worker.handlers.works == [("memory", "archive"), ("memory", "decay")]
    with pytest.raises(WrongUsage, match="at least one handler"):
        Worker(client, Handlers())


def test_a_job_deferred_while_it_runs_counts_as_released(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    open_gates(client)
    made(client, risk_tier="high")

    def verify(_: Context) -> Verdict:
        governed(client).as_user("mia").set_gate("social_gate", "defer", "not while they sleep")
        return PASSED

    worker = worked(client, verifies(verify), 1)

    assert (worker.tally.released, jobs_of(client)[0]["attempt"]) == (1, 0)


# Calls without effect


@pytest.mark.req("JOB-ACK-8")
def test_a_verdict_after_a_lost_lease_changes_nothing(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    made(client)

    def verify(context: Context) -> Verdict:
        client.clock.pass_by(120)
        client.pull(worker_id="other")
        return PASSED

    worker = worked(client, verifies(verify), 1)

    assert (worker.tally.dropped, known(client)["status"]) == (1, "candidate")
    [job] = jobs_of(client)
    assert (job["status"], job["worker_id"]) == ("running", "other")
    assert not [event for event in client.audit(object_id="m").events if event.after.get("transitioned")]


@pytest.mark.req("JOB-GATE-6", "JOB-WRK-13")
def test_a_worker_killed_in_its_verifier_uses_a_unit_and_changes_nothing_else(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    made(client, "cognition", **DOUBTED)
    client.clock.pass_by(DAY)
    [job] = client.pull(worker_id="dead", lease_sec=60).jobs
    governed(client).begin(job.job_id, worker_id="dead", lease_token=job.lease_token)
    client.clock.pass_by(61)

    worked(client, verifies(lambda _: Verdict("inconclusive", "not clear"), "cognition", "revalidate"), 1)

    assert (known(client, "cognition")["verifications"], known(client, "cognition")["verify_budget_left"]) == (2, 0)
    assert check(client.calls.store) == []


@pytest.mark.req("JOB-SM-4")
def test_an_object_changed_during_its_verification_is_verified_again(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    made(client)
    entered: list[int] = []

    def verify(context: Context) -> Verdict:
        entered.append(context.object["version"])
        if len(entered) == 1:
            governed(client).as_user("mia").attach_evidence("memory", "m", "ev_9")
        return PASSED

    worked(client, verifies(verify), 2)

    assert (entered, known(client)["status"]) == ([1, 2], "verified")


@pytest.mark.req("JOB-WRK-12")
@pytest.mark.parametrize("step", ["begin", "finish", "settle"])
@pytest.mark.parametrize("is_executed", [True, False])
def test_a_step_with_a_lost_reply_is_repeated_and_applied_once(tmp_path: Path, step: str, is_executed: bool) -> None:
    class Lossy(Virtual):
        lost = 1

        @property
        def objects(self) -> Any:
            return Losing(governed(self), self)

    class Losing(Heard):
        def __init__(self, objects: GovernedObjects, client: Lossy) -> None:
            super().__init__(objects, lambda _: None)
            self._client = client

        def __getattr__(self, name: str) -> Any:
            call = super().__getattr__(name)
            if name != step or not self._client.lost:
                return call

            def losing(job_id: str, **members: Any) -> dict[str, Any]:
                reply = {} if not self._client.lost or not is_executed else call(job_id, **members)
                if self._client.lost:
                    self._client.lost -= 1
                    raise Silent(f"{name} is lost")
                return reply or call(job_id, **members)

            return losing

    client = Lossy(*calls_on(tmp_path))
    if step == "settle":
        made(client, status="active", half_life="P1D")
        worker = worked(client, Handlers(), 1, govern=True)
    else:
        made(client, "cognition", **DOUBTED)
        verdict = Verdict("inconclusive", "not clear")
        worker = worked(client, verifies(lambda _: verdict, "cognition", "revalidate"), 1)
        assert known(client, "cognition")["verify_budget_left"] == 1

    assert (worker.tally.succeeded, client.lost, len(worker.rests)) == (1, 0, 1)
    assert jobs_of(client, status="succeeded")
    assert check(client.calls.store) == []


def test_a_client_without_governed_objects_runs_only_plain_handlers(tmp_path: Path) -> None:
    class Plain:
        def __init__(self, client: Scheduler) -> None:
            for name in ("pull", "ack", "fail", "renew", "release"):
                setattr(self, name, getattr(client, name))

    plain: Any = Plain(virtual(tmp_path))

    Worker(plain, Handlers([handler("memory", "decay")(lambda _: None)]))
    with pytest.raises(WrongUsage, match="no governed objects"):
        Worker(plain, verifies(lambda _: PASSED))


# Event loop and HTTP


def test_an_async_verifier_runs_on_the_event_loop(tmp_path: Path) -> None:
    async def verify(context: AsyncContext) -> Verdict:
        await asyncio.sleep(0)
        return Verdict("suspicious", f"{context.object['status']} from nowhere")

    async def run() -> str:
        async with await AsyncScheduler.open(tmp_path / "jobs.db", QUICK) as scheduler:
            assert isinstance(scheduler.blocking, Scheduler)
            made(scheduler.blocking)
            await scheduler.defer("memory", "m", "verify")
            await AsyncWorker(scheduler, verifies(verify), max_jobs=1).run()
            return str(known(scheduler.blocking)["status"])

    assert asyncio.run(run()) == "quarantine"


@pytest.mark.req("JOB-API-5")
def test_a_remote_worker_is_governed(tmp_path: Path) -> None:
    clock = ManualClock()
    with (
        LiveServer(Settings(port=0, data=str(tmp_path / "data")), [jobs_scheduler(QUICK, clock=clock)]) as server,
        RemoteScheduler(server.url) as client,
    ):
        governed(client).as_user("mia").create("memory", "m", evidence_refs=["ev_1"], half_life="P1D")
        clock.pass_by(DAY)
        Worker(client, verifies(lambda _: PASSED), max_jobs=1, govern=True).run()
        clock.pass_by(30 * DAY)
        tally = Worker(client, verifies(lambda _: PASSED), max_jobs=1, govern=True).run()
        shown = governed(client).show("memory", "m")["object"]

    assert (shown["status"], tally.succeeded) == ("stale", 1)
