"""The scheduler as a part of the server: readiness, metrics, waiting pulls, shutdown."""

import asyncio
import resource
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from pendula.jobs.calls import Calls
from pendula.jobs.model import Policy, StorageBusy
from pendula.jobs.store.file import opening as proof
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.kernel.limits import PAST_READS
from pendula.kernel.time import parse_utc
from pendula.kernel.wallclock import WallClock
from pendula.server.runtime import scheduler_spec
from pendula.server.schedulers import schedulers_for
from pendula.server.schedulers.jobs import service
from pendula.server.schedulers.jobs.metrics import prefers_text
from pendula.server.schedulers.jobs.routes import jobs_scheduler, scheduler_for
from pendula.server.settings import Settings, load
from tests.server.job_servers import DUE, JOB, Jobs, error_of, serving
from tests.server.living import StreamReader, client_of, code_of, running, supervisor_of

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readiness requests wait for the check on a slow machine too."""
    monkeypatch.setattr(scheduler_spec, "READY_SECONDS", 120)


@pytest.fixture
async def jobs(settings: Settings) -> AsyncIterator[Jobs]:
    async with serving(settings) as found:
        yield found


async def readiness(client: httpx.AsyncClient) -> tuple[int, str | None]:
    response = await client.get("/readyz")
    checks = {check["name"]: check["reason"] for check in response.json()["checks"]}
    return response.status_code, checks["jobs"]


def samples(text: str) -> dict[Any, float]:
    """Every number of Prometheus' text form, by its name and labels."""
    families = text_string_to_metric_families(text)
    return {(one.name, *sorted(one.labels.items())): one.value for family in families for one in family.samples}


@contextmanager
def no_space_left() -> Iterator[None]:
    """No file of this process can grow, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# Readiness


@pytest.mark.req("JOB-STO-6")
async def test_a_server_is_ready_when_the_connection_that_commits_flushes(settings: Settings) -> None:
    async with serving(settings, Policy()) as jobs:
        store = jobs.service.calls.store
        assert isinstance(store, SqliteStore)
        observed = store.settings()
        ready = await readiness(jobs.client)
        store._connection.execute("PRAGMA synchronous = NORMAL")
        no_longer = await readiness(jobs.client)

    assert observed == {"synchronous": 2, "journal_mode": "wal"}
    assert ready == (200, None)
    assert no_longer == (503, "not_durable")


@pytest.mark.req("JOB-STO-6")
async def test_a_server_with_a_full_disk_is_not_ready(settings: Settings) -> None:
    async with serving(settings, Policy()) as jobs:
        store = jobs.service.calls.store
        assert isinstance(store, SqliteStore)
        with no_space_left():
            full = await readiness(jobs.client)
            refused = (await jobs.post("jobs", JOB)).status_code
        again = await readiness(jobs.client)

    assert full == (503, "store_unusable")
    assert refused == 503
    assert again == (200, None)


@pytest.mark.req("JOB-STO-6")
async def test_a_server_with_a_moved_store_is_unhealthy_until_it_is_back(settings: Settings) -> None:
    async with serving(settings, Policy()) as jobs:
        store = jobs.service.calls.store
        assert isinstance(store, SqliteStore)
        await jobs.post("jobs", JOB)
        await readiness(jobs.client)  # this check is valid for some seconds
        store.path.parent.rename(store.path.parent.with_name("away"))
        gone = [(await jobs.client.get("/healthz")).status_code, *await readiness(jobs.client)]
        refused = await jobs.post("jobs", {**JOB, "object_id": "other"})
        left = store.path.exists()
        store.path.parent.with_name("away").rename(store.path.parent)
        ready = await readiness(jobs.client)
        healthy = await jobs.client.get("/healthz")
        taken = await jobs.post("jobs", {**JOB, "object_id": "other"})

    assert gone == [503, 503, "store_unusable"]
    assert (refused.status_code, error_of(refused)["code"]) == (503, "store_unusable")
    assert not left
    assert ready == (200, None)
    assert (healthy.status_code, healthy.json()) == (200, {"status": "ok"})
    assert taken.status_code == 201


@asynccontextmanager
async def by_the_wall_clock(settings: Settings) -> AsyncIterator[tuple[WallClock, httpx.AsyncClient]]:
    async with running(settings, [jobs_scheduler(Policy())]) as app, client_of(app) as client:
        yield supervisor_of(app).clock, client


async def clock_state(client: httpx.AsyncClient) -> dict[str, int]:
    response = await client.get("/readyz")
    assert response.status_code == 200
    return dict(response.json()["clock"])


@pytest.mark.req("JOB-V2-7")
async def test_a_clock_that_was_ahead_is_reported_with_the_time_it_matters(settings: Settings) -> None:
    async with by_the_wall_clock(settings) as (clock, client):
        level = [await clock_state(client)]
        clock._wall_ns = lambda: time.time_ns() + 3600 * 10**9
        clock.check()
        level.append(await clock_state(client))
        made = await client.post("/scheduler/jobs", json={**JOB, "run_at": None})
        clock._wall_ns = time.time_ns
        with capture_logs() as observed:
            async with asyncio.timeout(120):
                while not any(line["event"] == "time_is_ahead" for line in observed):
                    await asyncio.sleep(0.05)
        ahead = [await clock_state(client)]
    async with by_the_wall_clock(settings) as (_, client):
        ahead.append(await clock_state(client))  # the store remembers

    assert level == [{"ahead_sec": 0, "agrees_in_sec": 0}] * 2
    assert parse_utc(made.json()["job"]["run_at"]) > time.time_ns() // 1000
    [line] = [line for line in observed if line["event"] == "time_is_ahead"]
    ahead.append({"ahead_sec": line["ahead_sec"], "agrees_in_sec": line["half_speed_for_sec"]})
    for state in ahead:
        # Some seconds pass while a test runs.
        assert 3000 < state["ahead_sec"] <= 3600
        assert state["agrees_in_sec"] in (2 * state["ahead_sec"], 2 * state["ahead_sec"] + 1)


@contextmanager
def writing_elsewhere(settings: Settings) -> Iterator[None]:
    """Another process holds a long write transaction."""
    with closing(sqlite3.connect(Path(settings.data) / "stores/jobs/jobs.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.req("JOB-STO-6")
@pytest.mark.parametrize(("good_seconds", "observed"), [(3600, (200, None)), (0, (503, "storage_busy"))])
async def test_a_slow_store_is_ready_while_its_last_good_check_is_valid(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, good_seconds: int, observed: tuple[int, str | None]
) -> None:
    monkeypatch.setattr(proof, "BELIEVED_SECONDS", 0)
    monkeypatch.setattr(scheduler_spec, "GOOD_SECONDS", good_seconds)
    async with serving(settings) as jobs:
        before = await readiness(jobs.client)
        with writing_elsewhere(settings):
            meanwhile = await readiness(jobs.client)

    assert before == (200, None)
    assert meanwhile == observed


@pytest.mark.req("JOB-STO-6")
async def test_a_late_check_is_slow_and_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_spec, "READY_SECONDS", 0.001)
    go_on = threading.Event()

    def look() -> None:
        go_on.wait(120)

    probe = scheduler_spec.ReadinessProbe(look, slow="busy")
    at_first = await probe.trouble()
    go_on.set()
    await probe.close()

    assert at_first == "busy"


@pytest.mark.req("JOB-STO-6")
async def test_concurrent_readiness_requests_share_one_check() -> None:
    looks: list[int] = []
    go_on = threading.Event()

    def look() -> None:
        looks.append(1)
        go_on.wait(120)

    probe = scheduler_spec.ReadinessProbe(look, slow="busy")
    asked = [asyncio.create_task(probe.trouble()) for _ in range(20)]
    await asyncio.sleep(0)
    go_on.set()
    found = await asyncio.gather(*asked)
    await probe.close()

    assert (found, len(looks)) == ([None] * 20, 1)


@pytest.mark.req("JOB-STO-6")
async def test_a_full_disk_is_reported_although_the_last_check_was_good(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "BELIEVED_SECONDS", 0)
    async with serving(settings) as jobs:
        before = await readiness(jobs.client)
        with no_space_left():
            full = await readiness(jobs.client)

    assert (before, full) == ((200, None), (503, "store_unusable"))


async def test_configured_lower_durability_is_no_fault(jobs: Jobs) -> None:
    assert await readiness(jobs.client) == (200, None)


async def test_an_unopenable_store_is_unhealthy_and_the_rest_works(settings: Settings) -> None:
    place = Path(settings.data) / "stores/jobs"
    place.mkdir(parents=True)
    (place / "jobs.db").write_bytes(b"no database at all" * 100)
    async with serving(settings) as jobs:
        ready = await readiness(jobs.client)
        schedulers = (await jobs.client.get("/api/v1/schedulers")).json()["schedulers"]
        response = await jobs.post("jobs", JOB)
        counters = (await jobs.client.get("/metrics")).text

    assert ready == (503, "store_unusable")
    assert [(scheduler["name"], scheduler["state"], scheduler["engines"]) for scheduler in schedulers] == [
        ("jobs", "broken", [])
    ]
    error = error_of(response)
    assert (error["status"], error["code"], error["details"]) == (503, "store_unusable", {"reason": "store_unusable"})
    assert settings.data not in response.text
    assert "jobs_refused_total" in counters


@pytest.mark.req("JOB-WRK-12")
async def test_an_unopenable_store_is_opened_as_soon_as_possible(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "REOPEN_SECONDS", 0.01)
    tries: list[Path] = []

    def stuck_at_first(path: Path, policy: Policy) -> service.DurableStore:
        tries.append(path)
        if len(tries) < 3:
            raise StorageBusy("jobs.db is locked by another writer")
        return service.open_sqlite(path, policy)

    async with serving(settings, open_store=stuck_at_first) as jobs, asyncio.timeout(120):
        codes = [(await jobs.post("jobs", JOB)).status_code]
        while codes[-1] != 201:
            codes.append((await jobs.post("jobs", JOB)).status_code)
            await asyncio.sleep(0)
        ready = (await jobs.client.get("/readyz")).status_code

    assert set(codes) == {503, 201}
    assert ready == 200
    assert len(tries) == 3


async def test_a_store_of_a_later_pendula_is_left_alone(settings: Settings) -> None:
    place = Path(settings.data) / "stores/jobs"
    place.mkdir(parents=True)
    with sqlite3.connect(place / "jobs.db") as later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    async with serving(settings) as jobs:
        assert await readiness(jobs.client) == (503, "newer_store")
        assert error_of(await jobs.get("jobs"))["details"] == {"reason": "newer_store"}


async def test_stored_jobs_survive_a_restart(settings: Settings) -> None:
    async with serving(settings) as jobs:
        job = await jobs.enqueued()
    async with serving(settings) as jobs:
        assert (await jobs.get(f"jobs/{job['job_id']}")).json()["job"] == job
        assert check(jobs.service.calls.store) == []


async def test_the_settings_set_the_store_path_and_the_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text('actions = ["translate"]\n', encoding="utf-8")
    settings = load(
        {"data": str(tmp_path / "data")},
        {
            "PENDULA_JOBS_DATABASE": str(tmp_path / "elsewhere.db"),
            "PENDULA_JOBS_SETTINGS": str(tmp_path / "jobs.toml"),
        },
    )
    async with running(settings, [scheduler_for(settings)]) as app, client_of(app) as client:
        stored = await client.post("/scheduler/jobs", json={**JOB, "run_at": None, "action": "translate"})
        upkeep = {thread.name for thread in threading.enumerate()}

    assert stored.status_code == 201
    assert {"pendula-jobs-alerts", "pendula-jobs-recurring", "pendula-jobs-retention"} <= upkeep
    assert (tmp_path / "elsewhere.db").is_file()
    assert not (tmp_path / "data/stores/jobs").exists()


async def test_maintenance_runs_while_the_store_is_open(settings: Settings) -> None:
    observed: list[str] = []

    class Sweeping:
        def __init__(self, calls: Calls) -> None:
            self._store = calls.store

        def start(self) -> None:
            observed.append("start")

        def close(self) -> None:
            # The store is still there.
            observed.append(f"close with {len(check(self._store))} faults")

    async with serving(settings, upkeep=lambda calls: [Sweeping(calls)]):
        assert observed == ["start"]
    assert observed == ["start", "close with 0 faults"]


def test_jobs_are_among_the_schedulers_of_every_server() -> None:
    assert "jobs" in [scheduler.name for scheduler in schedulers_for(Settings())]


# Metrics


@pytest.mark.req("JOB-MET-1")
@pytest.mark.req("JOB-MET-2")
async def test_the_five_metrics_as_json_and_as_text(jobs: Jobs) -> None:
    for name in ("at-once", "second-try", "never"):
        await jobs.enqueued(object_id=name)
    jobs.clock.turn_to(DUE)
    for _ in range(3):
        for job in await jobs.pulled():
            last = job["object_id"] == "at-once" or (job["object_id"] == "second-try" and job["attempt"] == 1)
            body: dict[str, Any] = {"result": "succeeded"} if last else {"error": "x", "retry_delay_sec": 0}
            await jobs.post(f"jobs/{job['job_id']}/{'ack' if last else 'fail'}", body)
    await jobs.enqueued(object_id="due")
    jobs.clock.pass_by(10)

    found = (await jobs.get("metrics")).json()
    short = (await jobs.get("metrics", window_sec=60)).json()
    text = await jobs.client.get("/scheduler/metrics", headers={"accept": "text/plain"})
    everything = (await jobs.client.get("/metrics")).text

    five = {name: found[name] for name in ("jobs_due_count", "jobs_lag_seconds", "job_retry_rate", "dead_letter_count")}
    assert five == {"jobs_due_count": 1, "jobs_lag_seconds": 10, "job_retry_rate": 0.5, "dead_letter_count": 1}
    assert found["job_success_rate"] == pytest.approx(2 / 3)
    assert (found["now"], found["window_sec"], short["window_sec"]) == ("2026-02-21T00:00:10Z", 3600, 60)
    assert found["jobs"] == {"queued": 1, "running": 0, "succeeded": 2, "failed": 0, "dead_letter": 1}
    assert text.headers["content-type"].startswith("text/plain")
    for line in ("jobs_due_count 1.0", "jobs_lag_seconds 10.0", "job_retry_rate 0.5", "dead_letter_count 1.0"):
        assert line in text.text.splitlines()
        assert line in everything.splitlines()


@pytest.mark.req("JOB-MET-1")
async def test_rates_without_data_are_null_and_nan(jobs: Jobs) -> None:
    found = (await jobs.get("metrics")).json()
    text = (await jobs.client.get("/scheduler/metrics", headers={"accept": "text/plain"})).text

    assert (found["job_success_rate"], found["job_retry_rate"], found["jobs_lag_seconds"]) == (None, None, 0)
    assert "job_success_rate NaN" in text.splitlines()


@pytest.mark.req("JOB-MET-5")
@pytest.mark.req("JOB-MET-6")
async def test_the_server_counts_by_vocabulary_and_never_by_object(jobs: Jobs) -> None:
    await jobs.enqueued(priority="high")
    jobs.clock.turn_to("2026-02-21T00:00:02Z")
    [first] = await jobs.pulled(lease_sec=60)
    jobs.clock.pass_by(61)
    [second] = await jobs.pulled("worker-2")
    jobs.clock.pass_by(3)
    await jobs.post(f"jobs/{first['job_id']}/ack", {"result": "succeeded", "lease_token": second["lease_token"]})
    text = (await jobs.client.get("/scheduler/metrics", headers={"accept": "text/plain"})).text

    kind = {"object_type": "cognition", "action": "revalidate", "priority": "high"}
    everywhere = {**kind, "queue": "default", "status": "succeeded"}
    assert {
        ("jobs", *sorted(everywhere.items())): 1,
        ("jobs_start_delay_seconds_sum", *sorted(kind.items())): 2,
        ("jobs_start_delay_seconds_count", *sorted(kind.items())): 1,
        ("jobs_pull_to_ack_seconds_sum", *sorted(kind.items())): 3,
        ("jobs_deliveries_total", ("worker_id", "worker-1")): 1,
        ("jobs_deliveries_total", ("worker_id", "worker-2")): 1,
        ("jobs_reclaimed_leases_total",): 1,
        ("jobs_running_leases",): 0,
        ("jobs_alerts_waiting",): 0,
    }.items() <= samples(text).items()
    assert "cg_123" not in text


@pytest.mark.parametrize(
    ("accept", "text"),
    [
        (None, False),
        ("*/*", False),
        ("application/json", False),
        ("text/plain", True),
        ("text/*", True),
        ("application/json, text/plain", False),
        ("application/json;q=0.5, text/plain", True),
        ("text/plain;q=0.1, application/json;q=0.9", False),
        ("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        ("text/plain;q=x", False),
        ("text/plain;q=0, */*", False),
    ],
)
def test_the_accept_header_decides_between_json_and_text(accept: str | None, text: bool) -> None:
    assert prefers_text(accept) is text


# Waiting


@pytest.mark.req("JOB-PULL-12")
async def test_a_waiting_pull_is_answered_when_a_job_is_enqueued(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    # Writes of this process wake the pull at once, without polling.
    monkeypatch.setattr(service, "POLL_SECONDS", 3600)
    waiting = asyncio.create_task(jobs.post("jobs/pull", {"worker_id": "w", "wait_ms": 30_000}))
    await jobs.until_waiting(1)
    job = await jobs.enqueued(run_at=None)

    response = await waiting

    assert [given["job_id"] for given in response.json()["jobs"]] == [job["job_id"]]
    assert jobs.service.waiting == 0


@pytest.mark.req("JOB-PULL-12")
async def test_a_waiting_pull_is_answered_when_a_job_becomes_due(jobs: Jobs) -> None:
    job = await jobs.enqueued()
    waiting = asyncio.create_task(jobs.post("jobs/pull", {"worker_id": "w", "wait_ms": 30_000}))
    await jobs.until_waiting(1)
    jobs.clock.turn_to(DUE)

    assert [given["job_id"] for given in (await waiting).json()["jobs"]] == [job["job_id"]]


@pytest.mark.req("JOB-PULL-12")
async def test_a_waiting_pull_is_answered_when_another_process_enqueues_a_job(jobs: Jobs, settings: Settings) -> None:
    waiting = asyncio.create_task(jobs.post("jobs/pull", {"worker_id": "w", "now": DUE, "wait_ms": 30_000}))
    await jobs.until_waiting(1)
    store = SqliteStore(Path(settings.data) / "stores/jobs/jobs.db")
    Calls(store, Policy(), jobs.clock).enqueue(JOB)
    store.close()

    assert [given["object_id"] for given in (await waiting).json()["jobs"]] == ["cg_123"]


@pytest.mark.req("JOB-PULL-12")
async def test_a_pull_that_times_out_is_empty(jobs: Jobs) -> None:
    response = await jobs.post("jobs/pull", {"worker_id": "w", "wait_ms": 1})

    assert (response.status_code, response.json()["count"]) == (200, 0)


@pytest.mark.req("JOB-PULL-12")
async def test_more_pulls_than_threads_can_wait_while_other_requests_are_answered(jobs: Jobs) -> None:
    pulls = [
        asyncio.create_task(jobs.post("jobs/pull", {"worker_id": f"w{number}", "limit": 1, "wait_ms": 30_000}))
        for number in range(100)
    ]
    await jobs.until_waiting(100)

    batch = await jobs.post("jobs/batch", {"jobs": [{**JOB, "object_id": f"o{n}", "run_at": None} for n in range(100)]})
    replies = [reply.json() for reply in await asyncio.gather(*pulls)]

    given = [job["job_id"] for reply in replies for job in reply["jobs"]]
    assert batch.status_code == 200
    assert sorted(given) == sorted(entry["job"]["job_id"] for entry in batch.json()["results"])


@pytest.mark.req("JOB-PULL-13")
async def test_a_caller_that_left_while_waiting_gets_no_job(jobs: Jobs) -> None:
    body = b'{"worker_id":"w","wait_ms":30000}'
    reader = StreamReader(jobs.app, "/scheduler/jobs/pull", headers={"content-type": "application/json"})
    reader._scope["method"] = "POST"
    reader._scope["headers"].append((b"content-length", str(len(body)).encode()))
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
    left = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    pull = asyncio.create_task(jobs.app(reader._scope, receive, reader._send))
    await jobs.until_waiting(1)
    left.set()
    await jobs.until_waiting(0)
    await pull
    job = await jobs.enqueued(run_at=None)

    assert (await jobs.get(f"jobs/{job['job_id']}")).json()["job"]["status"] == "queued"


# Large reads


@pytest.mark.parametrize(
    "path",
    [
        "jobs",
        "jobs/count",
        "jobs/{job}/history",
        "audit",
        "alerts",
        "past",
        "metrics",
        "objects?object_type=memory",
        "gates",
        "rollbacks",
    ],
)
async def test_large_reads_have_their_own_threads(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    job = await jobs.enqueued()
    threads: set[str] = set()
    read = SqliteStore.read

    def noted(store: SqliteStore, look: Any, **options: Any) -> Any:
        threads.add(threading.current_thread().name.partition("_")[0])
        return read(store, look, **options)

    monkeypatch.setattr(SqliteStore, "read", noted)
    response = await jobs.client.get(f"/scheduler/{path.format(job=job['job_id'])}")

    assert response.status_code == 200
    assert "jobs-reads" in threads
    assert "pendula-jobs" not in threads


async def test_slow_reads_delay_no_worker_and_their_queue_is_bounded(jobs: Jobs) -> None:
    go_on = threading.Event()
    lane = jobs.service.reading
    reads = [asyncio.create_task(jobs.service.read(lambda _: go_on.wait(120))) for _ in range(service.READING_THREADS)]
    while lane.inside < service.READING_THREADS:
        await asyncio.sleep(0)
    try:
        with ExitStack() as others:
            for _ in range(service.READS_AT_ONCE * PAST_READS.default):
                others.enter_context(lane.place())
            full = await jobs.get("jobs")
        await jobs.enqueued(run_at=None)
        pulled = await jobs.pulled()
        assert not any(read.done() for read in reads)
    finally:
        go_on.set()
        await asyncio.gather(*reads)

    assert len(pulled) == 1
    assert (full.status_code, error_of(full)["code"], full.headers["retry-after"]) == (429, "rate_limited", "1")


# Concurrency


@pytest.mark.req("JOB-ENQ-9")
async def test_concurrent_enqueues_of_one_job_store_it_once(jobs: Jobs) -> None:
    responses = await asyncio.gather(*(jobs.post("jobs", JOB) for _ in range(200)))

    assert sorted(response.status_code for response in responses) == [200] * 199 + [201]
    assert len({response.json()["job"]["job_id"] for response in responses}) == 1


@pytest.mark.req("JOB-STO-6")
async def test_concurrent_callers_share_flushes(settings: Settings) -> None:
    async with serving(settings, Policy()) as jobs:
        store = jobs.service.calls.store
        assert isinstance(store, SqliteStore)
        before = store.commits
        inside, go_on = threading.Event(), threading.Event()

        def hold(_: object) -> None:
            inside.set()
            go_on.wait(120)

        first = asyncio.create_task(asyncio.to_thread(store.write, hold))
        assert await asyncio.to_thread(inside.wait, 120)
        others = [asyncio.create_task(jobs.enqueued(object_id=f"o{number}")) for number in range(24)]
        async with asyncio.timeout(120):
            while len(store._writer_thread) < 24:
                await asyncio.sleep(0.005)
        go_on.set()
        await asyncio.gather(first, *others)

        # One, plus possible writes of the server itself.
        assert 1 <= store.commits - before <= 4


async def test_other_schedulers_are_served_beside_jobs(settings: Settings) -> None:
    async with running(settings, schedulers_for(settings)) as app, client_of(app) as client:
        names = [scheduler["name"] for scheduler in (await client.get("/api/v1/schedulers")).json()["schedulers"]]
        elsewhere = await client.get("/api/v1/actions/nobody/state")

        assert {"actions", "jobs", "playback"} <= set(names)
        assert code_of(elsewhere) == "not_found"
        assert supervisor_of(app).service("jobs").failure is None
