"""The server killed while clients call it: every answered call is stored."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from pendula.jobs import Scheduler
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.upkeep.verification import check
from pendula.kernel.errors import PendulaError
from tests.waiting import line_of

CLIENTS = 4


@contextmanager
def server(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    command = [sys.executable, "-m", "pendula", "jobs", "serve", "--port", "0", "--data", str(folder / "data")]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PENDULA_")}
    database = ["--db", f"sqlite:///{folder / 'jobs.db'}", "--json"]
    process = subprocess.Popen([*command, *database], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ)
    try:
        yield process, json.loads(line_of(process.stdout))["address"]
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


class Client:
    """Enqueues, pulls, acks and fails until the server is gone; records the answers."""

    def __init__(self, url: str, name: str, seed: int, enough: threading.Semaphore) -> None:
        self._scheduler = RemoteScheduler(url)
        self._name = name
        self._random = Random(seed)
        self._enough = enough
        self.stored: list[str] = []
        self.acked: list[str] = []

    def run(self) -> None:
        number = 0
        while True:
            try:
                self._step(number)
            except PendulaError as trouble:
                if trouble.code in ("server_unreachable", "server_trouble", "not_a_scheduler"):
                    self._scheduler.close()
                    return
                # Busy while the store opens, or a lost lease: both are answers.
            number += 1

    def _step(self, number: int) -> None:
        key = f"{self._name}-{number}"
        self._scheduler.enqueue(object_type="memory", object_id=key, action="decay", idempotency_key=key)
        self.stored.append(key)
        self._enough.release()
        for job in self._scheduler.pull(worker_id=self._name, limit=2).jobs:
            if self._random.random() < 0.7:
                self._scheduler.ack(job.job_id, result="succeeded", lease_token=job.lease_token)
                self.acked.append(job.job_id)
            else:
                self._scheduler.fail(job.job_id, error="x", retry_delay_sec=0, lease_token=job.lease_token)


@pytest.mark.req("JOB-STO-7")
@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.long)])
def test_a_killed_server_loses_no_answered_call(tmp_path: Path, kills: int) -> None:
    Scheduler.open(tmp_path / "jobs.db").close()
    random = Random(kills)
    stored: list[str] = []
    acked: list[str] = []
    for kill in range(kills):
        enough = threading.Semaphore(0)
        with server(tmp_path) as (process, url):
            clients = [Client(url, f"c{kill}-{name}", kill, enough) for name in range(CLIENTS)]
            threads = [threading.Thread(target=client.run) for client in clients]
            for thread in threads:
                thread.start()
            for _ in range(random.randrange(20, 120)):
                assert enough.acquire(timeout=300)
            process.kill()
            for thread in threads:
                thread.join(240)
        stored += [key for client in clients for key in client.stored]
        acked += [job_id for client in clients for job_id in client.acked]

    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        there = scheduler.calls.store.write(lambda tx: tx.by_keys(stored))
        assert sorted(there) == sorted(stored)
        assert {scheduler.show(job_id).job.status for job_id in acked} == {"succeeded"}
        assert check(scheduler.calls.store) == []
    assert len(stored) >= 20 * kills
