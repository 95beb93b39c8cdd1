"""Group commit: one flush for all waiting callers, no result before it, no caller forgotten."""

import asyncio
import threading
from functools import partial

import pytest

from pendula.kernel.commit import Busy, Closed, GroupCommit
from pendula.kernel.driver import Ticket
from pendula.testing import FaultyDisk
from pendula.testing.tally import Add, Changed, Command
from tests.kernel.journals import new_driver, recovered


class Gate:
    """A flush that waits until it is let through; counts, and remembers what was done before each."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.flushed: list[tuple[int, ...]] = []
        self.entered = threading.Semaphore(0)
        self.let = threading.Semaphore(0)

    def do(self, item: int) -> int:
        if item < 0:
            raise ValueError(item)
        self.done.append(item)
        return item * 10

    def flush(self) -> None:
        self.entered.release()
        self.let.acquire()
        self.flushed.append(tuple(self.done))


def test_commands_queued_during_a_flush_share_the_next_one() -> None:
    gate = Gate()
    commit: GroupCommit[int, int] = GroupCommit(gate.do, gate.flush)

    async def scene() -> list[int]:
        first = asyncio.create_task(commit.submit(1))
        await asyncio.to_thread(gate.entered.acquire)
        others = [asyncio.create_task(commit.submit(n)) for n in range(2, 100)]
        await asyncio.sleep(0)
        assert not first.done()
        for _ in range(2):
            gate.let.release()
        return [await first, *[await other for other in others]]

    assert asyncio.run(scene()) == [n * 10 for n in range(1, 100)]
    assert gate.flushed == [(1,), tuple(range(1, 100))]
    commit.close()


def test_a_posted_item_is_done_without_anyone_waiting() -> None:
    done: list[int] = []
    commit: GroupCommit[int, None] = GroupCommit(done.append, lambda: None)
    futures = [commit.post(number) for number in range(3)]
    commit.close()

    assert done == [0, 1, 2]
    assert all(future.done() for future in futures)
    with pytest.raises(Closed):
        commit.post(3)


def test_a_failing_item_fails_alone() -> None:
    done: list[int] = []
    commit: GroupCommit[int, int] = GroupCommit(lambda n: 10 // n, lambda: done.append(1))

    with pytest.raises(ZeroDivisionError):
        commit.call(0)
    assert commit.call(5) == 2
    commit.close()


def test_after_a_failed_flush_neither_results_nor_answers_are_returned() -> None:
    def broken() -> None:
        raise OSError("the disk is gone")

    commit: GroupCommit[int, int] = GroupCommit(lambda n: n, broken)

    async def scene() -> None:
        with pytest.raises(OSError, match="the disk is gone"):
            await commit.submit(1)
        with pytest.raises(OSError, match="the disk is gone"):
            await commit.ask(lambda: 42)

    asyncio.run(scene())
    commit.close()


def test_a_question_needs_no_flush() -> None:
    flushes: list[int] = []
    commit: GroupCommit[int, int] = GroupCommit(lambda n: n, lambda: flushes.append(1))

    assert asyncio.run(commit.ask(lambda: 42)) == 42
    commit.close()
    assert flushes == []


def test_too_many_waiters_are_refused_and_the_others_finish() -> None:
    gate = Gate()
    commit: GroupCommit[int, int] = GroupCommit(gate.do, gate.flush, limit=3)

    async def scene() -> list[int]:
        first = asyncio.create_task(commit.submit(0))
        await asyncio.to_thread(gate.entered.acquire)
        waiting = [asyncio.create_task(commit.submit(n)) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await commit.submit(4)
        for _ in range(5):
            gate.let.release()
        return [await first, *[await one for one in waiting]]

    assert asyncio.run(scene()) == [0, 10, 20, 30]
    commit.close()
    assert gate.done == [0, 1, 2, 3]


class Slow:
    """Questions that wait until they are let through, and what was done, in order."""

    def __init__(self) -> None:
        self.executed: list[str] = []
        self.begun = threading.Event()
        self.let = threading.Semaphore(0)

    def question(self, name: str) -> str:
        self.begun.set()
        self.let.acquire()
        self.executed.append(name)
        return name

    async def asked(self, commit: GroupCommit[str, None], count: int) -> list[asyncio.Task[str]]:
        """So many questions, the first of them under way."""
        asked = [asyncio.create_task(commit.ask(partial(self.question, f"question {n}"))) for n in range(count)]
        await asyncio.to_thread(self.begun.wait)
        return asked


def test_a_command_waits_for_one_question_at_most() -> None:
    slow = Slow()
    commit: GroupCommit[str, None] = GroupCommit(slow.executed.append, lambda: None)

    async def scene() -> None:
        asked = await slow.asked(commit, 3)
        command = asyncio.create_task(commit.submit("command"))
        await asyncio.sleep(0)
        slow.let.release(3)
        await asyncio.gather(command, *asked)

    asyncio.run(scene())
    commit.close()
    assert slow.executed == ["question 0", "command", "question 1", "question 2"]


def test_a_full_queue_of_questions_leaves_space_for_commands() -> None:
    slow = Slow()
    commit: GroupCommit[str, None] = GroupCommit(slow.executed.append, lambda: None, limit=3)

    async def scene() -> None:
        asked = [*await slow.asked(commit, 1), *[asyncio.create_task(commit.ask(lambda: "quick")) for _ in range(3)]]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="3 questions are already waiting"):
            await commit.ask(lambda: "one too many")
        command = asyncio.create_task(commit.submit("command"))
        await asyncio.sleep(0)
        slow.let.release()
        await asyncio.gather(command, *asked)

    asyncio.run(scene())
    commit.close()
    assert slow.executed == ["question 0", "command"]


def test_a_cancelled_question_is_not_answered() -> None:
    slow = Slow()
    commit: GroupCommit[str, None] = GroupCommit(slow.executed.append, lambda: None)

    async def scene() -> None:
        first, leaving, staying = await slow.asked(commit, 3)
        leaving.cancel()
        await asyncio.sleep(0)
        slow.let.release(3)
        await asyncio.gather(first, staying)

    asyncio.run(scene())
    commit.close()
    assert slow.executed == ["question 0", "question 2"]


def test_closing_finishes_queued_work_and_accepts_no_more() -> None:
    done: list[int] = []
    commit: GroupCommit[int, None] = GroupCommit(done.append, lambda: None)
    callers = [threading.Thread(target=commit.call, args=(n,)) for n in range(20)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    commit.close()

    assert sorted(done) == list(range(20))
    with pytest.raises(Closed):
        commit.call(1)


def test_a_cancelled_waiter_affects_no_other() -> None:
    gate = Gate()
    commit: GroupCommit[int, int] = GroupCommit(gate.do, gate.flush)

    async def scene() -> int:
        leaving = asyncio.create_task(commit.submit(1))
        await asyncio.to_thread(gate.entered.acquire)
        staying = asyncio.create_task(commit.submit(2))
        await asyncio.sleep(0)
        leaving.cancel()
        gate.let.release()
        gate.let.release()
        return await staying

    assert asyncio.run(scene()) == 20
    assert gate.done == [1, 2]
    commit.close()


def test_a_hundred_tasks_on_one_driver_are_durable_when_acknowledged() -> None:
    disk = FaultyDisk()
    driver = new_driver(disk)
    commit: GroupCommit[Command, Ticket[Changed]] = GroupCommit(lambda c: driver.submit(c, by="task"), driver.flush)

    async def scene() -> list[Ticket[Changed]]:
        return await asyncio.gather(*(commit.submit(Add(1)) for _ in range(100)))

    tickets = asyncio.run(scene())
    commit.close()

    assert [ticket.outcome.answer for ticket in tickets] == [{"total": n} for n in range(1, 101)]
    assert sum(call.operation == "sync" for call in disk.calls) < 50
    assert recovered(disk.after_crash(0)).engine.state() == driver.engine.state()
