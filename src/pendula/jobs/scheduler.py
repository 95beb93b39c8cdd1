"""`Scheduler`: the calls on a store in this process."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pendula.jobs.calls import LOCAL, Caller, Calls
from pendula.jobs.messages import Call, JobRefused, Message
from pendula.jobs.model import SECOND, Durability, Policy, Refused
from pendula.jobs.scheduler_calls import SchedulerCalls
from pendula.jobs.store.file.store_time import MachineTime
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.wallclock import SelfCheckingClock, boot_id, steady_us

R = TypeVar("R", bound=Message)


class Scheduler(SchedulerCalls):
    """Jobs of one store. A refused call raises `JobRefused`; nothing was changed."""

    def __init__(self, calls: Calls, caller: Caller = LOCAL) -> None:
        self.calls = calls
        self.caller = caller

    @classmethod
    def open(
        cls,
        path: str | Path,
        policy: Policy | None = None,
        *,
        object_types: Iterable[str] = (),
        actions: Iterable[str] = (),
    ) -> Self:
        """The scheduler on an SQLite file, which is created or migrated if necessary.

        `object_types` and `actions` are added to those of the policy; raises `DocumentRefused` for an invalid word.
        """
        chosen = _with_words(policy or Policy(), object_types, actions)
        store = SqliteStore(path, durability=Durability(chosen.durability))
        clock = SelfCheckingClock().now
        hold_clock(store, chosen, clock)
        return cls(Calls(store, chosen, clock))

    def close(self) -> None:
        self.calls.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def now(self) -> int:
        return self.calls.clock()

    def send(self, call: Call[R], members: Mapping[str, Any], *path: str) -> R:
        work: Callable[..., R | Refused] = getattr(self.calls, call.name)
        if call.reads:
            answer = work(*path) if call.request is None else work(*path, members)
        else:
            answer = work(*path, members, self.caller)
        if isinstance(answer, Refused):
            raise JobRefused(answer)
        return answer


def hold_clock(store: SqliteStore, policy: Policy, clock: Callable[[], int]) -> None:
    """Refuse this machine's clock where it jumped ahead; without a boot id, do nothing."""
    if (boot := boot_id()) is not None:
        store.hold_clock(MachineTime(clock, steady_us, boot, policy.max_clock_step_sec * SECOND))


def _with_words(policy: Policy, object_types: Iterable[str], actions: Iterable[str]) -> Policy:
    if not object_types and not actions:
        return policy
    # Imported only when needed, since it is slow.
    from pendula.jobs.settings_file import with_words

    return with_words(policy, object_types, actions)
