"""A disk failure at any statement of a governed call: the whole call is stored, or nothing of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.store.protocol import StoreUnusable
from pendula.jobs.upkeep.verification import check
from tests.jobs.governance.living import WHOLE, Town, proof
from tests.jobs.watching import everything, failing_at, watched, watching

__all__ = ["watched"]

STATEMENTS_MOST = 200
DOUBTED = {**WHOLE, "status": "needs_revalidate", "risk_tier": "high"}
Job = dict[str, Any]
Call = Callable[[Town, Job], object]

CALLS: dict[str, Call] = {
    "create": lambda town, _: town.user.create("memory", "new", evidence_refs=["ev_1"]),
    "evidence": lambda town, _: town.user.attach_evidence("cognition", "c", "ev_9", unknown_type="multipath"),
    "refill": lambda town, _: town.user.refill("cognition", "c", "once more", budget=5),
    "decide": lambda town, _: town.user.decide("cognition", "c", "verify", "refuted", reason="it was seen"),
    "set gate": lambda town, _: town.user.set_gate("risk_gate", "block", "for a test"),
    "pull": lambda town, _: town.scheduler.pull(worker_id="w"),
    "ack": lambda town, job: town.scheduler.ack(job["job_id"], result="succeeded", **proof(job)),
    "finish": lambda town, job: town.finished(job, "refuted"),
}


def _ready(folder: Path, name: str) -> tuple[Town, Job]:
    town = Town(folder)
    town.open_gates()
    town.user.create("cognition", "c", **DOUBTED)
    if name == "pull":
        town.clock.pass_by(86_400)
        return town, {}
    job = town.pulled(1)
    if name == "finish":
        town.begun(job)
    return town, job


@pytest.mark.req("JOB-AUD-1", "JOB-WRK-3")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("watched")
def test_a_disk_failure_leaves_all_of_a_call_or_nothing(name: str, tmp_path: Path) -> None:
    town, job = _ready(tmp_path, name)
    path = str(tmp_path / "jobs.db")
    before = everything(path)
    for at in range(1, STATEMENTS_MOST):
        try:
            with watching(failing_at(at)):
                CALLS[name](town, job)
            break
        except StoreUnusable:
            assert everything(path) == before

    assert at > 5
    assert everything(path) != before
    assert check(town.scheduler.calls.store) == []
    town.scheduler.close()


@pytest.mark.req("JOB-AUD-1")
@pytest.mark.usefixtures("watched")
def test_a_disk_failure_leaves_all_of_a_settle_or_nothing(tmp_path: Path) -> None:
    town = Town(tmp_path)
    town.user.create("memory", "m", status="active", half_life="P1D", evidence_refs=["ev_1"])
    job = town.pulled(7)
    path = str(tmp_path / "jobs.db")
    before = everything(path)
    for at in range(1, STATEMENTS_MOST):
        try:
            with watching(failing_at(at)):
                town.scheduler.objects.settle(job["job_id"], **proof(job))
            break
        except StoreUnusable:
            assert everything(path) == before

    assert town.user.show("memory", "m")["object"]["status"] == "stale"
    assert check(town.scheduler.calls.store) == []
    town.scheduler.close()
