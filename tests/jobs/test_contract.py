"""One contract, two interfaces: every case gets the same answers from the Python API and from a server.

Over HTTP every request generated from the OpenAPI document is answered as documented.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pendula.jobs.calls import Calls
from pendula.jobs.client import RemoteScheduler
from pendula.jobs.messages import Enqueued
from pendula.jobs.model import Durability, Policy, Vocabulary
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.server.schedulers.jobs.answering import service_in
from pendula.server.schedulers.jobs.routes import jobs_scheduler
from pendula.server.settings import Settings
from tests.governance.plain_replies import governed
from tests.jobs.interfaces import INTERFACES, Case, Recorder, at_once
from tests.jobs.stores import Clock
from tests.server.living import LiveServer

JOB: dict[str, Any] = {"object_type": "cognition", "object_id": "cg_1", "action": "revalidate"}
QUICK = Policy(durability=Durability.NORMAL)


# The cases


def an_ordinary_round(on: Recorder) -> None:
    due = on.clock.text(60)
    job_id = on("enqueue", **JOB, run_at=due)["job"]["job_id"]
    assert on("pull", worker_id="w1")["count"] == 0
    on.clock.pass_by(60)
    [job] = on("pull", worker_id="w1", lease_sec=30)["jobs"]
    on("show", job_id)
    renewed = on("renew", job_id, worker_id="w1", lease_token=job["lease_token"], lease_sec=90)
    assert renewed["lease_expires_at"] == on.clock.text(90)
    done = on("ack", job_id, result="succeeded", lease_token=job["lease_token"], next_action_at=on.clock.text(3600))
    assert done["job"]["status"] == "succeeded"
    assert on("show", done["followup_job_id"])["job"]["run_at"] == on.clock.text(3600)
    assert on("object", "cognition", "cg_1")["next_action_at"] == on.clock.text(3600)
    assert len(on("history", job_id)["events"]) == 4
    assert len(on("audit")["events"]) == 5


def what_is_asked_again(on: Recorder) -> None:
    first = on("enqueue", **JOB, run_at=on.clock.text(5))
    assert on("enqueue", **JOB, run_at=on.clock.text(5), priority="high")["deduplicated"] is True
    on.clock.pass_by(5)
    [job] = on("pull", worker_id="w1")["jobs"]
    body = {"lease_token": job["lease_token"], "error": "x", "retry_delay_sec": 0}
    assert on("fail", job["job_id"], **body)["already_failed"] is False
    assert on("fail", job["job_id"], **body)["already_failed"] is True
    [job] = on("pull", worker_id="w1")["jobs"]
    assert on("release", job["job_id"], worker_id="w1", lease_token=job["lease_token"])["job"]["status"] == "queued"
    assert on("release", job["job_id"], worker_id="w1", lease_token=job["lease_token"])["job"]["status"] == "queued"
    [job] = on("pull", worker_id="w1")["jobs"]
    assert on("ack", job["job_id"], result="succeeded", lease_token=job["lease_token"])["already_acked"] is False
    assert on("ack", job["job_id"], result="succeeded", lease_token=job["lease_token"])["already_acked"] is True
    assert on("enqueue", **JOB, run_at=first["job"]["run_at"])["job"]["status"] == "succeeded"


def three_strikes_and_back(on: Recorder) -> None:
    job_id = on("enqueue", **JOB)["job"]["job_id"]
    seen = []
    for _ in range(3):
        on("pull", worker_id="w1")
        seen.append(on("fail", job_id, error="x", retry_delay_sec=300)["job"]["status"])
        on.clock.pass_by(300)
    assert seen == ["queued", "queued", "dead_letter"]
    assert on("metrics")["dead_letter_count"] == 1
    assert on("cancel", job_id) == (409, "job_not_queued")
    assert on("requeue", job_id, run_at=on.clock.text(-1)) == (422, "run_at_in_past")
    assert on("requeue", job_id, reason="fixed")["job"]["attempt"] == 0
    assert on("requeue", job_id) == (409, "job_not_dead_letter")
    assert on("cancel", job_id, reason="enough")["job"]["last_error"] == "cancelled: enough"


def leases_that_end(on: Recorder) -> None:
    job_id = on("enqueue", **JOB)["job"]["job_id"]
    assert on("ack", job_id, result="succeeded") == (409, "job_not_running")
    [first] = on("pull", worker_id="w1", lease_sec=60)["jobs"]
    on.clock.pass_by(60)
    late = {"result": "succeeded", "lease_token": first["lease_token"]}
    assert on("ack", job_id, **late) == (409, "lease_expired")
    reply = on("pull", worker_id="w2")
    assert (reply["reclaimed"], reply["count"]) == (1, 1)
    assert on("ack", job_id, **late) == (409, "lease_lost")
    assert on("ack", job_id, result="succeeded") == (409, "lease_token_required")
    assert on("fail", job_id, error="x", worker_id="w1") == (409, "lease_lost")
    token = reply["jobs"][0]["lease_token"]
    assert on("fail", job_id, error="x", retryable=False, lease_token=token)["job"]["status"] == "failed"
    assert [error["error"] for error in on("history", job_id)["errors"]] == ["lease_expired: w1", "x"]


def keys_that_mean_something_else(on: Recorder) -> None:
    on("enqueue", **JOB, idempotency_key="k")
    assert on("enqueue", **{**JOB, "object_id": "cg_2"}, idempotency_key="k") == (409, "idempotency_key_conflict")
    assert on("enqueue", **JOB, idempotency_key="k", run_at=on.clock.text(9)) == (409, "idempotency_key_conflict")


def many_at_once(on: Recorder) -> None:
    entries = [{**JOB, "object_id": f"o{n}", "priority": p} for n, p in enumerate(("low", "high", "medium"))]
    reply = on("enqueue_batch", [*entries, {**JOB, "action": "dance"}, 7, entries[0]])
    assert [entry["status"] for entry in reply["results"]] == [201, 201, 201, 422, 422, 200]
    assert on("enqueue_batch", [{**JOB, "object_id": "new"}, {}], atomic=True) == (422, "batch_rejected")
    assert on("enqueue_batch", []) == (422, "invalid_field")
    jobs = on("pull", worker_id="w1", limit=2)["jobs"]
    assert [job["object_id"] for job in jobs] == ["o1", "o2"]
    acks = [{"job_id": job["job_id"], "result": "succeeded", "lease_token": job["lease_token"]} for job in jobs]
    reply = on("ack_batch", [*acks, {"job_id": "job_nope", "result": "succeeded"}, {}])
    assert [entry["status"] for entry in reply["results"]] == [200, 200, 404, 422]
    page = on("list", limit=2)
    assert on("list", limit=2, cursor=page["next_cursor"])["next_cursor"] is None
    assert len(on("list", status="succeeded", action="revalidate")["jobs"]) == 2
    assert on("metrics", window_sec=60)["job_success_rate"] == 1


def bodies_with_faults(on: Recorder) -> None:
    assert on("enqueue") == (422, "validation_failed")
    assert on("enqueue", **JOB, prioritty="high") == (422, "unknown_field")
    assert on("enqueue", **JOB, max_attempts=0) == (422, "invalid_field")
    assert on("enqueue", **JOB, max_attempts=True) == (422, "invalid_field")
    assert on("enqueue", **{**JOB, "object_id": " x"}) == (422, "invalid_field")
    assert on("enqueue", **{**JOB, "action": "reinstate_check"}) == (422, "invalid_enum")
    assert on("enqueue", **JOB, run_at="2026-02-21T00:00:00") == (422, "naive_timestamp")
    assert on("enqueue", **JOB, run_at=on.clock.text(-1)) == (422, "run_at_in_past")
    for limit in (0, -1, "10", True, 1001):
        assert on("pull", worker_id="w", limit=limit) == (422, "invalid_limit")
    assert on("pull") == (422, "invalid_worker_id")
    assert on("pull", worker_id="w", wait_ms=30_001) == (422, "invalid_field")
    assert on("pull", worker_id="w", object_types=["nothing"]) == (422, "invalid_enum")
    job_id = on("enqueue", **JOB)["job"]["job_id"]
    on("pull", worker_id="w")
    assert on("ack", job_id) == (422, "invalid_result")
    assert on("ack", job_id, result="succeeded", next_action_at=on.clock.text(-1)) == (422, "next_action_at_in_past")
    assert on("fail", job_id, error=" ") == (422, "invalid_field")
    assert on("fail", job_id, error="x", retry_delay_sec=-1) == (422, "invalid_field")
    assert on("renew", job_id) == (422, "validation_failed")
    assert on("list", limit=0) == (422, "invalid_limit")
    assert on("list", cursor="x") == (422, "invalid_field")
    assert on("audit", event_type="party") == (422, "invalid_enum")
    assert on("metrics", window_sec=1) == (422, "invalid_field")


def what_is_not_there(on: Recorder) -> None:
    for call in ("ack", "fail", "renew", "release", "cancel", "requeue", "show", "history"):
        assert on(call, "job_nope") == (404, "job_not_found")
    assert on("show", "..") == (404, "job_not_found")
    assert on("object", "memory", "m") == (404, "object_not_found")
    assert on("object", "ä", "ö/%2F ?#") == (404, "object_not_found")
    assert on("list")["jobs"] == []
    assert on("audit", job_id="job_nope")["events"] == []
    assert on("metrics")["job_success_rate"] is None


def plans_that_rest_and_go_on(on: Recorder) -> None:
    plan = {**JOB, "cron": "30 2 * * *", "zone": "Europe/Berlin"}
    assert on("put_plan", "nightly", **plan)["plan"]["next_at"] == "2026-02-21T01:30:00Z"
    assert on("put_plan", "nightly", **{**plan, "cron": "0 4 * * *"})["plan"]["next_at"] == "2026-02-21T03:00:00Z"
    for name in ("Not A Name", "a/b", "../b", "a%2Fb", ""):
        assert on("put_plan", name, **plan) == (422, "invalid_field")
    assert on("put_plan", "nightly", cron="x", colour="red") == (422, "validation_failed")
    assert on("pause_plan", "nightly", reason="moving")["plan"]["next_at"] is None
    assert on("pause_plan", "nightly", why="moving") == (422, "unknown_field")
    assert on("plans")["plans"][0]["paused_at"] is not None
    assert on("run_now", "nightly")["deduplicated"] is False
    assert on("run_now", "nightly")["deduplicated"] is True
    on("resume_plan", "nightly")
    assert on("remove_plan", "nightly") == {"removed": True, "name": "nightly"}
    for call in ("pause_plan", "resume_plan", "run_now", "remove_plan"):
        assert on(call, "nightly") == (404, "plan_not_found")
        assert on(call, "no/such plan") == (404, "plan_not_found")
    on("audit")


def alerts_that_are_read_afterwards(on: Recorder) -> None:
    assert on("alerts") == {"alerts": [], "next_cursor": None}
    died = []
    for number in range(3):
        died.append(on("enqueue", **{**JOB, "object_id": f"m{number}"}, max_attempts=1)["job"]["job_id"])
        [job] = on("pull", worker_id="w")["jobs"]
        on("fail", job["job_id"], error="poison", worker_id="w", lease_token=job["lease_token"])
    page = on("alerts", limit=2)
    assert [alert["job_id"] for alert in page["alerts"]] == died[:0:-1]
    assert {alert["alert"] for alert in page["alerts"]} == {"job.dead_letter"}
    rest = on("alerts", limit=2, cursor=page["next_cursor"])
    assert [alert["job_id"] for alert in rest["alerts"]] == died[:1]
    assert rest["next_cursor"] is None
    for wrong in ({"limit": 0}, {"cursor": "x"}, {"colour": "red"}):
        assert on("alerts", **wrong)[0] == 422


def ids_as_long_as_they_may_be(on: Recorder) -> None:
    name = "x" * 512
    plan = {**JOB, "object_id": name, "cron": "30 2 * * *"}
    made = on("enqueue", **{**JOB, "object_id": name, "correlation_id": name})["job"]
    assert (made["object_id"], made["correlation_id"]) == (name, name)
    assert len(on("list", object_id=name, correlation_id=name)["jobs"]) == 1
    assert on("audit", object_type="memory", object_id=name)["events"] == []
    assert on("put_plan", "nightly", **plan)["plan"]["object_id"] == name
    assert on("why", on("plans")["plans"][0]["job_id"])["reason"] == "waits_for_time"
    assert on("enqueue", **{**JOB, "object_id": f"{name}x"}) == (422, "invalid_field")


def why_it_waits(on: Recorder) -> None:
    first, later = (on("enqueue", **JOB, run_at=on.clock.text(n))["job"]["job_id"] for n in (0, 60))
    assert on("why", later)["reason"] == "waits_for_time"
    assert on("why", first)["reason"] == "waits_for_worker"
    on("pull", worker_id="w", limit=1)
    assert on("why", first)["reason"] == "runs"
    assert on("why", "job_nope") == (404, "job_not_found")
    assert on("workers") == {"workers": []}


def words_in_other_scripts(on: Recorder) -> None:
    name = "кот/猫 \U0001f408 ✓"
    job_id = on("enqueue", **{**JOB, "object_id": name}, correlation_id="ß", queue="night")["job"]["job_id"]
    [job] = on("pull", worker_id="w:1@host", queues=["night"], actions=["revalidate"])["jobs"]
    assert job["object_id"] == name
    on("fail", job_id, error="↯" * 5000, lease_token=job["lease_token"])
    assert on("show", job_id)["job"]["last_error"].endswith("…[truncated]")
    assert [found["object_id"] for found in on("list", object_id=name)["jobs"]] == [name]


def objects_under_governance(on: Recorder) -> None:
    name = "кот/猫 .. 🐈"
    made = on.governed("create", "memory", name, evidence_refs=["ev_1"], half_life="P30D", impact_weight=1)
    assert made["object"]["status"] == "candidate"
    assert on.governed("create", "memory", name) == (409, "object_exists")
    assert on.governed("create", "memory", "x", half_life="a month", risk_tier="huge") == (422, "validation_failed")
    on.clock.pass_by(86_400)
    [job] = on("pull", worker_id="w")["jobs"]
    held = {"worker_id": "w", "lease_token": job["lease_token"]}
    begun = on.governed("begin", job["job_id"], user=None, **held)
    assert on.governed("begin", job["job_id"], user=None, **held)["object"] == begun["object"]
    body = {"finding": "passed", "reason": "seen", "evidence_refs": ["ev_2"], "version": begun["version"], **held}
    ended = on.governed("finish", job["job_id"], user=None, gates=begun["gates"], **body)
    assert (ended["outcome"], ended["object"]["status"]) == ("transitioned", "verified")
    assert on.governed("finish", job["job_id"], user=None, **body)["already_ended"] is True
    assert on.governed("settle", job["job_id"], user=None, worker_id="w", lease_token="lt_x")[0] == 409
    on.clock.pass_by(14 * 86_400)
    [job] = on("pull", worker_id="w")["jobs"]
    held = {"worker_id": "w", "lease_token": job["lease_token"]}
    assert on.governed("settle", job["job_id"], colour="red", user=None, **held) == (422, "unknown_field")
    assert on.governed("settle", job["job_id"], user=None, **held)["outcome"] == "noop"
    on.governed("show", "memory", name)
    assert on.governed("why", "memory", name)["next_action"] == "decay"
    assert [one["object_id"] for one in on.governed("list", "memory", place="verified")["objects"]] == [name]
    assert on.governed("list", "memory", after=None, limit=0) == (422, "invalid_limit")
    assert on("object", "memory", name)["state"] == "verified"
    assert on.governed("figures")["places"] == [{"object_type": "memory", "place": "verified", "objects": 1}]


def what_people_decide(on: Recorder) -> None:
    for gate in ("persona_conflict_gate", "risk_gate", "cognition_gate"):
        on.governed("set_gate", gate, "pass", "for now")
    assert on.governed("set_gate", "persona_conflict_gate", "override", "trust me", user=None) == (403, "user_required")
    assert on.governed("set_gate", "risk_gate", "maybe", "?") == (422, "invalid_enum")
    assert on.governed("set_gate", "risk_gate", "limit", "careful", scope="memory:m")["gate"]["version"] == 1
    assert len(on.governed("gates", scope="memory:m")["gates"]) == 4
    on.governed("create", "memory", "m", risk_tier="high", evidence_refs=["ev_1"])
    verdict: dict[str, Any] = {"reason": "looked into", "evidence_refs": ["ev_2"]}
    assert on.governed("decide", "memory", "m", "verify", "passed", user=None, **verdict) == (403, "user_required")
    assert on.governed("decide", "memory", "m", "verify", "passed", **verdict)["executed"] == "limited"
    assert on.governed("decide", "memory", "m", "verify", "suspicious", **verdict)["object"]["status"] == "quarantine"
    on.governed("decide", "memory", "m", "verify", "forged", **verdict)
    assert len(on.governed("rollbacks", limit=5)["rollbacks"]) == 1
    assert on.governed("rollback_finished", "memory", "m", reason="done")["object"]["rollback_pending"] is False
    assert on.governed("attach_evidence", "memory", "m", version=1) == (422, "invalid_field")
    assert on.governed("attach_evidence", "memory", "m", "ev_3", version=1) == (409, "state_conflict")
    on.governed("attach_evidence", "memory", "m", "ev_3")
    assert on.governed("refill", "memory", "m", "worth it", budget=4, user="zoë")["object"]["verify_budget_left"] == 4
    assert on("audit")["events"][-1]["actor"] == {"type": "user", "id": "zoë"}
    for call in ("show", "why"):
        assert on.governed(call, "memory", "unknown") == (404, "object_not_found")
    assert on.governed("begin", "job_nope", user=None) == (404, "job_not_found")


CASES: tuple[Case, ...] = (
    an_ordinary_round,
    what_is_asked_again,
    three_strikes_and_back,
    leases_that_end,
    keys_that_mean_something_else,
    many_at_once,
    bodies_with_faults,
    what_is_not_there,
    words_in_other_scripts,
    plans_that_rest_and_go_on,
    alerts_that_are_read_afterwards,
    ids_as_long_as_they_may_be,
    why_it_waits,
    objects_under_governance,
    what_people_decide,
)


@pytest.mark.req("JOB-API-5")
@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])
def test_both_interfaces_answer_alike(tmp_path: Path, case: Case) -> None:
    transcripts = {}
    for name, opened in INTERFACES.items():
        with opened(tmp_path / name, QUICK) as (interface, clock):
            written = Recorder(interface, clock)
            case(written)
            transcripts[name] = written.alike()

    assert transcripts["python"] == transcripts["http"]


@pytest.mark.req("JOB-API-5")
def test_both_interfaces_use_the_vocabulary_of_the_settings(tmp_path: Path) -> None:
    words = Policy(durability=Durability.NORMAL, vocabulary=Vocabulary(("page",), ("translate",)), auto_followup=False)
    transcripts = {}
    for name, opened in INTERFACES.items():
        with opened(tmp_path / name, words) as (interface, clock):
            on = Recorder(interface, clock)
            job_id = on("enqueue", object_type="page", object_id="p", action="translate")["job"]["job_id"]
            assert on("enqueue", **JOB) == (422, "validation_failed")
            on("pull", worker_id="w")
            assert on("ack", job_id, result="succeeded", next_action_at=clock.text(1))["followup_job_id"] is None
            transcripts[name] = on.alike()

    assert transcripts["python"] == transcripts["http"]


# Concurrent callers


@pytest.mark.req("JOB-ENQ-9")
def test_sixteen_threads_with_the_same_request_store_one_job(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db")
    calls = Calls(store, Policy(), Clock())
    body = {**JOB, "run_at": "2026-03-01T00:00:00Z"}
    seen: list[bool] = []

    def work(_: int) -> None:
        answers = [calls.enqueue(body) for _ in range(200)]
        seen.extend(answer.deduplicated for answer in answers if isinstance(answer, Enqueued))

    at_once(16, work)

    assert Counter(seen) == {False: 1, True: 3199}
    assert check(store) == []
    store.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    place = tmp_path_factory.mktemp("server") / "data"
    with LiveServer(Settings(port=0, data=str(place)), [jobs_scheduler(QUICK)]) as found:
        yield found


@pytest.mark.req("JOB-ENQ-9")
def test_sixteen_clients_with_the_same_request_store_one_job(server: LiveServer) -> None:
    seen: list[bool] = []
    guard = threading.Lock()

    def work(_: int) -> None:
        with RemoteScheduler(server.url) as client:
            for _ in range(10):
                deduplicated = client.enqueue(**JOB, run_at="2060-03-01T00:00:00Z").deduplicated
                with guard:
                    seen.append(deduplicated)

    at_once(16, work)

    assert Counter(seen) == {False: 1, True: 159}


# The document


# Real requests on a real socket: a tenth of the examples of the profile.
EXAMPLES = settings(max_examples=settings().max_examples // 10, suppress_health_check=list(HealthCheck))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.mark.req("JOB-API-9")
def test_every_generated_request_is_answered_as_documented(server: LiveServer) -> None:
    with RemoteScheduler(server.url) as client:
        ids = [client.enqueue(**{**JOB, "object_id": f"o{number}"}).job.job_id for number in range(20)]
        client.pull(worker_id="w", limit=10)
        client.put_plan("nightly", cron="0 3 * * *", object_type="memory", object_id="m", action="decay")
        governed(client).create("memory", "m", evidence_refs=["ev_1"])
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json").include(path_regex="^/scheduler/")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    statuses: Counter[int] = Counter()

    for operation in operations:

        @EXAMPLES
        @given(case=operation.as_strategy(), job_id=st.sampled_from(ids), known=st.booleans())
        def answered_as_documented(case: "schemathesis.Case[Any]", job_id: str, known: bool) -> None:
            if known and "job_id" in (case.path_parameters or {}):
                case.path_parameters["job_id"] = job_id
            if known and "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = "nightly"
            if known and "object_id" in (case.path_parameters or {}):
                case.path_parameters.update(object_type="memory", object_id="m")
            if isinstance(case.body, dict) and case.body.get("wait_ms"):
                case.body["wait_ms"] = 5
            response = case.call_and_validate(checks=CHECKS)
            statuses[response.status_code] += 1

        answered_as_documented()
    assert len(operations) == 48
    assert {200, 201, 404, 409, 422} <= set(statuses)
    assert check(service_in(server.app.state.supervisor).calls.store) == []


# Every call of the contract, as sent over the wire


def call(server: LiveServer, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    reply = httpx.request(method, f"{server.url}{path}", json=body, timeout=300)
    return reply.status_code, reply.json() if reply.headers["content-type"].startswith("application/json") else None


@pytest.mark.req("JOB-API-1")
def test_every_call_of_the_contract_works_on_a_real_server(tmp_path: Path) -> None:
    with LiveServer(Settings(port=0, data=str(tmp_path / "data")), [jobs_scheduler(QUICK)]) as server:
        ask = partial(call, server)
        made = [
            ask("POST", "/scheduler/jobs", {**JOB, "object_id": f"o{number}", "max_attempts": 1 if number == 3 else 3})
            for number in range(6)
        ]
        ids = [body["job"]["job_id"] for _, body in made]
        pulled = ask("POST", "/scheduler/jobs/pull", {"worker_id": "w", "limit": 5})
        held = {job["job_id"]: {"worker_id": "w", "lease_token": job["lease_token"]} for job in pulled[1]["jobs"]}
        assert [status for status, _ in made] == [201] * 6
        assert (pulled[0], sorted(held)) == (200, ids[:5])

        def about(number: int, verb: str, **members: Any) -> tuple[int, Any]:
            return ask("POST", f"/scheduler/jobs/{ids[number]}/{verb}", {**held.get(ids[number], {}), **members})

        assert about(0, "renew", lease_sec=900)[1]["lease_expires_at"] > pulled[1]["jobs"][0]["lease_expires_at"]
        assert about(0, "ack", result="succeeded", next_action_at=None)[1]["job"]["status"] == "succeeded"
        assert about(1, "fail", error="x", retry_delay_sec=900)[1]["job"]["status"] == "queued"
        assert about(2, "release")[1]["job"]["status"] == "queued"
        assert about(5, "cancel", reason="x")[1]["job"]["status"] == "failed"
        assert about(3, "fail", error="x")[1]["job"]["status"] == "dead_letter"
        held.pop(ids[3])
        assert about(3, "requeue", reason="mended")[1]["job"]["status"] == "queued"
        batch = ask("POST", "/scheduler/jobs/batch", {"jobs": [{**JOB, "object_id": "b"}]})
        assert [entry["status"] for entry in batch[1]["results"]] == [201]
        entry = {"job_id": ids[4], "result": "succeeded", **held[ids[4]]}
        acked = ask("POST", "/scheduler/jobs/ack-batch", {"acks": [entry]})
        assert [result["job"]["status"] for result in acked[1]["results"]] == ["succeeded"]

        assert ask("GET", f"/scheduler/jobs/{ids[0]}")[1]["job"]["status"] == "succeeded"
        listed = ask(
            "GET", "/scheduler/jobs?status=succeeded&object_type=cognition&object_id=o4&action=revalidate&limit=1"
        )
        assert [job["job_id"] for job in listed[1]["jobs"]] == [ids[4]]
        assert ask("GET", f"/scheduler/jobs/{ids[1]}/history")[1]["errors"][0]["error"] == "x"
        assert len(ask("GET", f"/scheduler/audit?job_id={ids[0]}")[1]["events"]) >= 3
        assert ask("GET", "/scheduler/objects/cognition/o0")[1]["next_action_at"] is None
        assert ask("GET", "/scheduler/metrics")[1]["jobs"]["succeeded"] == 2
        assert [ask("GET", path)[0] for path in ("/healthz", "/readyz")] == [200, 200]
