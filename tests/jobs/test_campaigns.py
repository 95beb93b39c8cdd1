"""The environment of the store fails repeatedly: no answered call is lost, no effect is applied twice.

The remaining processes continue.
"""

import os
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

from pendula.jobs.calls import Calls
from pendula.jobs.model import SECOND
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.file.store_time import time_of_event
from pendula.jobs.store.protocol import StoreReadOnly
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.kernel.errors import PendulaError
from tests.jobs.campaigns import (
    POLICY,
    WorkLoop,
    assert_nothing_answered_is_lost,
    commits_seen,
    effects,
    exit_code_of,
    until_effects,
    until_written,
    workers,
)
from tests.jobs.crashing import assert_sound, fast, forked, made, scheduler, store_of

SHORT_SECONDS, LONG_SECONDS = 2.0, 120.0
INTERRUPTS, LONG_INTERRUPTS = 200, 2000


def lasting(short: int, long: int) -> list[object]:
    return [short, pytest.param(long, marks=pytest.mark.long)]


def campaign(tmp_path: Path) -> Path:
    folder = made(tmp_path / "campaign")
    with scheduler(folder) as client:
        client.calls.store.write(lambda tx: tx.execute("CREATE TABLE once_only (n INTEGER UNIQUE) STRICT"))
    return folder


# Effects


@pytest.mark.req("JOB-POL-4")
@pytest.mark.parametrize("seconds", [SHORT_SECONDS, pytest.param(LONG_SECONDS, marks=pytest.mark.long)])
def test_misbehaving_effects_do_not_disturb_good_ones(tmp_path: Path, seconds: float) -> None:
    folder = campaign(tmp_path)

    with workers(folder, 3, threads=4, bad=0.5):
        time.sleep(seconds)
        until_written(folder, 10)
        until_effects(folder)

    assert_sound(folder)
    assert assert_nothing_answered_is_lost(folder) > 0
    assert effects(folder) > 0
    with closing(sqlite3.connect(store_of(folder))) as look:
        by = {name for (name,) in look.execute("SELECT by FROM counted")}
        assert look.execute("SELECT count(*) FROM once_only").fetchone() == (0,)
        assert look.execute("SELECT count(*) FROM jobs WHERE object_id = 'inside'").fetchone() == (0,)
    assert not by & {"outside", "late"}


# Interrupts


def interrupted_worker(folder: Path, interrupts: int) -> None:
    """Works in the main thread, which Ctrl+C interrupts; writes its answered calls at the end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    client = Scheduler(Calls(SqliteStore(store_of(folder), effect_seconds=0.3), POLICY, fast))
    going = WorkLoop(client, "interrupted", bad=0.2)
    counter = folder / "interrupted.count"
    interrupted = 0
    while interrupted < interrupts:
        # Twice: the next interrupt can arrive before the last one was counted.
        try:
            try:
                going.run(lambda: False)
            except KeyboardInterrupt:
                interrupted += 1
        except KeyboardInterrupt:
            interrupted += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    counter.write_text(str(interrupted))
    client.close()
    (folder / "interrupted.answered").write_text("\n".join(going.answered))


@pytest.mark.req("JOB-STO-5")
@pytest.mark.parametrize("interrupts", lasting(INTERRUPTS, LONG_INTERRUPTS))
def test_ctrl_c_at_any_moment_leaves_the_store_usable(tmp_path: Path, interrupts: int) -> None:
    folder = campaign(tmp_path)
    random = Random(interrupts)
    counter = folder / "interrupted.count"
    child = forked(lambda: interrupted_worker(folder, interrupts))

    with workers(folder, 3):
        until_written(folder, 10)
        code = None
        until = time.monotonic() + 1200
        while code is None and time.monotonic() < until:
            os.kill(child, signal.SIGINT)
            time.sleep(random.random() * 0.02)
            code = exit_code_of(child, 0.0005)
        until_written(folder, 10)

    assert code == 0
    assert int(counter.read_text()) >= interrupts - 1
    assert_sound(folder)
    assert assert_nothing_answered_is_lost(folder) > 0


# Freezes


@pytest.mark.campaign
@pytest.mark.req("JOB-STO-5")
@pytest.mark.parametrize("freezes", lasting(12, 200))
def test_a_frozen_process_blocks_others_only_while_it_is_writing(tmp_path: Path, freezes: int) -> None:
    """While one of four processes is stopped, the other three continue; if it is stopped in a transaction no other
    process can write until it continues."""
    folder = campaign(tmp_path)
    random = Random(freezes)
    went_on = 0

    with workers(folder, 4) as children:
        until_written(folder, 10)
        for number in range(freezes):
            child = children[number % 4]
            time.sleep(random.random() * 0.05)
            os.kill(child, signal.SIGSTOP)
            os.waitpid(child, os.WUNTRACED)
            try:
                if not is_writing(folder):
                    until_written(folder, 5)
                    went_on += 1
            finally:
                os.kill(child, signal.SIGCONT)
            until_written(folder, 5)

    assert went_on >= freezes // 4
    assert_sound(folder)
    assert assert_nothing_answered_is_lost(folder) > 0


def is_writing(folder: Path) -> bool:
    """Whether a process holds the lock of the file and does not release it."""
    with closing(sqlite3.connect(store_of(folder), isolation_level=None, timeout=1)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
        return False


# Clocks


class Jumping:
    """A clock that is sometimes set, by up to an hour in either direction."""

    def __init__(self, seed: int) -> None:
        self._luck = Random(seed)
        self._offset = 0
        self._lock = threading.Lock()

    def __call__(self) -> int:
        with self._lock:
            if self._luck.random() < 0.01:
                self._offset += self._luck.randint(-3600, 3600) * SECOND
            return fast() + self._offset


@pytest.mark.campaign
@pytest.mark.req("JOB-PULL-9")
@pytest.mark.parametrize("seconds", [SHORT_SECONDS, pytest.param(LONG_SECONDS, marks=pytest.mark.long)])
def test_clock_jumps_in_every_process_break_nothing(tmp_path: Path, seconds: float) -> None:
    folder = campaign(tmp_path)

    with workers(folder, 4, clock=Jumping(os.getpid())):
        time.sleep(seconds)
        until_written(folder, 10)

    assert_sound(folder)
    assert assert_nothing_answered_is_lost(folder) > 0
    with closing(sqlite3.connect(store_of(folder))) as look:
        # Compared as times, not as texts: a whole second is formatted without microseconds.
        times = [time_of_event(body) for (body,) in look.execute("SELECT body FROM audit ORDER BY n")]
    assert 0 not in times
    assert times == sorted(times), "time went back"


# Disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system, which only root can mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("NOT RUN: a file system of our own cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def full_and_freed(place: Path, rounds: int) -> None:
    """Fills the disk to the last byte, waits, and frees it again."""
    for _ in range(rounds):
        with suppress(OSError), (place / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(b"x" * 65536)
        time.sleep(0.1)
        (place / "ballast").unlink()
        time.sleep(0.1)


@pytest.mark.campaign
@pytest.mark.req("JOB-STO-7")
@pytest.mark.parametrize("rounds", lasting(8, 60))
def test_a_disk_that_fills_up_and_is_freed_loses_no_data(small_disk: Path, rounds: int) -> None:
    folder = campaign(small_disk)

    with workers(folder, 2, threads=2, bad=0.2):
        until_written(folder, 10)
        full_and_freed(small_disk, rounds)
        until_written(folder, 10)

    assert_sound(folder)
    assert assert_nothing_answered_is_lost(folder) > 0


@pytest.mark.req("JOB-STO-7")
def test_a_file_size_limit_fails_single_calls_only(tmp_path: Path) -> None:
    """A limit that needs no mount: writes fail in the middle of a transaction."""
    folder = campaign(tmp_path)

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        client = Scheduler(Calls(SqliteStore(store_of(folder)), POLICY, fast))
        going = WorkLoop(client, "limited", bad=0.2)
        refused = 0
        for size in (1 << 30, 0, 1 << 30, 1 << 16, 1 << 30):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            for _ in range(40):
                try:
                    going.step()
                except (PendulaError, SystemExit):
                    refused += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        client.defer("memory", "after", "decay")
        client.close()
        (folder / "limited.answered").write_text("\n".join(going.answered))
        assert refused

    assert exit_code_of(forked(limited)) == 0
    assert_sound(folder)
    assert assert_nothing_answered_is_lost(folder) > 0


def remounted(place: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(place)], check=True, capture_output=True)


@pytest.mark.req("JOB-STO-12")
def test_a_file_that_turns_read_only_stays_readable_and_becomes_writable_again(small_disk: Path) -> None:
    folder = campaign(small_disk)
    with scheduler(folder) as client:
        client.defer("memory", "before", "decay")
    remounted(small_disk, "ro")
    with scheduler(folder) as client:
        looked = [len(client.list().jobs), client.metrics().jobs.queued, len(check(client.calls.store))]
        refused: list[Callable[[], object]] = [
            lambda: client.defer("memory", "m", "decay"),
            lambda: client.pull(worker_id="w"),
        ]
        for call in refused:
            with pytest.raises(StoreReadOnly):
                call()
        remounted(small_disk, "rw")
        client.defer("memory", "after", "decay")
        listed = [job.object_id for job in client.list().jobs]

    assert looked == [1, 1, 0]
    assert listed == ["after", "before"]
    assert commits_seen(folder) == 2
    assert_sound(folder)
