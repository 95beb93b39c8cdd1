"""kill -9 of a real process on a real disk: whatever it had acknowledged is there.

Children are forked from this warm process, so a kill costs milliseconds. This shows that the parts work together on a
real file system; that no flush is missing is shown on the faulty disk, because the system keeps what a killed process
wrote.
"""

import os
import signal
import sys
from pathlib import Path
from random import Random

import pytest

from pendula.kernel.disk import RealDisk
from pendula.kernel.journal import FileJournal
from pendula.testing import over_seeds
from pendula.testing.tally import Add
from tests.campaigns import campaign_after
from tests.forking import forked
from tests.kernel.journals import new_driver, recovered

KILLS = 20


def write_until_killed(directory: Path, acknowledgements: int, batch: int) -> None:
    driver = new_driver(RealDisk(directory), {"segment_bytes": 8_000}, snapshot_every=7)
    while True:
        tickets = [driver.submit(Add(1), by="child") for _ in range(batch)]
        driver.flush()
        os.write(acknowledgements, b"".join(b"%d\n" % ticket.n for ticket in tickets))


def kill_one(directory: Path, seed: int) -> None:
    luck = Random(seed)
    reading, writing = os.pipe()
    groups = luck.randint(1, 5)
    child = forked(lambda: write_until_killed(directory, writing, groups))
    os.close(writing)
    heard = b""
    enough = luck.randint(1, 60)
    while len(heard) < enough:
        some = os.read(reading, luck.randint(1, 30))
        assert some, "the child ended before it was killed"
        heard += some
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while rest := os.read(reading, 65536):
        heard += rest
    os.close(reading)
    acknowledged = [int(line) for line in heard.splitlines(keepends=True) if line.endswith(b"\n")]

    driver = recovered(RealDisk(directory))
    kept = {record.n for record in driver.journal.read() if record.kind == "input"}
    assert set(acknowledged) <= kept
    assert not list(driver.engine.broken())
    before = driver.engine.state()
    driver.close()
    assert recovered(RealDisk(directory)).engine.state() == before


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
@pytest.mark.parametrize("share", campaign_after(4, range(10)))
def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path: Path, share: int) -> None:
    seeds = range(share * KILLS, (share + 1) * KILLS)

    assert over_seeds(lambda seed: kill_one(tmp_path / str(seed), seed), seeds) == KILLS


def test_two_journals_of_a_killed_process_differ_from_a_torn_one(tmp_path: Path) -> None:
    kill_one(tmp_path, 3)
    last = sorted(tmp_path.glob("*.journal"))[-1]
    with last.open("ab") as file:
        file.write(b"torn")

    journal = FileJournal.open(RealDisk(tmp_path))

    assert journal.cut_tail_bytes == 4
    assert list(tmp_path.glob("*.cut"))
