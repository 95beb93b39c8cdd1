"""The numbers behind metrics, updated with every change, so that no query counts rows of jobs."""

import sqlite3
from typing import Self

from pendula.jobs.model import SECOND, Job, Status

_COUNT = """INSERT INTO counts (status, object_type, action, priority, queue, n, at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (status, object_type, action, priority, queue)
    DO UPDATE SET n = n + excluded.n, at = max(at, excluded.at)"""
_ENDED = """INSERT INTO ended (second, succeeded, failed, dead_letter, attempts, requeues) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (second) DO UPDATE SET succeeded = succeeded + excluded.succeeded, failed = failed + excluded.failed,
    dead_letter = dead_letter + excluded.dead_letter, attempts = attempts + excluded.attempts,
    requeues = requeues + excluded.requeues"""
ENDED_KEPT_SEC = 8 * 86_400


Kind = tuple[str, str, str, int, str]  # status, object type, action, priority, queue


class Counts:
    """What one transaction adds to these numbers; written at its end, or before a query needs them."""

    __slots__ = ("_delivered", "_ended", "_jobs")

    def __init__(self) -> None:
        self._jobs: dict[Kind, int] = {}
        self._delivered: dict[Kind, int] = {}  # when a job of a kind was last delivered
        self._ended: dict[int, list[int]] = {}

    def copy(self) -> Self:
        """A copy to restore when a part of the transaction is undone."""
        other = type(self)()
        other._jobs = dict(self._jobs)
        other._delivered = dict(self._delivered)
        other._ended = {second: list(numbers) for second, numbers in self._ended.items()}
        return other

    def add(self, job: Job, by: int) -> None:
        """Count `by` more jobs of this kind."""
        key = _kind(job)
        self._jobs[key] = self._jobs.get(key, 0) + by

    def deliver(self, job: Job) -> None:
        """Record when a job of this kind was delivered."""
        self._delivered[_kind(job)] = job.updated_at

    def end(self, job: Job, *, attempted: bool) -> None:
        """Count an ended attempt or job, for rates."""
        numbers = self._ended.setdefault(job.updated_at // SECOND, [0, 0, 0, 0, 0])
        match job.status:
            case Status.SUCCEEDED:
                numbers[0] += 1
                numbers[3] += 1
            case Status.FAILED:
                numbers[1] += 1
                numbers[3] += attempted
            case Status.DEAD_LETTER:
                numbers[2] += 1
                numbers[3] += 1
            case Status.QUEUED if attempted:
                numbers[3] += 1
                numbers[4] += 1

    def write(self, connection: sqlite3.Connection) -> None:
        for key, n in self._jobs.items():
            if n or key in self._delivered:
                connection.execute(_COUNT, (*key, n, self._delivered.get(key, 0)))
        self._jobs, self._delivered = {}, {}
        if self._ended:
            connection.executemany(_ENDED, [(second, *numbers) for second, numbers in self._ended.items()])
            # Older than the longest window of the metrics.
            connection.execute("DELETE FROM ended WHERE second < ?", (max(self._ended) - ENDED_KEPT_SEC,))
            self._ended = {}


def _kind(job: Job) -> Kind:
    return job.status, job.object_type, job.action, job.priority, job.queue
