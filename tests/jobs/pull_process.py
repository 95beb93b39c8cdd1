"""A process that works on a store together with others, and prints what it pulled or stored as JSON.

python -m tests.jobs.pull_process FILE pull WORKER
python -m tests.jobs.pull_process FILE enqueue COUNT
"""

import json
import sys
from typing import Any

from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler


def pull(scheduler: Scheduler, worker: str) -> list[str]:
    """Pull 37 at a time until nothing is due, by a clock of its own."""
    found: list[str] = []
    late = "2200-01-01T00:00:00Z"
    while jobs := scheduler.pull(worker_id=worker, now=late, limit=37, lease_sec=3600).jobs:
        found += [job.job_id for job in jobs]
    return found


def enqueue(scheduler: Scheduler, count: str) -> list[bool]:
    """Enqueue the same job `count` times; for each call, whether it was a duplicate."""
    members: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify", "idempotency_key": "k"}
    return [scheduler.enqueue(**members).deduplicated for _ in range(int(count))]


if __name__ == "__main__":
    path, what, more = sys.argv[1:]
    with Scheduler.open(path, Policy(max_clock_step_sec=10**10)) as opened:
        # All processes start when the last one is ready.
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        got = pull(opened, more) if what == "pull" else enqueue(opened, more)
    json.dump(got, sys.stdout)
