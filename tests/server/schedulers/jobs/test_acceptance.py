"""The acceptance scenarios of the contract, over HTTP.

A11 (no scan) and A12 (contention of processes) are in tests/jobs/store/test_sqlite_plans.py and
tests/jobs/calls/test_concurrent_pulls.py; A13 (hostile input) is test_errors.py.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pendula.jobs.upkeep.verification import check
from pendula.server.settings import Settings
from tests.server.job_servers import DUE, JOB, Jobs, error_of, serving

pytestmark = pytest.mark.anyio

DAY = 86_400
MIA = {"x-pendula-user": "mia"}
WEEK_LATER = "2026-02-28T00:00:00Z"
DOUBTED: dict[str, Any] = {
    "object_type": "cognition",
    "object_id": "cg/1",
    "status": "needs_revalidate",
    "unknown_type": "out_of_scope",
    "falsify_if": "a counter-example",
    "review_interval": "P7D",
    "expires_at": "2036-01-01T00:00:00Z",
    "evidence_refs": ["ev_1"],
}
MEMORY: dict[str, Any] = {"object_type": "memory", "object_id": "m/1", "evidence_refs": ["ev_1"]}


@pytest.fixture
async def jobs(settings: Settings) -> AsyncIterator[Jobs]:
    async with serving(settings) as found:
        yield found
        assert check(found.service.calls.store) == []


async def answer_of(jobs: Jobs, path: str, body: dict[str, Any] | None = None, status: int = 200) -> dict[str, Any]:
    answer = await jobs.post(path, body, headers=MIA)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def begun(jobs: Jobs, days: int = 0) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Start the next job this many days later: its path, the lease proof, and the response.

    If the pull does not deliver it, the response shows how it ended.
    """
    jobs.clock.pass_by(days * DAY)
    waiting = [job["job_id"] for job in (await jobs.get("jobs", status="queued")).json()["jobs"]]
    given = await jobs.pulled("w", limit=1)
    if not given:
        [gone] = [
            job for job in (await jobs.get("jobs")).json()["jobs"]
            if job["job_id"] in waiting and job["status"] != "queued" and "superseded" not in (job["last_error"] or "")
        ]  # fmt: skip
        shown = (await jobs.get(f"objects/show/{gone['object_type']}/{gone['object_id']}")).json()["object"]
        return "", {}, {"entered": False, "outcome": gone["outcome"], "job": gone, "object": shown}
    [job] = given
    path, proof = f"jobs/{job['job_id']}", {"worker_id": "w", "lease_token": job["lease_token"]}
    return path, proof, await answer_of(jobs, f"{path}/begin", proof)


async def verified(jobs: Jobs, finding: str, days: int = 0) -> dict[str, Any]:
    """A whole round: pull, start, and finish unless the job has ended."""
    path, proof, answer = await begun(jobs, days)
    if not answer["entered"]:
        return answer
    body = {"finding": finding, "reason": "looked into", "evidence_refs": ["ev_2"], "gates": answer["gates"]}
    return await answer_of(jobs, f"{path}/finish", {**proof, **body})


async def settled(jobs: Jobs, days: int) -> dict[str, Any]:
    jobs.clock.pass_by(days * DAY)
    [job] = await jobs.pulled("w", limit=1)
    return await answer_of(jobs, f"jobs/{job['job_id']}/settle", {"worker_id": "w", "lease_token": job["lease_token"]})


async def trail(jobs: Jobs, **query: Any) -> list[dict[str, Any]]:
    return list((await jobs.get("audit", **query)).json()["events"])


async def open_gates(jobs: Jobs, **verdicts: str) -> None:
    for gate in ("persona_conflict_gate", "risk_gate", "cognition_gate"):
        body = {"gate": gate, "verdict": verdicts.get(gate, "pass"), "reason": "for a test"}
        assert (await jobs.client.put("/scheduler/gates", json=body, headers=MIA)).status_code == 200


async def test_a1_an_ordinary_round(jobs: Jobs) -> None:
    job = await jobs.enqueued()
    jobs.clock.turn_to("2026-02-20T23:59:59.999999Z")
    assert await jobs.pulled() == []
    jobs.clock.turn_to(DUE)
    [given] = await jobs.pulled()
    body = {"result": "succeeded", "next_action_at": WEEK_LATER, "lease_token": given["lease_token"]}

    acked = await answer_of(jobs, f"jobs/{job['job_id']}/ack", body)

    assert acked["job"]["status"] == "succeeded"
    assert (await jobs.get("objects/cognition/cg_123")).json()["next_action_at"] == WEEK_LATER
    assert (await jobs.get(f"jobs/{acked['followup_job_id']}")).json()["job"]["run_at"] == WEEK_LATER
    kinds = [event["event_type"] for event in await trail(jobs, job_id=job["job_id"])]
    assert (kinds.count("scheduler_job"), kinds.count("state_transition")) == (3, 1)


async def test_a2_lost_replies(jobs: Jobs) -> None:
    job = await jobs.enqueued()
    jobs.clock.turn_to(DUE)
    [given] = await jobs.pulled()
    proof = {"lease_token": given["lease_token"]}
    failed = [await answer_of(jobs, f"jobs/{job['job_id']}/fail", {**proof, "error": "x"}) for _ in range(2)]
    jobs.clock.pass_by(DAY)
    [given] = await jobs.pulled()
    proof = {"lease_token": given["lease_token"], "result": "succeeded"}
    acked = [await answer_of(jobs, f"jobs/{job['job_id']}/ack", proof) for _ in range(2)]

    assert [answer["job"]["attempt"] for answer in failed] == [1, 1]
    assert [answer["already_acked"] for answer in acked] == [False, True]
    assert (await answer_of(jobs, "jobs", JOB))["deduplicated"] is True


async def test_a3_three_failed_attempts(jobs: Jobs) -> None:
    job = await jobs.enqueued()
    other = await jobs.enqueued(object_id="other", run_at="2026-03-01T00:00:00Z")
    jobs.clock.turn_to(DUE)
    seen = []
    for _ in range(3):
        await jobs.pulled()
        failed = await answer_of(jobs, f"jobs/{job['job_id']}/fail", {"error": "x", "retry_delay_sec": 300})
        seen.append((failed["job"]["attempt"], failed["job"]["status"]))
        jobs.clock.pass_by(600)
    jobs.clock.turn_to("2026-03-01T00:00:00Z")

    assert seen == [(1, "queued"), (2, "queued"), (3, "dead_letter")]
    assert (await jobs.get("metrics")).json()["alerts_waiting"] == 1
    assert [found["job_id"] for found in await jobs.pulled()] == [other["job_id"]]


async def test_a4_a_crashed_worker(jobs: Jobs) -> None:
    job = await jobs.enqueued()
    jobs.clock.turn_to(DUE)
    [dead] = await jobs.pulled("worker-1", lease_sec=60)
    jobs.clock.pass_by(60)
    [again] = await jobs.pulled("worker-2")

    late = await jobs.post(f"jobs/{job['job_id']}/ack", {"result": "succeeded", "lease_token": dead["lease_token"]})

    assert (again["delivery_count"], again["attempt"]) == (2, 1)
    assert error_of(late)["code"] == "lease_lost"


@pytest.mark.req("JOB-POL-4")
async def test_a5_a_crash_after_the_effect_leaves_one_transition(jobs: Jobs) -> None:
    """Transition and ack are one commit: only the response can be lost, and a repeated ack changes nothing."""
    await answer_of(jobs, "objects", MEMORY, 201)
    path, proof, _ = await begun(jobs, 1)
    body = {**proof, "finding": "passed", "reason": "looked into"}

    ended = [await answer_of(jobs, f"{path}/finish", body) for _ in range(2)]

    assert [answer["already_ended"] for answer in ended] == [False, True]
    transitions = [event for event in await trail(jobs, object_id="m/1") if event["after"].get("transitioned")]
    assert len(transitions) == 1


@pytest.mark.req("JOB-GATE-6", "JOB-GATE-7", "JOB-GATE-10")
async def test_a6_uncertain_with_a_budget_of_two_and_a_week(jobs: Jobs) -> None:
    await answer_of(jobs, "objects", DOUBTED, 201)

    assert [(await verified(jobs, "inconclusive", 1))["outcome"] for _ in range(2)] == ["noop", "noop"]
    last = await verified(jobs, "inconclusive", 5)

    assert (last["outcome"], last["entered"]) == ("budget_exhausted", False)
    assert (await jobs.get("alerts")).json()["alerts"] == [], "no person is asked at low risk"
    shown = last["object"]
    assert (shown["status"], shown["epistemic_state"], shown["decision_mode"]) == ("stale", "uncertain", "conservative")
    assert shown["verifications"] == 2


@pytest.mark.req("JOB-GATE-12", "JOB-GATE-13", "JOB-ENQ-12")
async def test_a7_an_unknowable_object_is_verified_once(jobs: Jobs) -> None:
    await answer_of(jobs, "objects", {**DOUBTED, "unknown_type": "ontic_unknowable"}, 201)

    closed = await verified(jobs, "inconclusive", 1)
    later = await jobs.post("jobs", {"object_type": "cognition", "object_id": "cg/1", "action": "verify"})

    assert (closed["outcome"], closed["object"]["closed"]) == ("ontic_closed", "cannot be known")
    assert (error_of(later)["status"], error_of(later)["code"]) == (409, "ontic_verification_closed")


@pytest.mark.req("JOB-GATE-1", "JOB-GATE-2", "JOB-GATE-4", "JOB-GATE-5")
@pytest.mark.parametrize("moment", ["after the pull", "after begin"])
async def test_a8_a_gate_blocks_between_pull_and_execution(jobs: Jobs, moment: str) -> None:
    await open_gates(jobs)
    await answer_of(jobs, "objects", {**MEMORY, "risk_tier": "high"}, 201)
    jobs.clock.pass_by(DAY)
    [job] = await jobs.pulled("w")
    path, proof = f"jobs/{job['job_id']}", {"worker_id": "w", "lease_token": job["lease_token"]}
    if moment == "after the pull":
        await open_gates(jobs, persona_conflict_gate="block")
        ended = await answer_of(jobs, f"{path}/begin", proof)
    else:
        answer = await answer_of(jobs, f"{path}/begin", proof)
        await open_gates(jobs, persona_conflict_gate="block")
        body = {"finding": "passed", "reason": "looked into", "gates": answer["gates"]}
        ended = await answer_of(jobs, f"{path}/finish", {**proof, **body})
        assert ended["gates_moved"] is True

    assert (ended["job"]["status"], ended["job"]["last_error"]) == ("failed", "gate_blocked: persona_conflict_gate")
    assert (ended["object"]["status"], ended["escalated"]) == ("candidate", True)
    [event] = await trail(jobs, event_type="decision_gate", object_type="memory")
    assert event["decision_trace_id"] == ended["decision_trace_id"]
    assert (await jobs.get("metrics")).json()["alerts_waiting"] == 1


@pytest.mark.req("JOB-GATE-8", "JOB-SM-6")
async def test_a9_reinstatement(jobs: Jobs) -> None:
    await answer_of(jobs, "objects", DOUBTED, 201)
    for days in (1, 1, 5):
        await verified(jobs, "inconclusive", days)

    back = (await verified(jobs, "new_evidence", 7))["object"]

    assert (back["status"], back["epistemic_state"], back["verify_budget_left"]) == ("active", "supported", 2)
    assert back["last_reinforced_at"] is not None
    assert back["review_due_at"] == back["next_action_at"]
    refilled = [event for event in await trail(jobs, object_id="cg/1") if "verify_budget_left" in event["after"]]
    assert refilled[-1]["after"]["verify_budget_left"] == 2


@pytest.mark.req("JOB-SM-8", "JOB-SM-15")
async def test_a10_a_forged_memory(jobs: Jobs) -> None:
    await answer_of(jobs, "objects", MEMORY, 201)
    await verified(jobs, "suspicious", 1)
    forged = await verified(jobs, "forged", 1)
    [rollback] = (await jobs.get("rollbacks")).json()["rollbacks"]
    await answer_of(jobs, "jobs", {"object_type": "memory", "object_id": "m/1", "action": "reinstate-check"}, 201)
    refused = await verified(jobs, "new_evidence")
    waited = await settled(jobs, 1)
    await answer_of(jobs, "objects/rollback-finished/memory/m/1", {"reason": "all of it is taken back"})
    archived = await settled(jobs, 2)

    assert (forged["object"]["status"], rollback["object_id"]) == ("rejected_poisoned", "m/1")
    assert refused["job"]["last_error"].startswith("illegal_transition")
    assert (waited["outcome"], waited["object"]["status"]) == ("noop", "rejected_poisoned")
    assert archived["object"]["status"] == "archived"
    assert (await jobs.get("rollbacks")).json()["rollbacks"] == []
