"""Handlers that fork, or close every file of their process: the worker ends and leaves no process running."""

import subprocess
import sys
from pathlib import Path

import pytest

from pendula.jobs.scheduler import Scheduler
from tests.campaigns import campaign_after, campaign_except

WORKER = """
import os, sys
from pendula.jobs import Handlers, Scheduler, Worker, handler

def body(context):
    {body}

{handler}

with Scheduler.open(sys.argv[1]) as scheduler:
    scheduler.defer("memory", "m", "verify", max_attempts=1)
    tally = Worker(scheduler, Handlers([verify]), worker_id="w", {options}).run(signals=True)
print("worker ended", tally.succeeded, flush=True)
"""
SECONDS = 120
PLAIN = '@handler("memory", "verify")\ndef verify(context):\n    body(context)'
LIMITED = '@handler("memory", "verify", timeout_sec=30)\ndef verify(context):\n    body(context)'
ASYNC = '@handler("memory", "verify")\nasync def verify(context):\n    body(context)'
EFFECT = '@handler("memory", "verify")\ndef verify(context):\n    context.once(lambda _: body(context))'


def process(path: Path, **parts: str) -> subprocess.Popen[str]:
    program = WORKER.format(**{"options": "once=True", **parts})
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, str(path / "jobs.db")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.req("JOB-WRK-9")
@pytest.mark.parametrize(
    "handler",
    campaign_except([PLAIN, EFFECT], [PLAIN, LIMITED, ASYNC, EFFECT]),
    ids=["plain", "limited", "async", "effect"],
)
@pytest.mark.parametrize("child", campaign_after(2, ["return", "sys.exit(3)", "raise ValueError('x')"]))
def test_a_forked_child_that_returns_from_a_handler_exits(tmp_path: Path, handler: str, child: str) -> None:
    body = f"child = os.fork()\n    if not child:\n        {child}\n    os.waitpid(child, 0)"
    worker = process(tmp_path, handler=handler, body=body)

    output = all_of(worker)  # the pipe ends when every process that holds it has exited

    assert worker.returncode == 0, output
    assert output.count("worker ended 1") == 1, output
    assert ("returned from it; call os._exit there" in output) is (child != "sys.exit(3)")
    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        assert [job.status for job in scheduler.list().jobs] == ["succeeded"]


@pytest.mark.parametrize("handler", campaign_after(1, [PLAIN, LIMITED, ASYNC]), ids=["plain", "limited", "async"])
def test_a_worker_whose_files_were_closed_by_a_handler_ends_with_a_reason(tmp_path: Path, handler: str) -> None:
    # The files include both ends of the pipe of the event loop.
    worker = process(tmp_path, handler=handler, body="os.closerange(3, 256)", options="grace_sec=2")

    output = all_of(worker)

    assert "were closed in this process" in output
    assert "worker ended" not in output, "a worker that lost its store does not end as if all were well"
    assert "Bad file descriptor" not in output or "async" in handler
    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        [rows] = scheduler.list().jobs
    assert rows.status == "running", "its lease runs out, and another worker takes it"


LEAVES = """
import asyncio

async def leave():
    sys.exit(3)

@handler("memory", "verify", backoff=[0])
async def verify(context):
    if context.job.attempt == 0:
        {leaving}
        await asyncio.sleep(0.05)
"""


@pytest.mark.req("JOB-WRK-11")
@pytest.mark.parametrize(
    "leaving",
    ["asyncio.get_running_loop().stop()", "context.left = asyncio.get_running_loop().create_task(leave())"],
    ids=["stopped", "a task that exits"],
)
def test_a_handler_that_stops_the_event_loop_is_not_awaited_without_limit(tmp_path: Path, leaving: str) -> None:
    worker = process(tmp_path, handler=LEAVES.format(leaving=leaving), body="pass")

    output = all_of(worker)

    assert worker.returncode == 0, output
    assert "worker ended 1" in output
    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        assert [job.status for job in scheduler.list().jobs] == ["succeeded"]


def all_of(worker: subprocess.Popen[str]) -> str:
    """The whole output of the worker; fails if it does not exit."""
    try:
        return worker.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        worker.kill()
        output, _ = worker.communicate()
        pytest.fail(f"the worker did not end: {output}")
