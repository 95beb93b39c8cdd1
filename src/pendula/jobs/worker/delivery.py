"""One delivery as a sequence of steps, each of which may end it early.

The order is: confirm the lease, find the handler, check the gates, take the budget, run the handler; then the ending is
reported to the store. When a step ends the delivery, no later step runs. A delivery whose lease is lost reports
nothing, because the store would reject the report.
"""

import logging
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from inspect import getfile, isawaitable
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from pendula.jobs.hooks import GovernedCalls, governance
from pendula.jobs.model import SECOND, Code, Policy
from pendula.jobs.reasons import Verdict
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import AckMembers, FailMembers
from pendula.jobs.store.writer_thread import one_process
from pendula.jobs.worker.handlers import (
    Answer,
    AsyncContext,
    Cancelled,
    Context,
    Done,
    Handler,
    Handlers,
    ObjectNotFound,
    PermanentError,
    RetryAfter,
    RunAgain,
)
from pendula.jobs.worker.leases import LEASE_CODES, Lease, LeaseGone, is_rate_limit
from pendula.kernel.errors import InputRefused, WorldBroken
from pendula.kernel.time import format_utc

if TYPE_CHECKING:
    from pendula.jobs.worker.async_loop import AsyncLoop

log = logging.getLogger("pendula.jobs.worker")

T = TypeVar("T")

HANDLER = "a handler"

FRAMES = 5  # the last ones of a traceback
CALLING_FILES = frozenset(
    {__file__, str(Path(__file__).with_name("async_loop.py")), getfile(Future)}
)  # frames before those of the handler
MESSAGE_MOST = 1500
FRAMES_MOST = 2000


class Acked(Struct, frozen=True):
    """Succeeded; `members` are those of the call `ack`."""

    members: AckMembers
    follows: bool = False


class Failed(Struct, frozen=True):
    """Failed; `members` are those of the call `fail`."""

    members: FailMembers


class Dropped(Struct, frozen=True):
    """The delivery is not ours any more; nothing is reported."""

    reason: str


class Unhandled(Struct, frozen=True):
    """This worker has no handler for the job and releases it."""


class Finished(Struct, frozen=True):
    """A verifier returned a verdict; `members` are those of the call `finish`."""

    members: dict[str, Any]


class Settled(Struct, frozen=True):
    """The governed object decides the job without a handler (call `settle`)."""


class DeliveryReport(Struct, frozen=True):
    """The job has already ended in the store, with this status and outcome."""

    status: str
    outcome: str | None = None


Ending = Acked | Failed | Dropped | Unhandled | Finished | Settled | DeliveryReport
Returned = Answer | Awaitable[Answer]


class HandlerTimeout(Exception):
    """The handler exceeded its timeout."""


class Delivery:
    """The state that the steps of one delivery share."""

    def __init__(self, lease: Lease, handlers: Handlers, context: Context, runner: "HandlerRunner") -> None:
        self.lease = lease
        self.handlers = handlers
        self.context = context
        self.runner = runner
        self.handler: Handler | None = None
        self.begun: dict[str, Any] = {}  # versions of the object and its gates when the verifier began


Step = Callable[[Delivery], Ending | None]


def delivery_steps(gates: Sequence[Step] = (), budget: Sequence[Step] = ()) -> tuple[Step, ...]:
    """The steps in order; gates and budget of governed objects come before the handler."""
    return (confirm_lease, find_handler, *gates, *budget, run_handler)


def run_steps(delivery: Delivery, steps: Sequence[Step]) -> Ending:
    """Run the steps until one ends the delivery. Raises nothing: an exception ends it as failed."""
    for step in steps:
        try:
            ending = step(delivery)
        except BaseException as error:  # nothing that a handler raises may stop the worker
            ending = _with_backoff(delivery, _ending_of_error(delivery.lease, error))
        if ending is not None:
            return ending if delivery.lease.lost is None else Dropped(delivery.lease.lost)
    raise AssertionError("the last step always ends a delivery")


def confirm_lease(delivery: Delivery) -> Ending | None:
    lease = delivery.lease
    return None if lease.is_confirmed() else Dropped(lease.lost or "lease_unconfirmed")


def find_handler(delivery: Delivery) -> Ending | None:
    job = delivery.lease.job
    delivery.handler = delivery.handlers.find(job.object_type, job.action)
    return None if delivery.handler is not None else Unhandled()


def run_handler(delivery: Delivery) -> Ending:
    assert delivery.handler is not None
    if delivery.handler.settles:
        return Settled()
    answer = delivery.runner.call(delivery.handler, delivery.context)
    if delivery.handler.verifies:
        return _finish_verification(delivery, answer)
    match answer:
        case None:
            return Acked(Done().members())
        case Done():
            return Acked(answer.members())
        case RunAgain():
            at = format_utc(delivery.lease.store_now() + answer.in_sec * SECOND)
            again = Done(next_action_at=at, next_action=delivery.lease.job.action)
            return Acked(again.members(), follows=True)
        case _:
            raise PermanentError(f"a handler returns None, Done or RunAgain, not {type(answer).__name__}")


def _finish_verification(delivery: Delivery, answer: Answer) -> Finished:
    if not isinstance(answer, Verdict):
        raise PermanentError(f"a verifier returns a Verdict, not {type(answer).__name__}")
    refs: object = answer.evidence
    if not isinstance(refs, tuple | list):  # a string would be split into characters, and a set has no order
        raise PermanentError(f"the evidence of a verdict is a tuple of references, not {type(refs).__name__}")
    unknown = {} if answer.unknown_type is None else {"unknown_type": str(answer.unknown_type)}
    verdict = {
        "finding": _plain_text(answer.finding),
        "reason": _plain_text(answer.reason),
        "evidence_refs": [*map(_plain_text, refs)],
    }
    return Finished({**verdict, **unknown, **delivery.begun})


def _plain_text(text: object) -> object:
    """Reduce subclasses of `str` to plain strings: only those can be encoded."""
    return str.__str__(text) if isinstance(text, str) else text


def _ending_of_error(lease: Lease, error: BaseException) -> Ending:
    match error:
        case LeaseGone():
            return Dropped(lease.lost or "lease_gone")
        case HandlerTimeout():
            lease.stop()
            return Failed({"error": f"timeout: {error}"})
        case ObjectNotFound():
            return Failed({"error": f"object_not_found: {_message_of(error)}", "retryable": False})
        case Cancelled():
            message = _message_of(error) or "the handler stopped on request"
            return Failed({"error": f"cancelled: {message}", "cancelled": True})
        case PermanentError():
            return Failed({"error": describe_error(error), "retryable": False})
        case RetryAfter():
            # A subclass that does not call `__init__` has no seconds and is an ordinary failure.
            seconds = getattr(error, "seconds", None)
            members = FailMembers(error=describe_error(error))
            if seconds is not None:
                members["retry_delay_sec"] = seconds
            return Failed(members)
        case _:
            return Failed({"error": describe_error(error)})


def _with_backoff(delivery: Delivery, ending: Ending) -> Ending:
    """Add the backoff of the handler to a failure that will be retried and names no delay."""
    if not isinstance(ending, Failed) or delivery.handler is None:
        return ending
    members = ending.members
    pause = delivery.handler.pause_after(delivery.lease.job.attempt)
    if pause is None or not members.keys().isdisjoint(("retry_delay_sec", "retryable", "cancelled")):
        return ending
    return Failed({**members, "retry_delay_sec": pause})


def describe_error(error: BaseException) -> str:
    """Type, message and the last traceback frames, from the handler on; only the type if rendering the error fails."""
    try:
        return _escape_surrogates(_render_error(error))
    except BaseException:  # `__str__` of an error is user code and may raise
        return _unprintable(error)


def _render_error(error: BaseException) -> str:
    head = "".join(traceback.format_exception_only(error)).strip()
    if type(error).__module__.startswith("pendula."):
        head = head.removeprefix(f"{type(error).__module__}.")  # our own errors appear by class name only
    handler_frames = dropwhile(_is_before_the_handler, traceback.extract_tb(error.__traceback__))
    frames = "".join(traceback.format_list(list(handler_frames)[-FRAMES:]))[-FRAMES_MOST:]
    return f"{head[:MESSAGE_MOST]}\n{frames}".strip()


def _is_before_the_handler(frame: traceback.FrameSummary) -> bool:
    return frame.filename in CALLING_FILES


def _message_of(error: BaseException) -> str:
    try:
        return _escape_surrogates(str(error))[:MESSAGE_MOST]
    except BaseException:
        return _unprintable(error)


def _unprintable(error: BaseException) -> str:
    return _escape_surrogates(f"{type(error).__name__}: the error cannot be shown")


def _escape_surrogates(text: str) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode()


class HandlerRunner:
    """Runs handlers: sync ones in the calling thread, or in a new thread if they have a timeout; async ones on a loop.

    A thread cannot be killed: after its timeout a handler sees `cancelled()` become true, and its result is discarded.
    """

    def __init__(self, loop: "AsyncLoop | None" = None) -> None:
        self._lock = threading.Lock()
        self._async = loop

    def call(self, handler: Handler, context: Context) -> Answer:
        """Return the answer of the handler. Raises what the handler raises, and `HandlerTimeout`."""
        if handler.is_async:
            loop = self._async_loop()
            async_context = AsyncContext.wrap(context, loop.executor())
            return _result_on(loop, lambda: handler.function(async_context), handler.timeout_sec)
        if handler.timeout_sec is None:
            with one_process(HANDLER):
                answer = handler.function(context)
        else:
            answer = _call_in_thread(handler, context, handler.timeout_sec)
        if not isawaitable(answer):
            return answer
        return _result_on(self._async_loop(), lambda: answer, handler.timeout_sec)

    def close(self, seconds: float = 5.0) -> None:
        """Stop the event loop. A loop that a handler blocks for longer than `seconds` is abandoned."""
        if self._async is not None:
            self._async.close(seconds)

    def _async_loop(self) -> "AsyncLoop":
        with self._lock:
            if self._async is None:
                from pendula.jobs.worker.async_loop import AsyncLoop  # asyncio, which sync handlers do not need

                self._async = AsyncLoop()
            return self._async


def _result_on(loop: "AsyncLoop", begin: Callable[[], Any], seconds: float | None) -> Answer:
    with loop.run(begin) as future:
        return _result_within(future, seconds)


def _call_in_thread(handler: Handler, context: Context, seconds: float) -> Returned:
    future: Future[Returned] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            with one_process(HANDLER):
                answer = handler.function(context)
            future.set_result(answer)
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="pendula-jobs-limited", daemon=True).start()
    return _result_within(future, seconds)


def _result_within(future: Future[T], seconds: float | None) -> T:
    try:
        return future.result(seconds)
    except TimeoutError:
        # A finished future holds a TimeoutError of the handler itself, or an answer that came just now.
        if future.done():
            return future.result()
    future.cancel()
    raise HandlerTimeout(f"the handler took longer than {seconds} s")


def governed_types(client: object, handlers: Handlers, govern: bool | Sequence[str]) -> Sequence[str]:
    """The object types whose decay and archive jobs this worker settles. For a server with its own machines, name the
    types: the worker does not ask the server."""
    if not isinstance(govern, bool):
        return govern
    if not govern:
        return ()
    policy = client.calls.policy if isinstance(client, Scheduler) else Policy()
    known = governance().object_types(policy)
    return sorted({*known, *handlers.verified_types})


def governed_objects(client: object, handlers: Handlers) -> GovernedCalls | None:
    """The governed objects of a client, if its handlers need them or it brings its own as `objects`."""
    own: GovernedCalls | None = getattr(client, "objects", None)
    return governance().job_calls(client) if own is None and handlers.has_governed else own


def begin_step(objects: GovernedCalls, wait: Callable[[int], bool]) -> Step:
    """The step that begins a verification; `wait(n)` waits before retry n and returns False to give up."""

    def enter(delivery: Delivery) -> Ending | None:
        assert delivery.handler is not None
        if not delivery.handler.verifies:
            return None
        lease = delivery.lease
        lease.reporting = True  # the job may end here, and a concurrent renewal would be rejected because of that
        begun = _begin(delivery, objects, wait)
        if not isinstance(begun, dict):
            return begun
        if not begun["entered"]:
            return DeliveryReport(begun["job"]["status"], begun.get("outcome"))
        lease.reporting = lease.settled = False
        _enter(delivery, begun)
        return None

    return enter


def _begin(delivery: Delivery, objects: GovernedCalls, wait: Callable[[int], bool]) -> dict[str, Any] | Ending:
    """Call `begin`, with retries while the store is unreachable; a repeated call takes no second unit of budget."""
    lease, tries = delivery.lease, 0
    while lease.lost is None:
        try:
            return objects.begin(lease.job_id, **lease.proof)
        except WorldBroken as trouble:
            log.warning("%s cannot be begun now: %s", lease.job_id, trouble)
        except InputRefused as refused:
            if not is_rate_limit(refused):
                return _ending_of_refusal(refused)
        tries += 1
        if not wait(tries):
            return Dropped("store_lost")
    return Dropped(lease.lost)


def _ending_of_refusal(refused: InputRefused) -> Ending:
    if refused.code in LEASE_CODES:
        return Dropped(refused.code)
    # The object does not exist, or its type has no state machine: a retry does not help.
    word = refused.code if refused.code == Code.OBJECT_NOT_FOUND else f"not_governed: {refused.code}"
    return Failed({"error": f"{word}: {refused.message}", "retryable": False})


def _enter(delivery: Delivery, begun: dict[str, Any]) -> None:
    delivery.context.object = begun["object"]
    delivery.context.mode = begun["mode"]
    delivery.begun = {"version": begun["version"], "gates": begun["gates"]}
