"""A seeded player, byte for byte: its HTTP answers, its event stream and its journal, with the wall clock and drawn
request ids masked.

The steady clock moves only where a step says so. `python -m tests.server.schedulers.playback.test_golden_streams`
writes the files again.
"""

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pendula.server.runtime import engine_host
from pendula.server.runtime.engine_host import Pace
from pendula.server.settings import Settings
from tests.server.living import StreamReader, client_of, running
from tests.server.screens import HALL, STILL, hang

pytestmark = pytest.mark.anyio

GOLDEN = Path(__file__).parent / "golden"
FILES = ("answers.txt", "events.txt", "journal.txt")
MASKED = re.compile(rb"\d{4}-\d\d-\d\dT[0-9:.]+Z|(?<=\")[0-9a-f]{32}(?=\")")  # wall-clock times, drawn request ids
DWELL_MS = 60_000
# Milliseconds that pass, method, path below the player, body.
STEPS: tuple[tuple[int, str, str, Any], ...] = (
    (0, "POST", "next", {}),
    (1500, "POST", "next", {}),
    (250, "POST", "prev", {}),
    (250, "POST", "prev", {}),
    (0, "POST", "commands", {"type": "take", "n": 2}),
    (1000, "POST", "nae", {"id": 900, "ts": 7}),
    (1000, "POST", "nae", {"id": 901, "payload": "AAAA"}),
    (1000, "POST", "ban", {"ordinal": 99}),
    (1000, "POST", "ban", {"id": 2, "for_ms": 30_000}),
    (500, "POST", "pin", {"id": 950, "ts": 3}),
    (500, "POST", "next", {}),
    (5000, "POST", "pause", {}),
    (5000, "POST", "pause", {}),
    (5000, "POST", "resume", {}),
    (100, "POST", "pause-channel", {"channel": "b"}),
    (100, "POST", "resume-channel", {"channel": "b"}),
    (100, "PATCH", "settings", {"lookahead": 4, "dwell_ms": 90_000}),
    # What is due happens before the command: the ban ends, the next item is shown.
    (70_000, "POST", "next", {}),
    (100, "POST", "lift", {"id": 2}),
    (100, "POST", "commands", {"type": "advance", "to": 10}),
    (100, "POST", "commands", {"type": "advance", "to": 100_000}),
    (100, "POST", "unfollow", {"channels": ["b"]}),
    (100, "POST", "follow", {"channels": ["b"]}),
    (100, "POST", "reset", {"reason": "enough"}),
    (100, "POST", "next", {}),
    (100, "GET", "now", None),
    (0, "GET", "now?at=9", None),
    (0, "GET", "peek?n=3", None),
    (0, "GET", "items/1", None),
    (0, "GET", "stats", None),
    (0, "GET", "state", None),
    (0, "GET", "moments", None),
    (0, "POST", "why", {"question": {"now": True}}),
    (0, "POST", "why?at=21", {"question": {"now": True}}),
)


class Clock:
    """A steady clock that a step moves."""

    def __init__(self) -> None:
        self.ns = 1_000_000_000

    def __call__(self) -> int:
        return self.ns


async def recorded(data: Path, patch: pytest.MonkeyPatch) -> tuple[bytes, bytes, bytes]:
    """The answers, the events and the journal of the player."""
    clock = Clock()
    patch.setattr(engine_host, "Pace", lambda advance, unit: Pace(advance, unit, clock))
    answers: list[bytes] = []
    async with running(Settings(data=str(data)), [STILL]) as app, client_of(app) as client:
        await hang(client, dwell_ms=DWELL_MS)
        async with StreamReader(app, f"{HALL}/stream", "after=-1.0") as reader:
            for number, (passed, method, path, body) in enumerate(STEPS):
                clock.ns += passed * 1_000_000
                headers = {"x-request-id": f"step-{number}"}
                answer = await client.request(method, f"{HALL}/{path}", json=body, headers=headers)
                sent = b"" if body is None else b" " + answer.request.content
                head = f"+{passed} ms {method} {path}".encode() + sent
                answers.append(b"%b\n%d %b\n" % (head, answer.status_code, answer.content))
            journal = (await client.get(f"{HALL}/journal?limit=1000")).content
            events = b""
            while events.count(b"event: event") < _published(journal):
                events += await asyncio.wait_for(reader.chunk(), 120)
    lines = journal.replace(b'{"body":', b'\n{"body":')
    found = (b"\n".join(answers), events, lines + b"\n")
    return tuple(MASKED.sub(b"MASKED", text) for text in found)  # type: ignore[return-value]


def _published(journal: bytes) -> int:
    """The number of events in a journal."""
    return sum(int(count) for count in re.findall(rb'"count":(\d+),"digest"', journal))


async def test_answers_events_and_journal_are_those_of_the_golden_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await recorded(tmp_path / "data", monkeypatch)

    for name, text in zip(FILES, found, strict=True):
        assert text.decode().split("\n") == (GOLDEN / name).read_text().split("\n"), name


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name, text in zip(FILES, asyncio.run(recorded(Path(folder) / "data", patch)), strict=True):
            (GOLDEN / name).write_bytes(text)
