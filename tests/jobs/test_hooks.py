"""Jobs load governance only for a store with governed objects, and then always."""

import subprocess
import sys
from pathlib import Path

import pytest

from pendula.governance import governed, hooks
from pendula.jobs.hooks import Hooks
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from tests.jobs.stores import opened

HOOKS: Hooks = hooks  # checked by mypy: the module has every function of the protocol

QUEUE = """
import sys
from pendula.jobs import Handlers, Scheduler, Worker, handler
from pendula.jobs.upkeep.background_services import in_background


@handler("mail", "send")
def send(context):
    pass


with Scheduler.open(sys.argv[1], object_types=["mail"], actions=["send"]) as jobs:
    for name in ("a", "b", "c", "d"):
        jobs.enqueue(object_type="mail", object_id=name, action="send", max_attempts=1)
    jobs.enqueue_batch([{"object_type": "memory", "object_id": "m", "action": "verify"}])
    first, second, third, *rest = jobs.pull(worker_id="w", limit=10).jobs
    proof = {"worker_id": "w"}
    jobs.ack(first.job_id, lease_token=first.lease_token, result="succeeded", next_action_at=None, **proof)
    jobs.fail(second.job_id, lease_token=second.lease_token, error="no", **proof)
    jobs.release(third.job_id, lease_token=third.lease_token, **proof)
    jobs.requeue(second.job_id)
    jobs.cancel(second.job_id)
    jobs.why(second.job_id)
    jobs.past()
    with in_background(jobs):
        Worker(jobs, Handlers([send]), worker_id="w", once=True).run()
print([name for name in sys.modules if name.startswith("pendula.governance")])
"""
GOVERNED = """
import sys
from pendula.jobs import Scheduler

with Scheduler.open(sys.argv[1]) as jobs:
    print(jobs.pull(worker_id="w").count, "pendula.governance" in sys.modules)
"""


def run(script: str, store: Path) -> str:
    done = subprocess.run([sys.executable, "-c", script, str(store)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_queue_without_governed_objects_loads_nothing_of_governance(tmp_path: Path) -> None:
    assert run(QUEUE, tmp_path / "jobs.db") == "[]"


def test_a_program_that_imports_only_jobs_cannot_pass_a_gate(tmp_path: Path) -> None:
    with Scheduler.open(tmp_path / "jobs.db") as scheduler:
        governed(scheduler).create("memory", "m", evidence_refs=["ev_1"], risk_tier="high")
        scheduler.enqueue(object_type="memory", object_id="m", action="verify")
        governed(scheduler).set_gate("risk_gate", "block", "for a test")

    assert run(GOVERNED, tmp_path / "jobs.db") == "0 True"


@pytest.mark.parametrize("policy", [Policy(), Policy(one_running_per_object=True)])
def test_an_object_that_comes_under_governance_is_noticed_at_the_next_call(tmp_path: Path, policy: Policy) -> None:
    """A transaction remembers that there was none; another connection creates the first one."""
    scheduler, clock = opened(tmp_path, policy)
    assert scheduler.pull(worker_id="w").count == 0
    scheduler.enqueue(object_type="memory", object_id="m", action="verify")
    other, _ = opened(tmp_path, policy, clock)
    governed(other).create("memory", "m", evidence_refs=["ev_1"], risk_tier="high")
    governed(other).as_user("mia").set_gate("risk_gate", "block", "for a test")

    assert scheduler.pull(worker_id="w").count == 0
    other.close()
    scheduler.close()


def test_a_program_on_its_own_store_loads_no_network_and_no_event_loop(tmp_path: Path) -> None:
    script = "import sys, pendula.jobs; print(sorted({'asyncio', 'http.client', 'ssl', 'yaml'} & set(sys.modules)))"

    assert run(script, tmp_path) == "[]"
