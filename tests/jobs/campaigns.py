"""Child processes that keep working while their environment fails, and the invariants that hold at the end.

Each child enqueues, pulls, applies effects and acks until the file `stop` exists, and then writes the keys of its
answered enqueues. Rejections are ignored: the checks look only at the store and at these keys.
"""

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from pendula.jobs.calls import Calls
from pendula.jobs.messages import Job
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import StatementRefused, TransactionGone, WriteInsideEffect
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.worker.effects import Transaction, once
from pendula.kernel.canonical import Json
from pendula.kernel.errors import PendulaError
from tests.jobs.crashing import TRIES, counting, fast, forked, store_of
from tests.waiting import SECONDS, status_of

Effect = Callable[[Transaction], Json]
EFFECT_SECONDS = 0.3
POLICY = Policy(min_retry_gap_sec=0)


class MisbehavingEffects:
    """Effects that do what effects must not do, and then continue. Each one counts itself first."""

    def __init__(self, client: Scheduler, random: Random) -> None:
        self._client = client
        self._luck = random
        self._stored: Transaction | None = None
        self._own = sqlite3.connect(":memory:")  # bound to this thread

    def random_effect(self) -> Effect:
        kinds = (self.rolls_back, self.enters_again, self.exits, self.sleeps, self.uses_its_thread, self.raises,
                 self.shadows, self.stores_transaction)  # fmt: skip
        return self._luck.choice(kinds)

    def rolls_back(self, transaction: Transaction) -> Json:
        counting("bad")(transaction)
        with suppress(TransactionGone, StatementRefused):
            transaction.execute("INSERT OR ROLLBACK INTO once_only VALUES (1)")
            transaction.execute("INSERT OR ROLLBACK INTO once_only VALUES (1)")
        with suppress(TransactionGone):
            counting("outside")(transaction)
        return "bad"

    def enters_again(self, transaction: Transaction) -> Json:
        counting("bad")(transaction)
        with suppress(WriteInsideEffect):
            self._client.defer("memory", "inside", "decay", idempotency_key=f"inside {self._luck.random()}")
            raise AssertionError("a write inside an effect went through")
        return "entered"

    def exits(self, transaction: Transaction) -> Json:
        counting("bad")(transaction)
        raise SystemExit(3)

    def sleeps(self, transaction: Transaction) -> Json:
        counting("bad")(transaction)
        time.sleep(EFFECT_SECONDS * 1.2 if self._luck.random() < 0.1 else 0.001)
        return "slept"

    def uses_its_thread(self, transaction: Transaction) -> Json:
        counting("bad")(transaction)
        return str(self._own.execute("SELECT 1").fetchone())

    def raises(self, transaction: Transaction) -> Json:
        counting("bad")(transaction)
        raise sqlite3.OperationalError("an error of the effect itself")

    def shadows(self, transaction: Transaction) -> Json:
        counting("bad")(transaction)
        with suppress(StatementRefused):
            transaction.execute("CREATE TEMP TABLE jobs (seq INTEGER)")
            raise AssertionError("a table of ours was shadowed")
        return "shadowed"

    def stores_transaction(self, transaction: Transaction) -> Json:
        counting("bad")(transaction)
        self._stored = transaction
        return "kept"

    def use_stored(self) -> None:
        """Use the stored transaction after its effect has ended."""
        if self._stored is not None:
            with suppress(TransactionGone):
                counting("late")(self._stored)
                raise AssertionError("a transaction was used after its effect was over")


class WorkLoop:
    """One thread of work; ignores rejections until `stop`."""

    def __init__(self, client: Scheduler, seed: str, *, bad: float = 0.0) -> None:
        self.client = client
        self.random = Random(seed)
        self.seed = seed
        self.made = 0
        self.answered: list[str] = []
        self.held: list[Job] = []
        self._bad = bad
        self._bad_effects = MisbehavingEffects(client, self.random)

    def run(self, stop: Callable[[], bool]) -> None:
        while not stop():
            with suppress(PendulaError, SystemExit, sqlite3.Error):
                self.step()

    def step(self) -> None:
        match self.random.randrange(4):
            case 0:
                self.enqueue()
            case 1:
                self.held += self.client.pull(worker_id=self.seed, limit=2, lease_sec=self.random.randint(1, 60)).jobs
                self.held = self.held[-4:]
            case 2 if self.held:
                job = self.random.choice(self.held)
                self.effect(
                    job, self._bad_effects.random_effect() if self.random.random() < self._bad else counting(self.seed)
                )
            case 3 if self.held:
                job = self.held.pop()
                self.client.ack(job.job_id, result="succeeded", worker_id=self.seed, lease_token=job.lease_token)

    def effect(self, job: Job, effect: Effect) -> None:
        try:
            once(self.client.calls, job, effect)
        finally:
            self._bad_effects.use_stored()

    def enqueue(self) -> None:
        self.made += 1
        key = f"{self.seed}:{self.made}"
        self.client.defer("memory", f"m{self.random.randrange(9)}", "decay", idempotency_key=key, max_attempts=TRIES)
        self.answered.append(key)


def worker(folder: Path, seed: str, *, threads: int = 2, bad: float = 0.0, clock: Callable[[], int] = fast) -> None:
    """The body of a child: works until the file `stop` exists, then writes the keys of its answered enqueues."""
    stop = folder / "stop"
    store = SqliteStore(store_of(folder), effect_seconds=EFFECT_SECONDS)
    client = Scheduler(Calls(store, POLICY, clock))
    loops: list[WorkLoop] = []

    def work(number: int) -> None:
        loop = WorkLoop(client, f"{seed}.{number}", bad=bad)
        loops.append(loop)
        loop.run(stop.exists)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()  # no timeout here: the parent has one
    client.close()
    (folder / f"{seed}.answered").write_text("\n".join(key for loop in loops for key in loop.answered))


@contextmanager
def workers(folder: Path, count: int, **options: Any) -> Iterator[list[int]]:
    """`count` working children; at the end each must exit by itself with 0."""
    children = [
        forked(lambda number=number: worker(folder, f"c{number}", **options))  # type: ignore[misc]
        for number in range(count)
    ]
    try:
        yield children
        (folder / "stop").touch()
        codes = [exit_code_of(child) for child in children]
        assert codes == [0] * count, codes
    finally:
        for child in children:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                status_of(child)


def exit_code_of(child: int, seconds: float = 60) -> int | None:
    """The exit code of the child; None after a timeout."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        exited, status = os.waitpid(child, os.WNOHANG)
        if exited:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def assert_nothing_answered_is_lost(folder: Path) -> int:
    """Assert that every answered enqueue is stored; returns their number."""
    with closing(sqlite3.connect(store_of(folder))) as look:
        stored = {key for (key,) in look.execute("SELECT idempotency_key FROM jobs")}
    answered = {key for file in folder.glob("*.answered") for key in file.read_text().split("\n") if key}
    assert answered <= stored
    return len(answered)


def effects(folder: Path) -> int:
    with closing(sqlite3.connect(store_of(folder))) as look:
        return int(look.execute("SELECT count(*) FROM effects").fetchone()[0])


def commits_seen(folder: Path) -> int:
    with closing(sqlite3.connect(store_of(folder))) as look:
        return int(look.execute("SELECT coalesce(max(n), 0) FROM audit").fetchone()[0])


def until_written(folder: Path, more: int, seconds: float = SECONDS) -> None:
    """Wait until the trail has `more` further events, so until the store serves a caller."""
    goal, until = commits_seen(folder) + more, time.monotonic() + seconds
    while commits_seen(folder) < goal:
        assert time.monotonic() < until, "no process writes any more"
        time.sleep(0.005)


def until_effects(folder: Path, seconds: float = SECONDS) -> None:
    """Wait until an effect is committed."""
    until = time.monotonic() + seconds
    while effects(folder) == 0:
        assert time.monotonic() < until, "no worker commits an effect"
        time.sleep(0.005)
