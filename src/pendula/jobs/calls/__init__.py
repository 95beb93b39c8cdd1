"""Every call of the scheduler, as HTTP names them: a body in, a reply or a refusal out; one transaction each.

The Python API, HTTP and the command line all come through here, so they give the same results and the same errors.

calls       `Calls`, the one door: every call that changes something, each in a transaction of its own
pull        jobs go out: due ones to a worker, expired ones back; waiting for either
finish      deliveries end: ack with the object's next time and the follow-up, fail with the next try or the alert
operate     the other calls on jobs: renew, release; cancel and requeue, one or all that fit
filters     which jobs a list, a count or a call on many is about
plans       time plans: put, pause, resume, run now, remove; their next occurrence
set_time    the store's time set by a person, and what a wrong clock did undone
queries     the calls that only read: show, list, count, history, trail, objects, metrics
past        the queue and the objects as they were after an event
signs       workers' signs of life: their counters, with their age
why         why a job has not run, in one sentence
"""

from pendula.jobs.calls.calls import Calls
from pendula.jobs.calls.pull import POLL_SECONDS
from pendula.jobs.transaction.ending import write_back
from pendula.jobs.transaction.replies import LOCAL, Answer, Body, Caller, Reply, no_plan, not_found

__all__ = ["LOCAL", "POLL_SECONDS", "Answer", "Body", "Caller", "Calls", "Reply", "no_plan", "not_found", "write_back"]
