"""Time plans, reasons and workers over HTTP: roles, Prometheus metrics, the list of workers."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pendula.cli.program import run
from pendula.jobs import AsyncScheduler, RemoteScheduler
from pendula.jobs.client import ServerUnreachable
from pendula.jobs.presence import PresenceWriter
from pendula.jobs.store.protocol import WorkerRow
from pendula.kernel.errors import WrongUsage
from pendula.server.schedulers.jobs.routes import jobs_scheduler
from pendula.server.security.identity import Role, TokenStore
from pendula.server.settings import Settings
from tests.server.certificate import CERTIFICATE, KEY
from tests.server.job_servers import QUICK, Jobs, error_of, serving
from tests.server.living import JSON, LiveServer, until

pytestmark = pytest.mark.anyio
PLAN: dict[str, Any] = {"cron": "@daily", "object_type": "memory", "object_id": "m", "action": "decay"}


@pytest.fixture
async def jobs(settings: Settings) -> AsyncIterator[Jobs]:
    async with serving(settings) as found:
        yield found


# Plans


@pytest.mark.req("JOB-USE-7")
async def test_a_new_plan_is_201_and_a_changed_one_200(jobs: Jobs) -> None:
    answers = [
        await jobs.client.put("/scheduler/plans/p", json={**PLAN, "cron": cron}) for cron in ("@daily", "@weekly")
    ]

    assert [answer.status_code for answer in answers] == [201, 200]
    assert (await jobs.get("plans")).json()["plans"][0]["cron"] == "@weekly"


@pytest.mark.req("JOB-USE-7")
async def test_a_viewer_sees_plans_and_an_operator_pauses_them_by_name(settings: Settings) -> None:
    store = TokenStore(Path(settings.data))
    secrets = {role: store.new(f"the-{role}", role)[1] for role in (Role.VIEWER, Role.OPERATOR)}

    async def call_as(role: Role, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {secrets[role]}"}
        answer = await desk.client.request(method, f"/scheduler/{path}", json=body, headers=headers)
        return answer.status_code, answer.json()

    async with serving(settings) as desk:
        refused = await call_as(Role.VIEWER, "PUT", "plans/p", PLAN)
        await call_as(Role.OPERATOR, "PUT", "plans/p", PLAN)
        paused = await call_as(Role.OPERATOR, "POST", "plans/p/pause", {})
        seen = await call_as(Role.VIEWER, "GET", "plans")

    assert (refused[0], paused[0], seen[0]) == (403, 200, 200)
    assert seen[1]["plans"][0]["paused_by"] == "the-operator"


# Workers


@pytest.mark.req("JOB-USE-9")
async def test_worker_metrics_in_the_store_reach_prometheus_with_their_age(jobs: Jobs) -> None:
    now = jobs.clock.now
    row = WorkerRow("w1", now, now, None, 7, running=2, succeeded=4, failed=1, dropped=0, released=0)
    jobs.service.calls.record_heartbeats([row])
    jobs.clock.pass_by(12)

    for path in ("/scheduler/metrics", "/metrics"):
        text = (await jobs.client.get(path, headers={"accept": "text/plain"})).text
        found = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name.startswith("jobs_worker")
        }
        assert found == {
            ("jobs_worker_age_seconds", "w1"): 12,
            ("jobs_worker_running", "w1"): 2,
            ("jobs_worker_taken_total", "w1"): 7,
            ("jobs_worker_ended_total", "succeeded", "w1"): 4,
            ("jobs_worker_ended_total", "failed", "w1"): 1,
            ("jobs_worker_ended_total", "dropped", "w1"): 0,
            ("jobs_worker_ended_total", "released", "w1"): 0,
        }


@pytest.mark.req("JOB-USE-9")
async def test_a_server_lists_the_workers_that_pull_from_it(jobs: Jobs) -> None:
    await jobs.enqueued()
    jobs.clock.turn_to("2026-02-21T00:00:00Z")
    await jobs.pulled("w2", actions=["revalidate"], object_types=["cognition"], queues=["default"])
    writer = PresenceWriter(jobs.service.presence, jobs.service.calls)
    wrote = [writer.write(), writer.write()]

    [worker] = (await jobs.get("workers")).json()["workers"]
    assert (worker["worker_id"], worker["taken"], worker["running"]) == ("w2", 1, None)
    assert (worker["handles"], worker["queues"]) == (["cognition revalidate"], ["default"])
    assert wrote == [1, 0]


@pytest.mark.long
def test_a_served_scheduler_records_worker_metrics_by_itself(tmp_path: Path) -> None:
    place = Settings(port=0, data=str(tmp_path / "data"))
    with (
        LiveServer(place, [jobs_scheduler(QUICK, record_workers=True)]) as server,
        RemoteScheduler(server.url) as client,
    ):
        client.pull(worker_id="w1")
        until(lambda: bool(client.workers().workers))

        assert client.workers().workers[0].worker_id == "w1"


# Refusals and their order


@pytest.mark.parametrize(
    ("method", "path"), [("DELETE", "jobs"), ("PUT", "jobs/pull"), ("POST", "audit"), ("PATCH", "plans/p")]
)
async def test_a_wrong_method_is_reported_before_the_content_type(jobs: Jobs, method: str, path: str) -> None:
    answer = await jobs.client.request(method, f"/scheduler/{path}")

    assert (answer.status_code, error_of(answer)["code"]) == (405, "method_not_allowed")
    assert method not in answer.headers["allow"]


async def test_an_allowed_method_still_needs_its_content_type(jobs: Jobs) -> None:
    assert error_of(await jobs.client.post("/scheduler/jobs", content=b"{}"))["status"] == 415


async def test_a_refused_local_caller_learns_how_to_become_admin(jobs: Jobs) -> None:
    error = error_of(await jobs.post("keys/free", {"idempotency_key": "k", "reason": "r"}))

    assert error["status"] == 403
    assert "pendula token new" in error["message"]


def test_a_client_that_leaves_mid_body_is_no_server_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    head = "POST /scheduler/jobs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 1000\r\n"
    with LiveServer(Settings(port=0, data=str(tmp_path / "data")), [jobs_scheduler(QUICK)]) as server:
        with server.connect() as connection:
            asked = head.format(port=server.port) + f"Content-Type: {JSON['content-type']}\r\n\r\n" + '{"object'
            connection.sendall(asked.encode())
        until(lambda: "client_left" in caplog.text)

    assert "internal_error" not in caplog.text


# The client over TLS


def encrypted(folder: Path) -> LiveServer:
    (folder / "cert.pem").write_text(CERTIFICATE)
    (folder / "key.pem").write_text(KEY)
    plain = Settings(port=0, data=str(folder / "data"))
    settings = msgspec.structs.replace(plain, tls_cert=str(folder / "cert.pem"), tls_key=str(folder / "key.pem"))
    return LiveServer(settings, [jobs_scheduler(QUICK)])


def test_the_client_trusts_a_given_certificate_authority(tmp_path: Path) -> None:
    with encrypted(tmp_path) as server, RemoteScheduler(server.url, ca=tmp_path / "cert.pem") as client:
        job = client.defer("memory", "m", "decay")

        assert client.pull(worker_id="w").jobs[0].job_id == job.job_id


def test_the_client_refuses_a_server_with_an_untrusted_certificate(tmp_path: Path) -> None:
    with (
        encrypted(tmp_path) as server,
        RemoteScheduler(server.url) as client,
        pytest.raises(
            ServerUnreachable, match=r"The certificate of https://.* is not trusted: self-signed.*; --ca, or ca="
        ),
    ):
        client.plans()


def test_a_file_without_certificates_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for name in ("empty.pem", "absent.pem"):
        with pytest.raises(WrongUsage, match=name):
            RemoteScheduler("https://127.0.0.1:1", ca=tmp_path / name)


async def test_the_async_client_accepts_a_certificate_authority_too(tmp_path: Path) -> None:
    with encrypted(tmp_path) as server:
        async with AsyncScheduler.connect(server.url, ca=tmp_path / "cert.pem") as client:
            assert (await client.plans()).plans == []


@pytest.mark.parametrize(("trusted", "code"), [(True, 0), (False, 3)])
def test_the_ca_option_names_a_certificate_authority(
    trusted: bool, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with encrypted(tmp_path) as server:
        given = ["--ca", str(tmp_path / "cert.pem")] if trusted else []
        ended = run(["jobs", "plans", "list", "--url", server.url, *given])

    call_as = capsys.readouterr()
    assert ended == code
    assert ("--ca" in call_as.err) is not trusted


def test_plain_http_to_a_tls_server_suggests_https(tmp_path: Path) -> None:
    with (
        encrypted(tmp_path) as server,
        RemoteScheduler(server.url.replace("https:", "http:")) as client,
        pytest.raises(ServerUnreachable, match=r"does it want https\?$"),
    ):
        client.plans()
