"""Leases: renewed in time by their own thread, dropped in time, and no writes after a loss."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import pytest

from pendula.jobs import messages
from pendula.jobs.messages import Job, Renewed
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import AckMembers, RenewMembers
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.delivery import Acked
from pendula.jobs.worker.handlers import (
    Context,
    Done,
)
from pendula.jobs.worker.leases import Lease, Leases
from pendula.jobs.worker.worker import EndReporter, Worker
from pendula.kernel.time import parse_utc
from tests.jobs.workers import MEMORY, Virtual, close_all, decays, shaky, virtual, worked

SECOND = 1_000_000


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


def only(client: Scheduler) -> Job:
    [job] = client.list().jobs
    return job


# Leases


def held_job(client: Virtual, lease_sec: int = 60) -> Lease:
    client.enqueue(**MEMORY)
    requested_at = client.clock.now
    reply = client.pull(worker_id="w1", lease_sec=lease_sec)
    [job] = reply.jobs
    return Lease(client, "w1", job, parse_utc(reply.now), requested_at, client.clock)


@pytest.mark.req("JOB-WRK-5")
def test_a_lease_is_renewed_after_a_third_of_its_length(tmp_path: Path) -> None:
    client = shaky(tmp_path)
    lease = held_job(client, lease_sec=30)
    leases = Leases(client.clock)
    leases.hold(lease)

    first = leases.sweep()
    client.clock.pass_by(9)
    leases.sweep()
    early = client.asked.count("renew")
    client.clock.pass_by(1)
    leases.sweep()
    client.clock.pass_by(29)
    kept = client.pull(worker_id="w2").count == 0

    assert first is not None
    assert 9.9 < first <= 10
    assert (early, client.asked.count("renew")) == (0, 1)
    assert kept, "the renewal moved the end of the lease"


@pytest.mark.req("JOB-WRK-5")
def test_a_rejected_renewal_cancels_the_handler(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    lease = held_job(client)
    context = Context(lease, None)
    leases = Leases(client.clock)
    leases.hold(lease)
    before = context.cancelled()

    client.clock.pass_by(61)
    client.pull(worker_id="w2")
    lease.confirmed_at = client.clock.now - 30 * SECOND  # as if it had been confirmed earlier
    leases.sweep()

    assert (before, context.cancelled(), lease.lost) == (False, True, "lease_lost")
    assert leases.sweep() is None


@pytest.mark.req("JOB-WRK-12")
def test_a_lease_that_cannot_be_renewed_is_dropped_before_it_expires(tmp_path: Path) -> None:
    client = shaky(tmp_path)
    lease = held_job(client, lease_sec=30)
    leases = Leases(client.clock)
    leases.hold(lease)
    client.lost = lambda call: call == "renew"
    pauses, lost_at = [], None
    while lost_at is None:
        pauses.append(leases.sweep())
        client.clock.now += int((pauses[-1] or 0) * SECOND)
        lost_at = client.clock.now if lease.lost else None

    assert lease.lost == "lease_unconfirmed"
    assert lost_at <= parse_utc(lease.job.lease_expires_at) + 2 * SECOND
    assert client.asked.count("renew") >= 10


@pytest.mark.req("JOB-WRK-12")
def test_a_job_whose_lease_cannot_be_confirmed_is_not_started(tmp_path: Path) -> None:
    client = shaky(tmp_path)
    client.enqueue(**MEMORY)
    client.enqueue(**{**MEMORY, "object_id": "mem_2"})
    begun: list[str] = []

    def slow(context: Context) -> None:
        begun.append(context.job.object_id)
        client.clock.pass_by(40)
        client.lost = lambda call: call == "renew"

    tally = worked(client, decays(slow), 2, batch=1).tally

    assert begun == ["mem_1"]
    assert (tally.succeeded, tally.dropped) == (1, 1)


@pytest.mark.req("JOB-WRK-5")
@pytest.mark.req("JOB-ACK-8")
def test_the_result_of_a_lost_lease_is_discarded(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    second: list[Job] = []

    def too_slow(context: Context) -> Done:
        client.clock.pass_by(61)
        second.extend(client.pull(worker_id="w2").jobs)
        return Done(next_action_at=None, outcome="late")

    tally = worked(client, decays(too_slow), 1).tally

    job = only(client)
    assert (tally.dropped, job.status, job.worker_id, job.outcome) == (1, "running", "w2", None)
    assert client.ack(job.job_id, result="succeeded", lease_token=second[0].lease_token).job.status == ("succeeded")
    assert check(client.calls.store) == []


def test_a_heartbeat_renews_at_once(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    def decay(context: Context) -> None:
        for _ in range(4):
            client.clock.pass_by(50)
            context.heartbeat()

    tally = worked(client, decays(decay), 1).tally

    assert tally.succeeded == 1


class Renewals(Scheduler):
    """Counts renewals and sets an event after two."""

    def __init__(self, client: Scheduler) -> None:
        super().__init__(client.calls)
        self.two = threading.Event()
        self.renewals = 0

    def renew(self, job_id: str, **members: Unpack[RenewMembers]) -> Renewed:
        reply = super().renew(job_id, **members)
        self.renewals += 1
        if self.renewals == 2:
            self.two.set()
        return reply


@pytest.mark.req("JOB-WRK-5")
def test_a_handler_that_blocks_its_event_loop_does_not_block_renewals(tmp_path: Path) -> None:
    client = Renewals(Scheduler.open(tmp_path / "jobs.db"))
    client.enqueue(**MEMORY)

    async def blocks(context: Context) -> Done:
        return Done(outcome="renewed" if client.two.wait(240) else "not renewed")

    tally = Worker(client, decays(blocks), lease_sec=1, max_jobs=1).run()

    assert (tally.succeeded, only(client).outcome) == (1, "renewed")
    client.close()


def test_a_renewal_after_the_ack_is_not_a_lost_lease(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    client = virtual(tmp_path)
    lease = held_job(client)
    leases = Leases(client.clock)
    leases.hold(lease)
    client.clock.pass_by(30)

    class Between(Virtual):
        def ack(self, job_id: str, **members: Unpack[AckMembers]) -> messages.Acked:
            reply = super().ack(job_id, **members)
            leases.sweep()  # before the worker gets the reply to its ack
            return reply

    between = Between(client.calls, client.clock)
    ending = EndReporter(between, lambda _: False).report(lease, Acked(Done().members()))
    leases.sweep()

    assert isinstance(ending, Acked)
    assert (lease.lost, caplog.messages) == (None, [])


def test_an_ack_whose_reply_is_lost_is_repeated_even_after_a_rejected_renewal(tmp_path: Path) -> None:
    client = shaky(tmp_path)
    lease = held_job(client)
    leases = Leases(client.clock)
    leases.hold(lease)
    client.clock.pass_by(30)
    client.late = lambda call: call == "ack" and client.asked.count("ack") == 1

    def rest(_: int) -> bool:
        leases.sweep()
        return True

    ending = EndReporter(client, rest).report(lease, Acked(Done().members()))

    assert isinstance(ending, Acked)
    assert (client.asked.count("ack"), only(client).status) == (2, "succeeded")
