"""At most one verification of a governed object is delivered at a time: others would waste its budget."""

from pathlib import Path
from typing import Any

import pytest

from pendula.jobs.messages import plain
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.upkeep.verification import check
from tests.governance.plain_replies import governed
from tests.jobs.stores import Clock, opened

VERDICT: Any = {"finding": "inconclusive", "reason": "no source answered", "evidence_refs": []}


def with_object(folder: Path, policy: Policy | None = None, *, budget: int = 36) -> tuple[Scheduler, Clock]:
    scheduler, clock = opened(folder, policy)
    governed(scheduler).create(
        "cognition", "cg", evidence_refs=["ev_1"], status="needs_revalidate", epistemic_state="uncertain",
        auto_verify_budget=budget,
    )  # fmt: skip
    for job in scheduler.list(status="queued").jobs:
        scheduler.cancel(job.job_id)  # its replacement is due tomorrow at the earliest
    return scheduler, clock


def enqueue(scheduler: Scheduler, object_id: str, count: int, action: str = "verify") -> None:
    for n in range(count):
        scheduler.defer("cognition", object_id, action, idempotency_key=f"{object_id} {action} {n}")


def pulled(scheduler: Scheduler, worker_id: str = "w", limit: int = 100) -> list[dict[str, Any]]:
    return [plain(job) for job in scheduler.pull(worker_id=worker_id, limit=limit).jobs]


@pytest.mark.req("JOB-GATE-6", "JOB-PULL-7")
def test_one_of_many_due_verifications_of_an_object_is_delivered(tmp_path: Path) -> None:
    scheduler, _ = with_object(tmp_path)
    enqueue(scheduler, "cg", 3)
    enqueue(scheduler, "cg", 3, "revalidate")
    enqueue(scheduler, "cg", 1, "decay")
    enqueue(scheduler, "free", 3)

    first, second = pulled(scheduler, "a"), pulled(scheduler, "b")

    kinds = [(job["object_id"], job["action"]) for job in first]
    assert kinds == [("cg", "verify"), ("cg", "decay"), *[("free", "verify")] * 3], "ungoverned objects have no budget"
    assert second == []
    scheduler.fail(first[0]["job_id"], error="x", retry_delay_sec=60, lease_token=first[0]["lease_token"])
    third = pulled(scheduler)
    assert [(job["object_id"], job["action"]) for job in third] == [("cg", "verify")]
    assert check(scheduler.calls.store) == []
    scheduler.close()


@pytest.mark.req("JOB-USE-8")
def test_why_says_which_verification_another_waits_for(tmp_path: Path) -> None:
    scheduler, _ = with_object(tmp_path)
    enqueue(scheduler, "cg", 2)
    [running] = pulled(scheduler)
    [waiting] = scheduler.list(status="queued", action="verify").jobs

    because = scheduler.why(waiting.job_id)

    assert (because.reason, because.facts["running_job_id"]) == ("waits_for_object", running["job_id"])
    scheduler.close()


def test_a_pull_that_finds_only_blocked_verifications_writes_nothing(tmp_path: Path) -> None:
    scheduler, _ = with_object(tmp_path)
    enqueue(scheduler, "cg", 5)
    pulled(scheduler)
    before = scheduler.calls.store.commits  # type: ignore[attr-defined]

    for n in range(5):
        assert pulled(scheduler, f"w{n}") == []

    assert scheduler.calls.store.commits == before  # type: ignore[attr-defined]
    scheduler.close()


def test_jobs_set_aside_by_an_earlier_policy_return_and_verifications_do_not(tmp_path: Path) -> None:
    strict, clock = with_object(tmp_path, Policy(one_running_per_object=True))
    enqueue(strict, "cg", 2)
    enqueue(strict, "cg", 1, "decay")
    enqueue(strict, "free", 2)
    first = pulled(strict)
    assert [job["object_id"] for job in first] == ["cg", "free"]
    assert pulled(strict) == []
    strict.close()

    scheduler, _ = opened(tmp_path, clock=clock)
    kinds = [(job["object_id"], job["action"]) for job in pulled(scheduler)]

    assert kinds == [("cg", "decay"), ("free", "verify")]
    scheduler.close()


@pytest.mark.req("JOB-GATE-6")
def test_eight_concurrent_verifiers_waste_none_of_the_budget(tmp_path: Path) -> None:
    scheduler, _ = with_object(tmp_path)
    enqueue(scheduler, "cg", 36)
    outcomes: list[str] = []

    while held := [job for n in range(8) for job in pulled(scheduler, f"w{n}", 1)]:
        proofs = {job["job_id"]: {"worker_id": job["worker_id"], "lease_token": job["lease_token"]} for job in held}
        for job_id, proof in proofs.items():
            assert governed(scheduler).begin(job_id, **proof)["entered"]
        for job_id, proof in proofs.items():
            outcomes.append(governed(scheduler).finish(job_id, **proof, **VERDICT)["outcome"])

    assert len(outcomes) == 36
    assert "state_conflict" not in outcomes
    assert governed(scheduler).show("cognition", "cg")["object"]["verifications"] == 36
    assert check(scheduler.calls.store) == []
    scheduler.close()
