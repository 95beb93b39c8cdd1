"""The worker on an event loop: async handlers run on the loop of the caller, and the worker never blocks it."""

import asyncio
import contextvars
import threading
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import AsyncContext, AsyncScheduler, AsyncWorker, Handlers, Policy, handler
from pendula.jobs.model import Durability
from pendula.jobs.worker.effects import Transaction
from pendula.jobs.worker.handlers import Context
from pendula.jobs.worker.heartbeats import Tally
from pendula.jobs.worker.worker import Worker
from pendula.kernel.errors import WrongUsage
from tests.jobs.workers import MEMORY, close_all, virtual

QUICK = Policy(durability=Durability.NORMAL)


def handlers(function: Any, **options: Any) -> Handlers:
    return Handlers([handler("memory", "decay", **options)(function)])


def worked(folder: Path, function: Any, jobs: int = 1, **options: Any) -> tuple[Tally, list[str]]:
    """The tally of a worker over this many jobs, and their final statuses."""

    async def run() -> tuple[Tally, list[str]]:
        async with await AsyncScheduler.open(folder / "jobs.db", QUICK) as scheduler:
            for number in range(jobs):
                await scheduler.defer("memory", f"mem_{number}", "decay")
            tally = await AsyncWorker(scheduler, handlers(function), max_jobs=jobs, **options).run()
            return tally, [job.status for job in (await scheduler.list()).jobs]

    return asyncio.run(run())


def test_handlers_run_on_the_event_loop_of_the_caller(tmp_path: Path) -> None:
    threads = []

    async def decay(context: AsyncContext) -> None:
        threads.append(threading.current_thread())
        await asyncio.sleep(0)

    tally, statuses = worked(tmp_path, decay, 3, concurrency=3)

    assert (tally.succeeded, statuses) == (3, ["succeeded"] * 3)
    assert set(threads) == {threading.main_thread()}


def test_handlers_run_concurrently(tmp_path: Path) -> None:
    arrived = 0

    async def decay(context: AsyncContext) -> None:
        nonlocal arrived
        arrived += 1
        async with asyncio.timeout(240):
            while arrived < 4:  # sequential handlers would never get here
                await asyncio.sleep(0.001)

    tally, _ = worked(tmp_path, decay, 4, concurrency=4)

    assert tally.succeeded == 4


def test_once_does_not_block_the_event_loop(tmp_path: Path) -> None:
    ticks = 0

    async def decay(context: AsyncContext) -> None:
        nonlocal ticks
        begun, enough = threading.Event(), threading.Event()

        def effect(transaction: Transaction) -> int:
            begun.set()
            return int(enough.wait(240))  # the effect runs until the loop has ticked

        applying = asyncio.create_task(context.once(effect))
        while ticks < 20:
            await asyncio.sleep(0.001)
            ticks += begun.is_set()
        enough.set()
        assert await applying == 1

    tally, _ = worked(tmp_path, decay)

    assert (tally.succeeded, ticks) == (1, 20)


def test_an_effect_sees_the_context_variables_of_its_handler(tmp_path: Path) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    seen = []

    async def decay(context: AsyncContext) -> None:
        who.set(context.job.object_id)
        await context.once(lambda transaction: seen.append(who.get()))

    worked(tmp_path, decay, 2, concurrency=2)

    assert sorted(seen) == ["mem_0", "mem_1"]


def test_an_effect_that_raises_stop_iteration_fails_and_does_not_hang(tmp_path: Path) -> None:
    heard = []

    async def decay(context: AsyncContext) -> None:
        try:
            async with asyncio.timeout(240):
                await context.once(lambda transaction: next(iter(())))
        except (RuntimeError, TimeoutError) as error:
            heard.append(str(error))

    worked(tmp_path, decay)

    assert heard == ["the effect raised StopIteration()"]


def test_a_heartbeat_is_awaited(tmp_path: Path) -> None:
    async def decay(context: AsyncContext) -> None:
        await context.heartbeat()

    assert worked(tmp_path, decay)[0].succeeded == 1


def test_sync_handlers_run_outside_the_event_loop(tmp_path: Path) -> None:
    threads = []

    def decay(context: Context) -> None:
        threads.append(threading.current_thread())

    tally, _ = worked(tmp_path, decay)

    assert (tally.succeeded, threading.main_thread() in threads) == (1, False)


def test_a_handler_over_its_timeout_is_cancelled(tmp_path: Path) -> None:
    heard = []

    async def run() -> Tally:
        async def decay(context: AsyncContext) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                heard.append("cancelled")
                raise

        async with await AsyncScheduler.open(tmp_path / "jobs.db", QUICK) as scheduler:
            await scheduler.defer("memory", "m", "decay")
            tally = await AsyncWorker(scheduler, handlers(decay, timeout_sec=0.05), once=True).run()
            await asyncio.sleep(0)
            return tally

    assert (asyncio.run(run()).failed, heard) == (1, ["cancelled"])


def test_a_cancelled_worker_lets_its_handlers_finish(tmp_path: Path) -> None:
    async def run() -> list[str]:
        begun = asyncio.Event()

        async def decay(context: AsyncContext) -> None:
            begun.set()
            await asyncio.sleep(0.05)

        async with await AsyncScheduler.open(tmp_path / "jobs.db", QUICK) as scheduler:
            await scheduler.defer("memory", "m", "decay")
            running = asyncio.create_task(AsyncWorker(scheduler, handlers(decay)).run())
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            return [job.status for job in (await scheduler.list()).jobs]

    assert asyncio.run(run()) == ["succeeded"]


def test_a_stopped_worker_ends(tmp_path: Path) -> None:
    async def run() -> int:
        async with await AsyncScheduler.open(tmp_path / "jobs.db", QUICK) as scheduler:
            worker = AsyncWorker(scheduler, handlers(lambda context: None))
            worker.stop()
            early = await worker.run()
            later = AsyncWorker(scheduler, handlers(lambda context: None))
            asyncio.get_running_loop().call_later(0.02, later.stop)
            return early.taken + (await later.run()).taken

    assert asyncio.run(run()) == 0


def test_an_error_that_stops_the_worker_is_raised(tmp_path: Path) -> None:
    async def run() -> None:
        async with await AsyncScheduler.open(tmp_path / "jobs.db", QUICK) as scheduler:
            await AsyncWorker(scheduler, handlers(lambda context: None), concurrency=0).run()

    with pytest.raises(WrongUsage):
        asyncio.run(run())


def test_async_handlers_of_a_sync_worker_can_await_once(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    applied = []

    async def decay(context: AsyncContext) -> None:
        await context.once(lambda transaction: applied.append(context.fence))

    Worker(client, handlers(decay), once=True).run()
    close_all()

    assert applied == [1]
