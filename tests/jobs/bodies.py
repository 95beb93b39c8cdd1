"""Minimal valid request bodies, and the faults of a decoded one."""

from pendula.jobs.request_reading import Faults
from pendula.kernel.time import parse_utc

NOW = parse_utc("2026-02-20T12:00:00Z")
JOB = {"object_type": "cognition", "object_id": "cg_123", "action": "revalidate"}
WORKER = {"worker_id": "worker-1"}
DONE = {"result": "succeeded"}
PROOF = {"worker_id": "w1", "lease_token": "t1"}
Fields = list[tuple[str, str]]


def faults(request: object) -> Fields:
    """Every fault as (field, code); empty for a valid request."""
    return (
        [(str(fault["field"]), str(fault["code"])) for fault in request.entries] if isinstance(request, Faults) else []
    )
