"""The two interfaces of the scheduler, Python and HTTP: the same methods, driven by the same cases."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from pendula import governance
from pendula.jobs.calls import Calls
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.messages import JobRefused, Message, plain
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import SchedulerCalls
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.time import format_utc
from pendula.server.schedulers.jobs.routes import jobs_scheduler
from pendula.server.settings import Settings
from tests.jobs.stores import NOON
from tests.server.living import LiveServer
from tests.waiting import joined


class ManualClock:
    """A clock that only a case moves, so that both interfaces see the same times."""

    def __init__(self) -> None:
        self.now: int = NOON

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: int) -> None:
        self.now += seconds * 1_000_000

    def text(self, seconds: int = 0) -> str:
        return format_utc(self.now + seconds * 1_000_000)


class Recorder:
    """One interface under a case: makes each call and records its result."""

    def __init__(self, interface: SchedulerCalls, clock: ManualClock) -> None:
        self.clock = clock
        self.transcript: list[tuple[str, Any]] = []
        self._interface = interface

    def __call__(self, call: str, *arguments: Any, **members: Any) -> Any:
        """The reply, or `(status, code)` of the rejection."""
        return self._made(self._interface, call, *arguments, **members)

    def governed(self, call: str, *arguments: Any, user: str | None = "mia", **members: Any) -> Any:
        """The same for a call on governed objects, in the name of `user` unless that is None."""
        objects = governance.governed(cast(Scheduler, self._interface))
        return self._made(objects if user is None else objects.as_user(user), call, *arguments, **members)

    def _made(self, interface: Any, call: str, *arguments: Any, **members: Any) -> Any:
        try:
            reply = getattr(interface, call)(*arguments, **members)
        except JobRefused as refused:
            self.transcript.append((call, (refused.status, refused.code, refused.message, refused.refused.details)))
            return refused.status, refused.code
        shown = plain(reply) if isinstance(reply, Message) else reply
        self.transcript.append((call, shown))
        return shown

    def alike(self) -> bytes:
        """The transcript without what always differs: random tokens, and request ids over HTTP."""
        return msgspec.json.encode(_without_random(msgspec.to_builtins(self.transcript, str_keys=True)), order="sorted")


Case = Callable[[Recorder], None]


def _without_random(value: Any) -> Any:
    match value:
        case dict():
            return {
                name: "token" if name == "lease_token" and inner else _without_random(inner)
                for name, inner in value.items()
                if name != "request_id"
            }
        case list() | tuple():
            return [_without_random(inner) for inner in value]
        case int() if not isinstance(value, bool):
            return str(value)
        case float():
            return f"{value:g}"
        case _:
            return value


@contextmanager
def python(folder: Path, policy: Policy) -> Iterator[tuple[SchedulerCalls, ManualClock]]:
    clock = ManualClock()
    folder.mkdir(exist_ok=True)
    with Scheduler(Calls(SqliteStore(folder / "jobs.db", durability=policy.durability), policy, clock)) as scheduler:
        yield scheduler, clock


@contextmanager
def http(folder: Path, policy: Policy) -> Iterator[tuple[SchedulerCalls, ManualClock]]:
    """A real server in this process, on a free port."""
    clock = ManualClock()
    with (
        LiveServer(Settings(port=0, data=str(folder / "data")), [jobs_scheduler(policy, clock=clock)]) as server,
        RemoteScheduler(server.url) as client,
    ):
        yield client, clock


INTERFACES = {"python": python, "http": http}


def at_once(threads: int, work: Callable[[int], None]) -> None:
    """Run `work` in threads that start together; raises the first exception of any of them."""
    start = threading.Barrier(threads, timeout=240)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    joined(*workers)
    if errors:
        raise errors[0]
