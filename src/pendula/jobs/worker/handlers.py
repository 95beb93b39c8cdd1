"""What a worker runs: functions marked with `@handler`, what they are handed, and what they may answer.

    @handler("memory", "decay", timeout_sec=30)
    def decay(context: Context) -> Done:
        kept = context.once(lambda transaction: fade(transaction, context.job["object_id"]))
        return Done(next_action_at="2026-03-01T00:00:00Z", outcome=kept)

A job is delivered at least once: after a crash, a lost lease or a lost reply its handler runs again. What is written in
`context.once` is applied once all the same. Whatever else a handler does — a mail, a call to another service, a file —
may happen again, and has to bear it; `context.idempotency_key` and `context.fence` are there to be handed on.
"""

import asyncio
import importlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextvars import copy_context
from datetime import datetime
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType

from pendula.jobs.model import OWN_WORDS, RETRY_DELAY_MOST_SEC, Vocabulary
from pendula.jobs.objects.endings import Verdict
from pendula.jobs.worker.effects import Transaction
from pendula.jobs.worker.leases import Held, LeaseGone
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WrongUsage
from pendula.kernel.time import format_utc

MARK = "__pendula_handlers__"
SETTLED = ("decay", "archive")
AGAIN_MOST_SEC = 36_525 * 86_400


class HandlersUnusable(WrongUsage):
    """A module that cannot be loaded or has no handlers, or two handlers for the same work."""

    code = "handlers_unusable"


class EffectMisused(WrongUsage):
    """A second effect of one job, or one where the store is not at hand."""

    code = "effect_misused"


class PermanentError(Exception):
    """Raised by a handler: trying again does not help."""


class ObjectNotFound(PermanentError):
    """Raised by a handler: what the job is about is not there any more."""


class Cancelled(Exception):
    """Raised by a handler that was asked to stop: the job ends as failed, with the outcome `cancelled`."""


class RetryAfter(Exception):
    """Raised by a handler: try again, in so many seconds (0 to 30 days)."""

    def __init__(self, seconds: float, message: str = "") -> None:
        if not 0 <= seconds <= RETRY_DELAY_MOST_SEC:  # not a number is neither
            raise ValueError(f"seconds has to be 0 to {RETRY_DELAY_MOST_SEC}, not {seconds}")
        super().__init__(message or f"to be tried again in {seconds} s")
        self.seconds = seconds


class Done(Struct, frozen=True):
    """The work is done. `next_action_at` (text, microseconds, or a time with an offset) is the object's next time.

    Unset leaves that time as it is, None clears it. `outcome` is a word for reports, `result` any JSON of up to 64 KiB,
    shown as `outcome_result`.
    """

    next_action_at: str | int | datetime | UnsetType | None = UNSET
    next_action: str | None = None
    outcome: str | None = None
    result: Any = None

    def members(self) -> dict[str, Any]:
        """As the call `ack` takes them."""
        given: dict[str, Any] = {"result": "succeeded"}
        if self.next_action_at is not UNSET:
            given["next_action_at"] = _text(self.next_action_at)
        if self.next_action is not None:
            given["next_action"] = self.next_action
        if self.outcome is not None:
            given["outcome"] = self.outcome
        if self.result is not None:
            given["outcome_result"] = self.result
        return given


class RunAgain(Struct, frozen=True):
    """The work is done, and the same is to be done again in `in_sec` seconds: a whole number from 1 to a century."""

    in_sec: int

    def __post_init__(self) -> None:
        if type(self.in_sec) is not int or not 1 <= self.in_sec <= AGAIN_MOST_SEC:
            raise ValueError(f"in_sec has to be a whole number from 1 to {AGAIN_MOST_SEC}, not {self.in_sec}")


Answer = Done | RunAgain | Verdict | None
Effect = Callable[[Transaction], Json]
Function = Callable[["Context"], Answer | Awaitable[Answer]]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Handler(Struct, frozen=True):
    """A function, and how long it may take.

    `backoff` are the pauses in seconds before the tries that follow a failure. A handler that `verifies` is entered
    under governance and answers with a `Verdict`; where the object `settles` the job by itself there is nothing to be
    called.
    """

    function: Function
    timeout_sec: float | None = None
    verifies: bool = False
    settles: bool = False
    backoff: tuple[float, ...] = ()

    def pause_after(self, attempts: int) -> float | None:
        """Seconds until the next try after so many failures before this one; None leaves it to the scheduler."""
        return self.backoff[min(attempts, len(self.backoff) - 1)] if self.backoff else None

    @property
    def is_async(self) -> bool:
        call = getattr(self.function, "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)


class Context:
    """What a handler is handed: the job as pull shows it, and the delivery it may act for.

    A verifier also finds the governed `object` as it was when it was entered, and the `mode` in which to decide while
    the object is uncertain (explore, collect, conservative, escalate, abstain).
    """

    def __init__(self, held: Held, effects: Callable[[Effect], Json] | None) -> None:
        self.job: dict[str, Any] = held.job
        self._held = held
        self._effects = effects
        self._applied = False
        self.object: dict[str, Any] = {}
        self.mode: str | None = None

    @property
    def idempotency_key(self) -> str:
        """The same for every delivery of this job."""
        return str(self.job["idempotency_key"])

    @property
    def fence(self) -> int:
        """One more with each delivery: whoever keeps the highest can refuse what comes late."""
        return int(self.job["delivery_count"])

    @property
    def payload(self) -> Any:
        """The arguments that the job was enqueued with; None where it has none. Fractions are `Decimal`s."""
        return self.job["payload"]

    def cancelled(self) -> bool:
        """Whether to stop: somebody wished the job cancelled, the lease is lost, or time is up.

        After a wish, raise `Cancelled` and the job ends so; whoever ends in success all the same has succeeded. In the
        other cases the result is thrown away anyway.
        """
        held = self._held
        return held.stopped or held.lost is not None or held.cancel_requested

    def progress(self, fraction: float, note: str = "") -> None:
        """Say how far the work is, 0 to 1, and in a few words what it does; stored with the next renewal of the lease.

        Raises `ValueError` for another number. A note is cut after 200 characters.
        """
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress goes from 0 to 1, not {fraction}")
        self._held.tell(fraction, note)

    def heartbeat(self) -> None:
        """Renew the lease now. Raises `LeaseGone` when another delivery holds the job."""
        self._held.renew()

    def once(self, effect: Effect) -> Json:
        """Run `effect(transaction)` in one transaction of the store, at most once for this job's key, whatever happens.

        The transaction first checks that this delivery still holds its lease; if not, `LeaseGone` is raised and nothing
        is written. If an earlier delivery has done it, nothing is applied and its result is returned. What `effect`
        returns (JSON without floats) is kept. What it does outside of `transaction` is not undone when it fails, and
        may happen again: only what goes through `transaction` is guarded.
        """
        if self._effects is None:
            raise EffectMisused("Effects need the store in this process; this worker talks to a server")
        if self._applied:
            raise EffectMisused("A job has one effect: do all of it in one call of `once`")
        try:
            result = self._effects(effect)
        except LeaseGone as gone:
            self._held.lose(str(gone.reason))
            raise
        self._applied = True
        return result


class AsyncContext(Context):
    """What an async handler is handed: the same, and what asks the store is awaited, so that the loop goes on."""

    _beside: Executor

    @classmethod
    def over(cls, context: Context, beside: Executor) -> "AsyncContext":
        """The same delivery, its calls made by the threads of `beside`."""
        made = cls.__new__(cls)
        made.__dict__ = context.__dict__  # one delivery, one state
        made._beside = beside
        return made

    async def heartbeat(self) -> None:  # type: ignore[override]
        """Renew the lease now. Raises `LeaseGone` when another delivery holds the job."""
        await self._made(super().heartbeat)

    async def once(self, effect: Effect) -> Json:  # type: ignore[override]
        """As `Context.once`; `effect` is an ordinary function, and runs in a thread with this context's variables."""
        return await self._made(partial(super().once, effect))

    async def _made(self, call: Callable[[], T]) -> T:
        work = partial(copy_context().run, _held_by_a_future, call)
        return await asyncio.get_running_loop().run_in_executor(self._beside, work)


def _held_by_a_future(call: Callable[[], T]) -> T:
    """Futures of the loop refuse a `StopIteration`, and whoever awaits one would wait for ever."""
    try:
        return call()
    except StopIteration as stop:
        raise RuntimeError(f"the effect raised {stop!r}") from stop


def handler(
    object_type: str, action: str, *, timeout_sec: float | None = None, backoff: Sequence[float] = ()
) -> Callable[[F], F]:
    """Marks a function, sync or async, as the handler of an action on a type of objects.

    `backoff` are the pauses in seconds after the first failure, the second, and so on; the last one repeats. Without
    it the scheduler doubles a minute up to an hour. `RetryAfter` goes before both.
    """
    return _marking((object_type, action), timeout_sec, backoff, verifies=False)


def verifier(
    object_type: str, action: str, *, timeout_sec: float | None = None, backoff: Sequence[float] = ()
) -> Callable[[F], F]:
    """Marks a function, sync or async, as the one that looks into governed objects: it answers with a `Verdict`.

    It is entered after the gates were read and the budget was taken, and never when they refuse. What it raises is a
    failure as any other; the budget stays taken.
    """
    return _marking((object_type, action), timeout_sec, backoff, verifies=True)


def _marking(
    work: tuple[str, str], timeout_sec: float | None, backoff: Sequence[float], *, verifies: bool
) -> Callable[[F], F]:
    if timeout_sec is not None and timeout_sec <= 0:
        raise HandlersUnusable(f"A time limit is more than 0 seconds, not {timeout_sec}")

    pauses = tuple(backoff)
    if not all(0 <= seconds <= RETRY_DELAY_MOST_SEC for seconds in pauses):
        raise HandlersUnusable(f"The pauses of backoff are 0 to {RETRY_DELAY_MOST_SEC} seconds each, not {pauses}")

    def mark(function: F) -> F:
        marks = (*getattr(function, MARK, ()), (work, timeout_sec, verifies, pauses))
        try:
            setattr(function, MARK, marks)
        except AttributeError as trouble:  # a method of an object, or one that is built in
            raise HandlersUnusable(f"{function!r} cannot be marked; mark a function that calls it") from trouble
        return function

    return mark


def _nothing_to_call(_: Context) -> None:
    raise AssertionError("what an object settles by itself is not called")


class Handlers:
    """Who handles what."""

    def __init__(self, functions: Iterable[Callable[..., Any]] = ()) -> None:
        self._by_work: dict[tuple[str, str], Handler] = {}
        for function in functions:
            self.add(function)

    def add(self, function: Callable[..., Any]) -> None:
        """Add a marked function, for everything it is marked for."""
        for work, timeout_sec, verifies, backoff in getattr(function, MARK, ()):
            there = self._by_work.get(work)
            if there is not None and there.function is not function:
                names = f"{_name(there.function)} and {_name(function)}"
                raise HandlersUnusable(f"{' '.join(work)} has two handlers: {names}", work=list(work))
            self._by_work[work] = Handler(function, timeout_sec, verifies, backoff=backoff)

    def governing(self, object_types: Iterable[str]) -> "Handlers":
        """The same, and for these types what their objects settle by themselves, unless somebody handles it."""
        more = Handlers()
        own = [(kind, action) for kind in object_types for action in SETTLED]
        more._by_work = {**{work: Handler(_nothing_to_call, settles=True) for work in own}, **self._by_work}
        return more

    @property
    def governs(self) -> bool:
        return any(found.verifies or found.settles for found in self._by_work.values())

    @property
    def verified(self) -> list[str]:
        """The types of objects that are looked into here."""
        return sorted({kind for (kind, _), found in self._by_work.items() if found.verifies})

    def find(self, object_type: str, action: str) -> Handler | None:
        return self._by_work.get((object_type, action))

    def check_words(self, words: Vocabulary) -> None:
        """Raise `HandlersUnusable` where something is handled that no job of these settings can be about."""
        strange = [work for work in self.works if work[0] not in words.object_types or work[1] not in words.actions]
        if strange:
            named = ", ".join(" ".join(work) for work in strange)
            raise HandlersUnusable(
                f"There are handlers for what no job can be about: {named}; {OWN_WORDS}", works=named
            )

    @property
    def works(self) -> list[tuple[str, str]]:
        """What there are handlers for."""
        return sorted(self._by_work)


def load(names: Iterable[str]) -> Handlers:
    """The handlers of modules, each named as `package.module`; raises `HandlersUnusable`."""
    found = Handlers()
    for name in names:
        module = _imported(name)
        marked = [value for value in vars(module).values() if isinstance(getattr(value, MARK, None), tuple)]
        if not marked:
            raise HandlersUnusable(
                f"{name} has no handlers: no function in it is marked with @handler or @verifier", module=name
            )
        for function in marked:
            found.add(function)
    return found


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        hint = f"; write {name.removesuffix('.py').replace('/', '.')}" if name.endswith(".py") else ""
        message = f"There is no module {missing.name} (to load handlers from {name}){hint}"
        raise HandlersUnusable(message, module=name) from missing
    except Exception as trouble:
        message = f"{name} cannot be loaded: {type(trouble).__name__}: {trouble}"
        raise HandlersUnusable(message, module=name) from trouble


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _text(at: str | int | datetime | None) -> str | None:
    match at:
        case int():
            return format_utc(at)
        case datetime():
            return at.isoformat()
        case _:
            return at
