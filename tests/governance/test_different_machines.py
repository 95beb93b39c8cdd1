"""Two processes on one store with different machines: a process does not change objects in a state it does not know."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.governance import Rules
from pendula.governance.machines import REFERENCE
from pendula.jobs import JobRefused, Policy, Scheduler
from pendula.jobs.calls import Calls
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from tests.governance.plain_replies import governed
from tests.governance.test_machine_check import DOCUMENT
from tests.governance.verifier_rig import WHOLE, VerifierRig, proof

OTHER = replace(DOCUMENT, object_type="cognition")
Changes = Callable[[Any], Any]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[VerifierRig]:
    rig = VerifierRig(tmp_path)
    yield rig
    assert check(rig.scheduler.calls.store) == []
    rig.scheduler.close()


@pytest.fixture
def stranger(rig: VerifierRig, tmp_path: Path) -> Iterator[Scheduler]:
    """A scheduler on the same store with another machine for cognitions."""
    policy = Policy(governance=Rules(machines={**REFERENCE, "cognition": OTHER}))
    scheduler = Scheduler(Calls(SqliteStore(tmp_path / "jobs.db"), policy, rig.clock))
    yield scheduler
    scheduler.close()


@pytest.mark.req("JOB-GATE-9", "JOB-SM-2")
@pytest.mark.parametrize(
    "change",
    [
        lambda objects: objects.attach_evidence("cognition", "c", "ev_9"),
        lambda objects: objects.refill("cognition", "c", "once more"),
        lambda objects: objects.decide("cognition", "c", "verify", "passed", reason="I know"),
        lambda objects: objects.rollback_finished("cognition", "c"),
    ],
    ids=["evidence", "refill", "decide", "rollback finished"],
)
def test_an_object_is_not_changed_by_a_machine_without_its_state(
    rig: VerifierRig, stranger: Scheduler, change: Changes
) -> None:
    before = rig.user.create("cognition", "c", **WHOLE)["object"]

    with pytest.raises(JobRefused, match="no state candidate/uncertain; are the settings the same") as refused:
        change(governed(stranger).as_user("bo"))

    assert refused.value.code == "state_conflict"
    assert rig.user.show("cognition", "c")["object"] == before


@pytest.mark.req("JOB-GATE-9", "JOB-SM-4")
def test_a_job_on_a_state_unknown_to_the_machine_is_retried_by_another_worker(
    rig: VerifierRig, stranger: Scheduler
) -> None:
    rig.user.create("cognition", "c", **WHOLE)
    job = rig.pulled(1)
    before = rig.user.show("cognition", "c")["object"]
    ended = governed(stranger).begin(job["job_id"], **proof(job))

    assert (ended["outcome"], ended["job"]["status"], ended["job"]["attempt"]) == ("state_conflict", "queued", 1)
    assert rig.user.show("cognition", "c")["object"] == before
    assert rig.verified("passed", 1)["object"]["status"] == "active"


@pytest.mark.req("JOB-GATE-9")
def test_a_verdict_is_rejected_by_a_machine_without_the_state(rig: VerifierRig, stranger: Scheduler) -> None:
    rig.user.create("cognition", "c", **WHOLE)
    job = rig.pulled(1)
    begun = rig.begun(job)
    ended = governed(stranger).finish(job["job_id"], finding="passed", reason="looked into", **proof(job))

    assert (ended["outcome"], ended["job"]["status"]) == ("state_conflict", "queued")
    assert ended["object"] == begun["object"]


def test_why_reports_that_the_settings_differ(rig: VerifierRig, stranger: Scheduler) -> None:
    rig.user.create("cognition", "c", **WHOLE)

    assert "are the settings the same?" in governed(stranger).why("cognition", "c")["in_the_way"]


@pytest.mark.parametrize("call", ["show", "why"])
def test_an_object_id_with_a_lone_surrogate_is_not_found(rig: VerifierRig, call: str) -> None:
    with pytest.raises(JobRefused) as refused:
        getattr(rig.user, call)("memory", "\ud800")

    assert refused.value.code == "object_not_found"
