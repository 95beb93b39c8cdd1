"""Jobs that a worker pulls or leaves; cancel requests and progress of a handler."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Unpack

import pytest

from pendula.jobs import Cancelled, Done, Handlers, Policy, Worker
from pendula.jobs.messages import Job, Progress, Pulled
from pendula.jobs.scheduler_calls import PullMembers
from pendula.jobs.upkeep.background_services import UnhandledJobs
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.handlers import Context
from pendula.kernel.errors import WrongUsage
from tests.jobs.workers import MEMORY, Virtual, close_all, decays, virtual, worked


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_all()


def only(client: Virtual) -> Job:
    [job] = client.list().jobs
    return job


# Handlers


@pytest.mark.req("JOB-USE-2")
def test_a_job_without_a_handler_stays_queued_and_others_run(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**{**MEMORY, "action": "verify"})
    client.enqueue(**MEMORY)

    tally = worked(client, decays(lambda _: None), 1).tally

    left = {job.action: (job.status, job.delivery_count) for job in client.list().jobs}
    assert left == {"verify": ("queued", 0), "decay": ("succeeded", 1)}
    assert (tally.taken, tally.failed) == (1, 0)


@pytest.mark.req("JOB-USE-2")
def test_an_unrequested_job_is_released_and_not_ended(tmp_path: Path) -> None:
    class Old(Virtual):
        """A scheduler without support for `pairs`."""

        def pull(self, **members: Unpack[PullMembers]) -> Pulled:
            del members["pairs"]
            return super().pull(**members)

    known = virtual(tmp_path)
    client = Old(known.calls, known.clock)
    client.enqueue(**{**MEMORY, "action": "verify"})

    tally = worked(client, decays(lambda _: None), 1).tally

    assert (tally.taken, tally.released) == (1, 1)
    assert (only(client).status, only(client).attempt) == ("queued", 0)


@pytest.mark.req("JOB-USE-2")
def test_a_worker_without_handlers_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="at least one handler"):
        Worker(virtual(tmp_path), Handlers())


@pytest.mark.req("JOB-USE-2")
def test_an_unhandled_job_is_in_the_metrics_and_raises_one_alert(tmp_path: Path) -> None:
    client = virtual(tmp_path, Policy(unhandled_alert_sec=100))
    client.enqueue(**{**MEMORY, "action": "verify"})
    client.enqueue(**MEMORY)
    client.clock.pass_by(99)
    worked(client, decays(lambda _: None), 1)
    early = client.metrics().unhandled
    client.clock.pass_by(2)
    client.enqueue(**{**MEMORY, "object_id": "late"})
    found = client.metrics().unhandled
    watcher, other = UnhandledJobs(client.calls), UnhandledJobs(client.calls)

    assert early == []
    assert [(one.object_type, one.action, one.count) for one in found] == [("memory", "verify", 1)]
    assert [watcher.check(), watcher.check(), other.check()] == [1, 1, 1]
    [(_, alert)] = client.calls.store.read(lambda look: look.alerts_waiting(0, 10))
    assert (alert["alert"], alert["action"], alert["count"]) == ("job.unhandled", "verify", 1)
    assert alert["since"] == client.list(action="verify").jobs[0].run_at


@pytest.mark.req("JOB-USE-2")
def test_a_backlog_with_a_running_job_is_not_unhandled(tmp_path: Path) -> None:
    client = virtual(tmp_path, Policy(unhandled_alert_sec=100))
    for number in range(3):
        client.enqueue(**{**MEMORY, "object_id": f"m{number}"})
    client.clock.pass_by(500)
    before = client.metrics().unhandled
    [job] = client.pull(worker_id="w", limit=1, lease_sec=10_000).jobs
    client.clock.pass_by(500)
    running = client.metrics().unhandled
    client.ack(job.job_id, result="succeeded")
    idle = client.metrics().unhandled

    assert [one.count for one in before] == [3]
    assert running == []
    assert [one.count for one in idle] == [2]


# Payload, cancellation, progress, results


@pytest.mark.req("JOB-USE-1")
def test_the_context_of_a_handler_has_the_payload(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.defer("memory", "m1", "decay", payload={"by": "half"})
    client.defer("memory", "m2", "decay")
    seen: list[object] = []

    worked(client, decays(lambda context: seen.append(context.payload)), 2)

    assert seen == [{"by": "half"}, None]


@pytest.mark.req("JOB-USE-3")
def test_a_cancel_request_reaches_the_handler_with_the_next_renewal(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    heard: list[bool] = []

    def stops(context: Context) -> None:
        client.cancel(context.job.job_id, reason="enough")
        heard.append(context.cancelled())
        context.heartbeat()
        heard.append(context.cancelled())
        raise Cancelled("after page 3")

    worked(client, decays(stops), 1)

    job = only(client)
    assert heard == [False, True]
    assert (job.status, job.outcome, job.last_error) == ("failed", "cancelled", "cancelled: after page 3")
    assert check(client.calls.store) == []


@pytest.mark.req("JOB-USE-3")
def test_a_handler_that_succeeds_despite_a_cancel_request_has_succeeded(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    def finishes(context: Context) -> None:
        client.cancel(context.job.job_id)
        context.heartbeat()

    worked(client, decays(finishes), 1)

    assert only(client).status == "succeeded"


@pytest.mark.req("JOB-USE-4")
def test_progress_is_sent_with_the_next_renewal(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    seen: list[object] = []

    def tells(context: Context) -> Done:
        context.progress(0.4, "page\n4 of 10 " + "x" * 300)
        seen.append(only(client).progress)
        context.heartbeat()
        seen.append(only(client).progress)
        return Done(outcome="read", result={"pages": 10})

    worked(client, decays(tells), 1)

    job = only(client)
    note = ("page 4 of 10 " + "x" * 300)[:200]
    assert seen == [None, Progress(Decimal("0.4"), note)]
    assert (job.status, job.outcome, job.outcome_result) == ("succeeded", "read", {"pages": 10})


@pytest.mark.req("JOB-USE-4")
@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_progress_that_is_not_a_fraction_fails_in_the_handler(tmp_path: Path, fraction: float) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    worked(client, decays(lambda context: context.progress(fraction)), 1)

    assert str(only(client).last_error).startswith("ValueError: progress must be 0 to 1")
