"""The printed examples are found if the specifications are present, and our own files have the same values."""

import json
from pathlib import Path

import pytest

from tests.specifications.printed import printed

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "specifications"


@pytest.mark.parametrize(
    ("scheduler", "language", "count"), [("actions", "yaml", 4), ("jobs", "json", 5), ("fleet", "json5", 3)]
)
def test_every_printed_example_is_found(scheduler: str, language: str, count: int) -> None:
    assert len(printed(scheduler, language)) == count


def test_the_examples_of_jobs_have_the_printed_values() -> None:
    names = ("object", "enqueue", "pull", "ack", "fail")
    found = [json.loads((EXAMPLES / f"jobs-{name}.json").read_text()) for name in names]

    assert found == [json.loads(block) for block in printed("jobs", "json")]
