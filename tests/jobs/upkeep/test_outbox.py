"""Write-backs to another database: at least once, in order, with a version so that old ones cannot replace new ones."""

from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused, Policy, Scheduler
from pendula.jobs.upkeep.outbox import Newest, WriteBacks
from tests.jobs.stores import Clock, opened

ELSEWHERE = Policy(objects_elsewhere=True, auto_followup=False)


def acked(scheduler: Scheduler, clock: Clock, object_id: str, in_sec: int) -> None:
    """Ack one job of the object, with its next time `in_sec` ahead."""
    scheduler.enqueue(object_type="memory", object_id=object_id, action="decay")
    [job] = scheduler.pull(worker_id="w").jobs
    scheduler.ack(job.job_id, result="succeeded", next_action_at=clock.text(in_sec), lease_token=job.lease_token)


def waiting(scheduler: Scheduler) -> list[Any]:
    return [body for _, body in scheduler.calls.store.read(lambda look: look.write_backs(100))]


@pytest.mark.req("JOB-STO-11")
def test_an_ack_and_its_write_back_are_one_transaction(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, ELSEWHERE)
    acked(scheduler, clock, "m1", 60)
    [first] = waiting(scheduler)

    assert (first["object_id"], first["version"], first["fence"]) == ("m1", 1, 1)
    assert first["next_action_at"] == scheduler.object("memory", "m1").next_action_at
    with pytest.raises(JobRefused):
        scheduler.ack(first["job_id"], result="succeeded", next_action_at=clock.text(90), lease_token="lt_other")
    assert len(waiting(scheduler)) == 1
    scheduler.close()


@pytest.mark.req("JOB-STO-11")
def test_without_external_objects_the_outbox_stays_empty(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    acked(scheduler, clock, "m1", 60)

    assert waiting(scheduler) == []
    scheduler.close()


@pytest.mark.req("JOB-STO-11")
def test_a_rejected_write_back_is_retried_and_not_overtaken(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, ELSEWHERE)
    for number in range(3):
        acked(scheduler, clock, f"m{number}", 60)
    delivered: list[str] = []
    unreachable = {"m1"}
    ticks = 0

    def deliver_one(write_back: dict[str, Any]) -> None:
        delivered.append(write_back["object_id"])
        if write_back["object_id"] in unreachable:
            raise ConnectionError("the other database is away")

    outbox = WriteBacks(scheduler.calls.store, deliver_one, ticks=lambda: ticks)

    assert outbox.deliver() == 1
    assert outbox.deliver() == 0  # backoff
    unreachable.clear()
    ticks = 2_000_000
    assert outbox.deliver() == 2
    assert delivered == ["m0", "m1", "m1", "m2"]
    assert waiting(scheduler) == []
    scheduler.close()


@pytest.mark.req("JOB-STO-11")
def test_a_duplicate_write_back_is_ignored_by_its_version(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, ELSEWHERE)
    acked(scheduler, clock, "m", 60)
    acked(scheduler, clock, "m", 120)
    side, applied = Newest(), []

    def deliver_one(write_back: dict[str, Any]) -> None:
        if side.takes(write_back):
            applied.append(write_back["version"])

    for write_back in waiting(scheduler):  # delivered, and killed before the store recorded it
        deliver_one(write_back)
    WriteBacks(scheduler.calls.store, deliver_one).deliver()
    late = {"object_type": "memory", "object_id": "m", "version": 1}

    assert applied == [1, 2]
    assert not side.takes(late)
    scheduler.close()


@pytest.mark.req("JOB-STO-11")
def test_the_outbox_survives_its_process(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, ELSEWHERE)
    acked(scheduler, clock, "m", 60)
    scheduler.close()
    delivered: list[Any] = []
    again, _ = opened(tmp_path, ELSEWHERE, clock)

    outbox = WriteBacks(again.calls.store, delivered.append, poll_sec=0.01)
    outbox.start()
    while waiting(again):
        pass
    outbox.close()

    assert [one["object_id"] for one in delivered] == ["m"]
    again.close()
