"""Heartbeats of workers: counters in the store, with their age; limited in number and rate."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pendula.jobs.calls.queries import WORKERS_MOST, fitting
from pendula.jobs.store.protocol import WorkerRow
from pendula.jobs.worker.heartbeats import Heartbeats, WorkerCounts, WorkerInfo
from tests.jobs.workers import MEMORY, Virtual, close_all, decays, virtual, worked

ABOUT = WorkerInfo("w1", 2, (("memory", "decay"),), ())


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Virtual]:
    yield virtual(tmp_path)
    close_all()


def counted(taken: int) -> WorkerCounts:
    return WorkerCounts(running=0, taken=taken, succeeded=taken, failed=0, dropped=0, released=0)


@pytest.mark.req("JOB-USE-9")
def test_a_worker_on_the_store_writes_its_counters(client: Virtual) -> None:
    for number in range(3):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"})

    worked(client, decays(lambda context: None), 3, concurrency=2, queues=["default"])

    [worker] = client.workers().workers
    names = ("worker_id", "taken", "succeeded", "failed", "running", "concurrency", "handles", "queues")
    assert [getattr(worker, name) for name in names] == ["w1", 3, 3, 0, 0, 2, ["memory decay"], ["default"]]
    assert worker.ended_at is not None


@pytest.mark.req("JOB-USE-9")
def test_stats_show_the_counters_with_their_age(client: Virtual) -> None:
    Heartbeats(client.calls, ABOUT, lambda: counted(7)).record()
    client.clock.pass_by(12)

    [worker] = client.metrics().workers
    assert (worker.worker_id, worker.taken, worker.age_sec) == ("w1", 7, 12)


@pytest.mark.req("JOB-USE-9")
def test_an_unchanged_heartbeat_is_written_only_when_the_last_is_old(client: Virtual) -> None:
    numbers = iter([1, 1, 1, 2, 2])
    heartbeats = Heartbeats(client.calls, ABOUT, lambda: counted(next(numbers)))

    written = []
    for seconds in (5, 24, 5, 5, 0):
        written.append(heartbeats.record())
        client.clock.pass_by(seconds)

    assert written == [True, False, False, True, False]


@pytest.mark.req("JOB-USE-9")
def test_the_store_keeps_the_last_thousand_workers_for_a_week(client: Virtual) -> None:
    now = client.clock()
    rows = [WorkerRow(f"w{number}", now, now + number, None, 0) for number in range(WORKERS_MOST + 5)]
    client.calls.record_heartbeats(rows)
    many = client.workers().workers
    later = now + 8 * 86_400 * 1_000_000
    client.calls.record_heartbeats([WorkerRow("new", later, later, None, 0)])

    assert (len(many), many[0].worker_id) == (WORKERS_MOST, f"w{WORKERS_MOST + 4}")
    assert [worker.worker_id for worker in client.workers().workers] == ["new"]


def test_more_than_200_handlers_are_stored_as_all() -> None:
    works = [("memory", f"a{number}") for number in range(201)]

    assert (len(fitting(works[:200])), fitting(works)) == (200, ())


def test_heartbeats_write_no_audit_events(client: Virtual) -> None:
    Heartbeats(client.calls, ABOUT, lambda: counted(1)).record()

    assert client.audit().events == []
