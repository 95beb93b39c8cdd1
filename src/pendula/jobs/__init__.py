"""Due-driven jobs on governed objects: handed out when their time has come, tried again, set aside, never lost.

    model, ids          jobs, states, settings, refusals; numbers in disguise
    requests            bodies in, with all their faults
    decide, ordering    what becomes of a job; which goes first
    audit               the trail: before and after, chained
    store               one transaction at a time: SQLite
    calls, looking      every call that changes something; every call that looks
    joining             a job within somebody's own transaction
    checking            whether a store and its trail are what they should be
    retention           what is over goes after a while
    scheduler, client   the Python API: on a store, and over HTTP
    handlers, worker, execution, leases, bell
                        who does the work, and how a worker goes about it
    effects             what is done once, however often a job is delivered
    alerts, outbox      who hears of dead letters; objects that live elsewhere
    cron, recurring     times that come again, and the jobs they bring
    configuring, toml_places
                        a settings file in, all its faults

Public names:
"""

from pendula.jobs.model import JobRefused, Policy, Status, Vocabulary
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.worker.handlers import (
    Context,
    Done,
    ObjectNotFound,
    PermanentError,
    RetryAfter,
    RunAgain,
    handler,
    load,
)
from pendula.jobs.worker.worker import Worker

__all__ = [
    "Context",  # what a handler is given
    "Done",  # what a handler may return: the next time, the outcome
    "JobRefused",  # a call that is not granted; `code`, `status` and `details` are those of HTTP
    "ObjectNotFound",  # raised by a handler: the object is gone, do not try again
    "PermanentError",  # raised by a handler: do not try again
    "Policy",  # every parameter, with its default
    "RetryAfter",  # raised by a handler: try again then
    "RunAgain",  # returned by a handler: the same again later
    "Scheduler",  # enqueue, pull, ack, fail and the rest
    "Status",  # queued, running, succeeded, failed, dead_letter
    "Vocabulary",  # what jobs can be about
    "Worker",  # pulls, executes, acks or fails, repeats
    "handler",  # registers a function for an object type and an action
    "load",  # the handlers of modules
]
