"""The printed examples are found where the specifications are present."""

import pytest

from tests.specifications.printed import printed


@pytest.mark.parametrize(
    ("scheduler", "language", "count"), [("actions", "yaml", 4), ("jobs", "json", 5), ("fleet", "json5", 3)]
)
def test_every_printed_example_is_found(scheduler: str, language: str, count: int) -> None:
    assert len(printed(scheduler, language)) == count
