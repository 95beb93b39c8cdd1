"""Every call of the scheduler: a body in, a reply or a refusal out, one transaction each.

The Python API, HTTP and the command line all use these calls, so they give the same results and the same errors.

calls       `Calls`: every call that changes something, each in its own transaction
pull        deliver due jobs, return expired ones, wait for either
finish      end deliveries: ack with the object's next time and the follow-up, fail with the retry or the alert
operate     renew, release; cancel and requeue, one job or all that match; set the store's time
plans       time plans: put, pause, resume, run now, remove; their next occurrence
queries     the calls that only read: show, list, count, history, trail, objects, metrics, workers, a past event
why         why a job has not run, in one sentence
"""

from pendula.jobs.calls.calls import Calls
from pendula.jobs.calls.pull import POLL_SECONDS
from pendula.jobs.transaction import LOCAL, Answer, Body, Caller, no_plan, not_found, write_back

__all__ = ["LOCAL", "POLL_SECONDS", "Answer", "Body", "Caller", "Calls", "no_plan", "not_found", "write_back"]
