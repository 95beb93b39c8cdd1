"""The order of due jobs: PULL-6, the head start of priorities, one job per object."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.jobs import decide
from pendula.jobs.decide import Busy, weighted
from pendula.jobs.messages import Enqueue
from pendula.jobs.model import SECOND, Job, Policy, PriorityWord, PullOrder
from tests.jobs.stores import opened

HEAD_START = (300, 60, 0)
HIGH, MEDIUM, LOW = 0, 1, 2


def made(seq: int, run_at_sec: int, priority: int, object_id: str = "m") -> Job:
    request = Enqueue("memory", object_id, "verify", run_at_sec * SECOND, priority, 3, None, None, "default")
    job = decide.new_job(request, seq, 0)
    assert isinstance(job, Job)
    return job


@st.composite
def due(draw: st.DrawFn) -> list[Job]:
    """Jobs in the order of the store: by time, priority and number."""
    given = draw(st.lists(st.tuples(st.integers(0, 700), st.integers(0, 2)), max_size=30))
    jobs = [made(seq, run_at, priority) for seq, (run_at, priority) in enumerate(given, 1)]
    return sorted(jobs, key=lambda job: (job.run_at, job.priority, job.seq))


@pytest.mark.req("JOB-PULL-6", "JOB-POL-2")
def test_jobs_are_ordered_by_time_then_priority_then_enqueue(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    midnight, before = clock.text(60), clock.text(59)
    rows: list[tuple[str, str, PriorityWord]] = [
        ("A", midnight, "low"),
        ("B", midnight, "high"),
        ("C", before, "low"),
        ("D", midnight, "high"),
    ]
    for name, run_at, priority in rows:
        scheduler.enqueue(object_type="memory", object_id=name, action="verify", run_at=run_at, priority=priority)
    clock.pass_by(120)

    jobs = scheduler.pull(worker_id="w").jobs

    assert [job.object_id for job in jobs] == ["C", "B", "D", "A"]
    scheduler.close()


@pytest.mark.req("JOB-PULL-11", "JOB-PULL-6")
def test_filters_keep_the_order(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path)
    for number, (kind, action) in enumerate([("memory", "decay"), ("cognition", "decay"), ("memory", "verify")] * 2):
        scheduler.enqueue(object_type=kind, object_id=f"o{number}", action=action, run_at=clock.text(60 - number))
    clock.pass_by(120)

    jobs = scheduler.pull(worker_id="w", object_types=["memory"], actions=["decay", "archive"]).jobs

    assert [job.object_id for job in jobs] == ["o3", "o0"]
    scheduler.close()


@pytest.mark.req("JOB-POL-3")
@given(due(), st.integers(0, 35))
def test_the_weighted_order_equals_a_full_sort(jobs: list[Job], limit: int) -> None:
    by_weight = sorted(
        jobs, key=lambda job: (job.run_at - HEAD_START[job.priority] * SECOND, job.run_at, job.priority, job.seq)
    )

    assert weighted(jobs, limit, HEAD_START) == by_weight[:limit]


@pytest.mark.req("JOB-POL-3")
@given(due())
def test_a_job_is_overtaken_only_within_the_head_start_of_a_priority(jobs: list[Job]) -> None:
    order = weighted(jobs, len(jobs), HEAD_START)
    bound = {HIGH: 300 * SECOND, MEDIUM: 60 * SECOND, LOW: 0}

    for place, overtaken in enumerate(order):
        for ahead in order[:place]:
            if ahead.run_at > overtaken.run_at:
                assert ahead.run_at - overtaken.run_at < bound[ahead.priority]


@pytest.mark.req("JOB-POL-3")
def test_at_exactly_the_head_start_the_earlier_goes_first() -> None:
    jobs = [made(1, 0, LOW), made(2, 60, MEDIUM), made(3, 300, HIGH)]

    assert [job.seq for job in weighted(jobs, 3, HEAD_START)] == [1, 2, 3]
    assert [job.seq for job in weighted([made(1, 0, LOW), made(2, 299, HIGH)], 2, HEAD_START)] == [2, 1]


@pytest.mark.req("JOB-POL-3", "JOB-POL-1")
def test_jobs_beyond_the_head_start_of_the_last_delivered_are_not_read() -> None:
    read = 0

    def endless() -> Iterator[Job]:
        nonlocal read
        for seq in range(1, 100_000):
            read += 1
            yield made(seq, seq * 10, LOW)

    chosen = weighted(endless(), 5, HEAD_START)

    assert [job.seq for job in chosen] == [1, 2, 3, 4, 5]
    assert read <= 5 + 300 // 10 + 2


@pytest.mark.req("JOB-POL-6")
def test_the_first_job_of_each_idle_object_is_delivered() -> None:
    jobs = [made(1, 0, LOW, "a"), made(2, 1, LOW, "b"), made(3, 2, LOW, "a"), made(4, 3, LOW, "c")]

    assert [job.seq for job in weighted(jobs, 9, (0, 0, 0), Busy({("memory", "b")}))] == [1, 4]


@pytest.mark.req("JOB-POL-6")
def test_one_job_of_an_object_runs_at_a_time_across_queues(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, Policy(one_running_per_object=True))
    for queue in ("a", "b"):
        scheduler.enqueue(object_type="memory", object_id="m", action="verify", queue=queue, run_at=clock.text(10))
        scheduler.enqueue(object_type="memory", object_id=queue, action="decay", queue=queue, idempotency_key=queue)
        clock.pass_by(60)

    reply = scheduler.pull(worker_id="w", queues=["b", "a"])

    assert [job.object_id for job in reply.jobs] == ["b", "m", "a"]
    scheduler.close()


@pytest.mark.req("JOB-POL-6", "JOB-PULL-10")
def test_an_object_whose_lease_expired_is_free_for_the_same_pull(tmp_path: Path) -> None:
    scheduler, clock = opened(tmp_path, Policy(one_running_per_object=True))
    scheduler.enqueue(object_type="memory", object_id="m", action="verify")
    scheduler.pull(worker_id="w1", lease_sec=60)
    clock.pass_by(61)

    reply = scheduler.pull(worker_id="w2")

    assert (reply.reclaimed, reply.count) == (1, 1)
    scheduler.close()


@pytest.mark.req("JOB-POL-3", "JOB-POL-6")
def test_with_a_head_start_the_weighted_order_gives_the_first_job_of_an_object(tmp_path: Path) -> None:
    policy = Policy(one_running_per_object=True, pull_order=PullOrder.WEIGHTED)
    scheduler, clock = opened(tmp_path, policy)
    rows: tuple[tuple[PriorityWord, int], ...] = (("low", 10), ("high", 20))
    for priority, sec in rows:
        scheduler.enqueue(
            object_type="memory", object_id="m", action="verify", priority=priority, run_at=clock.text(sec)
        )
    clock.pass_by(60)

    [job] = scheduler.pull(worker_id="w").jobs

    assert job.priority == "high"
    scheduler.close()
