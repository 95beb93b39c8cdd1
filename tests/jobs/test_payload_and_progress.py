"""Payload, result, cancel request and progress of a job, over both interfaces."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pendula.documents import DocumentRefused
from pendula.jobs import Policy, Scheduler
from pendula.jobs.messages import JobRefused
from pendula.jobs.upkeep.verification import check
from pendula.kernel.canonical import encode
from pendula.server.views import encode_view
from tests.jobs.interfaces import INTERFACES, Recorder
from tests.jobs.stores import Clock, opened

JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}
PAYLOAD = {"by": Decimal("0.25"), "who": ["ann", None], "deep": {"yes": True}}


@pytest.fixture(params=list(INTERFACES))
def call(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Recorder]:
    with INTERFACES[request.param](tmp_path, Policy()) as (interface, clock):
        yield Recorder(interface, clock)


def taken(call: Recorder, **members: Any) -> dict[str, Any]:
    """A job delivered to w1, with its proof."""
    call("enqueue", **{**JOB, **members})
    [job] = call("pull", worker_id="w1", limit=1)["jobs"]
    return {"job_id": job["job_id"], "worker_id": "w1", "lease_token": job["lease_token"]}


def of(call: Recorder, held: dict[str, Any]) -> dict[str, Any]:
    job: dict[str, Any] = call("show", held["job_id"])["job"]
    return job


# Payload


@pytest.mark.req("JOB-USE-1")
def test_every_view_of_a_job_has_its_payload(call: Recorder) -> None:
    stored = call("enqueue", **JOB, payload=PAYLOAD)["job"]
    [pulled] = call("pull", worker_id="w")["jobs"]

    assert (stored["payload"], pulled["payload"]) == (PAYLOAD, PAYLOAD)
    assert call("list")["jobs"][0]["payload"] == PAYLOAD


@pytest.mark.req("JOB-USE-1")
def test_a_job_without_a_payload_has_null(call: Recorder) -> None:
    assert call("enqueue", **JOB)["job"]["payload"] is None


@pytest.mark.req("JOB-USE-1")
@pytest.mark.parametrize(("size", "fits"), [(65_534, True), (65_535, False)])
def test_a_payload_is_limited_to_64_kib_of_canonical_form(call: Recorder, size: int, fits: bool) -> None:
    answer = call("enqueue", **JOB, payload="x" * size)

    assert answer == (422, "invalid_field") if not fits else answer["job"]["payload"] == "x" * size


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.req("JOB-USE-1")
@pytest.mark.parametrize(
    ("payload", "fits"),
    [
        (10**4300 - 1, True),
        (10**4300, False),
        ({"a": [-(10**4300)]}, False),
        ({"a": "9" * 4301}, True),
        (_nested(64), True),
        (_nested(65), False),
        ([[1]] * 65, True),
        ("[" * 65, True),
    ],
    ids=["digits", "too many digits", "too many inside", "in a text", "levels", "too many levels", "wide", "brackets"],
)
def test_a_payload_that_no_reply_could_show_is_refused(tmp_path: Path, payload: Any, fits: bool) -> None:
    # Bodies over HTTP have narrower limits; what is stored in Python is shown over HTTP, too.
    scheduler, _ = opened(tmp_path)

    if fits:
        assert scheduler.enqueue(**JOB, payload=payload).job.payload == payload
        assert encode_view(scheduler.list())
    else:
        with pytest.raises(JobRefused) as refused:
            scheduler.enqueue(**JOB, payload=payload)
        assert refused.value.details["fields"][0]["field"] == "payload"


@pytest.mark.req("JOB-USE-1")
def test_the_same_key_with_another_payload_is_a_conflict(call: Recorder) -> None:
    first = call("enqueue", **JOB, idempotency_key="k", payload={"a": 1, "b": 2})["job"]

    assert call("enqueue", **JOB, idempotency_key="k", payload={"b": 2, "a": 1})["job"] == first
    assert call("enqueue", **JOB, idempotency_key="k", payload={"a": 1}) == (409, "idempotency_key_conflict")
    assert call("enqueue", **JOB, idempotency_key="k") == (409, "idempotency_key_conflict")


@pytest.mark.req("JOB-USE-1")
def test_the_trail_has_the_digest_of_a_payload_not_its_text(call: Recorder) -> None:
    stored = call("enqueue", **JOB, payload={"secret": "open sesame"})["job"]
    [event] = call("history", stored["job_id"])["events"]

    assert event["after"]["payload_sha256"] == sha256(encode({"secret": "open sesame"})).hexdigest()
    assert "sesame" not in str(event)


@pytest.mark.req("JOB-USE-1")
def test_a_payload_changed_in_the_file_is_detected(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    scheduler.enqueue(**JOB, payload=[1])
    store: Any = scheduler.calls.store
    sound = check(store)
    store._connection.execute("UPDATE jobs SET payload = '[2]'")

    assert (sound, [one.code for one in check(store)]) == ([], ["trail_differs"])
    scheduler.close()


@pytest.mark.req("JOB-USE-1")
def test_a_payload_from_python_can_have_floats_and_must_be_json(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)

    assert scheduler.enqueue(**JOB, payload={"x": 0.1}).job.payload == {"x": Decimal("0.1")}
    for value in (float("nan"), {1: 2}, {"x": object()}, b"x"):
        with pytest.raises(JobRefused, match="payload must be"):
            scheduler.enqueue(**JOB, payload=value)
    scheduler.close()


@pytest.mark.req("JOB-USE-1")
def test_a_follow_up_of_the_same_action_has_the_same_payload(call: Recorder) -> None:
    same = taken(call, payload=[1])
    follow = call("ack", **same, result="succeeded", next_action_at=call.clock.text(60))["followup_job_id"]
    other = taken(call, object_id="o", payload=[1])
    archive = call("ack", **other, result="succeeded", next_action_at=call.clock.text(60), next_action="archive")

    assert call("show", follow)["job"]["payload"] == [1]
    assert call("show", archive["followup_job_id"])["job"]["payload"] is None


# Cancelling


@pytest.mark.req("JOB-USE-3")
def test_cancelling_a_running_job_is_a_request_that_reaches_its_worker(call: Recorder) -> None:
    held = taken(call)
    before = call("renew", **held)["cancel_requested_at"]
    wished = call("cancel", held["job_id"], reason="wrong file")["job"]
    again = call("cancel", held["job_id"], reason="wrong file")["job"]

    assert (before, wished["status"], wished["cancel_requested_at"]) == (None, "running", call.clock.text())
    assert again == wished
    assert call("renew", **held)["cancel_requested_at"] == call.clock.text()
    reasons = [event["reason"] for event in call("history", held["job_id"])["events"]]
    assert reasons.count("cancellation requested: wrong file") == 1


@pytest.mark.req("JOB-USE-3")
def test_a_fail_after_a_cancel_request_cancels_the_job(call: Recorder) -> None:
    held = taken(call)
    call("cancel", held["job_id"])
    ended = call("fail", **held, error="cancelled: stopped", cancelled=True)

    assert (ended["retry"], ended["job"]["status"], ended["job"]["outcome"]) == (False, "failed", "cancelled")


@pytest.mark.req("JOB-USE-3")
def test_an_ack_after_a_cancel_request_is_a_success(call: Recorder) -> None:
    held = taken(call)
    call("cancel", held["job_id"])

    assert call("ack", **held, result="succeeded")["job"]["status"] == "succeeded"


@pytest.mark.req("JOB-USE-3")
@pytest.mark.parametrize("end", ["fail", "release", "expire"])
def test_a_job_with_a_cancel_request_is_not_retried(call: Recorder, end: str) -> None:
    held = taken(call)
    call("cancel", held["job_id"])
    match end:
        case "fail":
            call("fail", **held, error="x")
        case "release":
            call("release", **held)
        case _:
            call.clock.pass_by(901)
            call("pull", worker_id="w2")

    job = of(call, held)
    assert (job["status"], job["outcome"], job["attempt"]) == ("failed", "cancelled", 0 if end == "release" else 1)


@pytest.mark.req("JOB-OBJ-6", "JOB-USE-3")
def test_an_operator_can_requeue_failed_and_cancelled_jobs(call: Recorder) -> None:
    held = taken(call)
    call("cancel", held["job_id"])
    call("fail", **held, error="x")
    revived = call("requeue", held["job_id"], reason="by mistake")["job"]
    [given] = call("pull", worker_id="w1")["jobs"]

    assert (revived["status"], revived["attempt"], revived["cancel_requested_at"]) == ("queued", 0, None)
    assert (revived["outcome"], given["job_id"]) == (None, held["job_id"])


@pytest.mark.req("JOB-OBJ-6")
def test_a_permanently_failed_job_can_be_requeued_and_done(call: Recorder) -> None:
    held = taken(call)
    call("fail", **held, error="x", retryable=False)
    call("requeue", held["job_id"])
    [given] = call("pull", worker_id="w1")["jobs"]
    proof = {"worker_id": "w1", "lease_token": given["lease_token"]}

    assert call("ack", held["job_id"], result="succeeded", **proof)["job"]["status"] == "succeeded"


# Progress and results


@pytest.mark.req("JOB-USE-4")
def test_progress_is_stored_with_a_renewal_and_reset_by_the_next_delivery(call: Recorder) -> None:
    held = taken(call)
    call("renew", **held, progress=Decimal("0.4"), progress_note="page 4 of 10")
    shown = of(call, held)
    call("renew", **held)
    still = of(call, held)["progress"]
    call("release", **held)
    [again] = call("pull", worker_id="w2")["jobs"]

    assert shown["progress"] == still == {"fraction": Decimal("0.4"), "note": "page 4 of 10"}
    assert (shown["status"], again["progress"]) == ("running", None)


@pytest.mark.req("JOB-USE-4")
@pytest.mark.parametrize(
    "members",
    [{"progress": Decimal("1.01")}, {"progress": -1}, {"progress": "1"}, {"progress": 1, "progress_note": "x" * 201}],
)
def test_progress_is_a_fraction_and_a_short_note(call: Recorder, members: dict[str, Any]) -> None:
    held = taken(call)

    assert call("renew", **held, **members) == (422, "invalid_field")


@pytest.mark.req("JOB-USE-4")
def test_a_result_of_up_to_64_kib_is_stored_and_shown(call: Recorder) -> None:
    held = taken(call)
    result = {"pages": ["x" * 60_000]}
    refused = call("ack", **held, result="succeeded", outcome_result="x" * 65_535)
    acked = call("ack", **held, result="succeeded", outcome="transitioned", outcome_result=result)["job"]

    assert refused == (422, "invalid_field")
    assert (acked["outcome"], of(call, held)["outcome_result"]) == ("transitioned", result)
    digest = call("history", held["job_id"])["events"][-1]["after"]["outcome_result_sha256"]
    assert digest == sha256(encode(result)).hexdigest()


# Unique while waiting


@pytest.mark.req("JOB-USE-6")
def test_a_unique_enqueue_returns_the_waiting_or_running_job(call: Recorder) -> None:
    first = call("enqueue", **JOB, unique="waiting")
    second = call("enqueue", **JOB, unique="waiting", run_at=call.clock.text(60))
    [held] = call("pull", worker_id="w1")["jobs"]
    third = call("enqueue", **JOB, unique="waiting", run_at=call.clock.text(60))
    call("ack", held["job_id"], result="succeeded")
    fourth = call("enqueue", **JOB, unique="waiting", run_at=call.clock.text(60))

    assert [one["deduplicated"] for one in (first, second, third, fourth)] == [False, True, True, False]
    assert first["job"]["job_id"] == second["job"]["job_id"] == third["job"]["job_id"] != fourth["job"]["job_id"]


@pytest.mark.req("JOB-USE-6")
def test_uniqueness_is_by_object_and_action_and_holds_within_a_batch(call: Recorder) -> None:
    call("enqueue", **JOB)
    bodies = [{**JOB, "unique": "waiting"}, {**JOB, "action": "decay", "unique": "waiting"}]
    bodies += [{**bodies[1], "run_at": call.clock.text(9)}, {**JOB, "run_at": call.clock.text(9)}]

    results = call("enqueue_batch", bodies)["results"]

    assert [one["deduplicated"] for one in results] == [True, False, True, False]


# Words and types


def test_custom_vocabulary_is_declared_when_the_store_is_opened(tmp_path: Path) -> None:
    with Scheduler.open(tmp_path / "jobs.db", object_types=["invoice", "memory"], actions=["send"]) as scheduler:
        assert scheduler.defer("invoice", "117", "send").status == "queued"
        assert scheduler.defer("memory", "m1", "send").status == "queued"


def test_an_invalid_word_of_the_vocabulary_is_rejected_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(DocumentRefused, match=r"object_types\[1\]"):
        Scheduler.open(tmp_path / "jobs.db", object_types=["invoice", "Big One"])


def test_one_text_in_place_of_a_list_of_words_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DocumentRefused, match=r"actions: 'send' is not a list"):
        Scheduler.open(tmp_path / "jobs.db", object_types=["invoice"], actions="send")


def test_a_rejection_in_python_names_its_fields(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)

    with pytest.raises(JobRefused) as refused:
        scheduler.enqueue(**{**JOB, "action": "nap"}, priority="urgent")  # type: ignore[arg-type]

    assert str(refused.value) == (
        "2 fields are invalid: action must be one of verify, revalidate, decay, archive, reinstate-check; "
        "priority must be one of high, medium, low; declare your own object_types and actions "
        "in Scheduler.open(…) or in a settings file (--config FILE)"
    )
    scheduler.close()


@pytest.mark.parametrize("interface", list(INTERFACES))
def test_times_can_be_datetimes_with_a_zone(tmp_path: Path, interface: str) -> None:
    with INTERFACES[interface](tmp_path, Policy()) as (scheduler, _):
        at = datetime(2026, 7, 1, 14, 30, tzinfo=ZoneInfo("Europe/Berlin"))
        stored = scheduler.enqueue(**JOB, run_at=at).job
        listed = scheduler.list(created_before=datetime(2027, 1, 1, tzinfo=UTC)).jobs

        assert stored.run_at == "2026-07-01T12:30:00Z"
        assert len(listed) == 1
        with pytest.raises(JobRefused, match="run_at must be a time with an offset"):
            scheduler.enqueue(**JOB, run_at=at.replace(tzinfo=None))


def test_a_delay_can_be_a_timedelta(tmp_path: Path) -> None:
    clock = Clock()
    scheduler, _ = opened(tmp_path, clock=clock)
    before = clock.now

    job = scheduler.defer("memory", "m", "verify", in_sec=timedelta(hours=1, microseconds=5))

    assert job.run_at == Clock(before + 1).text(3600).replace(".000001Z", ".000006Z")
    scheduler.close()
