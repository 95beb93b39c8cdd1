"""A store with every kind of event."""

from pathlib import Path
from typing import Any

from pendula.jobs.calls import Caller
from pendula.jobs.model import Actor
from pendula.jobs.scheduler import Scheduler
from tests.jobs.stores import Clock, opened

JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}
ANN = Actor("user", "ann")


def fill_store(tmp_path: Path) -> tuple[Scheduler, Clock]:
    """Eight jobs that ended in eight ways; the last call is an operator's."""
    scheduler, clock = opened(tmp_path)
    for name in ("acked", "failed", "expired", "released", "dead", "over", "cancelled", "queued"):
        members: dict[str, Any] = {
            **JOB,
            "object_id": name,
            "max_attempts": 1 if name == "dead" else 3,
            "correlation_id": f"c-{name}",
        }
        scheduler.enqueue(**members, priority="high", run_at=clock.text(3600) if name == "queued" else None)
    cancelled = scheduler.list(object_type="memory", object_id="cancelled").jobs[0].job_id
    scheduler.cancel(cancelled, reason="x")
    jobs = {job.object_id: job for job in scheduler.pull(worker_id="w", lease_sec=30).jobs}
    proof: dict[str, Any] = {
        name: {"job_id": job.job_id, "worker_id": "w", "lease_token": job.lease_token} for name, job in jobs.items()
    }
    scheduler.renew(**proof["acked"], lease_sec=600)
    scheduler.ack(**proof["acked"], result="succeeded", next_action_at=clock.text(86_400), outcome="noop")
    scheduler.fail(**proof["failed"], error="try again", retry_delay_sec=7200)
    scheduler.fail(**proof["dead"], error="never again")
    scheduler.fail(**proof["over"], error="for good", retryable=False)
    scheduler.release(**proof["released"])
    clock.pass_by(60)
    scheduler.pull(worker_id="w2", limit=1)
    dead = proof["dead"]["job_id"]
    Scheduler(scheduler.calls, Caller(ANN, "req-9")).requeue(dead, reason="mended", run_at=clock.text(7200))
    return scheduler, clock
