"""Workers' signs of life: written into the store by those who work on it, and shown with their age."""

from collections.abc import Sequence

from pendula.jobs.model import SECOND
from pendula.jobs.store.protocol import Store, WorkerRow, Writer
from pendula.jobs.transaction.replies import Reply
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc

WORKERS_MOST = 1000
FORGOTTEN_US = 7 * 86_400 * SECOND
WORKS_MOST = 200


def told(tx: Writer, rows: Sequence[WorkerRow]) -> None:
    """Write what workers tell of themselves; those who were not heard of for a week, and those beyond 1000, go."""
    for row in rows:
        tx.put_worker(row, forget_before=row.seen_at - FORGOTTEN_US, most=WORKERS_MOST)


def fitting(works: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What a worker handles, as it is written down: nothing, which means all, where that is too much to list."""
    return tuple(works) if len(works) <= WORKS_MOST else ()


def listed(store: Store, now: int) -> Reply:
    return Reply(200, {"workers": shown(store.read(lambda look: look.workers()), now)})


def shown(workers: Sequence[WorkerRow], now: int) -> list[Json]:
    """What workers told, each with how old that is."""
    return [
        {
            "worker_id": one.worker_id,
            "started_at": format_utc(one.started_at),
            "seen_at": format_utc(one.seen_at),
            "age_sec": max(0, now - one.seen_at) // SECOND,
            "ended_at": None if one.ended_at is None else format_utc(one.ended_at),
            "concurrency": one.concurrency,
            "running": one.running,
            "taken": one.taken,
            "succeeded": one.succeeded,
            "failed": one.failed,
            "dropped": one.dropped,
            "released": one.released,
            "handles": [f"{object_type} {action}" for object_type, action in one.works],
            "queues": list(one.queues),
        }
        for one in workers
    ]
