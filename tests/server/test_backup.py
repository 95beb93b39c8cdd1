"""A backup made while the server works is whole and can be continued."""

import sqlite3
import threading
from pathlib import Path

import httpx
import pytest

from pendula.kernel.canonical import encode
from pendula.kernel.disk import RealDisk
from pendula.kernel.journal import FileJournal
from pendula.server.backup import BackupBroken, BackupRefused, back_up
from pendula.server.errors import DataUnusable
from pendula.server.settings import Settings
from tests.server.job_servers import serving
from tests.server.living import BASE, TALLY, LiveServer, client_of, running


class Adder(threading.Thread):
    """Adds 1 until stopped; `total` is the acknowledged sum."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(name="adder")
        self.client = client
        self.total = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            answer = self.client.post(f"{BASE}/commands", json={"type": "add", "amount": 1})
            self.total = answer.json()["answer"]["total"]

    def wait_for(self, total: int) -> None:
        while self.total < total:
            assert self.is_alive()
            self.stopped.wait(0.001)


@pytest.mark.anyio
async def test_a_backup_during_writes_has_everything_acknowledged_before_it(tmp_path: Path) -> None:
    settings = Settings(port=0, data=str(tmp_path / "data"))
    with LiveServer(settings) as server, server.client() as client:
        adder = Adder(client)
        adder.start()
        adder.wait_for(30)
        before = adder.total
        made = back_up(tmp_path / "data", tmp_path / "copy")
        adder.wait_for(before + 10)
        adder.stopped.set()
        adder.join()

    assert made.journals == 1
    assert made.records >= 2 * before
    async with running(Settings(data=str(tmp_path / "copy"))) as app, client_of(app) as restored:
        total = (await restored.get(f"{BASE}/state")).json()["state"]["total"]
        went_on = (await restored.post(f"{BASE}/commands", json={"type": "add", "amount": 5})).json()["answer"]["total"]
    assert before <= total <= adder.total
    assert went_on == total + 5


@pytest.mark.anyio
async def test_jobs_are_restored_from_a_backup(tmp_path: Path) -> None:
    async with serving(Settings(data=str(tmp_path / "data"))) as jobs:
        job = await jobs.enqueued()
        made = back_up(tmp_path / "data", tmp_path / "copy")
        await jobs.pulled()

    async with serving(Settings(data=str(tmp_path / "copy"))) as jobs:
        restored = (await jobs.get(f"jobs/{job['job_id']}")).json()["job"]
    assert made.databases == 1
    assert restored == job


def test_a_journal_that_starts_new_segments_during_a_backup_is_copied_whole(tmp_path: Path) -> None:
    data = tmp_path / "data"
    place = data / "schedulers" / "tally" / "main"
    disk = RealDisk(place)
    (data / "lock").touch()
    journal = FileJournal.create(
        disk, scheduler="tally", decisions=1, time_unit="tick", config={}, segment_bytes=2000, min_free_bytes=0
    )
    ends = threading.Event()

    def grow() -> None:
        while not ends.is_set():
            journal.append("note", 0, encode({"text": "x" * 100}))
            journal.flush()

    growing = threading.Thread(target=grow)
    growing.start()
    try:
        counts = [back_up(data, tmp_path / f"copy-{number}").records for number in range(5)]
    finally:
        ends.set()
        growing.join()
        journal.close()

    assert counts == sorted(counts)
    assert counts[-1] > counts[0]
    assert len(list(place.glob("*.journal"))) > 1


def test_a_damaged_journal_is_reported_and_leaves_no_backup(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with LiveServer(Settings(port=0, data=str(data)), (TALLY,)) as server, server.client() as client:
        for _ in range(3):
            client.post(f"{BASE}/commands", json={"type": "add", "amount": 1})
    [segment] = (data / "schedulers" / "tally" / "main").glob("*.journal")
    damaged = bytearray(segment.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    segment.write_bytes(damaged)

    with pytest.raises(Exception, match=r"journal|corrupt"):
        back_up(data, tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_a_damaged_database_is_reported_and_leaves_no_backup(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "lock").touch()
    with sqlite3.connect(data / "x.db") as made:
        made.execute("CREATE TABLE t (a TEXT)")
        made.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 100)
    made.close()
    damaged = bytearray((data / "x.db").read_bytes())
    damaged[4096 : 2 * 4096] = b"\x55" * 4096
    (data / "x.db").write_bytes(damaged)

    with pytest.raises(BackupBroken):
        back_up(data, tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


@pytest.mark.parametrize(("target", "kind"), [("data/inside", BackupRefused), ("taken", BackupRefused)])
def test_a_backup_into_an_occupied_target_is_refused(tmp_path: Path, target: str, kind: type[Exception]) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lock").touch()
    (tmp_path / "taken").mkdir()

    with pytest.raises(kind):
        back_up(tmp_path / "data", tmp_path / target)


def a_data_directory(folder: Path) -> Path:
    (folder / "data").mkdir()
    (folder / "data" / "lock").touch()
    (folder / "data" / "tokens.json").write_text("{}")
    return folder / "data"


def test_a_second_backup_of_the_same_name_is_refused_and_the_first_unchanged(tmp_path: Path) -> None:
    data, copy = a_data_directory(tmp_path), tmp_path / "copy"

    def second(doing: str) -> None:
        if doing == "checking":
            with pytest.raises(BackupRefused, match="Another backup"):
                back_up(data, copy)

    done = back_up(data, copy, second)

    assert (done.files, (copy / "tokens.json").read_text()) == (2, "{}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "data"]


def test_files_of_a_killed_backup_are_not_in_the_next(tmp_path: Path) -> None:
    data, left = a_data_directory(tmp_path), tmp_path / "copy.partial"
    (left / "schedulers").mkdir(parents=True)
    (left / "schedulers" / "old").touch()
    (left / "elsewhere").symlink_to(data)

    back_up(data, tmp_path / "copy")

    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["lock", "tokens.json"]
    assert (data / "tokens.json").exists()


def test_a_draft_that_is_a_symlink_is_not_written(tmp_path: Path) -> None:
    data = a_data_directory(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").touch()
    (tmp_path / "copy.partial").symlink_to(tmp_path / "mine")

    with pytest.raises(BackupBroken):
        back_up(data, tmp_path / "copy")

    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter"]


def test_a_folder_other_than_a_data_directory_is_not_copied(tmp_path: Path) -> None:
    with pytest.raises(DataUnusable, match="not a data directory"):
        back_up(tmp_path, tmp_path / "copy")
