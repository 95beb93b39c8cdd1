"""A damaged file: all damage is reported with its place, and nothing raises."""

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from pendula.jobs.model import Finding
from pendula.jobs.store.sqlite import SqliteStore, StoreUnusable
from pendula.jobs.store.sqlite_files import schema_damage
from pendula.jobs.upkeep.verification import check, damaged
from tests.jobs.stores import opened

PAGE = 4096


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a store of many pages with jobs in each state."""
    folder = tmp_path_factory.mktemp("whole")
    scheduler, _ = opened(folder)
    for first in range(0, 600, 100):
        scheduler.enqueue_batch(
            [{"object_type": "memory", "object_id": f"m{first + n}", "action": "verify"} for n in range(100)]
        )
    for job in scheduler.pull(worker_id="w", limit=200).jobs:
        scheduler.ack(job.job_id, result="succeeded", lease_token=job.lease_token)
    scheduler.close()
    with closing(sqlite3.connect(folder / "jobs.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "jobs.db").read_bytes()


def findings_of(folder: Path, data: bytes) -> list[Finding]:
    path = folder / "jobs.db"
    for beside in folder.glob("jobs.db-*"):
        beside.unlink()
    path.write_bytes(data)
    if (trouble := schema_damage(path)) is not None:
        return [damaged(trouble)]
    store = SqliteStore(path)
    try:
        return check(store)
    finally:
        store.close()


def pages_of(folder: Path, data: bytes, table: str) -> list[int]:
    """The leaf pages of a table, recognised by their first keys, as `dbstat` is not always available."""
    path = folder / "look.db"
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as look:
        root = look.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
    start = (root - 1) * PAGE
    header = data[start : start + PAGE]
    assert header[0] == 0x05, "an interior page of a table"
    cells = int.from_bytes(header[3:5], "big")
    pointers = [int.from_bytes(header[12 + 2 * n : 14 + 2 * n], "big") for n in range(cells)]
    return [int.from_bytes(header[at : at + 4], "big") for at in pointers]


@pytest.mark.req("JOB-STO-12")
@pytest.mark.parametrize("table", ["jobs", "audit"])
def test_a_damaged_page_of_a_table_is_reported_with_the_lost_rows(tmp_path: Path, whole: bytes, table: str) -> None:
    pages = pages_of(tmp_path, whole, table)
    page = pages[len(pages) // 2]
    damaged = whole[: (page - 1) * PAGE] + b"\xff" * PAGE + whole[page * PAGE :]

    findings = findings_of(tmp_path, damaged)

    [finding] = [one for one in findings if one.sentence.startswith(f"table {table}: rows after ")]
    assert finding.code == "damaged_file"
    assert not [one for one in findings if one.sentence.startswith("table ") and one is not finding]


@pytest.mark.req("JOB-STO-12")
def test_two_damages_are_both_reported(tmp_path: Path, whole: bytes) -> None:
    damaged = bytearray(whole)
    for table in ("jobs", "audit"):
        page = pages_of(tmp_path, whole, table)[1]
        damaged[(page - 1) * PAGE : page * PAGE] = b"\xff" * PAGE

    sentences = [one.sentence for one in findings_of(tmp_path, bytes(damaged))]

    for table in ("jobs", "audit"):
        assert any(sentence.startswith(f"table {table}: rows after ") for sentence in sentences)


@pytest.mark.req("JOB-AUD-6")
@pytest.mark.parametrize("flip", [0x01, 0x80], ids=["still text", "no text any more"])
def test_a_flipped_byte_is_reported_with_its_event(tmp_path: Path, whole: bytes, flip: int) -> None:
    wanted = [17, 305]
    damaged = bytearray(whole)
    for n in wanted:
        place = whole.index(f'"id":"aud_{n:012d}"'.encode()) + 20
        damaged[place] ^= flip

    findings = findings_of(tmp_path, bytes(damaged))

    assert [one.where for one in findings if one.code == "trail_broken"] == [f"event {n}" for n in wanted]


@pytest.mark.req("JOB-STO-12")
def test_check_reports_damage_at_any_byte_and_does_not_raise(tmp_path: Path, whole: bytes) -> None:
    random = Random(13)
    silent = 0
    for _ in range(60):
        at = random.randrange(PAGE, len(whole))
        flipped = bytearray(whole)
        flipped[at] ^= 1 << random.randrange(8)
        try:
            silent += findings_of(tmp_path, bytes(flipped)) == []
        except StoreUnusable:
            pytest.fail(f"a flip of byte {at} is not reported")

    assert silent < 60, "free space and indexes may hide a flip, tables do not"
