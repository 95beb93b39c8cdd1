"""Handlers: loading, and the end of a job by their return value, exception or timeout."""

import asyncio
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from pendula.jobs.messages import Job
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.worker.handlers import (
    Cancelled,
    Context,
    Done,
    Handlers,
    HandlersUnusable,
    ObjectNotFound,
    PermanentError,
    RetryAfter,
    RunAgain,
    handler,
    load,
)
from pendula.jobs.worker.worker import Worker
from pendula.kernel.time import format_utc, parse_utc
from tests.jobs.workers import MEMORY, close_all, decays, virtual, worked

SECOND = 1_000_000


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


def only(client: Scheduler) -> Job:
    [job] = client.list().jobs
    return job


# How a job ends


class Unspeakable(Exception):
    """An error whose text cannot be formatted."""

    def __str__(self) -> str:
        raise SystemExit(4)


class LostUnspeakably(ObjectNotFound, Unspeakable):
    pass


class CancelledUnspeakably(Cancelled, Unspeakable):
    pass


class RetryWithoutSeconds(RetryAfter):
    def __init__(self) -> None:
        Exception.__init__(self, "soon")


class Untraceable(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no trace")


@pytest.mark.req("JOB-WRK-7")
@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (Unspeakable(), "queued", "Unspeakable: <exception str() failed>"),
        (LostUnspeakably(), "failed", "object_not_found: LostUnspeakably: the error cannot be shown"),
        (CancelledUnspeakably(), "failed", "cancelled: CancelledUnspeakably: the error cannot be shown"),
        (RetryWithoutSeconds(), "queued", "tests.jobs.worker.test_handlers.RetryWithoutSeconds: soon"),
        (Untraceable(), "queued", "Untraceable: the error cannot be shown"),
    ],
)
def test_an_error_whose_text_raises_fails_the_job_like_any_other(
    tmp_path: Path, error: Exception, status: str, says: str
) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    @handler("memory", MEMORY["action"])
    def fails(_: Context) -> None:
        raise error

    worked(client, Handlers([fails]), 1)

    job = only(client)
    assert job.status == status
    assert says.rpartition(".")[2] in str(job.last_error)


@pytest.mark.req("JOB-WRK-11")
def test_sync_async_and_callable_handlers_end_with_an_ack(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    for action in ("verify", "decay", "archive", "revalidate"):
        client.enqueue(**{**MEMORY, "action": action})

    @handler("memory", "verify")
    def verify(context: Context) -> Done:
        return Done(outcome="sync")

    @handler("memory", "decay")
    async def decay(context: Context) -> Done:
        await asyncio.sleep(0)
        return Done(outcome="async")

    class Archive:
        async def __call__(self, context: Context) -> Done:
            return Done(outcome="object")

    @handler("memory", "revalidate", timeout_sec=30)
    def revalidate(context: Context) -> Any:
        return decay(context)

    handlers = Handlers([verify, decay, handler("memory", "archive")(Archive()), revalidate])
    worked(client, handlers, 4)

    outcomes = {job.action: (job.status, job.outcome) for job in client.list().jobs}
    assert outcomes == {
        "verify": ("succeeded", "sync"),
        "decay": ("succeeded", "async"),
        "archive": ("succeeded", "object"),
        "revalidate": ("succeeded", "async"),
    }


def test_done_sets_the_next_time_and_action(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    next_at = client.clock.now + 3600 * SECOND

    worked(client, decays(lambda context: Done(next_action_at=next_at, next_action="archive")), 1)

    [follow] = client.list(status="queued").jobs
    assert (follow.action, follow.run_at) == ("archive", format_utc(next_at))
    assert client.object("memory", "mem_1").next_action_at == format_utc(next_at)


def test_done_distinguishes_an_unchanged_time_from_a_cleared_one() -> None:
    assert "next_action_at" not in Done().members()
    assert Done(next_action_at=None).members()["next_action_at"] is None
    assert Done(next_action_at=UNSET).members() == {"result": "succeeded"}


def test_run_again_enqueues_the_same_work_by_the_clock_of_the_store(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    begun: list[int] = []

    def decay(context: Context) -> RunAgain:
        begun.append(client.clock.now)
        client.clock.pass_by(20)
        return RunAgain(300)

    worked(client, decays(decay), 3)

    # Twenty seconds of work, then five minutes.
    assert [round((b - a) / SECOND) for a, b in pairwise(begun)] == [320, 320]


def test_run_again_reports_disabled_follow_ups(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    client = virtual(tmp_path, Policy(auto_followup=False))
    client.enqueue(**MEMORY)

    worked(client, decays(lambda context: RunAgain(300)), 1)

    assert "auto_followup" in caplog.text


@pytest.mark.req("JOB-WRK-7")
def test_an_exception_becomes_a_fail_with_type_message_and_location(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    def where_it_breaks(context: Context) -> None:
        raise ValueError("the evidence is torn \udcff")

    tally = worked(client, decays(where_it_breaks), 1).tally

    job = only(client)
    assert (job.status, job.attempt, tally.failed) == ("queued", 1, 1)
    assert str(job.last_error).startswith("ValueError: the evidence is torn \\udcff")
    assert "in where_it_breaks" in str(job.last_error)
    assert "delivery.py" not in str(job.last_error), "how the handler was called is of no use to its author"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.req("JOB-WRK-7")
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        RecursionError("deep"),
        TimeoutError(),
        Unprintable(),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_no_exception_of_a_handler_ends_the_worker_loop(tmp_path: Path, error: BaseException, is_async: bool) -> None:
    client = virtual(tmp_path)
    for number in range(2):
        client.enqueue(**{**MEMORY, "object_id": f"mem_{number}"})

    def raises(context: Context) -> None:
        raise error

    async def raises_later(context: Context) -> None:
        raise error

    tally = worked(client, decays(raises_later if is_async else raises), 2).tally

    assert (tally.taken, tally.failed) == (2, 2)
    assert all(job.last_error for job in client.list().jobs)


@pytest.mark.req("JOB-WRK-7")
def test_a_permanent_error_is_not_retried(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    def refuses(context: Context) -> None:
        raise PermanentError("there is no such thing")

    worked(client, decays(refuses), 1)

    job = only(client)
    assert (job.status, job.attempt) == ("failed", 1)
    assert str(job.last_error).startswith("PermanentError: there is no such thing\n")


@pytest.mark.req("JOB-WRK-9")
def test_a_missing_object_is_not_retried(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    def misses(context: Context) -> None:
        raise ObjectNotFound("mem_1 was deleted")

    worked(client, decays(misses), 1)

    [job] = client.list().jobs
    assert (job.status, job.last_error) == ("failed", "object_not_found: mem_1 was deleted")


@pytest.mark.req("JOB-WRK-7")
def test_retry_after_sets_the_delay(tmp_path: Path) -> None:
    client = virtual(tmp_path, Policy(min_retry_gap_sec=0))
    enqueued = client.enqueue(**MEMORY).job

    def later(context: Context) -> None:
        raise RetryAfter(77.5)

    worked(client, decays(later), 1)

    job = only(client)
    assert job.status == "queued"
    assert parse_utc(job.run_at) - parse_utc(enqueued.run_at) == 77_500_000


@pytest.mark.req("JOB-FAIL-5", "JOB-WRK-7")
@pytest.mark.parametrize("limited", [None, 60])
def test_a_handler_can_set_its_delays_and_the_last_one_repeats(tmp_path: Path, limited: float | None) -> None:
    client = virtual(tmp_path, Policy(min_retry_gap_sec=0))
    client.enqueue(**MEMORY, max_attempts=10)

    @handler("memory", "decay", timeout_sec=limited, backoff=(7, 20.5))
    def fails(context: Context) -> None:
        if context.job.attempt == 3:
            raise RetryAfter(99)
        raise ValueError("not yet")

    pauses = []
    for _ in range(5):
        before = parse_utc(only(client).run_at)
        client.clock.now = max(client.clock.now, before)
        worked(client, Handlers([fails]), 1)
        pauses.append((parse_utc(only(client).run_at) - before) / 1_000_000)

    assert pauses == [7, 20.5, 20.5, 99, 20.5]


def test_a_permanent_failure_has_no_delay(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    @handler("memory", "decay", backoff=[5])
    def refuses(context: Context) -> None:
        raise PermanentError("there is no such thing")

    worked(client, Handlers([refuses]), 1)

    assert only(client).status == "failed"


@pytest.mark.parametrize("backoff", [(-1,), (1, 1e12), (float("nan"),)])
def test_invalid_delays_are_rejected(backoff: tuple[float, ...]) -> None:
    with pytest.raises(HandlersUnusable, match="backoff"):
        handler("memory", "decay", backoff=backoff)


@pytest.mark.parametrize("seconds", [-1.0, 1e12, float("nan"), float("inf")])
def test_an_invalid_retry_after_is_an_ordinary_failure(tmp_path: Path, seconds: float) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    def later(context: Context) -> None:
        raise RetryAfter(seconds, "soon")

    worked(client, decays(later), 1)

    job = only(client)
    assert (job.status, job.attempt) == ("queued", 1)


@pytest.mark.req("JOB-ACK-4")
def test_an_answer_rejected_by_the_store_becomes_a_failure_with_a_reason(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    worked(client, decays(lambda context: Done(next_action_at="2020-01-01T00:00:00Z")), 1)

    job = only(client)
    assert (job.status, job.attempt) == ("queued", 1)
    assert "next_action_at_in_past" in str(job.last_error)


def test_a_handler_that_returns_something_else_fails_permanently(tmp_path: Path) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)

    worked(client, decays(lambda context: "done"), 1)

    assert only(client).status == "failed"


@pytest.mark.req("JOB-WRK-8")
@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_over_its_timeout_fails_and_the_next_job_runs(tmp_path: Path, is_async: bool) -> None:
    client = virtual(tmp_path)
    client.enqueue(**MEMORY)
    client.enqueue(**{**MEMORY, "action": "verify"})
    release, stopped = threading.Event(), threading.Event()
    seen: list[bool] = []

    @handler("memory", "decay", timeout_sec=0.02)
    def hangs(context: Context) -> None:
        release.wait(240)
        seen.append(context.cancelled())
        stopped.set()

    @handler("memory", "decay", timeout_sec=0.02)
    async def hangs_later(context: Context) -> None:
        try:
            await asyncio.sleep(30)
        finally:
            seen.append(True)
            stopped.set()

    @handler("memory", "verify")
    def verify(context: Context) -> None:
        release.set()

    worked(client, Handlers([hangs_later if is_async else hangs, verify]), 2)

    ended = {job.action: (job.status, job.last_error) for job in client.list().jobs}
    assert stopped.wait(240)
    assert seen == [True]
    assert ended["decay"] == ("queued", "timeout: the handler took longer than 0.02 s")
    assert ended["verify"] == ("succeeded", None)


# Loading


def module(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> str:
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return name


def test_handlers_are_loaded_from_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "from pendula.jobs.worker.handlers import handler\n"
        "@handler('memory', 'decay', timeout_sec=3)\n@handler('memory', 'verify')\ndef both(context): ...\n"
        "also = both\ndef other(context): ...\n"
    )

    found = load([module(tmp_path, monkeypatch, "pendula_test_both", text)])

    assert found.works == [("memory", "decay"), ("memory", "verify")]
    decay, verify = found.find("memory", "decay"), found.find("memory", "verify")
    assert decay is not None
    assert verify is not None
    assert (decay.timeout_sec, verify.timeout_sec) == (3, None)
    assert found.find("memory", "archive") is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pendula_test_empty", "x = 1\n", "has no handlers"),
        ("pendula_test_broken", "1 / 0\n", "ZeroDivisionError"),
        ("pendula_test_needs", "import pendula_test_nowhere\n", "No module pendula_test_nowhere"),
        (
            "pendula_test_twice",
            (
                "from pendula.jobs.worker.handlers import handler\n"
                "@handler('memory', 'decay')\ndef a(context): ...\n@handler('memory', 'decay')\ndef b(context): ...\n"
            ),
            "two handlers",
        ),
        (
            "pendula_test_limit",
            "from pendula.jobs import handler\n@handler('memory', 'decay', timeout_sec=0)\ndef a(c): ...\n",
            "timeout_sec must be",
        ),
    ],
)
def test_unusable_modules_are_rejected_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str
) -> None:
    with pytest.raises(HandlersUnusable, match=message):
        load([module(tmp_path, monkeypatch, name, text)])


def test_a_missing_module_is_named() -> None:
    with pytest.raises(HandlersUnusable, match="No module pendula_test_missing"):
        load(["pendula_test_missing"])


@pytest.mark.parametrize("wrong", [float("nan"), 0, -1, True, 1.5, 10**12])
def test_run_again_accepts_only_whole_seconds(wrong: Any) -> None:
    with pytest.raises(ValueError, match="in_sec must be a whole number"):
        RunAgain(wrong)


@pytest.mark.parametrize("wrong", [float("nan"), -5, float("inf"), 31 * 86_400])
def test_retry_after_accepts_only_a_valid_delay(wrong: float) -> None:
    with pytest.raises(ValueError, match="seconds must be 0 to"):
        RetryAfter(wrong)


@pytest.mark.parametrize("work", [("memory", "forgett"), ("cart", "verify")])
def test_a_handler_for_an_impossible_job_is_rejected_before_any_pull(tmp_path: Path, work: tuple[str, str]) -> None:
    @handler(*work)
    def typed_wrong(context: Context) -> None: ...

    with Scheduler.open(tmp_path / "jobs.db") as scheduler, pytest.raises(HandlersUnusable) as raised:
        Worker(scheduler, Handlers([typed_wrong]))

    assert f"outside the vocabulary: {' '.join(work)}; declare your own object_types" in raised.value.message


def test_invalid_uses_of_the_decorator_are_rejected_with_the_remedy() -> None:
    with pytest.raises(HandlersUnusable, match="mark a function that calls it"):
        handler("memory", "verify")("text".upper)
