"""Minimal valid request bodies, and the faults of a decoded one."""

from typing import Any

from pendula.jobs.messages import Ack, Enqueue, Fail, Pull, Release, Renew, Requeue, Stated
from pendula.jobs.model import Policy
from pendula.jobs.request_reading import Faults, read
from pendula.kernel.time import parse_utc

NOW = parse_utc("2026-02-20T12:00:00Z")
JOB: dict[str, Any] = {"object_type": "cognition", "object_id": "cg_123", "action": "revalidate"}
WORKER = {"worker_id": "worker-1"}
DONE = {"result": "succeeded"}
PROOF: dict[str, Any] = {"worker_id": "w1", "lease_token": "t1"}
Fields = list[tuple[str, str]]


def faults(request: object) -> Fields:
    """Every fault as (field, code); empty for a valid request."""
    return (
        [(str(fault["field"]), str(fault["code"])) for fault in request.entries] if isinstance(request, Faults) else []
    )


def read_enqueue(body: dict[str, Any], policy: Policy, now: int = 0) -> Enqueue | Faults:
    return read(Enqueue, body, policy, now)


def read_pull(body: dict[str, Any], policy: Policy, now: int) -> Pull | Faults:
    return read(Pull, body, policy, now)


def read_ack(body: dict[str, Any], policy: Policy, now: int) -> Ack | Faults:
    return read(Ack, body, policy, now)


def read_fail(body: dict[str, Any]) -> Fail | Faults:
    return read(Fail, body, Policy())


def read_renew(body: dict[str, Any]) -> Renew | Faults:
    return read(Renew, body, Policy())


def read_release(body: dict[str, Any]) -> Release | Faults:
    return read(Release, body, Policy())


def read_reason(body: dict[str, Any]) -> Stated | Faults:
    return read(Stated, body, Policy())


def read_requeue(body: dict[str, Any], now: int) -> Requeue | Faults:
    return read(Requeue, body, Policy(), now)
