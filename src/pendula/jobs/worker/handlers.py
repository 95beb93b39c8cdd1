"""Handlers: functions marked with `@handler`, their context, return values and exceptions.

    @handler("memory", "decay", timeout_sec=30)
    def decay(context: Context) -> Done:
        outcome = context.once(lambda transaction: fade(transaction, context.job.object_id))
        return Done(next_action_at="2026-03-01T00:00:00Z", outcome=outcome)

A job is delivered at least once: after a crash, a lost lease or a lost reply its handler runs again. Writes in
`context.once` are applied only once. Everything else a handler does (a mail, a call to another service, a file) may
happen again and must be idempotent: pass `context.idempotency_key` or `context.fence` on.
"""

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

from pendula.jobs.messages import Job
from pendula.jobs.model import DECLARE_WORDS, RETRY_DELAY_MOST_SEC, Vocabulary
from pendula.jobs.reasons import Verdict
from pendula.jobs.scheduler_calls import AckMembers
from pendula.jobs.worker.effects import Transaction
from pendula.jobs.worker.leases import Lease, LeaseGone
from pendula.kernel.canonical import Json
from pendula.kernel.errors import WrongUsage
from pendula.kernel.time import format_utc

MARK = "__pendula_handlers__"
SETTLED = ("decay", "archive")
AGAIN_MOST_SEC = 36_525 * 86_400


class HandlersUnusable(WrongUsage):
    """A module cannot be loaded or has no handlers, or two handlers serve the same action."""

    code = "handlers_unusable"


class EffectMisused(WrongUsage):
    """A second effect of one job, or an effect in a worker that has no direct access to the store."""

    code = "effect_misused"


class PermanentError(Exception):
    """Raised by a handler: do not retry the job."""


class ObjectNotFound(PermanentError):
    """Raised by a handler: the object of the job does not exist any more."""


class Cancelled(Exception):
    """Raised by a handler after a cancel request: the job ends as failed, with the outcome `cancelled`."""


class RetryAfter(Exception):
    """Raised by a handler: retry the job after `seconds` (0 to 30 days)."""

    def __init__(self, seconds: float, message: str = "") -> None:
        if not 0 <= seconds <= RETRY_DELAY_MOST_SEC:  # NaN fails both comparisons
            raise ValueError(f"seconds must be 0 to {RETRY_DELAY_MOST_SEC}, not {seconds}")
        super().__init__(message or f"retry in {seconds} s")
        self.seconds = seconds


class Done(Struct, frozen=True):
    """The job succeeded. `next_action_at` (text, microseconds, or a datetime with an offset) is the object's next time.

    Unset keeps that time, None clears it. `outcome` is a short label for reports, `result` any JSON of up to 64 KiB,
    shown as `outcome_result`.
    """

    next_action_at: str | int | datetime | UnsetType | None = UNSET
    next_action: str | None = None
    outcome: str | None = None
    result: Any = None

    def members(self) -> AckMembers:
        """The members of the call `ack`."""
        members = AckMembers(result="succeeded")
        if self.next_action_at is not UNSET:
            members["next_action_at"] = _time_text(self.next_action_at)
        if self.next_action is not None:
            members["next_action"] = self.next_action
        if self.outcome is not None:
            members["outcome"] = self.outcome
        if self.result is not None:
            members["outcome_result"] = self.result
        return members


class RunAgain(Struct, frozen=True):
    """The job succeeded; run it again in `in_sec` seconds, a whole number from 1 to a century."""

    in_sec: int

    def __post_init__(self) -> None:
        if type(self.in_sec) is not int or not 1 <= self.in_sec <= AGAIN_MOST_SEC:
            raise ValueError(f"in_sec must be a whole number from 1 to {AGAIN_MOST_SEC}, not {self.in_sec}")


Answer = Done | RunAgain | Verdict | None
Effect = Callable[[Transaction], Json | Struct]
Function = Callable[["Context"], Answer | Awaitable[Answer]]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Handler(Struct, frozen=True):
    """A function and its options.

    `backoff` are the delays in seconds before retries. A handler that `verifies` runs under governance and returns a
    `Verdict`; with `settles` the governed object decides the job and nothing is called.
    """

    function: Function
    timeout_sec: float | None = None
    verifies: bool = False
    settles: bool = False
    backoff: tuple[float, ...] = ()

    def pause_after(self, attempts: int) -> float | None:
        """Seconds until the retry, given the failed attempts before this one; None: the scheduler decides."""
        return self.backoff[min(attempts, len(self.backoff) - 1)] if self.backoff else None

    @property
    def is_async(self) -> bool:
        call = getattr(self.function, "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)


class Context:
    """The argument of a handler: the job as pull returned it, and the calls on its delivery.

    For a verifier, `object` is the governed object when the verification began, and `mode` how to decide while the
    object is uncertain (explore, collect, conservative, escalate, abstain).
    """

    def __init__(self, lease: Lease, effects: Callable[[Effect], Json] | None) -> None:
        self.job: Job = lease.job
        self._lease = lease
        self._effects = effects
        self._applied = False
        self.object: dict[str, Any] = {}
        self.mode: str | None = None

    @property
    def idempotency_key(self) -> str:
        """The same in every delivery of this job."""
        return self.job.idempotency_key

    @property
    def fence(self) -> int:
        """Grows by one with each delivery: a service that remembers the highest can reject late writes."""
        return self.job.delivery_count

    @property
    def payload(self) -> Any:
        """The arguments that the job was enqueued with, or None. Fractions are `Decimal`."""
        return self.job.payload

    def cancelled(self) -> bool:
        """Whether to stop: cancellation was requested, the lease is lost, or the timeout has passed.

        After a cancel request, raise `Cancelled` to end the job as cancelled; a normal return still succeeds. In the
        other cases the result is discarded.
        """
        lease = self._lease
        return lease.stopped or lease.lost is not None or lease.cancel_requested

    def progress(self, fraction: float, note: str = "") -> None:
        """Report progress from 0 to 1 with a short note; stored with the next renewal of the lease.

        Raises `ValueError` outside that range. A note is cut after 200 characters.
        """
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress must be 0 to 1, not {fraction}")
        self._lease.set_progress(fraction, note)

    def heartbeat(self) -> None:
        """Renew the lease now. Raises `LeaseGone` when another delivery holds the job."""
        self._lease.renew()

    def once(self, effect: Effect) -> Json:
        """Run `effect(transaction)` in one transaction of the store, at most once for this job's key.

        Raises `LeaseGone` and writes nothing if this delivery has lost its lease. If an earlier delivery has applied
        the effect, its stored result (JSON without floats) is returned. Only writes through `transaction` are covered:
        anything else the effect does is not undone when it fails, and may happen again.
        """
        if self._effects is None:
            raise EffectMisused("once() needs the store in this process; this worker uses a server")
        if self._applied:
            raise EffectMisused("A job has one effect: make one call of `once`")
        try:
            result = self._effects(effect)
        except LeaseGone as gone:
            self._lease.lose(str(gone.reason))
            raise
        self._applied = True
        return result


class AsyncContext(Context):
    """The context of an async handler: the calls on the store are awaited, so that they do not block the loop."""

    _executor: Executor

    @classmethod
    def wrap(cls, context: Context, executor: Executor) -> "AsyncContext":
        """The async view of a context; its calls run in `executor`."""
        wrapped = cls.__new__(cls)
        wrapped.__dict__ = context.__dict__  # one delivery, one state
        wrapped._executor = executor
        return wrapped

    async def heartbeat(self) -> None:  # type: ignore[override]
        """Renew the lease now. Raises `LeaseGone` when another delivery holds the job."""
        await self._in_executor(super().heartbeat)

    async def once(self, effect: Effect) -> Json:  # type: ignore[override]
        """As `Context.once`; `effect` is an ordinary function, and runs in a thread with this context's variables."""
        return await self._in_executor(partial(super().once, effect))

    async def _in_executor(self, call: Callable[[], T]) -> T:
        work = partial(copy_context().run, _without_stop_iteration, call)
        from asyncio import get_running_loop  # loaded already, by the loop that this runs on

        return await get_running_loop().run_in_executor(self._executor, work)


def _without_stop_iteration(call: Callable[[], T]) -> T:
    """An asyncio future rejects `StopIteration`; awaiting it would hang."""
    try:
        return call()
    except StopIteration as stop:
        raise RuntimeError(f"the effect raised {stop!r}") from stop


def handler(
    object_type: str, action: str, *, timeout_sec: float | None = None, backoff: Sequence[float] = ()
) -> Callable[[F], F]:
    """Mark a function, sync or async, as the handler of an action on a type of objects.

    `backoff` are the delays in seconds after the first failure, the second, and so on; the last one repeats. The
    default is the scheduler's: one minute, doubled up to an hour. `RetryAfter` overrides both.
    """
    return _marker((object_type, action), timeout_sec, backoff, verifies=False)


def verifier(
    object_type: str, action: str, *, timeout_sec: float | None = None, backoff: Sequence[float] = ()
) -> Callable[[F], F]:
    """Mark a function, sync or async, as the verifier of governed objects; it returns a `Verdict`.

    It runs only if the gates and the budget allow it. An exception is an ordinary failure; the spent unit of budget
    does not come back.
    """
    return _marker((object_type, action), timeout_sec, backoff, verifies=True)


def _marker(
    work: tuple[str, str], timeout_sec: float | None, backoff: Sequence[float], *, verifies: bool
) -> Callable[[F], F]:
    if timeout_sec is not None and timeout_sec <= 0:
        raise HandlersUnusable(f"timeout_sec must be more than 0, not {timeout_sec}")

    pauses = tuple(backoff)
    if not all(0 <= seconds <= RETRY_DELAY_MOST_SEC for seconds in pauses):
        raise HandlersUnusable(f"Each delay in backoff must be 0 to {RETRY_DELAY_MOST_SEC} seconds, not {pauses}")

    def mark(function: F) -> F:
        marks = (*getattr(function, MARK, ()), (work, timeout_sec, verifies, pauses))
        try:
            setattr(function, MARK, marks)
        except AttributeError as trouble:  # a bound method or a builtin
            raise HandlersUnusable(f"{function!r} cannot be marked; mark a function that calls it") from trouble
        return function

    return mark


def _nothing_to_call(_: Context) -> None:
    raise AssertionError("settled jobs have no handler to call")


class Handlers:
    """The handlers of a worker by object type and action."""

    def __init__(self, functions: Iterable[Callable[..., Any]] = ()) -> None:
        self._by_work: dict[tuple[str, str], Handler] = {}
        for function in functions:
            self.add(function)

    def add(self, function: Callable[..., Any]) -> None:
        """Add a marked function under each of its marks."""
        for work, timeout_sec, verifies, backoff in getattr(function, MARK, ()):
            existing = self._by_work.get(work)
            if existing is not None and existing.function is not function:
                names = f"{_function_name(existing.function)} and {_function_name(function)}"
                raise HandlersUnusable(f"{' '.join(work)} has two handlers: {names}", work=list(work))
            self._by_work[work] = Handler(function, timeout_sec, verifies, backoff=backoff)

    def with_settled(self, object_types: Iterable[str]) -> "Handlers":
        """A copy that also settles decay and archive jobs of these types, unless they have a handler."""
        extended = Handlers()
        settled = [(kind, action) for kind in object_types for action in SETTLED]
        extended._by_work = {**{work: Handler(_nothing_to_call, settles=True) for work in settled}, **self._by_work}
        return extended

    @property
    def has_governed(self) -> bool:
        return any(entry.verifies or entry.settles for entry in self._by_work.values())

    @property
    def verified_types(self) -> list[str]:
        return sorted({kind for (kind, _), entry in self._by_work.items() if entry.verifies})

    def find(self, object_type: str, action: str) -> Handler | None:
        return self._by_work.get((object_type, action))

    def check_vocabulary(self, words: Vocabulary) -> None:
        """Raise `HandlersUnusable` if a handler's object type or action is not in the vocabulary."""
        unknown = [work for work in self.works if work[0] not in words.object_types or work[1] not in words.actions]
        if unknown:
            names = ", ".join(" ".join(work) for work in unknown)
            raise HandlersUnusable(f"There are handlers outside the vocabulary: {names}; {DECLARE_WORDS}", works=names)

    @property
    def works(self) -> list[tuple[str, str]]:
        """The pairs of object type and action that have a handler."""
        return sorted(self._by_work)


def load(names: Iterable[str]) -> Handlers:
    """Import modules named as `package.module` and collect their handlers. Raises `HandlersUnusable`."""
    handlers = Handlers()
    for name in names:
        module = _import_module(name)
        marked = [value for value in vars(module).values() if isinstance(getattr(value, MARK, None), tuple)]
        if not marked:
            raise HandlersUnusable(
                f"{name} has no handlers: no function in it is marked with @handler or @verifier", module=name
            )
        for function in marked:
            handlers.add(function)
    return handlers


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        hint = f"; write {name.removesuffix('.py').replace('/', '.')}" if name.endswith(".py") else ""
        message = f"No module {missing.name} (loading handlers from {name}){hint}"
        raise HandlersUnusable(message, module=name) from missing
    except Exception as trouble:
        message = f"{name} cannot be loaded: {type(trouble).__name__}: {trouble}"
        raise HandlersUnusable(message, module=name) from trouble


def _function_name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _time_text(at: str | int | datetime | None) -> str | None:
    match at:
        case int():
            return format_utc(at)
        case datetime():
            return at.isoformat()
        case _:
            return at
