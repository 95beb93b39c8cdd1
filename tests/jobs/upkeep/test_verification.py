"""The check of a store finds every planted fault."""

import random
import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from pendula.governance import Rules
from pendula.governance.machines import REFERENCE
from pendula.jobs.calls import Calls
from pendula.jobs.messages import plain
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import StoreUnusable
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep import verification
from pendula.jobs.upkeep.verification import Replayed, check, replay
from tests.governance.verifier_rig import DAY, VerifierRig
from tests.jobs.filled_store import JOB, fill_store
from tests.jobs.history_player import Play
from tests.jobs.stores import opened


@pytest.fixture(params=[5, 5000], ids=["pages of 5", "one page"])
def page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The findings do not depend on the size of a page."""
    monkeypatch.setattr(verification, "PAGE", request.param)
    return int(request.param)


@pytest.mark.req("JOB-AUD-4")
def test_removing_the_newest_events_is_detected(tmp_path: Path) -> None:
    scheduler, _ = fill_store(tmp_path)
    count = len(scheduler.audit(limit=1000).events)
    scheduler.close()

    found = []
    for kept in range(count):
        with (
            closing(sqlite3.connect(tmp_path / "jobs.db")) as source,
            closing(sqlite3.connect(tmp_path / f"{kept}.db")) as copy,
        ):
            source.backup(copy)
            with copy:
                copy.execute("DELETE FROM audit WHERE n > ?", (kept,))
        store = SqliteStore(tmp_path / f"{kept}.db")
        found.append(bool(check(store)))
        store.close()

    assert found == [True] * count


@pytest.mark.req("JOB-AUD-3", "JOB-STO-12")
@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("seed", range(5))
def test_replaying_the_trail_gives_the_current_state(tmp_path: Path, seed: int) -> None:
    Play(tmp_path / "jobs.db", random.Random(1000 + seed).randrange).run(steps=80)
    store = SqliteStore(tmp_path / "jobs.db")
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        events, jobs = connection.execute("SELECT (SELECT count(*) FROM audit), (SELECT count(*) FROM jobs)").fetchone()

    replayed = replay(store)

    assert (replayed.events, replayed.jobs, replayed.findings) == (events, jobs, ())
    store.close()


PLANTED = {
    "status": ("UPDATE jobs SET status = 'succeeded' WHERE status = 'queued' AND attempt = 0", "trail_differs"),
    "unknown status": ("UPDATE jobs SET status = 'asleep' WHERE object_id = 'queued'", "unknown_status"),
    "attempt": ("UPDATE jobs SET attempt = 2 WHERE object_id = 'failed'", "trail_differs"),
    "attempt out of range": ("UPDATE jobs SET attempt = 4 WHERE object_id = 'failed'", "attempt_out_of_range"),
    "negative attempt": ("UPDATE jobs SET attempt = -1 WHERE object_id = 'failed'", "attempt_out_of_range"),
    "dead with attempts left": (
        "UPDATE jobs SET status = 'dead_letter' WHERE object_id = 'failed'",
        "dead_letter_with_attempts_left",
    ),
    "lease taken": ("UPDATE jobs SET lease = NULL WHERE status = 'running'", "running_without_lease"),
    "worker taken": ("UPDATE jobs SET worker_id = NULL WHERE status = 'running'", "running_without_lease"),
    "end of lease taken": ("UPDATE jobs SET lease_expires_at = NULL WHERE status = 'running'", "running_without_lease"),
    "lease given": ("UPDATE jobs SET lease = x'00' WHERE object_id = 'queued'", "lease_without_running"),
    "other worker": ("UPDATE jobs SET worker_id = 'w9' WHERE status = 'running'", "trail_differs"),
    "time": ("UPDATE jobs SET run_at = run_at + 1 WHERE object_id = 'queued'", "trail_differs"),
    "first time": ("UPDATE jobs SET scheduled_for = 0 WHERE object_id = 'queued'", "trail_differs"),
    "error": ("UPDATE jobs SET last_error = 'x' WHERE object_id = 'queued'", "trail_differs"),
    "deliveries": ("UPDATE jobs SET delivery_count = 7 WHERE object_id = 'queued'", "trail_differs"),
    "outcome": ("UPDATE jobs SET outcome = 'transitioned' WHERE object_id = 'acked'", "trail_differs"),
    "link": ("UPDATE jobs SET audit_event_id = 'aud_x' WHERE object_id = 'acked'", "trail_differs"),
    "key": ("UPDATE jobs SET idempotency_key = 'k' WHERE object_id = 'queued'", "trail_differs"),
    "object": ("UPDATE jobs SET object_id = 'other' WHERE object_id = 'queued'", "trail_differs"),
    "counts": ("UPDATE counts SET n = n + 1 WHERE status = 'queued'", "counts_differ"),
    "no counts": ("DELETE FROM counts", "counts_differ"),
    "other id": ("UPDATE jobs SET job_id = 'job_00000000ZZZZ' WHERE object_id = 'over'", "job_without_trail"),
    "queued job gone": ("DELETE FROM jobs WHERE object_id = 'queued'", "job_lost"),
    "running job gone": ("DELETE FROM jobs WHERE status = 'running'", "job_lost"),
    "finished job gone": ("DELETE FROM jobs WHERE object_id = 'over'", "counts_differ"),
    "first event gone": ("DELETE FROM audit WHERE n = 1", "trail_broken"),
    "middle event gone": ("DELETE FROM audit WHERE n = 9", "trail_broken"),
    "all events gone": ("DELETE FROM audit", "job_without_trail"),
    "event changed": ("UPDATE audit SET body = replace(body, 'enqueued', 'Enqueued') WHERE n = 3", "trail_broken"),
    "event filed elsewhere": ("UPDATE audit SET job_seq = 1 WHERE n = 5", "trail_broken"),
    "next action": ("UPDATE objects SET next_action_at = 5", "trail_differs"),
    "object gone": ("DELETE FROM objects", "trail_differs"),
}


@pytest.mark.req("JOB-STO-12", "JOB-OBJ-8", "JOB-AUD-3")
@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(("sql", "code"), PLANTED.values(), ids=list(PLANTED))
def test_the_check_finds_each_planted_fault(tmp_path: Path, sql: str, code: str) -> None:
    scheduler, _ = fill_store(tmp_path)
    store = scheduler.calls.store
    assert check(store) == []
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        assert connection.execute(sql).rowcount > 0

    found = check(store)

    assert code in {finding.code for finding in found}
    assert all(finding.where and finding.sentence for finding in found)
    scheduler.close()


@pytest.mark.req("JOB-STO-12")
def test_the_check_finds_a_damaged_file(tmp_path: Path) -> None:
    scheduler, _ = fill_store(tmp_path)
    scheduler.close()
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path)) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'jobs_objects'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(path.read_bytes())
    data[(page - 1) * size + size // 2 : page * size] = bytes(size // 2)
    path.write_bytes(data)
    store = SqliteStore(path)

    assert "damaged_file" in {finding.code for finding in check(store)}
    store.close()


def test_calls_of_another_scheduler_on_the_same_store_continue_the_chain(tmp_path: Path) -> None:
    scheduler, clock = fill_store(tmp_path)
    other = Scheduler(Calls(SqliteStore(tmp_path / "jobs.db"), Policy(), clock))
    for number in range(3):
        scheduler.enqueue(**JOB, idempotency_key=f"a{number}")
        other.enqueue(**JOB, idempotency_key=f"b{number}")

    assert check(scheduler.calls.store) == []
    scheduler.close()
    other.close()


PLANTED_IN_OBJECTS = {
    "budget": ("UPDATE governed SET body = replace(body, '_budget_left\":1', '_budget_left\":9')", "trail_differs"),
    "verifications": (
        "UPDATE governed SET body = replace(body, 'verifications\":1', 'verifications\":0')",
        "trail_differs",
    ),
    "state": ("UPDATE governed SET body = replace(body, '\"needs_revalidate\"', '\"active\"')", "trail_differs"),
    "next time": ("UPDATE governed SET body = replace(body, '_action_at\":1', '_action_at\":2')", "trail_differs"),
    "evidence": ("UPDATE governed SET body = replace(body, 'ev_1', 'ev_2')", "trail_differs"),
    "removed": ("DELETE FROM governed", "object_lost"),
    "added": (
        "INSERT INTO governed SELECT object_type, 'x', place, next_action_at, replace(body, 'cg', 'x') FROM governed",
        "object_without_trail",
    ),
    "row among all": ("UPDATE objects SET state = 'active'", "objects_differ"),
    "version": ("UPDATE objects SET version = 77", "objects_differ"),
    "place to find it by": ("UPDATE governed SET place = 'active'", "objects_differ"),
    "time to find it by": ("UPDATE governed SET next_action_at = 5", "objects_differ"),
    "no JSON": ("UPDATE governed SET body = '{'", "unreadable_object"),
    "no object": ("UPDATE governed SET body = '{}'", "unreadable_object"),
    "gate opened": ("UPDATE gates SET verdict = 'pass' WHERE verdict = 'block'", "gate_differs"),
    "gate by another": ("UPDATE gates SET set_by = 'eve' WHERE name = 'risk_gate'", "gate_differs"),
    "gate removed": ("DELETE FROM gates WHERE name = 'risk_gate'", "gate_differs"),
    "gate added": (
        "INSERT INTO gates SELECT name, 'memory:m', verdict, 1, 1, set_by, reason, NULL FROM gates WHERE version > 1",
        "gate_differs",
    ),
    "closed": ("INSERT INTO closed_objects VALUES ('cognition', 'cg')", "closed_differs"),
    "delivery to come": ("UPDATE governed_jobs SET begun_fence = 2", "job_out_of_turn"),
    "deferrals": ("UPDATE governed_jobs SET deferrals = -5", "job_out_of_turn"),
}


@pytest.mark.req("JOB-AUD-3", "JOB-STO-12")
@pytest.mark.parametrize(("sql", "code"), PLANTED_IN_OBJECTS.values(), ids=list(PLANTED_IN_OBJECTS))
def test_the_check_finds_tampering_with_a_governed_object(tmp_path: Path, sql: str, code: str) -> None:
    rig = VerifierRig(tmp_path)
    rig.open_gates(cognition_gate="block")
    rig.user.set_gate("risk_gate", "limit", "for a while")
    rig.user.create("cognition", "cg", status="needs_revalidate", unknown_type="out_of_scope", evidence_refs=["ev_1"])
    rig.begun(rig.pulled(1))
    assert check(rig.scheduler.calls.store) == []
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        assert connection.execute(sql).rowcount == 1

    found = {finding.code for finding in check(rig.scheduler.calls.store)}
    rig.scheduler.close()

    assert code in found


PLANTED_IN_DECISIONS = {
    "rollback finished": ("UPDATE rollbacks SET finished_at = 5", "rollback_differs"),
    "rollback removed": ("DELETE FROM rollbacks", "rollback_differs"),
    "trace removed": ("DELETE FROM decision_traces", "trace_lost"),
    "trace of another": ("UPDATE decision_traces SET object_id = 'x'", "trace_lost"),
    "opened again": ("DELETE FROM closed_objects", "closed_differs"),
}


@pytest.mark.req("JOB-SM-15", "JOB-GATE-5", "JOB-GATE-13", "JOB-STO-12")
@pytest.mark.parametrize(("sql", "code"), PLANTED_IN_DECISIONS.values(), ids=list(PLANTED_IN_DECISIONS))
def test_the_check_finds_tampering_with_decisions(tmp_path: Path, sql: str, code: str) -> None:
    rig = VerifierRig(tmp_path)
    rig.open_gates()
    rig.user.create("memory", "m", status="quarantine", risk_tier="high", evidence_refs=["ev_1"])
    rig.verified("forged", 1)
    rig.user.create("cognition", "c", unknown_type="ontic_unknowable", evidence_refs=["ev_1"])
    rig.clock.pass_by(DAY)
    [job] = map(plain, rig.scheduler.pull(worker_id="w", actions=["verify"]).jobs)
    rig.begun(job)
    rig.finished(job, "inconclusive")
    assert check(rig.scheduler.calls.store) == []
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        assert connection.execute(sql).rowcount == 1

    found = {finding.code for finding in check(rig.scheduler.calls.store)}
    rig.scheduler.close()

    assert code in found


def test_finishing_an_unrequested_rollback_is_audited(tmp_path: Path) -> None:
    machine = replace(REFERENCE["memory"], awaits_rollback=frozenset())
    rig = VerifierRig(tmp_path, Policy(governance=Rules(machines={**REFERENCE, "memory": machine})))
    rig.user.create("memory", "m", status="rejected_poisoned", evidence_refs=["ev_1"])
    rig.user.rollback_finished("memory", "m")

    assert check(rig.scheduler.calls.store) == []
    assert rig.events("memory", "m")[-1]["event_type"] == "rollback"
    rig.scheduler.close()


@pytest.mark.parametrize("call", ["show", "why", "list"])
def test_an_unreadable_object_is_a_store_error_not_a_defect(tmp_path: Path, call: str) -> None:
    rig = VerifierRig(tmp_path)
    rig.user.create("memory", "m")
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        connection.execute("UPDATE governed SET body = '{'")

    with pytest.raises(StoreUnusable, match="cannot be read: the store is damaged"):
        getattr(rig.user, call)(*("memory", "m")[: 1 if call == "list" else 2])
    rig.scheduler.close()


def test_replaying_a_long_trail_keeps_one_page_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory grows with unfinished work, not with the size of the store."""
    monkeypatch.setattr(verification, "PAGE", 100)
    scheduler, _ = opened(tmp_path)
    taken = []
    for number in range(8):
        jobs = [{"object_type": "memory", "object_id": f"m{number}_{i}", "action": "verify"} for i in range(500)]
        scheduler.enqueue_batch(jobs)
        if number in (0, 7):
            taken.append(peak_of(lambda: replay(scheduler.calls.store)))
    scheduler.close()

    assert [found.jobs for found, _ in taken] == [500, 4000]
    assert all(found.findings == () for found, _ in taken)
    [(_, few), (_, many)] = taken
    assert many < 2 * few


def peak_of(work: Callable[[], Replayed]) -> tuple[Replayed, int]:
    """The result, and the peak memory."""
    work()  # fills permanent caches
    tracemalloc.start()
    found = work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return found, most
