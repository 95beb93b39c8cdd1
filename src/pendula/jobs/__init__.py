"""Due-driven jobs on governed objects: handed out when their time has come, tried again, set aside, never lost.

    model               jobs, states, settings, refusals
    requests            bodies in, with all their faults
    decide, ordering    what becomes of a job; which goes first
    audit               the trail: before and after, chained
    store               one transaction at a time: SQLite
    calls, looking      every call that changes something; every call that looks
    checking            whether a store and its trail are what they should be
    scheduler           the Python API

Public names:
"""

from pendula.jobs.model import JobRefused, Policy, Status, Vocabulary
from pendula.jobs.scheduler import Scheduler

__all__ = [
    "JobRefused",  # a call that is not granted; `code`, `status` and `details` are those of HTTP
    "Policy",  # every parameter, with its default
    "Scheduler",  # enqueue, pull, ack, fail and the rest
    "Status",  # queued, running, succeeded, failed, dead_letter
    "Vocabulary",  # what jobs can be about
]
