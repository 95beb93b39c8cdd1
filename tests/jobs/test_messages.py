"""Messages describe themselves: the members of a call in Python are those of its request, and mypy checks them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from pendula.jobs.messages import CALLS, Call
from pendula.jobs.request_reading import Request
from pendula.jobs.scheduler_calls import SchedulerCalls

# Members of a path, which are arguments of their own.
IN_PATH = {"put_plan": {"name"}}
TYPED = """
from pendula.jobs import AsyncScheduler, RemoteScheduler, Scheduler


async def use(store: Scheduler, server: RemoteScheduler, loop: AsyncScheduler) -> None:
    for one in (store, server):
        job = one.enqueue(object_type="memory", object_id="m", action="verify", priority="high").job
        print(job.status, one.ack(job.job_id, result="succeeded").followup_job_id)
        one.enqueue(object_type="memory", object_id="m", action="verify", prioritty="high")  # wrong: prioritty
        one.pull(worker="w")  # wrong: worker
        print(job.stauts)  # wrong: stauts
    print((await loop.show("job_1")).job.status, (await loop.pull(worker_id="w")).jobs)
    await loop.defer("memory", "m", "verify", in_seconds=5)  # wrong: in_seconds
    await loop.enqueue(object_type="memory", object_id="m")  # wrong: action
"""


def members_of(call: Call[Any]) -> set[str]:
    """The keyword arguments of a call, from its typed dictionary."""
    annotations = getattr(SchedulerCalls, call.name).__annotations__
    typed: type = (annotations.get("members") or annotations["query"]).__args__[0]
    return set(typed.__annotations__)


@pytest.mark.parametrize("call", [call for call in CALLS if call.request is not None], ids=lambda call: call.name)
def test_a_call_has_the_members_of_its_request(call: Call[Any]) -> None:
    assert call.request is not None
    assert issubclass(call.request, Request)
    if call.name in ("enqueue_batch", "ack_batch"):
        return  # they take lists of entries
    expected = {entry.encode_name for entry in fields(call.request)} - IN_PATH.get(call.name, set())

    assert members_of(call) == expected


def test_mypy_refuses_wrong_names_of_members_and_replies(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(TYPED, encoding="utf-8")
    wrong = {
        number: line.rpartition("wrong: ")[2] for number, line in enumerate(TYPED.split("\n"), 1) if "wrong:" in line
    }

    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        str(tmp_path),
        str(snippet),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    found = [line for line in done.stdout.split("\n") if "snippet.py:" in line and "error:" in line]
    assert {int(line.split(":")[1]) for line in found} == wrong.keys(), done.stdout
    assert all(any(word in line for line in found) for word in wrong.values())
