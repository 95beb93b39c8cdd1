"""One delivery from the confirmed lease to the word that ends it: named steps, each of which may end it early.

The order is: lease, handler found, gates, budget, handler; then the store is told. No later step runs when an earlier
one ends the delivery. A delivery whose lease is lost ends without a word: the store would refuse it anyway.
"""

import asyncio
import logging
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from inspect import getfile, isawaitable
from itertools import dropwhile
from typing import Any, TypeVar

from msgspec import Struct

from pendula.jobs.model import SECOND
from pendula.jobs.objects.endings import Verdict
from pendula.jobs.store.turn import one_process
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
from pendula.jobs.worker.leases import Held, LeaseGone
from pendula.kernel.time import format_utc

log = logging.getLogger("pendula.jobs.worker")

T = TypeVar("T")

HANDLER = "a handler"

BESIDE_THREADS = 8
FRAMES = 5  # of a traceback, the last ones
BEFORE = frozenset({__file__, getfile(Future)})  # who calls a handler, or waits for it
MESSAGE_MOST = 1500
FRAMES_MOST = 2000


class Acked(Struct, frozen=True):
    """It succeeded; the members of `ack`."""

    members: dict[str, Any]
    follows: bool = False


class Failed(Struct, frozen=True):
    """It failed; the members of `fail`."""

    members: dict[str, Any]


class Dropped(Struct, frozen=True):
    """It is not ours any more, and nothing is told."""

    reason: str


class Unhandled(Struct, frozen=True):
    """It is for another worker, and is handed back; the store gave what was not asked for."""


class Found(Struct, frozen=True):
    """A verifier found something; the members of `finish`."""

    members: dict[str, Any]


class Settled(Struct, frozen=True):
    """The object itself decides."""


class Told(Struct, frozen=True):
    """It has ended in the store already; the status of the job then, and the outcome."""

    status: str
    outcome: str | None = None


Ending = Acked | Failed | Dropped | Unhandled | Found | Settled | Told
Returned = Answer | Awaitable[Answer]


class HandlerTimeout(Exception):
    """The handler took longer than it may."""


class LoopEnded(Exception):
    """The event loop that ran the handler ended before the handler did."""


class Delivery:
    """What the steps work on."""

    def __init__(self, held: Held, handlers: Handlers, context: Context, calling: "Calling") -> None:
        self.held = held
        self.handlers = handlers
        self.context = context
        self.calling = calling
        self.handler: Handler | None = None
        self.begun: dict[str, Any] = {}  # what a verdict rests on: the version of the object, those of the gates


Step = Callable[[Delivery], Ending | None]


def in_order(gates: Sequence[Step] = (), budget: Sequence[Step] = ()) -> tuple[Step, ...]:
    """The steps of a delivery; gates and budget, where objects are governed, stand before the handler."""
    return (confirm_lease, find_handler, *gates, *budget, run_handler)


def carried_out(delivery: Delivery, steps: Sequence[Step]) -> Ending:
    """How the delivery ends. Raises nothing: a step that does ends it as failed."""
    for step in steps:
        try:
            ending = step(delivery)
        except BaseException as error:  # whatever a handler raises, the loop goes on
            ending = _with_backoff(delivery, _after_error(delivery.held, error))
        if ending is not None:
            return ending if delivery.held.lost is None else Dropped(delivery.held.lost)
    raise AssertionError("the last step always ends a delivery")


def confirm_lease(delivery: Delivery) -> Ending | None:
    held = delivery.held
    return None if held.is_confirmed() else Dropped(held.lost or "lease_unconfirmed")


def find_handler(delivery: Delivery) -> Ending | None:
    job = delivery.held.job
    delivery.handler = delivery.handlers.find(job["object_type"], job["action"])
    return None if delivery.handler is not None else Unhandled()


def run_handler(delivery: Delivery) -> Ending:
    assert delivery.handler is not None
    if delivery.handler.settles:
        return Settled()
    answer = delivery.calling.call(delivery.handler, delivery.context)
    if delivery.handler.verifies:
        return _found(delivery, answer)
    match answer:
        case None:
            return Acked(Done().members())
        case Done():
            return Acked(answer.members())
        case RunAgain():
            at = format_utc(delivery.held.store_now() + answer.in_sec * SECOND)
            again = Done(next_action_at=at, next_action=delivery.held.job["action"])
            return Acked(again.members(), follows=True)
        case _:
            raise PermanentError(f"a handler returns None, Done or RunAgain, not {type(answer).__name__}")


def _found(delivery: Delivery, answer: Answer) -> Found:
    if not isinstance(answer, Verdict):
        raise PermanentError(f"a verifier returns a Verdict, not {type(answer).__name__}")
    refs: object = answer.evidence
    if not isinstance(refs, tuple | list):  # a text would be taken for its letters, and a set has no order
        raise PermanentError(f"the evidence of a verdict is a tuple of references, not {type(refs).__name__}")
    unknown = {} if answer.unknown_type is None else {"unknown_type": str(answer.unknown_type)}
    said = {"finding": _plain(answer.finding), "reason": _plain(answer.reason), "evidence_refs": [*map(_plain, refs)]}
    return Found({**said, **unknown, **delivery.begun})


def _plain(text: object) -> object:
    """A text that is one and nothing else: what somebody made of `str` could not be written down."""
    return str.__str__(text) if isinstance(text, str) else text


def _after_error(held: Held, error: BaseException) -> Ending:
    match error:
        case LeaseGone():
            return Dropped(held.lost or "lease_gone")
        case HandlerTimeout():
            held.stop()
            return Failed({"error": f"timeout: {error}"})
        case ObjectNotFound():
            return Failed({"error": f"object_not_found: {_said(error)}", "retryable": False})
        case Cancelled():
            message = _said(error) or "the handler stopped when it was asked to"
            return Failed({"error": f"cancelled: {message}", "cancelled": True})
        case PermanentError():
            return Failed({"error": described(error), "retryable": False})
        case RetryAfter():
            # One that was made without its seconds is a failure as any other.
            seconds = getattr(error, "seconds", None)
            return Failed({"error": described(error), **({} if seconds is None else {"retry_delay_sec": seconds})})
        case _:
            return Failed({"error": described(error)})


def _with_backoff(delivery: Delivery, ending: Ending) -> Ending:
    """The pause of the handler, where the failure is to be tried again and names none."""
    if not isinstance(ending, Failed) or delivery.handler is None:
        return ending
    members = ending.members
    pause = delivery.handler.pause_after(delivery.held.job["attempt"])
    if pause is None or not members.keys().isdisjoint(("retry_delay_sec", "retryable", "cancelled")):
        return ending
    return Failed({**members, "retry_delay_sec": pause})


def described(error: BaseException) -> str:
    """Type, message and the last lines of the traceback from the handler on; the type alone of what cannot be shown."""
    try:
        return _readable(_described(error))
    except BaseException:  # what an error shows of itself is foreign code
        return _unshown(error)


def _described(error: BaseException) -> str:
    head = "".join(traceback.format_exception_only(error)).strip()
    if type(error).__module__.startswith("pendula."):
        head = head.removeprefix(f"{type(error).__module__}.")  # ours are known by their name alone
    theirs = dropwhile(_is_before_the_handler, traceback.extract_tb(error.__traceback__))
    frames = "".join(traceback.format_list(list(theirs)[-FRAMES:]))[-FRAMES_MOST:]
    return f"{head[:MESSAGE_MOST]}\n{frames}".strip()


def _is_before_the_handler(frame: traceback.FrameSummary) -> bool:
    return frame.filename in BEFORE


def _said(error: BaseException) -> str:
    """The message of an error."""
    try:
        return _readable(str(error))[:MESSAGE_MOST]
    except BaseException:
        return _unshown(error)


def _unshown(error: BaseException) -> str:
    return _readable(f"{type(error).__name__}: the error cannot be shown")


def _readable(text: str) -> str:
    """Without what no text file could hold."""
    return text.encode("utf-8", "backslashreplace").decode()


class Calling:
    """Runs handlers: in the calling thread; in one of its own where time is limited; on the loop where it is async.

    All async handlers share one event loop: the one given, else one in a thread of its own. What they ask of the store
    (`AsyncContext`) is done in a few threads beside it. A thread cannot be stopped from outside: a handler that is over
    its time is told so by `cancelled()`, left alone, and what it returns is thrown away.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._lock = threading.Lock()
        self._loop = loop
        self._thread: threading.Thread | None = None
        self._beside: ThreadPoolExecutor | None = None
        self._awaiting: dict[Future[Any], None] = {}
        self._closing = False

    def call(self, handler: Handler, context: Context) -> Answer:
        """What the handler returns; raises what it raises, and `HandlerTimeout`."""
        if handler.is_async:
            beside = AsyncContext.over(context, self._threads())
            return self._awaited(lambda: handler.function(beside), handler.timeout_sec)
        if handler.timeout_sec is None:
            with one_process(HANDLER):
                answer = handler.function(context)
        else:
            answer = _limited(handler, context, handler.timeout_sec)
        return self._awaited(lambda: answer, handler.timeout_sec) if isawaitable(answer) else answer

    def close(self, seconds: float = 5.0) -> None:
        """Stop the loop; one that a handler blocks is left behind."""
        self._closing = True
        loop, thread = self._loop, self._thread
        if self._beside is not None:
            self._beside.shutdown(wait=False)
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(seconds)
        if not thread.is_alive():
            loop.close()

    def _awaited(self, begin: Callable[[], Any], seconds: float | None) -> Answer:
        with self._lock:
            future = asyncio.run_coroutine_threadsafe(_contained(begin), self._running_loop())
            self._awaiting[future] = None
        try:
            return _within(future, seconds)
        finally:
            self._awaiting.pop(future, None)

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._beside is None:
                self._beside = ThreadPoolExecutor(BESIDE_THREADS, "pendula-jobs-beside")
            return self._beside

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """The loop; the lock is held."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run_loop, args=(self._loop,), daemon=True)
            self._thread.name = "pendula-jobs-async"
            self._thread.start()
        return self._loop

    def _run_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Until `close`: a handler that stops the loop, or a task that exits, ends no other handler."""
        asyncio.set_event_loop(loop)
        ended: BaseException | None = None
        while not self._closing and ended is None:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as leaving:
                log.warning("a task of an async handler raised %r; the event loop goes on", leaving)
            except BaseException as trouble:  # as when a handler closed the files of the loop
                log.exception("the event loop of async handlers ended")
                ended = trouble
        with suppress(OSError, RuntimeError):
            _cancel_all(loop)
        self._end_awaiting(loop, ended)

    def _end_awaiting(self, loop: asyncio.AbstractEventLoop, ended: BaseException | None) -> None:
        """Fail what the loop did not finish, or its handlers would be waited for without end; the next has another."""
        with self._lock:
            if ended is not None and self._loop is loop:
                self._loop = self._thread = None
            left = list(self._awaiting)
        for future in left:
            with suppress(InvalidStateError):
                future.set_exception(LoopEnded(f"the event loop ended before the handler: {ended!r}"))


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=1.0))


async def _contained(begin: Callable[[], Awaitable[Answer]]) -> Answer:
    """An exit of the program out of a handler would end the loop, and with it everybody else's handlers."""
    try:
        with one_process(HANDLER):
            return await begin()
    except (SystemExit, KeyboardInterrupt) as leaving:
        raise RuntimeError(f"the handler raised {type(leaving).__name__}: {leaving}") from leaving


def _limited(handler: Handler, context: Context, seconds: float) -> Returned:
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
    return _within(future, seconds)


def _within(future: Future[T], seconds: float | None) -> T:
    try:
        return future.result(seconds)
    except TimeoutError:
        # A handler's own TimeoutError comes out of a finished future; so may an answer, a moment late.
        if future.done():
            return future.result()
    future.cancel()
    raise HandlerTimeout(f"the handler took longer than {seconds} s")
