"""Effects: once per key whatever the number of deliveries, under the lease, together with their record."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused, Policy, messages
from pendula.jobs.messages import Job
from pendula.jobs.settings_file import with_words
from pendula.jobs.store.protocol import ObjectRow, StatementRefused
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.effects import Transaction, once
from pendula.jobs.worker.handlers import Context, Done, Handlers
from pendula.jobs.worker.leases import LeaseGone
from pendula.kernel.canonical import Json
from pendula.kernel.errors import NotCanonical
from tests.docs.running import blocks_of
from tests.governance.plain_replies import governed
from tests.jobs.stores import opened
from tests.jobs.workers import MEMORY, Virtual, close_all, decays, virtual, worked
from tests.waiting import joined

TABLE = "CREATE TABLE notes (key TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Virtual]:
    scheduler = virtual(tmp_path)
    scheduler.calls.store.write(lambda tx: tx.execute(TABLE))
    yield scheduler
    close_all()


def notes(client: Virtual) -> list[tuple[Any, ...]]:
    return client.calls.store.write(lambda tx: tx.execute("SELECT key, n FROM notes ORDER BY key"))


def pulled(client: Virtual, worker_id: str = "w1") -> Job:
    [job] = client.pull(worker_id=worker_id, lease_sec=60).jobs
    return job


def note(transaction: Transaction) -> Json:
    transaction.execute("INSERT INTO notes VALUES (?, 1)", [transaction.job.idempotency_key])
    return {"noted": transaction.job.delivery_count, "parts": (1, 2)}


@pytest.mark.req("JOB-POL-4")
def test_a_redelivery_applies_nothing_and_gets_the_recorded_result(client: Virtual) -> None:
    client.enqueue(**MEMORY, idempotency_key="k")
    first = once(client.calls, pulled(client), note)
    client.clock.pass_by(61)
    again = pulled(client, "w2")
    second = once(client.calls, again, note)
    client.ack(again.job_id, result="succeeded", lease_token=again.lease_token)

    assert first == second == {"noted": 1, "parts": [1, 2]}
    assert notes(client) == [("k", 1)]
    effect = client.calls.store.read(lambda look: look.effect("k"))
    assert effect is not None
    assert (effect.fence, effect.result) == (1, first), "the record stays after the ack"
    assert check(client.calls.store) == []


@pytest.mark.req("JOB-POL-4")
def test_a5_a_worker_killed_between_effect_and_ack_leaves_one_effect(client: Virtual) -> None:
    client.enqueue(**MEMORY, idempotency_key="k")
    once(client.calls, pulled(client), changing)
    client.clock.pass_by(61)

    def decay(context: Context) -> Done:
        return Done(outcome=str(context.once(changing)))

    worked(client, decays(decay), 1)

    [job] = client.list().jobs
    events = client.history(job.job_id).events
    assert (job.status, job.outcome, job.delivery_count) == ("succeeded", "stale", 2)
    assert [event.event_type for event in events].count("state_transition") == 1
    assert client.object("memory", "mem_1").version == 1
    assert check(client.calls.store) == []


def changing(transaction: Transaction) -> Json:
    return transaction.change_object("the weight is under the threshold", state="stale").state


@pytest.mark.req("JOB-POL-4")
def test_an_effect_may_return_the_changed_object(client: Virtual) -> None:
    def changed(transaction: Transaction) -> ObjectRow:
        return transaction.change_object("the weight is under the threshold", state="stale")

    client.enqueue(**MEMORY)
    result = once(client.calls, pulled(client), changed)

    assert isinstance(result, dict)
    assert (result["version"], result["state"]) == (1, "stale")


@pytest.mark.req("JOB-ACK-8")
def test_a_delivery_that_lost_its_lease_writes_nothing(client: Virtual) -> None:
    client.enqueue(**MEMORY)
    late = pulled(client)
    client.clock.pass_by(61)

    with pytest.raises(LeaseGone) as expired:
        once(client.calls, late, note)
    second = pulled(client, "w2")
    with pytest.raises(LeaseGone) as lost:
        once(client.calls, late, note)
    client.ack(second.job_id, result="succeeded", lease_token=second.lease_token)
    with pytest.raises(LeaseGone) as over:
        once(client.calls, late, note)

    assert [gone.value.reason for gone in (expired, lost, over)] == ["lease_expired", "lease_lost", "job_not_running"]
    assert notes(client) == []
    assert client.calls.store.read(lambda look: look.effect(late.idempotency_key)) is None


@pytest.mark.req("JOB-ACK-8")
def test_a_delivery_with_an_expired_lease_does_not_get_the_recorded_result(client: Virtual) -> None:
    client.enqueue(**MEMORY)
    late = pulled(client)
    client.clock.pass_by(61)
    once(client.calls, pulled(client, "w2"), note)

    with pytest.raises(LeaseGone):
        once(client.calls, late, note)


@pytest.mark.req("JOB-WRK-5")
def test_the_result_of_a_handler_that_swallows_the_loss_is_discarded(client: Virtual) -> None:
    client.enqueue(**MEMORY)

    def decay(context: Context) -> Done:
        client.clock.pass_by(61)
        with pytest.raises(LeaseGone):
            context.once(note)
        return Done(outcome="late", next_action_at=None)

    tally = worked(client, decays(decay), 1).tally

    assert (tally.dropped, tally.succeeded, tally.failed) == (1, 0, 0)
    assert notes(client) == []


@pytest.mark.req("JOB-POL-4")
def test_a_failed_effect_leaves_no_trace_and_can_be_retried(client: Virtual) -> None:
    client.enqueue(**MEMORY, idempotency_key="k")
    job = pulled(client)

    def half(transaction: Transaction) -> Json:
        note(transaction)
        transaction.change_object("half", state="half")
        transaction.enqueue(**{**MEMORY, "object_id": "mem_2"})
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        once(client.calls, job, half)

    assert notes(client) == []
    assert client.calls.store.read(lambda look: look.effect("k")) is None
    assert len(client.list().jobs) == 1
    with pytest.raises(JobRefused):
        client.object("memory", "mem_1")
    assert once(client.calls, job, note) == {"noted": 1, "parts": [1, 2]}
    assert check(client.calls.store) == []


def test_a_result_without_canonical_form_rolls_back_the_effect(client: Virtual) -> None:
    client.enqueue(**MEMORY)

    with pytest.raises(NotCanonical):
        once(client.calls, pulled(client), lambda transaction: [note(transaction), 0.5])  # type: ignore[list-item]

    assert notes(client) == []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO nowhere VALUES (1)",
        "INSERT INTO notes VALUES ('x', 'y')",
        "nonsense",
        "SELECT ?",
        "SELECT 1; SELECT 2",
    ],
)
def test_a_faulty_statement_fails_only_its_own_effect(client: Virtual, statement: str) -> None:
    client.enqueue(**MEMORY)
    job = pulled(client)

    with pytest.raises(StatementRefused):
        once(client.calls, job, lambda transaction: [note(transaction), transaction.execute(statement)][0])

    assert notes(client) == []
    assert client.enqueue(**{**MEMORY, "object_id": "mem_2"}).deduplicated is False


@pytest.mark.parametrize(
    "statement",
    ["COMMIT", "  rollback", "/* x */ BEGIN", "-- x\nEND", "SAVEPOINT a", "release part", "PRAGMA synchronous = OFF",
     "ATTACH 'x' AS y", "DETACH y", "\n/* a\nb */ -- c\n commit"],
)  # fmt: skip
def test_an_effect_cannot_end_the_shared_transaction(client: Virtual, statement: str) -> None:
    client.enqueue(**MEMORY)

    with pytest.raises(StatementRefused, match="may not end its transaction"):
        once(client.calls, pulled(client), lambda transaction: [note(transaction), transaction.execute(statement)][0])

    assert notes(client) == []


def test_one_failed_effect_does_not_affect_others_in_its_commit(client: Virtual) -> None:
    jobs = []
    for number in range(8):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"}, idempotency_key=f"k{number}")
    jobs = client.pull(worker_id="w1").jobs
    gate = threading.Barrier(8, timeout=300)
    ended: dict[str, str] = {}

    def apply(job: Job) -> None:
        key = str(job.idempotency_key)

        def effect(transaction: Transaction) -> Json:
            note(transaction)
            if key in ("k3", "k5"):
                transaction.execute("INSERT INTO notes VALUES (?, 1)", [key])
            return key

        gate.wait()
        try:
            ended[key] = str(once(client.calls, job, effect))
        except StatementRefused as refused:
            ended[key] = refused.code

    threads = [threading.Thread(target=apply, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    joined(*threads)

    fine = [f"k{number}" for number in range(8) if number not in (3, 5)]
    assert ended == {**{key: key for key in fine}, "k3": "statement_refused", "k5": "statement_refused"}
    assert notes(client) == [(key, 1) for key in fine]
    assert check(client.calls.store) == []


@pytest.mark.req("JOB-AUD-1")
def test_an_object_change_has_an_event_and_a_version(client: Virtual) -> None:
    client.enqueue(**MEMORY)
    job = pulled(client)
    at = client.clock.now + 3_600_000_000

    def change(transaction: Transaction) -> Json:
        before = transaction.object
        same = transaction.change_object("nothing", state=None)
        after = transaction.change_object("decayed", state="stale", next_action_at=at)
        return [before is None, same.version, after.version, after.state]

    result = once(client.calls, job, change)

    [event] = [one for one in client.history(job.job_id).events if one.event_type == "state_transition"]
    assert result == [True, 0, 1, "stale"]
    assert (event.actor, event.reason) == (messages.Actor("worker", "w1"), "decayed")
    assert event.before == {"next_action_at": None, "state": None}
    assert event.after == {"next_action_at": client.object("memory", "mem_1").next_action_at, "state": "stale"}
    assert event.evidence_refs == [f"scheduler_job:{job.job_id}"]
    assert check(client.calls.store) == []


def test_a_job_enqueued_in_an_effect_is_stored_with_it(client: Virtual) -> None:
    client.enqueue(**MEMORY)
    job = pulled(client)

    def effect(transaction: Transaction) -> Json:
        with pytest.raises(JobRefused):
            transaction.enqueue(object_type="memory")  # type: ignore[call-arg]
        return transaction.enqueue(**{**MEMORY, "action": "verify"}, idempotency_key="v").job_id

    made = once(client.calls, job, effect)

    assert client.show(str(made)).job.idempotency_key == "v"


def test_a_second_effect_of_one_job_is_rejected_before_it_runs(client: Virtual) -> None:
    client.enqueue(**MEMORY, idempotency_key="k")

    def decay(context: Context) -> None:
        context.once(note)
        context.once(lambda transaction: transaction.execute("UPDATE notes SET n = 2") and None)

    worked(client, decays(decay), 1)

    [job] = client.list().jobs
    assert "one call of `once`" in str(job.last_error)
    assert notes(client) == [("k", 1)]


@pytest.mark.req("JOB-POL-4")
def test_a_requeued_dead_letter_does_not_apply_its_effect_again(client: Virtual) -> None:
    client.enqueue(**MEMORY, idempotency_key="k", max_attempts=1)
    first = pulled(client)
    once(client.calls, first, note)
    client.fail(first.job_id, error="x", lease_token=first.lease_token)
    client.requeue(first.job_id)

    assert once(client.calls, pulled(client), note) == {"noted": 1, "parts": [1, 2]}
    assert notes(client) == [("k", 1)]


@pytest.mark.parametrize(
    "statement",
    [
        "; COMMIT",
        "\ufeffCOMMIT",
        "/**/;commit",
        "UPDATE jobs SET attempt = 9",
        "DELETE FROM audit",
        "PRAGMA user_version = 9",
    ],
)
def test_an_effect_can_neither_end_its_transaction_nor_touch_the_tables_of_the_scheduler(
    tmp_path: Path, statement: str
) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.enqueue(object_type="memory", object_id="m", action="verify")
    [job] = scheduler.pull(worker_id="w").jobs

    with pytest.raises(StatementRefused):
        once(scheduler.calls, job, lambda transaction: len(transaction.execute(statement)))

    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-STO-11")
def test_an_external_object_gets_the_change_of_an_effect(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, Policy(objects_elsewhere=True))
    scheduler.enqueue(object_type="memory", object_id="m", action="verify")
    [job] = scheduler.pull(worker_id="w").jobs

    def effect(transaction: Transaction) -> Json:
        return transaction.change_object("seen", state="active", next_action_at=clock.now + 10**9).version

    once(scheduler.calls, job, effect)

    [(_, write_back)] = scheduler.calls.store.read(lambda look: look.write_backs(9))

    assert (write_back["object_id"], write_back["state"], write_back["version"]) == ("m", "active", 1)
    scheduler.close()


def test_an_effect_cannot_rewrite_the_whole_file(client: Virtual) -> None:
    client.enqueue(**MEMORY)

    with pytest.raises(StatementRefused, match="cannot VACUUM from within a transaction"):
        once(client.calls, pulled(client), lambda transaction: len(transaction.execute("VACUUM")))


@pytest.mark.req("JOB-AUD-6")
@pytest.mark.parametrize("evidence", [("ev_55", "ev_7"), ("memory:mem_0",), ()], ids=["decision", "source", "none"])
def test_a_state_change_names_its_references_and_its_job(client: Virtual, evidence: tuple[str, ...]) -> None:
    client.enqueue(**MEMORY)
    job = pulled(client)

    once(client.calls, job, lambda tx: tx.change_object("verified", state="active", evidence=evidence).version)

    [event] = client.audit(event_type="state_transition").events
    assert event.evidence_refs == [*evidence, f"scheduler_job:{job.job_id}"]
    assert check(client.calls.store) == []


@pytest.mark.req("JOB-AUD-6")
def test_the_state_change_of_an_ack_names_its_job(client: Virtual) -> None:
    client.enqueue(**MEMORY)
    job = pulled(client)

    client.ack(job.job_id, result="succeeded", next_action_at=client.clock.text(60))

    [event] = client.audit(event_type="state_transition").events
    assert event.evidence_refs == [f"scheduler_job:{job.job_id}"]


# Recurring work on one object


@pytest.mark.req("JOB-POL-4", "JOB-ACK-11")
def test_later_jobs_change_an_object_that_already_has_a_state(client: Virtual) -> None:
    states = ["fresh", "fading", "fading", None, "gone"]
    for number, state in enumerate(states):
        client.enqueue(**MEMORY, idempotency_key=f"k{number}")
        job = pulled(client)
        once(client.calls, job, lambda tx, state=state: tx.change_object("a day has passed", state=state).state)  # type: ignore[misc]
        client.ack(job.job_id, result="succeeded")
        assert client.object("memory", "mem_1").state == state

    assert client.object("memory", "mem_1").version == 4, "the same state again is no change"
    assert check(client.calls.store) == []


def test_an_effect_cannot_change_a_governed_object_in_any_state(client: Virtual) -> None:
    governed(client).create("memory", "mem_1", evidence_refs=["ev_1"])
    client.enqueue(**MEMORY)
    job = next(job for job in client.pull(worker_id="w1").jobs if job.action == "decay")

    for state in ("stale", None):
        with pytest.raises(JobRefused) as refused:
            once(client.calls, job, lambda tx, state=state: tx.change_object("by hand", state=state).state)  # type: ignore[misc]
        assert refused.value.code == "object_governed"


def defined_in(page: str, name: str) -> dict[str, Any]:
    """The names defined by the block of a page that defines `name`, without the calls of the block."""
    [block] = [block for block in blocks_of(Path(page)) if f"def {name}(" in block.text and block.language == "python"]
    defined: dict[str, Any] = {}
    exec(block.text.partition("\nwith ")[0], defined)  # noqa: S102
    return defined


def test_the_reminder_of_the_readme_runs_every_week(tmp_path: Path) -> None:
    remind = defined_in("README.md", "remind")["remind"]
    client = virtual(tmp_path, with_words(Policy(), ["invoice"], ["remind"]))
    client.defer("invoice", "2026-117", "remind")

    for _ in range(4):
        assert worked(client, Handlers([remind]), 1).tally.succeeded == 1
        client.clock.pass_by(7 * 86_400)

    assert [job.status for job in client.list().jobs] == ["queued", *["succeeded"] * 4]
    weeks = [job.run_at[:10] for job in client.list().jobs]
    assert weeks == ["2026-03-20", "2026-03-13", "2026-03-06", "2026-02-27", "2026-02-20"]
    assert client.object("invoice", "2026-117").state == "reminded"
    close_all()


def test_the_effect_of_the_how_to_is_applied_for_a_second_job_of_the_object(client: Virtual) -> None:
    decay = defined_in("docs/how-to/write-a-handler.md", "fade")["decay"]
    for number in range(2):
        client.enqueue(**MEMORY, idempotency_key=f"week {number}")
        worked(client, Handlers([decay]), 2)

    assert [job.status for job in client.list().jobs] == ["succeeded", "succeeded"]
    faded = client.calls.store.write(lambda tx: tx.execute("SELECT memory, fence FROM faded"))
    assert faded == [("mem_1", 1), ("mem_1", 1)]
    assert client.object("memory", "mem_1").state == "stale"
