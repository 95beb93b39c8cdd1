"""Who does the work, and how a worker goes about it.

worker      `Worker`: pulls due jobs, runs their handlers, tells how they ended; stops gracefully
async_worker
            `AsyncWorker`: the same for programs with an event loop (asyncio)
handlers    what a worker runs: functions marked with `@handler`, what they are handed, what they may answer
delivery    one delivery from the confirmed lease to the word that ends it, in named steps; timeouts, async handlers
governing   under governance: gates and budget before a verifier is entered
reporting   the store is told how deliveries ended, until it has heard
leases      the leases a worker holds, renewed by a thread that no handler can block (the heartbeat)
signs       a worker's counters in the store, with their age: who lives, and what it did
effects     effects that happen once: written together with their record (idempotence)
"""

from pendula.jobs.objects.endings import Verdict
from pendula.jobs.worker.async_worker import AsyncWorker
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
    "AsyncWorker",
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
