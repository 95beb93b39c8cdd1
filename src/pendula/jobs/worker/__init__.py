"""Workers: pull due jobs, run their handlers, report the results.

worker      `Worker`: the pull loop, handler threads, graceful stop, reports of endings with retries
async_worker
            `AsyncWorker`: the same for programs with an event loop (asyncio)
async_loop  the event loop of async handlers
handlers    the `@handler` decorator, the context of a handler, its return values and exceptions
delivery    one delivery as a sequence of steps, from the confirmed lease to its ending; timeouts, governed objects
leases      the leases a worker holds, renewed by a thread that no handler can block
heartbeats  a worker's counters, written to the store so that others see that it is alive
effects     effects applied at most once: written in the same transaction as their record
"""

from pendula.jobs.reasons import Verdict
from pendula.jobs.worker.handlers import (
    AsyncContext,
    Cancelled,
    Context,
    Done,
    Handlers,
    ObjectNotFound,
    PermanentError,
    RetryAfter,
    RunAgain,
    handler,
    load,
    verifier,
)
from pendula.jobs.worker.worker import Worker

__all__ = [
    "AsyncContext",
    "Cancelled",
    "Context",
    "Done",
    "Handlers",
    "ObjectNotFound",
    "PermanentError",
    "RetryAfter",
    "RunAgain",
    "Verdict",
    "Worker",
    "handler",
    "load",
    "verifier",
]
