"""A run does not grow with the time it simulates."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import convert
from msgspec.structs import replace

from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.scenarios.model import Arrives
from pendula.fleet.tasks import TaskStream
from tests.fleet.scenarios.entries import entries
from tests.fleet.scenarios.three_days import JOURNAL_BYTES, MemoryUse

MINUTE_MS = 60_000
# Of one truck: about eight minutes of processor time.
HOURS = 72


def patrolling() -> Run:
    """Two trucks that carry goods through one lane in opposite directions, endlessly."""
    there = TaskStream("S-THERE", ("E1",), ("W2",), pick_ms=2_000, drop_ms=2_000, robot_ids=("R1",))
    back = TaskStream("S-BACK", ("W2",), ("E1",), pick_ms=2_000, drop_ms=2_000, robot_ids=("R2",))
    return Run(replace(shipped("patrol"), tasks=(), streams=(there, back), expect=()))


@pytest.mark.campaign
@pytest.mark.req("FLT-PERF-7")
def test_memory_hardly_grows_from_five_to_ten_minutes() -> None:
    run = patrolling()
    run.run(5 * MINUTE_MS)
    before, done = entries(run), run.dispatch.book.done

    run.run(10 * MINUTE_MS)

    assert run.dispatch.book.done > done > 0
    # Bounded collections may still fill up: finished tasks, shadows. Ticks must leave nothing.
    assert entries(run) - before < 1_000 < 5 * MINUTE_MS // 100


@pytest.mark.long
@pytest.mark.req("FLT-PERF-7")
@pytest.mark.parametrize("recorded", [False, True])
def test_memory_hardly_grows_in_three_days(tmp_path: Path, recorded: bool) -> None:
    # In its own process, so that only its memory counts.
    command = [sys.executable, "-m", "tests.fleet.scenarios.three_days", str(HOURS)]
    command += [str(tmp_path / "journal")] if recorded else []
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first, *_, last = [convert(json.loads(line), MemoryUse) for line in output.splitlines()]

    assert (first.hours, last.hours) == (1, HOURS)
    assert last.done > 50 * first.done
    assert last.entries < 1.05 * first.entries
    assert last.state < 1.05 * first.state
    assert last.resident <= 1.05 * first.resident
    assert (last.journal > 0) == recorded
    assert last.journal <= JOURNAL_BYTES


def test_positions_of_every_tick_are_kept_only_if_needed() -> None:
    patrol = shipped("patrol")
    arrives = Arrives(patrol.robots[0].robot_id, patrol.robots[0].park_node_id, MINUTE_MS)
    run = Run(replace(patrol, expect=(arrives,)))

    run.run(1_000)

    assert len(run.measures.places) == 10
