"""Recurring jobs: the next occurrence is always stored, exactly once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.jobs.messages import JobRefused, Pulled, Recurring
from pendula.jobs.model import Priority
from pendula.jobs.upkeep.recurring import Recurrences
from pendula.kernel.time import format_utc
from tests.jobs.workers import Virtual, close_all, virtual

HOURLY = Recurring("hourly", "0 * * * *", "memory", "mem_1", "decay", Priority.HIGH, 5, "slow")
DAILY = Recurring("daily", "30 0 * * *", "cognition", "cg_1", "revalidate")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Virtual]:
    yield virtual(tmp_path)
    close_all()


def waiting(client: Virtual) -> list[str]:
    return sorted(job.run_at for job in client.list().jobs)


def test_the_next_occurrence_is_always_stored_exactly_once(client: Virtual) -> None:
    one, other = Recurrences(client.calls, [HOURLY, DAILY]), Recurrences(client.calls, [HOURLY, DAILY])
    looks = []
    for _ in range(3):
        looks.append(one.enqueue_next())
        one.enqueue_next()
        other.enqueue_next()
        client.clock.pass_by(3600)

    assert waiting(client) == [
        "2026-02-20T13:00:00Z",
        "2026-02-20T14:00:00Z",
        "2026-02-20T15:00:00Z",
        "2026-02-21T00:30:00Z",
    ]
    assert [format_utc(look) for look in looks if look] == waiting(client)[:3]


def test_an_occurrence_is_the_job_described_by_its_entry(client: Virtual) -> None:
    Recurrences(client.calls, [HOURLY]).enqueue_next()

    [job] = client.list().jobs
    names = ("object_type", "object_id", "action", "priority", "max_attempts", "queue", "run_at")
    expected = ["memory", "mem_1", "decay", "high", 5, "slow", "2026-02-20T13:00:00Z"]
    assert [getattr(job, name) for name in names] == expected
    assert job.idempotency_key == "recurring:hourly:memory:mem_1:decay:2026-02-20T13:00:00Z"


def test_without_entries_no_job_is_stored(client: Virtual) -> None:
    assert Recurrences(client.calls, []).enqueue_next() is None


def test_the_thread_enqueues_and_stops(client: Virtual) -> None:
    client.clock.pass_by(3590)
    recurrences = Recurrences(client.calls, [HOURLY])
    recurrences.start()
    reply = client.calls.pull({"worker_id": "w1", "now": "2026-02-20T13:00:00Z", "wait_ms": 20_000})
    recurrences.close()

    assert isinstance(reply, Pulled)
    assert reply.count == 1


@pytest.mark.req("JOB-USE-7")
def test_an_entry_can_name_a_time_zone(client: Virtual) -> None:
    local = Recurring("local", "30 0 * * *", "memory", "mem_1", "decay", zone="America/New_York")

    Recurrences(client.calls, [local]).enqueue_next()

    assert waiting(client) == ["2026-02-21T05:30:00Z"]


@pytest.mark.req("JOB-USE-7")
def test_plans_stored_by_a_call_are_served_by_every_process(client: Virtual) -> None:
    client.put_plan("hourly", cron="0 * * * *", object_type="memory", object_id="m", action="decay")
    client.clock.pass_by(3600)

    Recurrences(client.calls, []).enqueue_next()

    assert waiting(client) == ["2026-02-20T13:00:00Z", "2026-02-20T14:00:00Z"]


def test_plans_of_a_settings_file_are_served_by_processes_that_have_it(client: Virtual) -> None:
    Recurrences(client.calls, [HOURLY]).enqueue_next()
    client.clock.pass_by(3600)

    assert Recurrences(client.calls, []).enqueue_next() is None
    assert waiting(client) == ["2026-02-20T13:00:00Z"]


@pytest.mark.req("JOB-USE-7")
def test_a_pause_survives_the_process_that_has_the_entry(client: Virtual) -> None:
    Recurrences(client.calls, [HOURLY]).enqueue_next()
    client.pause_plan("hourly")

    for _ in range(3):
        Recurrences(client.calls, [HOURLY]).enqueue_next()
        client.clock.pass_by(3600)

    assert client.list(status="queued").jobs == []
    assert client.plans().plans[0].paused_by == "local"


def test_a_plan_of_a_settings_file_can_only_be_changed_there(client: Virtual) -> None:
    Recurrences(client.calls, [HOURLY]).enqueue_next()
    body: dict[str, Any] = {"cron": "@daily", "object_type": "memory", "object_id": "m", "action": "decay"}

    codes = []
    for call, members in ((client.put_plan, body), (client.remove_plan, {})):
        with pytest.raises(JobRefused) as refused:
            call("hourly", **members)
        codes.append(refused.value.code)

    assert codes == ["plan_in_settings", "plan_in_settings"]


def test_a_plan_missing_from_every_settings_file_is_idle_and_can_be_removed(client: Virtual) -> None:
    running = Recurrences(client.calls, [HOURLY])
    for _ in range(3):
        running.enqueue_next()
        client.clock.pass_by(601)
    kept = client.plans().plans[0].next_at
    client.clock.pass_by(2000)

    [plan] = client.plans().plans
    assert (kept is not None, plan.next_at) == (True, None)
    assert client.remove_plan("hourly").removed


def test_a_changed_entry_withdraws_the_waiting_occurrence(client: Virtual) -> None:
    Recurrences(client.calls, [HOURLY]).enqueue_next()
    Recurrences(client.calls, [replace(HOURLY, cron="15 * * * *")]).enqueue_next()

    assert [job.run_at for job in client.list(status="queued").jobs] == ["2026-02-20T12:15:00Z"]


def test_two_files_with_different_entries_of_one_name_do_not_alternate(client: Virtual) -> None:
    old, new = Recurrences(client.calls, [HOURLY]), Recurrences(client.calls, [replace(HOURLY, cron="15 * * * *")])
    for _ in range(4):
        old.enqueue_next()
        new.enqueue_next()

    assert len(client.list().jobs) == 2
    assert [job.run_at for job in client.list(status="queued").jobs] == ["2026-02-20T12:15:00Z"]
