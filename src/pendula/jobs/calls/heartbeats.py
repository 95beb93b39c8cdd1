"""Heartbeats of workers: recorded in the store and shown with their age."""

from collections.abc import Sequence

from pendula.jobs.messages import Worker, Workers, utc_or_null
from pendula.jobs.model import SECOND
from pendula.jobs.store.protocol import Store, WorkerRow, Writer
from pendula.kernel.time import format_utc

WORKERS_MOST = 1000
FORGOTTEN_US = 7 * 86_400 * SECOND
WORKS_MOST = 200


def record(tx: Writer, rows: Sequence[WorkerRow]) -> None:
    """Store heartbeats; workers without one for a week, and those beyond 1000, are dropped."""
    for row in rows:
        tx.put_worker(row, forget_before=row.seen_at - FORGOTTEN_US, most=WORKERS_MOST)


def fitting(works: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What a worker handles, as it is stored: nothing, which means everything, where the list is too long."""
    return tuple(works) if len(works) <= WORKS_MOST else ()


def listed(store: Store, now: int) -> Workers:
    return Workers(shown(store.read(lambda look: look.workers()), now))


def shown(workers: Sequence[WorkerRow], now: int) -> list[Worker]:
    """The last heartbeat of each worker, with its age."""
    return [
        Worker(
            worker_id=worker.worker_id,
            started_at=format_utc(worker.started_at),
            seen_at=format_utc(worker.seen_at),
            age_sec=max(0, now - worker.seen_at) // SECOND,
            ended_at=utc_or_null(worker.ended_at),
            concurrency=worker.concurrency,
            running=worker.running,
            taken=worker.taken,
            succeeded=worker.succeeded,
            failed=worker.failed,
            dropped=worker.dropped,
            released=worker.released,
            handles=[f"{object_type} {action}" for object_type, action in worker.works],
            queues=list(worker.queues),
        )
        for worker in workers
    ]
