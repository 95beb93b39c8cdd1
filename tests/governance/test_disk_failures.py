"""A disk failure at any statement of a governed call: the whole call is stored, or nothing of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.store.protocol import StoreUnusable
from pendula.jobs.upkeep.verification import check
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import WHOLE, VerifierRig, proof
from tests.jobs.watched_connections import everything, failing_at, watched, watching

__all__ = ["watched"]

STATEMENTS_MOST = 200
DOUBTED = {**WHOLE, "status": "needs_revalidate", "risk_tier": "high"}
Job = dict[str, Any]
Call = Callable[[VerifierRig, Job], object]

CALLS: dict[str, Call] = {
    "create": lambda rig, _: rig.user.create("memory", "new", evidence_refs=["ev_1"]),
    "evidence": lambda rig, _: rig.user.attach_evidence("cognition", "c", "ev_9", unknown_type="multipath"),
    "refill": lambda rig, _: rig.user.refill("cognition", "c", "once more", budget=5),
    "decide": lambda rig, _: rig.user.decide("cognition", "c", "verify", "refuted", reason="it was seen"),
    "set gate": lambda rig, _: rig.user.set_gate("risk_gate", "block", "for a test"),
    "pull": lambda rig, _: rig.scheduler.pull(worker_id="w"),
    "ack": lambda rig, job: rig.scheduler.ack(job["job_id"], result="succeeded", **proof(job)),
    "finish": lambda rig, job: rig.finished(job, "refuted"),
}


def _ready(folder: Path, name: str) -> tuple[VerifierRig, Job]:
    rig = VerifierRig(folder)
    rig.open_gates()
    rig.user.create("cognition", "c", **DOUBTED)
    if name == "pull":
        rig.clock.pass_by(86_400)
        return rig, {}
    job = rig.pulled(1)
    if name == "finish":
        rig.begun(job)
    return rig, job


@pytest.mark.req("JOB-AUD-1", "JOB-WRK-3")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("watched")
def test_a_disk_failure_leaves_all_of_a_call_or_nothing(name: str, tmp_path: Path) -> None:
    rig, job = _ready(tmp_path, name)
    path = str(tmp_path / "jobs.db")
    before = everything(path)
    for at in range(1, STATEMENTS_MOST):
        try:
            with watching(failing_at(at)):
                CALLS[name](rig, job)
            break
        except StoreUnusable:
            assert everything(path) == before

    assert at > 5
    assert everything(path) != before
    assert check(rig.scheduler.calls.store) == []
    rig.scheduler.close()


@pytest.mark.req("JOB-AUD-1")
@pytest.mark.usefixtures("watched")
def test_a_disk_failure_leaves_all_of_a_settle_or_nothing(tmp_path: Path) -> None:
    rig = VerifierRig(tmp_path)
    rig.user.create("memory", "m", status="active", half_life="P1D", evidence_refs=["ev_1"])
    job = rig.pulled(7)
    path = str(tmp_path / "jobs.db")
    before = everything(path)
    for at in range(1, STATEMENTS_MOST):
        try:
            with watching(failing_at(at)):
                governed(rig.scheduler).settle(job["job_id"], **proof(job))
            break
        except StoreUnusable:
            assert everything(path) == before

    assert rig.user.show("memory", "m")["object"]["status"] == "stale"
    assert check(rig.scheduler.calls.store) == []
    rig.scheduler.close()
