"""Due-driven jobs on governed objects: delivered when due, retried, dead-lettered, never lost.

    model                   jobs and their ids, states, settings, refusals
    messages                every request and reply, and where each call is over HTTP
    request_reading         bodies to requests, with all their faults
    decide                  transitions of a job; the order of due jobs. Pure
    reasons                 reasons as stored: a code and its facts. Pure
    audit                   the trail: before and after, chained; the check of the chain
    sentences               reasons and errors as sentences, where they are shown. Pure
    cron, plans             cron expressions in time zones, recurring jobs. Pure
    store/                  one transaction at a time: SQLite
    calls/                  every call: enqueue, pull, ack, fail, renew, ... and the queries
    transaction             what several calls do within their transaction
    hooks                   what governance decides, in the transaction of a call
    scheduler_calls         the Python API: every call, with its signature; cancel or requeue all jobs of a filter
    scheduler, client       its calls on a store, and over HTTP
    addresses               address, certificates and token of a server
    async_scheduler         the same API for an event loop
    external_transaction    enqueue within a transaction of the caller
    settings_file           reader of settings files
    worker/                 workers, handlers, leases, effects
    presence                heartbeats of workers that pull from a server
    reaper                  returns expired leases in the background
    upkeep/                 alerts, outbox, recurring jobs, retention, verification
    background              a background thread with a loop

Public names:
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pendula.jobs.cron import next_after, zone_of
from pendula.jobs.external_transaction import defer_within, enqueue_within
from pendula.jobs.messages import JobRefused
from pendula.jobs.model import Policy, Status, Vocabulary
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import cancel_all, requeue_all
from pendula.jobs.worker import (
    AsyncContext,
    Cancelled,
    Context,
    Done,
    Handlers,
    ObjectNotFound,
    PermanentError,
    RetryAfter,
    RunAgain,
    Verdict,
    Worker,
    handler,
    load,
    verifier,
)

if TYPE_CHECKING:
    from pendula.jobs.async_scheduler import AsyncScheduler
    from pendula.jobs.client import RemoteScheduler
    from pendula.jobs.worker.async_worker import AsyncWorker

__all__ = [
    "AsyncContext",  # what an async handler is given
    "AsyncScheduler",  # the calls of a scheduler, to be awaited
    "AsyncWorker",  # a worker whose async handlers run on your event loop
    "Cancelled",  # raised by a handler: cancellation was requested, and it stopped
    "Context",  # what a handler is given
    "Done",  # what a handler may return: the next time, the outcome
    "Handlers",  # the handlers of a worker, by object type and action
    "JobRefused",  # a refused call; `code`, `status` and `details` are those of HTTP
    "ObjectNotFound",  # raised by a handler: the object is gone, do not try again
    "PermanentError",  # raised by a handler: do not try again
    "Policy",  # every parameter, with its default
    "RemoteScheduler",  # the same calls, over HTTP
    "RetryAfter",  # raised by a handler: try again then
    "RunAgain",  # returned by a handler: run the same job again later
    "Scheduler",  # enqueue, pull, ack, fail and the rest
    "Status",  # queued, running, succeeded, failed, dead_letter
    "Verdict",  # returned by a verifier: what it found, why, and the evidence
    "Vocabulary",  # what jobs can be about
    "Worker",  # pulls, executes, acks or fails, repeats
    "cancel_all",  # cancels all jobs that match a filter, step by step
    "defer_within",  # a job within your own transaction on the same file
    "enqueue_within",  # the same, with the members as one body and the refusal as a value
    "handler",  # registers a function for an object type and an action
    "load",  # the handlers of modules
    "next_after",  # the next time of a cron expression
    "requeue_all",  # requeues all jobs that match a filter, step by step
    "verifier",  # registers a function that verifies governed objects, after gates and budget
    "zone_of",  # a time zone by its IANA name
]

# They load asyncio and HTTP, which programs on a store of their own do not need.
_LOADED_WHEN_USED = {
    "AsyncScheduler": "pendula.jobs.async_scheduler",
    "AsyncWorker": "pendula.jobs.worker.async_worker",
    "RemoteScheduler": "pendula.jobs.client",
}


def __getattr__(name: str) -> Any:
    if name not in _LOADED_WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LOADED_WHEN_USED[name]), name)
