"""The demo of jobs: its objects age, one proves forged, a worker dies and its job is redelivered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pendula.demo.jobs import COUNT, FIRST_POISONED, ROUND_SEC, DemoDriver, name_of, with_fast_clock
from pendula.governance import REFERENCE, governed
from pendula.governance.inputs import rules_of
from pendula.governance.model import DAY_US
from pendula.jobs import Policy, Scheduler
from pendula.jobs.calls import Calls
from pendula.jobs.messages import Event
from pendula.jobs.model import SECOND
from pendula.jobs.store.sqlite import SqliteStore

POISONED = name_of(FIRST_POISONED)


class Town:
    """The demo with a clock that a test moves."""

    def __init__(self, store: SqliteStore) -> None:
        self.now = 1_800_000_000 * SECOND
        self.calls = Calls(store, with_fast_clock(Policy()), lambda: self.now)
        self.keeper = DemoDriver(self.calls)
        self.jobs = Scheduler(self.calls)
        self.objects = governed(self.jobs)

    def live(self, rounds: int) -> None:
        for _ in range(rounds):
            assert self.keeper.round() == ROUND_SEC
            self.now += int(ROUND_SEC) * SECOND
            self.calls.reclaim()

    def places(self) -> dict[str, int]:
        found = self.objects.figures().places
        return {f"{row.object_type} {row.place}": row.objects for row in found}

    def events(self, object_type: str, object_id: str) -> list[Event]:
        return list(self.jobs.audit(limit=1000, object_type=object_type, object_id=object_id).events)


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    store = SqliteStore(tmp_path / "jobs.db")
    yield Town(store)
    store.close()


def test_the_demo_creates_a_hundred_objects_once_over_restarts(town: Town) -> None:
    town.live(45)
    town.keeper = DemoDriver(town.calls)
    town.live(1)

    assert sum(count for place, count in town.places().items() if "archived" not in place) == COUNT
    assert {kind.split()[0] for kind in town.places()} == {"memory", "experience", "cognition"}


def test_objects_age_through_verification_decay_archive_and_reinstatement(town: Town) -> None:
    town.live(200)

    done = town.jobs.list(status="succeeded", limit=1000)
    entered = town.objects.figures().counts
    places = {row.word for row in entered if row.kind == "entered"}
    assert {job.action for job in done.jobs} == set(Policy().vocabulary.actions)
    assert places >= {
        "memory verified",
        "memory stale",
        "memory active",
        "memory archived",
        "cognition stale/uncertain",
    }


def test_the_poisoned_memory_is_rejected_rolled_back_and_archived(town: Town) -> None:
    town.live(100)

    events = town.events(object_type="memory", object_id=POISONED)
    states = [event.after["status"] for event in events if event.after.get("transitioned")]
    assert states == ["quarantine", "rejected_poisoned", "archived"]
    assert [event.after["rollback_pending"] for event in events if event.event_type == "rollback"] == [
        True,
        False,
    ]


def test_the_job_of_a_dead_worker_is_redelivered(town: Town) -> None:
    town.live(60)

    done = town.jobs.list(status="succeeded", limit=1000)
    again = [town.jobs.history(job.job_id) for job in done.jobs if job.delivery_count > 1]
    errors = [error.error for history in again for error in history.errors]
    assert any(error.startswith("lease_expired: demo-") for error in errors)


def test_the_demo_workers_are_listed_with_all_others(town: Town) -> None:
    town.live(45)
    town.keeper._presence_writer.write()

    rows = town.calls.store.read(lambda look: look.workers())

    assert {row.worker_id for row in rows} == {"demo-ada", "demo-bruno", "demo-clara"}
    assert sum(row.taken for row in rows) > 10


def test_the_dead_letter_succeeds_after_a_requeue(town: Town) -> None:
    town.live(3)
    (job,) = town.jobs.list(status="dead_letter").jobs

    town.jobs.requeue(job.job_id, reason="the archive answers again")
    town.live(2)

    assert town.jobs.show(job.job_id).job.status == "succeeded"


def test_a_day_of_the_state_machines_takes_half_a_minute() -> None:
    machines = rules_of(with_fast_clock(Policy())).machines

    assert machines["memory"].follow["candidate"].after == 30 * SECOND
    assert (
        machines["memory"].follow["verified"].after
        == REFERENCE["memory"].follow["verified"].after * (30 * SECOND) // DAY_US
    )
