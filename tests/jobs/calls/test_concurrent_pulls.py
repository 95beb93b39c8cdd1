"""Many processes and threads on the same jobs and the same key: every job once, every key once, no error."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import Policy, Scheduler
from pendula.jobs.calls import Calls
from pendula.jobs.messages import Enqueued
from pendula.jobs.model import Durability, Job
from pendula.jobs.store.protocol import Listing
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from tests.jobs.stores import Clock, opened
from tests.waiting import joined, line_of

ROOT = Path(__file__).resolve().parents[3]
JOB: dict[str, Any] = {"object_type": "memory", "action": "verify"}


def at_once(path: Path, arguments: list[tuple[str, str]]) -> list[list[Any]]:
    """The output of each process; they start together and each must exit with 0."""
    command = [sys.executable, "-m", "tests.jobs.pull_process", str(path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    children = [subprocess.Popen([*command, *more], cwd=ROOT, text=True, **pipes) for more in arguments]
    for child in children:
        line_of(child.stdout)
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    printed = [child.communicate(timeout=300) for child in children]

    ends = [(child.returncode, output[1]) for child, output in zip(children, printed, strict=True)]
    assert ends == [(0, "")] * len(children)
    return [json.loads(output[0]) for output in printed]


def run_together(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    joined(*threads)


def all_jobs(scheduler: Scheduler) -> list[Job]:
    return scheduler.calls.store.read(lambda look: look.jobs(Listing(100_000)))


def filled(folder: Path, jobs: int) -> Scheduler:
    scheduler, _ = opened(folder)
    for first in range(0, jobs, 1000):
        scheduler.enqueue_batch([{**JOB, "object_id": f"m{first + number}"} for number in range(1000)])
    return scheduler


def pull_together(folder: Path, jobs: int, processes: int) -> None:
    scheduler = filled(folder, jobs)
    stored = {job.job_id for job in all_jobs(scheduler)}

    got = at_once(folder / "jobs.db", [("pull", f"w{number}") for number in range(processes)])

    counted = Counter(job_id for ids in got for job_id in ids)
    assert counted.keys() == stored
    assert len(stored) == jobs
    assert set(counted.values()) == {1}
    assert scheduler.metrics().jobs.running == jobs
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-PULL-7")
def test_four_processes_pull_every_job_exactly_once(tmp_path: Path) -> None:
    pull_together(tmp_path, jobs=2000, processes=4)


@pytest.mark.long
@pytest.mark.req("JOB-PULL-7")
def test_eight_processes_pull_ten_thousand_jobs_exactly_once(tmp_path: Path) -> None:
    pull_together(tmp_path, jobs=10_000, processes=8)


@pytest.mark.req("JOB-PULL-7")
def test_eight_threads_pull_every_job_exactly_once(tmp_path: Path) -> None:
    scheduler = filled(tmp_path, 2000)
    got: list[str] = []

    def pull(number: int) -> None:
        while jobs := scheduler.pull(worker_id=f"w{number}", limit=37, lease_sec=43_200).jobs:
            got.extend(job.job_id for job in jobs)

    run_together(pull, 8)

    assert len(got) == len(set(got)) == 2000
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-ENQ-9", "JOB-ENQ-2")
def test_sixteen_threads_that_enqueue_one_key_200_times_store_one_job(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db", durability=Durability.NORMAL)
    calls = Calls(store, Policy(), Clock())
    known: list[bool] = []

    def enqueue(_: int) -> None:
        for _ in range(200):
            stored = calls.enqueue({**JOB, "object_id": "m", "idempotency_key": "k"})
            assert isinstance(stored, Enqueued)
            known.append(stored.deduplicated)

    run_together(enqueue, 16)

    assert Counter(known) == {False: 1, True: 3199}
    assert len(all_jobs(Scheduler(calls))) == 1
    assert check(store) == []
    store.close()


@pytest.mark.req("JOB-ENQ-9")
def test_four_processes_that_enqueue_one_key_store_one_job(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)

    got = at_once(tmp_path / "jobs.db", [("enqueue", "50")] * 4)

    assert Counter(was_there for answers in got for was_there in answers) == {False: 1, True: 199}
    assert len(all_jobs(scheduler)) == 1
    assert check(scheduler.calls.store) == []
    scheduler.close()
