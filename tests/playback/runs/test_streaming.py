"""Items are written as they are generated, with the same bytes as in one piece, and none is held."""

import tracemalloc
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pendula.documents import from_value
from pendula.kernel.canonical import encode
from pendula.playback.runs.loading import Next, read_spec
from pendula.playback.runs.script import document, run_spec, staged, summary_of, summed

CHANNELS: dict[str, Any] = {
    "none": [],
    "one": [{"id": "a", "records": [{"id": 1, "ts": 1}]}],
    "two": [{"id": name, "records": [{"id": n, "ts": n} for n in range(5)]} for name in "ab"],
}


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("count", [0, 1, 3, 10_000, 20_001])
def test_a_streamed_document_has_the_bytes_of_the_whole_one(channels: str, count: int, tmp_path: Path) -> None:
    spec = read_spec(from_value({"seed": 7, "channels": CHANNELS[channels]}))
    whole = run_spec(spec, (Next(count),), tmp_path)

    with staged(spec, tmp_path) as stage:
        streamed = b"".join(document(stage, count, BytesIO()))

    assert streamed == encode(whole.as_json())


def test_a_summary_of_streamed_items_equals_that_of_a_list(tmp_path: Path) -> None:
    spec = read_spec(from_value({"seed": 7, "channels": CHANNELS["two"]}))
    whole = summed(run_spec(spec, (Next(12_345),), tmp_path))

    with staged(spec, tmp_path) as stage:
        summary = summary_of(stage, 12_345)

    assert (summary.total, len(summary.first)) == (12_345, 1000)
    assert (summary.first, summary.channels, summary.origins) == (whole.first, whole.channels, whole.origins)


@pytest.mark.long
def test_memory_does_not_grow_with_the_number_of_items(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        spec = read_spec(from_value({"seed": 7, "channels": CHANNELS["two"]}))
        with (tmp_path / "spool").open("w+b") as spool, staged(spec, tmp_path) as stage:
            tracemalloc.start()
            for _ in document(stage, count, spool):
                pass
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return most

    assert peak(60_000) < 1.2 * peak(30_000)
