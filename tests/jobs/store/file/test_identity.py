"""A store whose file is removed, moved or replaced while open: no commit is acknowledged that would be lost."""

import logging
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.model import Policy
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import StoreUnusable
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from tests.jobs.stores import Clock

ROOT = Path(__file__).resolve().parents[4]
ENQUEUE = """
    import sys
    from pendula.jobs import Scheduler
    with Scheduler.open(sys.argv[1]) as scheduler:
        for number in range(3):
            scheduler.defer("memory", f"elsewhere{number}", "verify")
"""


def opened(path: Path) -> Scheduler:
    return Scheduler(Calls(SqliteStore(path), Policy(), Clock()))


def enqueue(scheduler: Scheduler, name: str) -> None:
    scheduler.enqueue(object_type="memory", object_id=name, action="verify")


def enqueue_elsewhere(path: Path) -> None:
    """Enqueue three jobs in another process, which opens and closes the store."""
    subprocess.run([sys.executable, "-c", textwrap.dedent(ENQUEUE), str(path)], check=True, cwd=ROOT)


def objects(path: Path) -> set[str]:
    with opened(path) as scheduler:
        assert check(scheduler.calls.store) == []
        return {job.object_id for job in scheduler.list(limit=1000).jobs}


def _rename(source: Path, target: Path) -> None:
    source.rename(target)


def unlink(folder: Path) -> Callable[[], None]:
    """Remove the store and restore a copy."""
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    return lambda: _rename(folder.with_name("copy"), folder)


def move(folder: Path) -> Callable[[], None]:
    folder.rename(folder.with_name("away"))
    return lambda: _rename(folder.with_name("away"), folder)


def swap(folder: Path) -> Callable[[], None]:
    """Replace the folder by a link to one without a store, and change it back."""
    folder.rename(folder.with_name("first"))
    folder.with_name("second").mkdir()
    folder.symlink_to(folder.with_name("second"))

    def back() -> None:
        folder.unlink()
        folder.symlink_to(folder.with_name("first"))

    return back


@pytest.mark.req("JOB-STO-6")
@pytest.mark.parametrize("remove_store", [unlink, move, swap])
def test_no_commit_into_a_removed_file_is_acknowledged(
    tmp_path: Path, remove_store: Callable[[Path], Callable[[], None]]
) -> None:
    folder = tmp_path / "stores"
    folder.mkdir()
    scheduler = opened(folder / "jobs.db")
    enqueue(scheduler, "before")
    bring_back = remove_store(folder)

    for number in range(3):
        with pytest.raises(StoreUnusable):
            enqueue(scheduler, f"lost{number}")
        with pytest.raises(StoreUnusable):
            scheduler.list()
    assert not (folder / "jobs.db").exists(), "no empty store takes the place of the lost one"

    bring_back()
    enqueue(scheduler, "after")
    scheduler.close()

    assert objects(folder / "jobs.db") == {"before", "after"}


@pytest.mark.req("JOB-STO-6")
@pytest.mark.parametrize("first", ["write", "read"])
def test_a_store_that_replaced_another_is_opened(tmp_path: Path, first: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "jobs.db"
    with opened(tmp_path / "copy.db") as other:
        enqueue(other, "copied")
    scheduler = opened(path)
    enqueue(scheduler, "before")
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink()
    (tmp_path / "copy.db").rename(path)

    with caplog.at_level(logging.WARNING, "pendula.jobs.store"):
        if first == "write":
            with pytest.raises(StoreUnusable):
                enqueue(scheduler, "refused")
        seen = {job.object_id for job in scheduler.list().jobs}
    enqueue(scheduler, "after")
    enqueue_elsewhere(path)
    scheduler.close()

    assert seen == {"copied"}
    assert objects(path) == {"copied", "after", "elsewhere0", "elsewhere1", "elsewhere2"}
    assert any("was removed or replaced" in line for line in caplog.messages)


@pytest.mark.req("JOB-STO-6")
def test_an_empty_file_or_a_foreign_database_does_not_become_a_store(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    scheduler = opened(path)
    enqueue(scheduler, "before")
    path.rename(tmp_path / "kept.db")
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).rename(tmp_path / f"kept.db{end}")

    for content in (b"", b"no database"):
        path.write_bytes(content)
        for _ in range(2):
            with pytest.raises(StoreUnusable):
                enqueue(scheduler, "lost")
        assert path.read_bytes() == content
        path.unlink()
    scheduler.close()

    assert objects(tmp_path / "kept.db") == {"before"}


@pytest.mark.req("JOB-STO-5", "JOB-STO-6")
def test_processes_that_lost_their_shared_memory_do_not_diverge(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    scheduler = opened(path)
    enqueue(scheduler, "before")
    Path(f"{path}-shm").unlink()
    enqueue_elsewhere(path)  # with its own shared memory

    acknowledged = {"before", "elsewhere0", "elsewhere1", "elsewhere2"}
    for number in range(3):
        try:
            enqueue(scheduler, f"here{number}")
        except StoreUnusable:
            continue
        acknowledged.add(f"here{number}")
    seen = {job.object_id for job in scheduler.list().jobs}
    scheduler.close()

    assert seen == acknowledged
    assert objects(path) == acknowledged
    assert "here2" in acknowledged, "the store was opened again"


@pytest.mark.req("JOB-STO-6")
@pytest.mark.parametrize("gone", [["-wal"], ["-shm"], ["-wal", "-shm"]])
@pytest.mark.parametrize("end", ["goes on", "closes"])
def test_acknowledged_commits_survive_the_removal_of_the_log(tmp_path: Path, gone: list[str], end: str) -> None:
    path = tmp_path / "jobs.db"
    scheduler = opened(path)
    for number in range(10):
        enqueue(scheduler, f"m{number}")
    for name in gone:
        Path(f"{path}{name}").unlink()

    if end == "goes on":
        with pytest.raises(StoreUnusable):
            enqueue(scheduler, "refused")
        enqueue(scheduler, "after")
    scheduler.close()

    assert objects(path) == {f"m{number}" for number in range(10)} | ({"after"} if end == "goes on" else set())


@pytest.mark.req("JOB-STO-6")
@pytest.mark.parametrize("first", ["write", "read"])
def test_a_removed_log_is_saved_once_the_reader_allows_it(tmp_path: Path, first: str) -> None:
    path = tmp_path / "jobs.db"
    scheduler = Scheduler(Calls(SqliteStore(path, busy_seconds=0.05), Policy(), Clock()))
    enqueue(scheduler, "seen")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs").fetchone()
        enqueue(scheduler, "unseen")
        Path(f"{path}-wal").unlink()

        for _ in range(2):
            with pytest.raises(StoreUnusable):
                enqueue(scheduler, "refused") if first == "write" else scheduler.list()
        reader.execute("COMMIT")

    with pytest.raises(StoreUnusable):
        enqueue(scheduler, "refused")
    enqueue(scheduler, "after")
    scheduler.close()

    assert objects(path) == {"seen", "unseen", "after"}


@pytest.mark.req("JOB-STO-6")
@pytest.mark.parametrize("put", ["over the file", "after it was removed"])
def test_a_store_is_not_opened_with_the_log_of_the_file_it_replaced(tmp_path: Path, put: str) -> None:
    path = tmp_path / "jobs.db"
    store = SqliteStore(path)
    scheduler = Scheduler(Calls(store, Policy(), Clock()))
    for number in range(50):
        enqueue(scheduler, f"m{number}")
    store.backup(tmp_path / "copy.db")
    for number in range(50, 100):
        enqueue(scheduler, f"m{number}")
    if put == "after it was removed":
        path.unlink()
        with pytest.raises(StoreUnusable):
            enqueue(scheduler, "refused")
    (tmp_path / "copy.db").rename(path)

    for _ in range(3):
        with pytest.raises(StoreUnusable):
            enqueue(scheduler, "refused")
    with pytest.raises(StoreUnusable, match=r"remove .*-wal"):
        scheduler.list()
    for name in ("-wal", "-shm"):
        Path(f"{path}{name}").unlink()
    enqueue(scheduler, "after")
    scheduler.close()

    assert objects(path) == {*(f"m{number}" for number in range(50)), "after"}


@pytest.mark.req("JOB-STO-6")
def test_a_commit_during_which_the_file_is_removed_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "jobs.db"
    store = SqliteStore(path)
    scheduler = Scheduler(Calls(store, Policy(), Clock()))
    enqueue(scheduler, "before")
    end = store._end

    def remove_and_end(writer: object) -> None:
        path.unlink()
        end(writer)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "_end", remove_and_end)

    with pytest.raises(StoreUnusable, match="check what was stored before you try again"):
        enqueue(scheduler, "lost")
    scheduler.close()


@pytest.mark.req("JOB-STO-5")
def test_a_process_that_still_maps_removed_shared_memory_does_not_open_the_store_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    scheduler = opened(path)
    enqueue(scheduler, "before")
    Path(f"{path}-shm").unlink()
    enqueue_elsewhere(path)

    with pytest.raises(StoreUnusable, match="try again"):
        SqliteStore(path)
    with pytest.raises(StoreUnusable):
        enqueue(scheduler, "refused")
    with closing(SqliteStore(path)) as store:
        assert check(store) == []
    scheduler.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (4,)
