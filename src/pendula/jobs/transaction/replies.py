"""Input and output of every call: a body and the caller in; a reply or a refusal out."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from pendula.jobs import model
from pendula.jobs.messages import Job, Message, job_of
from pendula.jobs.model import Actor, Code, Refused
from pendula.jobs.store.protocol import StoreUnusable
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused

Body = Mapping[str, Any]


class Caller(Struct, frozen=True):
    """The caller, for the trail."""

    actor: Actor = Actor("service", "local")
    request_id: str | None = None

    @property
    def metadata(self) -> dict[str, Json]:
        return {} if self.request_id is None else {"request_id": self.request_id}


LOCAL = Caller()


Answer = Message | Refused


def not_found(job_id: str) -> Refused:
    return Refused(Code.JOB_NOT_FOUND, f"no job {job_id}", {"job_id": job_id})


def unreadable(job: model.Job, trouble: Exception) -> StoreUnusable:
    """The error for a row that was damaged or changed by hand, which is not a fault of the caller."""
    message = f"{job.job_id} cannot be read: {trouble}; `pendula jobs check` says what is wrong"
    return StoreUnusable(message, job_id=str(job.job_id))


def shown_job(job: model.Job) -> Job:
    """The public form of a job; raises `StoreUnusable` where it cannot be read."""
    try:
        return job_of(job)
    except (LookupError, TypeError, InputRefused) as trouble:
        raise unreadable(job, trouble) from trouble


def no_plan(name: str) -> Refused:
    return Refused(Code.PLAN_NOT_FOUND, f"no plan {name[:64]}", {"name": name[:64]})
