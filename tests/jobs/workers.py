"""Workers for the tests: in virtual time, on stores that become unreachable, with handlers written in place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, Unpack

from pendula.jobs.calls import Calls
from pendula.jobs.messages import Acked, Pulled, Renewed
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import AckMembers, PullMembers, RenewMembers
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.worker.handlers import Context, Handlers, handler
from pendula.jobs.worker.worker import Worker
from pendula.kernel.errors import WorldBroken
from tests.jobs.stores import Clock

T = TypeVar("T")

MEMORY: dict[str, Any] = {"object_type": "memory", "object_id": "mem_1", "action": "decay"}


class Virtual(Scheduler):
    """A scheduler whose waiting pull moves the clock instead of waiting; `pulls` records the arguments of each call."""

    def __init__(self, calls: Calls, clock: Clock) -> None:
        super().__init__(calls)
        self.clock = clock
        self.pulls: list[dict[str, Any]] = []

    def pull(self, **members: Unpack[PullMembers]) -> Pulled:
        self.pulls.append(dict(members))
        wait_ms = members.pop("wait_ms", None)
        reply = super().pull(**members)
        if reply.count or not wait_ms:
            return reply
        until = self.clock.now + wait_ms * 1000
        coming = self.calls.store.read(lambda look: look.next_time())
        self.clock.now = until if coming is None else max(self.clock.now, min(coming, until))
        return super().pull(**members)

    def running(self) -> int:
        return len(self.list(status="running").jobs)


class Silent(WorldBroken):
    """The store does not answer."""

    code = "silent"


class Shaky(Virtual):
    """A scheduler that is unreachable while `lost(call)`; calls with `late(call)` are executed and lose their reply."""

    def __init__(self, calls: Calls, clock: Clock) -> None:
        super().__init__(calls, clock)
        self.lost: Callable[[str], bool] = lambda _: False
        self.late: Callable[[str], bool] = lambda _: False
        self.asked: list[str] = []

    def _ask(self, call: str, carry_out: Callable[[], T]) -> T:
        self.asked.append(call)
        if self.lost(call):
            raise Silent(f"{call} went nowhere")
        reply = carry_out()
        if self.late(call):
            raise Silent(f"the reply to {call} is lost")
        return reply

    def pull(self, **members: Unpack[PullMembers]) -> Pulled:
        carry_out = super().pull
        return self._ask("pull", lambda: carry_out(**members))

    def ack(self, job_id: str, **members: Unpack[AckMembers]) -> Acked:
        carry_out = super().ack
        return self._ask("ack", lambda: carry_out(job_id, **members))

    def renew(self, job_id: str, **members: Unpack[RenewMembers]) -> Renewed:
        carry_out = super().renew
        return self._ask("renew", lambda: carry_out(job_id, **members))


_open: list[SqliteStore] = []


def calls_on(folder: Path, policy: Policy | None = None) -> tuple[Calls, Clock]:
    clock = Clock()
    _open.append(SqliteStore(folder / "jobs.db"))
    return Calls(_open[-1], policy or Policy(), clock), clock


def close_all() -> None:
    """Close every store opened in a test."""
    while _open:
        _open.pop().close()


def virtual(folder: Path, policy: Policy | None = None) -> Virtual:
    return Virtual(*calls_on(folder, policy))


def shaky(folder: Path) -> Shaky:
    return Shaky(*calls_on(folder))


class Rested(Worker):
    """A worker that records its rests instead of sleeping; each one advances the clock of a virtual scheduler."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.rests: list[float] = []

    def _sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        client = self.client
        if isinstance(client, Virtual):
            client.clock.now += int(seconds * 1_000_000)

    def _wait_to_retry(self, times: int) -> bool:
        self._sleep(self._pause(times))
        return True


def decays(function: Callable[[Context], Any], **options: Any) -> Handlers:
    """Handlers with one for the decay of memories."""
    return Handlers([handler("memory", "decay", **options)(function)])


def worked(client: Virtual, handlers: Handlers, jobs: int, **options: Any) -> Rested:
    """A worker that has done this many jobs, in the virtual time of its scheduler."""
    worker = Rested(client, handlers, worker_id="w1", max_jobs=jobs, ticks=client.clock, **options)
    worker.run()
    return worker
