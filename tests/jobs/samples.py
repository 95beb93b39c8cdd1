"""Single jobs for the tests of pure decisions."""

from typing import Any

from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.messages import Enqueue
from pendula.jobs.model import SECOND, Job, Refused
from pendula.kernel.time import parse_utc

MIDNIGHT = parse_utc("2026-02-21T00:00:00Z")
REQUEST = Enqueue("cognition", "cg_123", "revalidate", MIDNIGHT, 1, 3, None, None, "default")
LEASE = 60 * SECOND


def queued(**fields: Any) -> Job:
    job = decide.new_job(REQUEST, 7, MIDNIGHT - SECOND)
    assert isinstance(job, Job)
    changed: Job = replace(job, **fields)
    return changed


def running(*, worker: str = "w1", token: str = "t1", at: int = MIDNIGHT, **fields: Any) -> Job:
    return decide.deliver(queued(**fields), worker, decide.hashed(token), at, LEASE).job


def code_of(found: Refused | Any) -> str | None:
    return found.code.value if isinstance(found, Refused) else None
