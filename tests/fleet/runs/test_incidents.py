"""Incident bundles: journals with the minute before and after an incident, which replay by themselves."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pendula.fleet import compiled_sites
from pendula.fleet.engine import FleetEngine
from pendula.fleet.model import MapDamaged
from pendula.fleet.runs import (
    IncidentGroup,
    Recording,
    bundle,
    fleet_at,
    group_incidents,
    incidents,
    incidents_of,
    last_tick,
    reading,
    recording_disk,
    write_bundles,
)
from pendula.fleet.runs.recording import find_map_in
from pendula.kernel.disk import RealDisk
from pendula.kernel.errors import WorldBroken
from pendula.kernel.replay import replay
from tests.fleet.runs.journals import Recorded, recorded


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
def test_the_bundle_of_an_incident_replays_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumped(tmp_path / "journal", 750, 700)
    with reading(tmp_path / "journal") as journal:
        found = list(incidents_of(journal))
        made = write_bundles(journal, tmp_path / "bundles", tmp_path / "journal")
        whole = fleet_at(journal, 760).state()
    monkeypatch.setattr(compiled_sites, "_cache", type(compiled_sites._cache)())

    assert found
    assert (made[0] / "site.map").read_bytes() == (tmp_path / "journal" / "site.map").read_bytes()
    assert found[0].incident.robot_ids == ("R1",)
    # One that follows closely is in the same bundle.
    assert [one.name for one in made] == [found[0].incident.incident_id]
    with reading(made[0]) as alone:
        report = replay(alone, lambda _: FleetEngine)
        times = [record.t for record in alone.read() if record.kind == "input"]
        again = fleet_at(alone, 760).state()
    assert report.first_difference is None
    assert report.commands == len(times)
    at, last = found[0].t, found[-1].t
    # It begins at the checkpoint before the minute, and holds the minute after.
    assert at - 60_000 - 10_000 <= times[0] <= at - 60_000 + 100
    assert times[-1] == last + 60_000
    assert again == whole


def test_an_early_bundle_starts_with_the_journal(tmp_path: Path) -> None:
    jumped(tmp_path / "journal", 30, 30)
    with reading(tmp_path / "journal") as journal:
        group = group_incidents(incidents_of(journal))[0]
        bundle(journal, group, RealDisk(tmp_path / "bundle"))

    with reading(tmp_path / "bundle") as alone:
        assert last_tick(alone) == 63
        assert replay(alone, lambda _: FleetEngine).first_difference is None


def test_a_bundle_is_written_once(tmp_path: Path) -> None:
    jumped(tmp_path / "journal", 30, 10)
    with reading(tmp_path / "journal") as journal:
        first = write_bundles(journal, tmp_path / "bundles")
        second = write_bundles(journal, tmp_path / "bundles")

    assert first
    assert second == []


def test_a_bundle_on_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumped(tmp_path / "journal", 30, 10)
    monkeypatch.setattr(RealDisk, "sync", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with reading(tmp_path / "journal") as journal, pytest.raises((OSError, WorldBroken), match="No space left"):
        write_bundles(journal, tmp_path / "bundles")

    assert list((tmp_path / "bundles").iterdir()) == []


@pytest.mark.req("FLT-OBS-11")
def test_an_incomplete_bundle_of_a_killed_process_is_replaced(tmp_path: Path) -> None:
    jumped(tmp_path / "journal", 30, 30)
    with reading(tmp_path / "journal") as journal:
        name = group_incidents(incidents_of(journal))[0].name
        (tmp_path / "bundles" / f"part-of-{name}").mkdir(parents=True)
        (tmp_path / "bundles" / f"part-of-{name}" / "00000000.journal").write_bytes(b"torn")
        made = write_bundles(journal, tmp_path / "bundles")

    assert [one.name for one in (tmp_path / "bundles").iterdir()] == [name]
    with reading(made[0]) as alone:
        assert replay(alone, lambda _: FleetEngine).first_difference is None


@pytest.mark.req("FLT-OBS-11")
def test_incomplete_bundles_are_removed_when_the_fleet_is_opened_again(tmp_path: Path) -> None:
    recorded("head-on", tmp_path, 5)
    folder = tmp_path / "incidents"
    for name in ("part-of-inc-3-1", "part-of-inc-4-1", "part-of-the-story", "inc-3-1"):
        (folder / name).mkdir(parents=True)
        (folder / name / "00000000.journal").write_bytes(b"torn")
    # Another process that writes the same bundle at the same time.
    writer = RealDisk(folder / "part-of-inc-4-1")
    assert writer.claim()

    Recording.resume(recording_disk(tmp_path)).close()
    left = sorted(one.name for one in folder.iterdir())
    writer.close()

    assert left == ["inc-3-1", "part-of-inc-4-1", "part-of-the-story"]
    assert (folder / "part-of-inc-4-1" / "00000000.journal").exists()


@pytest.mark.req("FLT-OBS-11")
def test_a_draft_is_locked_until_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumped(tmp_path / "journal", 30, 30)
    folder = tmp_path / "bundles"
    seen: list[list[str]] = []
    rename = Path.rename

    def renamed(self: Path, target: Path) -> Path:
        incidents.remove_leftovers(folder)
        with reading(tmp_path / "journal") as other:
            assert write_bundles(other, folder) == []
        seen.append([one.name for one in folder.iterdir()])
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", renamed)
    with reading(tmp_path / "journal") as journal:
        made = write_bundles(journal, folder)

    assert seen == [[f"part-of-{made[0].name}"]]
    assert [one.name for one in folder.iterdir()] == [made[0].name]


@pytest.mark.campaign
@pytest.mark.req("FLT-OBS-11")
def test_a_running_fleet_writes_a_bundle_a_minute_after_an_incident(tmp_path: Path) -> None:
    jumped(tmp_path / "journal", 650, 720)

    made = sorted((tmp_path / "journal" / "incidents").iterdir())

    with reading(tmp_path / "journal") as journal:
        found = list(incidents_of(journal))
    assert [one.name for one in made] == [found[0].incident.incident_id]
    with reading(made[0]) as alone:
        assert replay(alone, lambda _: FleetEngine).first_difference is None
        assert [record.t for record in alone.read() if record.kind == "input"][-1] == found[-1].t + 60_000


def test_other_files_are_kept_when_old_bundles_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "MOST_BUNDLES", 2)
    foreign = ["inc-old-one", "inc-1-2-copy", "notes.txt", "part-of-inc-7-1"]
    for name in (*foreign, "inc-9-1", "inc-10-1", "inc-10-2"):
        (tmp_path / name).mkdir()

    incidents._keep_the_newest(tmp_path)

    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([*foreign, "inc-10-1", "inc-10-2"])


def test_an_unreadable_map_beside_a_journal_is_named(tmp_path: Path) -> None:
    (tmp_path / "site.map").mkdir()

    with pytest.raises(MapDamaged, match=r"site\.map: it cannot be read: Is a directory"):
        find_map_in(tmp_path)


def test_close_incidents_share_a_bundle_up_to_the_longest_duration() -> None:
    story = IncidentGroup("inc-1-1", 0, 0)

    assert story.includes(60_000)
    assert not story.includes(60_001)
    assert IncidentGroup("inc-1-1", 0, 590_000).includes(600_000)
    assert not IncidentGroup("inc-1-1", 0, 590_000).includes(600_001)


@pytest.mark.req("FLT-OBS-11")
def test_of_two_processes_with_the_same_bundle_one_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumped(tmp_path / "journal", 30, 30)
    folder = tmp_path / "bundles"
    others: list[RealDisk] = []

    def removed(draft: Path) -> bool:
        # Another one looks at the same moment, and is quicker.
        others.append(RealDisk(draft))
        (draft / "00000000.journal").write_bytes(b"begun")
        return others[0].claim()

    monkeypatch.setattr(incidents, "_remove_draft", removed)
    with reading(tmp_path / "journal") as journal:
        name = group_incidents(incidents_of(journal))[0].name
        made = write_bundles(journal, folder)
    others[0].close()

    assert made == []
    assert (folder / f"part-of-{name}" / "00000000.journal").read_bytes() == b"begun"


@pytest.mark.req("FLT-OBS-11")
def test_a_bundle_completed_by_another_process_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumped(tmp_path / "journal", 30, 30)
    folder = tmp_path / "bundles"

    def removed(draft: Path) -> bool:
        whole = draft.with_name(draft.name.removeprefix("part-of-"))
        whole.mkdir(parents=True)
        (whole / "00000000.journal").write_bytes(b"made")
        return True

    monkeypatch.setattr(incidents, "_remove_draft", removed)
    with reading(tmp_path / "journal") as journal:
        name = group_incidents(incidents_of(journal))[0].name
        made = write_bundles(journal, folder)

    assert made == []
    assert [one.name for one in folder.iterdir()] == [name]
    assert (folder / name / "00000000.journal").read_bytes() == b"made"
