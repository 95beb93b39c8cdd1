"""Child processes that work on a store until they are killed or frozen, and the invariants that hold afterwards.

Children are forked from the warm test process, which has no store open while it forks. All of them share one clock: it
stands still until the test moves it, or it runs so fast that leases expire within milliseconds.
"""

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from mmap import mmap
from pathlib import Path
from random import Random
from typing import Any

from pendula.jobs import JobRefused
from pendula.jobs.calls import Calls
from pendula.jobs.messages import Job
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.file.turnstile import Turnstile
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.effects import Transaction, once
from pendula.jobs.worker.leases import LeaseGone
from pendula.kernel.canonical import Json
from pendula.kernel.wallclock import steady_us
from tests import forking
from tests.jobs.stores import NOON
from tests.waiting import read, status_of

SPEED = 40
COUNTED = "CREATE TABLE counted (key TEXT NOT NULL, by TEXT NOT NULL) STRICT"
EXPECTED = ("lease_lost", "lease_expired", "job_not_running", "lease_gone")
TRIES = 100  # more than a job is ever killed


def fast() -> int:
    """Microseconds of a clock that runs `SPEED` times faster, the same in all processes."""
    return NOON + steady_us() * SPEED


class SharedClock:
    """Microseconds that change only by `pass_by`, shared by a process and its children."""

    def __init__(self) -> None:
        self._memory = mmap(-1, 8)
        self._set(NOON)

    def __call__(self) -> int:
        return int.from_bytes(self._memory[:8], "little")

    def pass_by(self, seconds: int) -> None:
        self._set(self() + seconds * 1_000_000)

    def _set(self, now: int) -> None:
        self._memory[:8] = now.to_bytes(8, "little")


def store_of(folder: Path) -> Path:
    return folder / "jobs.db"


@contextmanager
def scheduler(folder: Path, policy: Policy | None = None, clock: Callable[[], int] = fast) -> Iterator[Scheduler]:
    client = Scheduler(Calls(SqliteStore(store_of(folder)), policy or Policy(), clock))
    try:
        yield client
    finally:
        client.close()


def made(folder: Path) -> Path:
    """A store with a table that counts effects without a unique key, so that duplicates are visible."""
    folder.mkdir(parents=True, exist_ok=True)
    with scheduler(folder) as client:
        client.calls.store.write(lambda tx: tx.execute(COUNTED))
    return folder


def counting(by: str) -> Callable[[Transaction], Json]:
    def effect(transaction: Transaction) -> Json:
        transaction.execute("INSERT INTO counted VALUES (?, ?)", [transaction.job.idempotency_key, by])
        return by

    return effect


# Children


def killed(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    status_of(child)


class ReportPipe:
    """A pipe over which a child reports each reply that it received, one JSON line each."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self._buffer = b""

    def write(self, **facts: Json) -> None:
        os.write(self.writing, json.dumps(facts).encode() + b"\n")

    def wait_for(self, lines: int) -> None:
        """Wait until the child has reported this many lines."""
        while self._buffer.count(b"\n") < lines:
            chunk = read(self.reading, 4096)
            assert chunk, "the child left before it was killed"
            self._buffer += chunk

    def all(self) -> list[dict[str, Any]]:
        """All reports, once the child has exited; an incomplete last line is ignored."""
        while chunk := read(self.reading, 65536):
            self._buffer += chunk
        os.close(self.reading)
        return [json.loads(line) for line in self._buffer.splitlines(keepends=True) if line.endswith(b"\n")]


def forked(work: Callable[[], None], reports: ReportPipe | None = None) -> int:
    """Fork a child that does `work` and exits; returns its process id."""
    child = forking.forked(work)
    if reports is not None:
        # Otherwise the parent and every later child would keep the pipe open after this child has exited.
        os.close(reports.writing)
    return child


@contextmanager
def frozen(child: int, folder: Path) -> Iterator[None]:
    """Stop the child while it does not hold the file; continue it at the end of the block."""
    gate = Turnstile(store_of(folder))
    assert gate.acquire(30)
    os.kill(child, signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)
    gate.release()
    gate.close()
    try:
        yield
    finally:
        os.kill(child, signal.SIGCONT)


class RandomCaller:
    """One thread of a child: makes random calls and reports the replies."""

    def __init__(self, client: Scheduler, reports: ReportPipe, seed: str) -> None:
        self.client = client
        self.reports = reports
        self.seed = seed
        self.random = Random(seed)
        self.made = 0
        self.held: list[Job] = []
        self.calls = (self.enqueue, self.batch, self.pull, self.pull, self.effect, self.ack, self.ack, self.fail,
                      self.renew, self.release)  # fmt: skip

    def run(self) -> None:
        while True:
            try:
                self.random.choice(self.calls)()
            except (JobRefused, LeaseGone) as refused:
                if refused.code not in EXPECTED:
                    self.abort(refused)
            except BaseException as error:
                self.abort(error)

    def abort(self, error: BaseException) -> None:
        """Report an unexpected error to the parent and exit, so that it is not lost in a thread."""
        self.reports.write(call="trouble", what=repr(error))
        os._exit(2)

    def members(self) -> dict[str, Any]:
        self.made += 1
        key = f"{self.seed}:{self.made}"
        return {"object_type": "memory", "object_id": f"mem_{self.random.randint(1, 9)}", "action": "decay",
                "idempotency_key": key, "max_attempts": self.random.choice((1, 3, TRIES))}  # fmt: skip

    def held_job(self) -> Job | None:
        return self.random.choice(self.held) if self.held else None

    def enqueue(self) -> None:
        job = self.client.enqueue(**self.members()).job
        self.reports.write(call="enqueue", job_id=job.job_id, key=job.idempotency_key)

    def batch(self) -> None:
        jobs = [self.members() for _ in range(self.random.randint(2, 8))]
        for entry in self.client.enqueue_batch(jobs).results:
            assert entry.job is not None
            self.reports.write(call="enqueue", job_id=entry.job.job_id, key=entry.job.idempotency_key)

    def pull(self) -> None:
        lease_sec = self.random.randint(1, 5)
        jobs = self.client.pull(worker_id=f"w-{self.seed}", limit=self.random.randint(1, 4), lease_sec=lease_sec).jobs
        self.held = (self.held + jobs)[-6:]
        for job in jobs:
            self.reports.write(call="pull", job_id=job.job_id, fence=job.delivery_count)

    def effect(self) -> None:
        job = self.held_job()
        if job is not None:
            once(self.client.calls, job, counting(self.seed))
            self.reports.write(call="effect", job_id=job.job_id, key=job.idempotency_key)

    def ack(self) -> None:
        job = self.held_job()
        if job is not None:
            self.held.remove(job)
            done = self.client.ack(job.job_id, result="succeeded", lease_token=job.lease_token).job
            self.reports.write(call="ack", job_id=job.job_id, fence=job.delivery_count, now=done.delivery_count)

    def fail(self) -> None:
        job = self.held_job()
        if job is not None:
            self.held.remove(job)
            done = self.client.fail(job.job_id, error="x", retry_delay_sec=0, lease_token=job.lease_token).job
            self.reports.write(call="fail", job_id=job.job_id, attempt=done.attempt)

    def renew(self) -> None:
        job = self.held_job()
        if job is not None:
            self.client.renew(job.job_id, worker_id=f"w-{self.seed}", lease_token=job.lease_token, lease_sec=1)

    def release(self) -> None:
        job = self.held_job()
        if job is not None:
            self.held.remove(job)
            self.client.release(job.job_id, worker_id=f"w-{self.seed}", lease_token=job.lease_token)


def random_callers(folder: Path, reports: ReportPipe, seed: int, threads: int) -> None:
    """Several threads on one store, so that kills hit shared commits."""
    with scheduler(folder, Policy(min_retry_gap_sec=0)) as client:
        running = [
            threading.Thread(target=RandomCaller(client, reports, f"{seed}.{number}").run, daemon=True)
            for number in range(threads)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()  # until this child is killed


# Invariants


def assert_sound(folder: Path) -> None:
    """Invariants, trail and file hold; one effect per key, with its record; no write after a lost lease."""
    with scheduler(folder) as client:
        assert check(client.calls.store) == []
        assert client.calls.store.settings() == {"synchronous": 2, "journal_mode": "wal"}  # type: ignore[attr-defined]
    with closing(sqlite3.connect(store_of(folder))) as look:
        counted = [key for (key,) in look.execute("SELECT key FROM counted ORDER BY key")]
        recorded = [key for (key,) in look.execute("SELECT idempotency_key FROM effects ORDER BY idempotency_key")]
        events = [json.loads(body) for (body,) in look.execute("SELECT body FROM audit ORDER BY n")]
    assert counted == recorded, f"an effect twice, or without its record: {sorted(set(counted) ^ set(recorded))}"
    assert late_writes(events) == []


def late_writes(events: list[dict[str, Any]]) -> list[str]:
    """Events of workers that did not hold the job when they wrote, derived from the trail alone."""
    holders: dict[str, str | None] = {}
    late = []
    for event in events:
        job_id, actor = event["job_id"], event["actor"]
        if event["event_type"] != "scheduler_job":
            continue
        delivered = event["after"].get("status") == "running"
        if actor["type"] == "worker" and not delivered and holders.get(job_id) != actor["id"]:
            late.append(f"{event['id']}: {actor['id']} on {job_id}, held by {holders.get(job_id)}")
        if delivered and holders.get(job_id) is not None:
            late.append(f"{event['id']}: {job_id} was delivered while {holders[job_id]} held it")
        holders[job_id] = event["after"].get("worker_id")
    return late


def assert_visible(folder: Path, answers: list[dict[str, Any]]) -> None:
    """Assert that every answered call is stored."""
    with closing(sqlite3.connect(store_of(folder))) as look:
        rows = look.execute("SELECT job_id, idempotency_key, status, attempt, delivery_count FROM jobs")
        jobs = {job_id: rest for job_id, *rest in rows}
        effects = {key for (key,) in look.execute("SELECT key FROM counted")}
    for answer in answers:
        assert answer["call"] != "trouble", answer
        key, status, attempt, fence = jobs[answer["job_id"]]
        match answer["call"]:
            case "enqueue":
                assert key == answer["key"]
            case "pull":
                assert fence >= answer["fence"]
            case "effect":
                assert answer["key"] in effects
            case "ack":
                assert (status, answer["now"]) == ("succeeded", answer["fence"])
            case "fail":
                assert attempt >= answer["attempt"]


def statuses(folder: Path) -> dict[str, int]:
    with closing(sqlite3.connect(store_of(folder))) as look:
        return dict(look.execute("SELECT status, count(*) FROM jobs GROUP BY status").fetchall())
