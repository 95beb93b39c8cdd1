"""Eight processes on one file: every job once, no lock error, and no process starves.

Fairness is counted, not timed: the number of commits of each process while all of them write continuously.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.kernel.wallclock import WallClock
from tests import waiting
from tests.jobs.crashing import forked, store_of
from tests.waiting import read, status_of

PROCESSES = 8
SECONDS = 20
LONG_SECONDS = 600


def busy(folder: Path, number: int, seconds: float, gate: int) -> None:
    """Enqueues, pulls and acks as fast as possible; writes its counts to a file."""
    read(gate, 1)
    store = SqliteStore(store_of(folder))
    client = Scheduler(Calls(store, Policy(), WallClock().now))
    made: list[str] = []
    acked: list[str] = []
    errors: list[str] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            job = client.defer("memory", f"mem_{number}", "decay", idempotency_key=f"{number}:{len(made)}")
            made.append(job.job_id)
            for job in client.pull(worker_id=f"w{number}", limit=3).jobs:
                client.ack(job.job_id, result="succeeded", lease_token=job.lease_token)
                acked.append(job.job_id)
        except Exception as error:
            errors.append(repr(error))
    done = {"made": made, "acked": acked, "troubles": errors, "commits": store.commits}
    client.close()
    (folder / f"{number}.json").write_text(json.dumps(done))


def contend(folder: Path, seconds: float) -> list[dict[str, Any]]:
    """The counts of each process."""
    SqliteStore(store_of(folder)).close()
    gate, opening = os.pipe()
    children = [
        forked(lambda number=number: busy(folder, number, seconds, gate))  # type: ignore[misc]
        for number in range(PROCESSES)
    ]
    os.write(opening, b"x" * PROCESSES)
    codes = [os.waitstatus_to_exitcode(status_of(child, seconds + waiting.SECONDS)) for child in children]
    os.close(gate)
    os.close(opening)
    assert codes == [0] * PROCESSES
    return [json.loads((folder / f"{number}.json").read_text()) for number in range(PROCESSES)]


def assert_fair_and_once(folder: Path, seconds: float) -> None:
    done = contend(folder, seconds)
    client = Scheduler(Calls(SqliteStore(store_of(folder)), Policy(), WallClock().now))
    acked = [job_id for one in done for job_id in one["acked"]]
    while jobs := client.pull(worker_id="last", limit=1000).jobs:
        acked += [job.job_id for job in jobs]
        client.ack_batch([
            {"job_id": job.job_id, "result": "succeeded", "lease_token": job.lease_token} for job in jobs
        ])  # fmt: skip
    made = [job_id for one in done for job_id in one["made"]]
    findings = check(client.calls.store)
    client.close()

    assert [error for one in done for error in one["troubles"]] == []
    assert len(made) == len(set(made))
    assert sorted(acked) == sorted(made), "every job exactly once"
    assert findings == []
    commits = [one["commits"] for one in done]
    assert min(commits) * 4 >= max(commits), commits


@pytest.mark.long
@pytest.mark.req("JOB-PULL-7")
@pytest.mark.req("JOB-STO-5")
def test_eight_processes_do_every_job_once_and_share_the_file(tmp_path: Path) -> None:
    assert_fair_and_once(tmp_path, SECONDS)


@pytest.mark.long
@pytest.mark.req("JOB-STO-5")
def test_eight_processes_share_the_file_for_a_long_time(tmp_path: Path) -> None:
    assert_fair_and_once(tmp_path, LONG_SECONDS)
