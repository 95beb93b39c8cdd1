"""The server killed while remote workers verify: no budget is exceeded, and every answered call is stored."""

import threading
from collections import Counter
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pytest

from pendula.jobs import Scheduler, Verdict, Worker
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.handlers import Context, Handlers, verifier
from tests.governance.dying_workers import trail_violations
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import WHOLE
from tests.jobs.test_server_kills import server
from tests.waiting import joined

WORKERS, OBJECTS, JOBS = 3, 12, 5
UNSURE = {**WHOLE, "status": "needs_revalidate"}


class Verifier:
    """A verifier that counts its entries for each object."""

    def __init__(self, seed: int) -> None:
        self.entered: Counter[str] = Counter()
        self._random = Random(seed)
        self._lock = threading.Lock()

    @property
    def handlers(self) -> Handlers:
        def verify(context: Context) -> Verdict:
            return self.verify(context)

        return Handlers([verifier("cognition", "verify")(verify)])

    def verify(self, context: Context) -> Verdict:
        with self._lock:
            self.entered[context.job.object_id] += 1
            finding, pause = self._random.choice(("inconclusive", "inconclusive", "passed")), self._random.random()
        sleep(pause / 20)
        return Verdict(finding, "looked into", ("ev_2",))


def _made(folder: Path) -> dict[str, int]:
    """Objects with their budgets, each with more due verifications than its budget allows."""
    budgets = {}
    with Scheduler.open(folder / "jobs.db") as scheduler:
        for number in range(OBJECTS):
            name, budget = f"c{number}", number % 3
            unknown = "ontic_unknowable" if number % 4 == 3 else "out_of_scope"
            members: dict[str, Any] = {**UNSURE, "auto_verify_budget": budget, "unknown_type": unknown}
            governed(scheduler).as_user("mia").create("cognition", name, **members)
            budgets[name] = min(budget, 1) if unknown == "ontic_unknowable" else budget
            for copy in range(JOBS):
                job: dict[str, Any] = {
                    "object_type": "cognition",
                    "object_id": name,
                    "action": "verify",
                    "max_attempts": 100,
                }
                scheduler.enqueue(**job, idempotency_key=f"{name} {copy}")
    return budgets


@pytest.mark.long
@pytest.mark.req("JOB-GATE-6", "JOB-GATE-12", "JOB-WRK-12")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_verifications_stay_within_the_budget_when_the_server_is_killed(seed: int, tmp_path: Path) -> None:
    budgets, verifier, random = _made(tmp_path), Verifier(seed), Random(seed)
    for _ in range(4):
        with server(tmp_path) as (process, url):
            workers = [
                Worker(RemoteScheduler(url), verifier.handlers, lease_sec=1, pauses=(0.05, 0.2), grace_sec=0.5)
                for _ in range(WORKERS)
            ]
            threads = [threading.Thread(target=worker.run) for worker in workers]
            for thread in threads:
                thread.start()
            sleep(0.3 + random.random())
            process.kill()
            for worker in workers:
                worker.stop()
            joined(*threads)

    assert verifier.entered.total() > 0
    assert {name: count for name, count in verifier.entered.items() if count > budgets[name]} == {}
    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        assert scheduler.calls.store.read(trail_violations) == []
        assert check(scheduler.calls.store) == []
