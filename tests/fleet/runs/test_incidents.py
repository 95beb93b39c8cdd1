"""Incidents leave bundles: the minute before and after, a journal that replays alone."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pendula.fleet import compiled_sites
from pendula.fleet.engine import FleetEngine
from pendula.fleet.runs import bundle, bundles_in, fleet_at, incidents_of, last_tick, reading
from pendula.kernel.disk import RealDisk
from pendula.kernel.replay import replay
from tests.fleet.runs.journals import Recorded


def jumped(directory: Path, before: int, after: int) -> Path:
    """Head-on, with a truck that says it is elsewhere after so many ticks."""
    made = Recorded("head-on", directory, snapshot_every=100)
    made.step(before)
    for _ in range(3):
        seen = made.run.world.latest
        seen[0] = replace(seen[0], x_um=seen[0].x_um + 3_000_000, y_um=seen[0].y_um + 5_000_000)
        made.step(1)
    made.step(after)
    made.recording.close()
    return directory


@pytest.mark.req("FLT-OBS-11")
def test_an_incident_leaves_a_bundle_that_replays_on_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumped(tmp_path / "journal", 750, 700)
    with reading(tmp_path / "journal") as journal:
        found = list(incidents_of(journal))
        made = bundles_in(journal, tmp_path / "bundles", tmp_path / "journal")
        whole = fleet_at(journal, 760).state()
    monkeypatch.setattr(compiled_sites, "_shelf", type(compiled_sites._shelf)())

    assert found
    assert found[0].incident.robot_ids == ("R1",)
    assert [one.name for one in made] == [one.incident.incident_id for one in found]
    with reading(made[0]) as alone:
        report = replay(alone, lambda _: FleetEngine)
        times = [record.t for record in alone.read() if record.kind == "input"]
        again = fleet_at(alone, 760).state()
    assert report.first_difference is None
    assert report.commands == len(times)
    at = found[0].t
    # It begins at the checkpoint before the minute, and holds the minute after.
    assert at - 60_000 - 10_000 <= times[0] <= at - 60_000 + 100
    assert times[-1] == at + 60_000
    assert again == whole


def test_a_bundle_near_the_beginning_begins_with_the_journal(tmp_path: Path) -> None:
    jumped(tmp_path / "journal", 30, 30)
    with reading(tmp_path / "journal") as journal:
        found = next(incidents_of(journal))
        bundle(journal, found.t, RealDisk(tmp_path / "bundle"))

    with reading(tmp_path / "bundle") as alone:
        assert last_tick(alone) == 63
        assert replay(alone, lambda _: FleetEngine).first_difference is None


def test_a_bundle_is_made_once(tmp_path: Path) -> None:
    jumped(tmp_path / "journal", 30, 10)
    with reading(tmp_path / "journal") as journal:
        first = bundles_in(journal, tmp_path / "bundles")
        second = bundles_in(journal, tmp_path / "bundles")

    assert first
    assert second == []
