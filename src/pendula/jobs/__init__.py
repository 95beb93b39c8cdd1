"""Due-driven jobs on governed objects: handed out when their time has come, tried again, set aside, never lost.

    model, ids              jobs, states, settings, refusals; numbers in disguise
    request_reading, requests, requests_finishing
                            bodies in, with all their faults
    decide, ordering        what becomes of a job; which goes first. Pure
    objects/                what becomes of a governed object: machines, gates, budgets. Pure
    audit, audit_chain      the trail: before and after, chained; whether the chain holds
    sentences               reasons and errors as sentences, where they are shown. Pure
    durations               lengths of time as ISO 8601 writes them. Pure
    zones, cron, plans      times that come again, in any time zone; time plans. Pure
    store/                  one transaction at a time: SQLite
    calls/                  every call: enqueue, pull, ack, fail, renew, ... and the queries
    governance/             governed objects in a store: every change, by a job or by a person
    governing/              what governance does within a transaction, of jobs as of objects
    transaction/            what several calls do within their transaction
    scheduler, client       the Python API: on a store, and over HTTP
    remote_objects          governed objects over HTTP
    addresses               where a server is, and with which token
    async_scheduler         the same to be awaited, on an event loop
    bulk                    cancel or requeue all that fit a filter
    joining                 a job within somebody's own transaction
    settings_file, machine_file
                            a settings file in, and state machines of one's own, or all their faults
    worker/                 who does the work: workers, handlers, leases, effects
    reaper                  leases that ran out come back, whether or not anybody pulls
    upkeep/                 alerts, outbox, recurring jobs, retention, verification
    background              a thread that does something again and again

Public names:
"""

from pendula.jobs.async_scheduler import AsyncScheduler
from pendula.jobs.bulk import cancel_all, requeue_all
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.cron import next_after
from pendula.jobs.joining import defer_within, enqueue_within
from pendula.jobs.model import JobRefused, Policy, Status, Vocabulary
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.worker import (
    AsyncContext,
    AsyncWorker,
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
from pendula.jobs.zones import zone_of

__all__ = [
    "AsyncContext",  # what an async handler is given
    "AsyncScheduler",  # the calls of a scheduler, to be awaited
    "AsyncWorker",  # a worker whose async handlers run on your event loop
    "Cancelled",  # raised by a handler: somebody wished the job cancelled, and it stopped
    "Context",  # what a handler is given
    "Done",  # what a handler may return: the next time, the outcome
    "Handlers",  # the handlers of a worker, by object type and action
    "JobRefused",  # a call that is not granted; `code`, `status` and `details` are those of HTTP
    "ObjectNotFound",  # raised by a handler: the object is gone, do not try again
    "PermanentError",  # raised by a handler: do not try again
    "Policy",  # every parameter, with its default
    "RemoteScheduler",  # the same calls, over HTTP
    "RetryAfter",  # raised by a handler: try again then
    "RunAgain",  # returned by a handler: the same again later
    "Scheduler",  # enqueue, pull, ack, fail and the rest
    "Status",  # queued, running, succeeded, failed, dead_letter
    "Verdict",  # returned by a verifier: what it found, why, and the evidence
    "Vocabulary",  # what jobs can be about
    "Worker",  # pulls, executes, acks or fails, repeats
    "cancel_all",  # cancels all jobs that fit a filter, step by step
    "defer_within",  # a job within your own transaction on the same file
    "enqueue_within",  # the same, with the members as one body and the refusal as a value
    "handler",  # registers a function for an object type and an action
    "load",  # the handlers of modules
    "next_after",  # when a cron expression comes round next
    "requeue_all",  # revives all jobs that fit a filter, step by step
    "verifier",  # registers a function that looks into governed objects, after gates and budget
    "zone_of",  # a time zone by its IANA name
]
