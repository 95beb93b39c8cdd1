"""Recurring jobs: the next occurrence is always there, and never twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pendula.jobs.model import Priority
from pendula.jobs.settings_file import Recurring
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
    return sorted(job["run_at"] for job in client.list()["jobs"])


def test_the_next_occurrence_is_always_there_and_once(client: Virtual) -> None:
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


def test_an_occurrence_is_the_job_its_entry_describes(client: Virtual) -> None:
    Recurrences(client.calls, [HOURLY]).enqueue_next()

    [job] = client.list()["jobs"]
    names = ("object_type", "object_id", "action", "priority", "max_attempts", "queue", "run_at")
    expected = ["memory", "mem_1", "decay", "high", 5, "slow", "2026-02-20T13:00:00Z"]
    assert [job[name] for name in names] == expected
    assert job["idempotency_key"] == "recurring:hourly:memory:mem_1:decay:2026-02-20T13:00:00Z"


def test_several_occurrences_may_be_kept_ahead(client: Virtual) -> None:
    recurrences = Recurrences(client.calls, [HOURLY], ahead=3)
    recurrences.enqueue_next()
    client.clock.pass_by(3600)
    recurrences.enqueue_next()

    assert [run_at[11:13] for run_at in waiting(client)] == ["13", "14", "15", "16"]


def test_without_entries_there_is_nothing_to_do(client: Virtual) -> None:
    assert Recurrences(client.calls, []).enqueue_next() is None


def test_the_thread_enqueues_and_ends(client: Virtual) -> None:
    recurrences = Recurrences(client.calls, [HOURLY])
    recurrences.start()
    reply = client.calls.pull({"worker_id": "w1", "now": "2026-02-20T13:00:00Z", "wait_ms": 20_000})
    recurrences.close()

    assert reply.body["count"] == 1  # type: ignore[union-attr]
