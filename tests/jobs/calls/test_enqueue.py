"""Edge cases of enqueue: all faults at once, texts that cannot be stored."""

from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import JobRefused
from tests.jobs.stores import opened

JOB: dict[str, Any] = {"object_type": "memory", "object_id": "m", "action": "verify"}


@pytest.mark.req("JOB-ENQ-7")
def test_a_time_in_the_past_is_reported_with_all_other_faults(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    faulty: dict[str, Any] = {**JOB, "priority": "urgent", "run_at": "2026-01-01T00:00:00Z"}

    with pytest.raises(JobRefused) as alone:
        scheduler.enqueue(**faulty)
    batch = scheduler.enqueue_batch([faulty]).results[0].error

    assert batch is not None
    assert alone.value.code == batch.code == "validation_failed"
    for details in (alone.value.refused.details, batch.details):
        fields: Any = details["fields"]
        assert [(one["field"], one["code"]) for one in fields] == [
            ("priority", "invalid_enum"),
            ("run_at", "run_at_in_past"),
        ]
    scheduler.close()


def test_texts_with_a_lone_surrogate_are_rejected_not_stored(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)
    for field in ("object_id", "idempotency_key", "correlation_id"):
        with pytest.raises(JobRefused) as refused:
            scheduler.enqueue(**{**JOB, field: "a\ud800"})
        assert refused.value.code == "invalid_field"
    scheduler.close()


def test_an_atomic_batch_names_the_entry_that_failed(tmp_path: Path) -> None:
    scheduler, _ = opened(tmp_path)

    with pytest.raises(JobRefused) as refused:
        scheduler.enqueue_batch([JOB, {**JOB, "priority": "urgent"}], atomic=True)

    expected = "nothing was stored; entry 1: priority must be one of high, medium, low"
    assert str(refused.value) == expected
    scheduler.close()
