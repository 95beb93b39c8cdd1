"""The scheduler on an event loop: the same answers, and calls do not block the loop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, Unpack

import pytest

from pendula.governance import AsyncObjects, governed
from pendula.governance.objects import GovernedObjects
from pendula.jobs import AsyncScheduler, JobRefused, Policy, Scheduler
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.messages import CALLS, OneJob, Pulled
from pendula.jobs.model import Durability
from pendula.jobs.scheduler_calls import PullMembers, ReleaseMembers, SchedulerCalls
from pendula.kernel.errors import WrongUsage
from tests.jobs.interfaces import http
from tests.waiting import joined

T = TypeVar("T")
QUICK = Policy(durability=Durability.NORMAL)
MEMORY: dict[str, Any] = {"object_type": "memory", "object_id": "mem_1", "action": "decay"}


async def ticking(work: Awaitable[T], ticks: int) -> tuple[T, int]:
    """The result of the work and the number of loop ticks meanwhile; waits for at least `ticks`."""
    counted = 0

    async def tick() -> None:
        nonlocal counted
        while counted < ticks:
            counted += 1
            await asyncio.sleep(0.001)

    task = asyncio.create_task(tick())
    found = await work
    seen = counted
    await task
    return found, seen


def on_a_loop(folder: Path, case: Callable[[AsyncScheduler], Awaitable[T]]) -> T:
    async def run() -> T:
        async with await AsyncScheduler.open(folder / "jobs.db", QUICK) as scheduler:
            return await case(scheduler)

    return asyncio.run(run())


def test_a_round_gives_the_same_as_the_blocking_scheduler(tmp_path: Path) -> None:
    async def case(scheduler: AsyncScheduler) -> list[Any]:
        job = await scheduler.defer("memory", "mem_1", "decay")
        [given] = (await scheduler.pull(worker_id="w")).jobs
        acked = await scheduler.ack(job.job_id, result="succeeded", lease_token=given.lease_token)
        why = await scheduler.why(job.job_id)
        return [
            given.job_id,
            acked.job.status,
            why.reason,
            (await scheduler.metrics()).jobs.succeeded,
        ]

    assert on_a_loop(tmp_path, case) == ["job_000000000001", "succeeded", "ended", 1]


def test_rejections_are_raised(tmp_path: Path) -> None:
    async def case(scheduler: AsyncScheduler) -> str:
        with pytest.raises(JobRefused) as refused:
            await scheduler.enqueue(object_type="cat")  # type: ignore[call-arg]
        return refused.value.code

    assert on_a_loop(tmp_path, case) == "validation_failed"


def test_the_event_loop_runs_while_a_pull_waits(tmp_path: Path) -> None:
    async def case(scheduler: AsyncScheduler) -> tuple[int, int]:
        reply, seen = await ticking(scheduler.pull(worker_id="w", wait_ms=200), 10)
        return reply.count, seen

    assert on_a_loop(tmp_path, case) == (0, 10)


def test_the_event_loop_runs_while_another_writer_holds_the_store(tmp_path: Path) -> None:
    async def case(scheduler: AsyncScheduler) -> int:
        blocking = scheduler.blocking
        assert isinstance(blocking, Scheduler)
        held, free = threading.Event(), threading.Event()

        def hold(_: Any) -> None:
            held.set()
            free.wait(240)

        holder = threading.Thread(target=lambda: blocking.calls.store.write(hold))
        holder.start()
        await asyncio.to_thread(held.wait, 30)
        call = asyncio.create_task(scheduler.enqueue(**MEMORY))
        for _ in range(20):
            await asyncio.sleep(0.001)
        waited = not call.done()
        free.set()
        await call
        joined(holder)
        return waited

    assert on_a_loop(tmp_path, case)


def test_a_waiting_pull_gets_jobs_enqueued_meanwhile(tmp_path: Path) -> None:
    async def case(scheduler: AsyncScheduler) -> int:
        pulling = asyncio.create_task(scheduler.pull(worker_id="w", wait_ms=30_000))
        await asyncio.sleep(0.01)
        await scheduler.enqueue(**MEMORY)
        return int((await pulling).count)

    assert on_a_loop(tmp_path, case) == 1


@pytest.mark.parametrize("wait_ms", [30_001, -1, 1.5, True])
def test_a_pull_refuses_a_wait_that_is_out_of_range(tmp_path: Path, wait_ms: Any) -> None:
    async def case(scheduler: AsyncScheduler) -> None:
        await scheduler.pull(worker_id="w", wait_ms=wait_ms)

    with pytest.raises(JobRefused, match="wait_ms must be an integer from 0 to 30000"):
        on_a_loop(tmp_path, case)


def test_a_call_of_a_closed_scheduler_says_so(tmp_path: Path) -> None:
    async def case(scheduler: AsyncScheduler) -> None:
        await scheduler.close()
        for call in (scheduler.workers, lambda: scheduler.pull(worker_id="w")):
            with pytest.raises(WrongUsage, match="The scheduler was closed"):
                await call()

    on_a_loop(tmp_path, case)


def test_jobs_of_a_cancelled_pull_are_released(tmp_path: Path) -> None:
    class Slow(Scheduler):
        """A scheduler whose pull takes jobs and returns only when the test allows it."""

        entered, go_on, back = threading.Event(), threading.Event(), threading.Event()

        def pull(self, **members: Unpack[PullMembers]) -> Pulled:
            reply = super().pull(**members)
            self.entered.set()
            self.go_on.wait(240)
            return reply

        def release(self, job_id: str, **members: Unpack[ReleaseMembers]) -> OneJob:
            reply = super().release(job_id, **members)
            self.back.set()
            return reply

    async def run() -> str:
        slow = Slow.open(tmp_path / "jobs.db", QUICK)
        async with AsyncScheduler(slow) as scheduler:
            job = await scheduler.defer("memory", "mem_1", "decay")
            pulling = asyncio.create_task(scheduler.pull(worker_id="w"))
            await asyncio.to_thread(Slow.entered.wait, 30)
            pulling.cancel()
            await asyncio.wait([pulling])
            Slow.go_on.set()
            await asyncio.to_thread(Slow.back.wait, 30)
            return str((await scheduler.show(job.job_id)).job.status)

    assert asyncio.run(run()) == "queued"


def test_a_server_is_called_like_a_store(tmp_path: Path) -> None:
    async def run(url: str) -> tuple[int, int]:
        async with AsyncScheduler.connect(url) as scheduler:
            empty, seen = await ticking(scheduler.pull(worker_id="w", wait_ms=200), 10)
            await scheduler.defer("memory", "mem_1", "decay")
            return empty.count + (await scheduler.pull(worker_id="w", wait_ms=1000)).count, seen

    with http(tmp_path, QUICK) as (client, _):
        assert asyncio.run(run(client.url)) == (1, 10)  # type: ignore[attr-defined]


def test_every_call_of_the_scheduler_exists() -> None:
    calls = {name: call for name, call in vars(SchedulerCalls).items() if not name.startswith("_")}

    assert set(calls) - {"send", "now"} == {call.name for call in CALLS} | {"defer"}
    for name in set(calls) - {"send", "now"}:
        assert signature(getattr(AsyncScheduler, name)) == signature(calls[name]), name
        assert getattr(Scheduler, name) is getattr(RemoteScheduler, name) is calls[name]


def test_calls_on_governed_objects_are_awaited_on_a_store(tmp_path: Path) -> None:
    async def case(scheduler: AsyncScheduler) -> Any:
        mia = governed(scheduler).as_user("mia")
        await mia.create("memory", "m", evidence_refs=["ev_1"])
        await mia.attach_evidence("memory", "m", "ev_2")
        await mia.decide("memory", "m", "verify", "passed", reason="seen")
        await mia.refill("memory", "m", "worth it", budget=3)
        await mia.amend("memory", "m", "forgotten", half_life="P9D")
        assert (await scheduler.past()).places
        await mia.set_gate("risk_gate", "pass", "calm")
        job = await scheduler.defer("memory", "m", "decay")
        [given] = (await scheduler.pull(worker_id="w")).jobs
        settled = await governed(scheduler).settle(job.job_id, worker_id="w", lease_token=given.lease_token)
        [shown] = (await governed(scheduler).list("memory", limit=5)).objects
        assert shown == (await governed(scheduler).show("memory", "m")).object
        assert len((await governed(scheduler).gates()).gates) == 1
        assert (await governed(scheduler).rollbacks()).rollbacks == []
        assert (await governed(scheduler).figures()).places
        return settled.outcome, (await governed(scheduler).why("memory", "m")).status

    assert on_a_loop(tmp_path, case) == ("noop", "verified")


def test_every_call_on_governed_objects_can_be_awaited() -> None:
    def calls(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert calls(GovernedObjects) - {"send"} == calls(AsyncObjects)
