"""Governed objects over HTTP: roles, the audit trail, Prometheus metrics."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from pendula.server.security.identity import Role, TokenStore
from pendula.server.settings import Settings
from tests.server.job_servers import Jobs, error_of, serving

pytestmark = pytest.mark.anyio

MEMORY: dict[str, Any] = {"object_type": "memory", "object_id": "a/b", "evidence_refs": ["ev_1"]}
REFILL = {"reason": "worth another look", "budget": 5}
GATE = {"gate": "risk_gate", "verdict": "pass", "reason": "calm"}


@pytest.fixture
async def jobs(settings: Settings) -> AsyncIterator[Jobs]:
    async with serving(settings) as found:
        yield found


async def test_viewers_read_and_operators_change(settings: Settings) -> None:
    store = TokenStore(settings.data)
    secrets = {role: store.new(f"the-{role}", role)[1] for role in (Role.VIEWER, Role.OPERATOR)}

    async def status(role: Role, method: str, path: str, body: Any = None) -> int:
        headers = {"authorization": f"Bearer {secrets[role]}"}
        answer = await served.client.request(method, f"/scheduler/{path}", json=body, headers=headers)
        return answer.status_code

    changes: list[tuple[str, str, Any, int]] = [
        ("POST", "objects", MEMORY, 201),
        ("POST", "objects/evidence/memory/a/b", {"evidence_refs": ["ev_2"]}, 200),
        ("POST", "objects/refill/memory/a/b", REFILL, 200),
        ("POST", "objects/amend/memory/a/b", {"reason": "forgotten", "half_life": "P9D"}, 200),
        ("POST", "objects/decide/memory/a/b", {"action": "verify", "finding": "passed", "reason": "seen"}, 200),
        ("POST", "objects/rollback-finished/memory/a/b", {}, 200),
        ("PUT", "gates", GATE, 200),
        ("POST", "jobs/job_000000000001/begin", {}, 409),
    ]
    reads = ["objects?object_type=memory", "objects/show/memory/a/b", "objects/why/memory/a/b", "objects/memory/a/b"]
    async with serving(settings) as served:
        for method, path, body, expected in changes:
            assert await status(Role.VIEWER, method, path, body) == 403, path
            assert await status(Role.OPERATOR, method, path, body) == expected, path
        for path in (*reads, "gates", "rollbacks", "governance", "machines"):
            assert await status(Role.VIEWER, "GET", path) == 200, path
        found = await served.client.get("/scheduler/audit", headers={"authorization": f"Bearer {secrets[Role.VIEWER]}"})
    assert {event["actor"]["id"] for event in found.json()["events"]} == {"the-operator"}


async def test_the_token_identifies_the_caller_and_headers_cannot(settings: Settings) -> None:
    _, secret = TokenStore(settings.data).new("ada", Role.OPERATOR)
    async with serving(settings) as jobs:
        jobs.client.headers["authorization"] = f"Bearer {secret}"
        await jobs.post("objects", MEMORY)
        other = await jobs.post("objects/refill/memory/a/b", REFILL, headers={"x-pendula-user": "mia"})
        herself = await jobs.post("objects/refill/memory/a/b", REFILL, headers={"x-pendula-user": "ada"})
        [*_, event] = (await jobs.get("audit", object_id="a/b")).json()["events"]

    assert (error_of(other)["status"], error_of(other)["code"]) == (403, "forbidden")
    assert (herself.status_code, event["actor"]) == (200, {"type": "user", "id": "ada"})


@pytest.mark.parametrize("name", ["", " ", "%20mia", "a%0Ab", "m" * 129])
async def test_an_invalid_name_is_refused(jobs: Jobs, name: str) -> None:
    assert error_of(await jobs.post("objects", MEMORY, headers={"x-pendula-user": name}))["code"] == "forbidden"


async def test_on_this_machine_without_tokens_the_header_names_the_user(jobs: Jobs) -> None:
    await jobs.post("objects", MEMORY)
    unnamed = await jobs.post("objects/refill/memory/a/b", REFILL)
    named = await jobs.post("objects/refill/memory/a/b", REFILL, headers={"x-pendula-user": "zo%C3%AB"})
    [*_, event] = (await jobs.get("audit", object_id="a/b")).json()["events"]

    assert error_of(unnamed)["code"] == "user_required"
    assert named.json()["object"]["verify_budget_left"] == 5
    assert event["actor"] == {"type": "user", "id": "zoë"}


async def ended(jobs: Jobs, finding: str, kind: str = "memory") -> httpx.Response:
    """The job of an object of this kind, a day later."""
    jobs.clock.pass_by(86_400)
    [job] = [one for one in await jobs.pulled("w") if one["object_type"] == kind]
    proof = {"worker_id": "w", "lease_token": job["lease_token"]}
    begun = (await jobs.post(f"jobs/{job['job_id']}/begin", proof)).json()
    if not begun["entered"]:
        return await jobs.post(f"jobs/{job['job_id']}/begin", proof)
    return await jobs.post(f"jobs/{job['job_id']}/finish", {**proof, "finding": finding, "reason": "looked into"})


@pytest.mark.req("JOB-MET-7")
async def test_prometheus_metrics_include_governance(jobs: Jobs) -> None:
    for gate in ("persona_conflict_gate", "risk_gate", "cognition_gate"):
        verdict = "block" if gate == "risk_gate" else "pass"
        await jobs.client.put("/scheduler/gates", json={**GATE, "gate": gate, "verdict": verdict})
    await jobs.post("objects", {**MEMORY, "risk_tier": "high"})
    jobs.clock.pass_by(86_400)
    assert await jobs.pulled("w") == [], "a gate blocks it, and again a day later"
    unknowable = {"status": "needs_revalidate", "unknown_type": "ontic_unknowable", "auto_verify_budget": 4}
    await jobs.post("objects", {"object_type": "cognition", "object_id": "cg", **unknowable})
    await ended(jobs, "inconclusive", "cognition")

    text = (await jobs.client.get("/scheduler/metrics", headers={"accept": "text/plain"})).text

    for line in (
        'jobs_governed_objects{object_type="cognition",place="stale/uncertain"} 1.0',
        'jobs_governed_objects{object_type="memory",place="candidate"} 1.0',
        'jobs_governed_verifications_total{object_type="cognition"} 1.0',
        'jobs_governed_budget_granted_total{object_type="cognition"} 4.0',
        'jobs_governed_entered_total{object_type="cognition",place="stale/uncertain"} 1.0',
        'jobs_governed_closures_total{object_type="cognition"} 1.0',
        'jobs_governed_gate_verdicts_total{gate="risk_gate",verdict="block"} 2.0',
        'jobs_governed_escalations_total{object_type="memory"} 2.0',
        'jobs_governed_outcomes_total{outcome="gate_blocked"} 2.0',
        'jobs_pull_to_ack_seconds_count{action="revalidate",object_type="cognition",priority="medium"} 1.0',
    ):
        assert line in text.splitlines()


async def test_the_server_describes_the_state_machines(jobs: Jobs) -> None:
    described = (await jobs.client.get("/scheduler/machines")).json()

    machines = {machine["object_type"]: machine for machine in described["machines"]}
    memory = machines["memory"]
    assert sorted(machines) == ["cognition", "experience", "memory"]
    assert [place["place"] for place in memory["places"]][:2] == ["active", "verified"]
    drawn = {place["place"] for place in memory["places"]}
    assert all({arrow["source"], arrow["target"]} <= drawn for arrow in memory["arrows"])
    assert {"gate": "social_gate", "verdicts": ["pass", "block", "defer"], "required": False} in described["gates"]


async def test_a_past_moment_can_be_read(jobs: Jobs) -> None:
    await jobs.post("objects", MEMORY)
    await jobs.post("objects/evidence/memory/a/b", {"evidence_refs": ["ev_9"]})

    then = (await jobs.get("past", at="aud_000000000002")).json()
    nowhere = await jobs.get("past", at="aud_000000009999")

    assert then["places"] == [{"object_type": "memory", "place": "candidate", "objects": 1}]
    assert [job["action"] for job in then["waiting"]] == ["verify"]
    assert error_of(nowhere)["code"] == "invalid_field"
