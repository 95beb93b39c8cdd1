"""The faulty disk forgets exactly what a real one may forget."""

import errno

import pytest

from pendula.testing import Crashed, FaultyDisk
from pendula.testing.faulty_disk import Failure

SEEDS = range(200)


def test_synced_bytes_survive_every_crash() -> None:
    disk = FaultyDisk()
    disk.create("x")
    disk.append("x", b"kept")
    disk.sync("x")
    disk.sync_dir()

    assert {disk.after_crash(seed).read("x") for seed in SEEDS} == {b"kept"}


def test_of_unsynced_bytes_any_prefix_may_stay_and_zeros_may_follow() -> None:
    disk = FaultyDisk()
    disk.create("x")
    disk.sync_dir()
    disk.append("x", b"abcdef")

    left = {disk.after_crash(seed).read("x") for seed in SEEDS}

    assert {b"", b"abc", b"abcdef", bytes(6)} <= left
    assert any(b"a" in data and b"\0" in data for data in left)
    assert all(data.rstrip(b"\0") in (b"", b"a", b"ab", b"abc", b"abcd", b"abcde", b"abcdef") for data in left)


def test_a_new_name_is_durable_only_after_the_directory_sync() -> None:
    disk = FaultyDisk()
    disk.create("x")
    disk.append("x", b"1")
    disk.sync("x")

    found = {tuple(disk.after_crash(seed).list()) for seed in SEEDS}
    disk.sync_dir()

    assert found == {(), ("x",)}
    assert {tuple(disk.after_crash(seed).list()) for seed in SEEDS} == {("x",)}


def test_a_rename_may_be_lost_and_the_old_file_is_back() -> None:
    disk = FaultyDisk(contents={"old": b"old", "new": b"new"})
    disk.rename("new", "old")

    left = [disk.after_crash(seed) for seed in SEEDS]

    assert {tuple((name, one.read(name)) for name in one.list()) for one in left} == {
        (("new", b"new"), ("old", b"old")),
        (("old", b"new"),),
    }


def test_a_removal_may_be_lost() -> None:
    disk = FaultyDisk(contents={"x": b"1"})
    disk.remove("x")

    assert {tuple(disk.after_crash(seed).list()) for seed in SEEDS} == {(), ("x",)}


def test_the_same_seed_leaves_the_same_disk() -> None:
    disk = FaultyDisk()
    disk.create("x")
    disk.append("x", bytes(range(100)))
    disk.create("y")

    first, second = disk.after_crash(5), disk.after_crash(5)

    assert {name: first.read(name) for name in first.list()} == {name: second.read(name) for name in second.list()}


def test_a_crash_ends_everything_that_uses_the_disk() -> None:
    disk = FaultyDisk({1: "crash"})
    disk.create("x")

    with pytest.raises(Crashed):
        disk.append("x", b"1")
    with pytest.raises(Crashed):
        disk.list()


@pytest.mark.parametrize(("failure", "number"), [("no_space", errno.ENOSPC), ("io_error", errno.EIO)])
def test_a_failing_write_may_leave_a_part_of_its_bytes(failure: Failure, number: int) -> None:
    disk = FaultyDisk({1: failure})
    disk.create("x")

    with pytest.raises(OSError, match=r"space|Input") as caught:
        disk.append("x", b"abcd")

    assert caught.value.errno == number
    assert disk.read("x") == b"ab"


def test_after_a_failed_sync_later_syncs_lie() -> None:
    disk = FaultyDisk({3: "io_error"})
    disk.create("x")
    disk.sync_dir()
    disk.append("x", b"abcd")
    with pytest.raises(OSError, match="Input/output"):
        disk.sync("x")

    disk.sync("x")

    assert b"" in {disk.after_crash(seed).read("x") for seed in SEEDS}


@pytest.mark.parametrize(
    "operation", ["create", "append", "read", "sync", "sync_dir", "rename", "remove", "list", "free_bytes"]
)
@pytest.mark.parametrize("failure", ["no_space", "io_error"])
def test_every_call_can_fail(operation: str, failure: Failure) -> None:
    arguments = {
        "create": ("y",),
        "append": ("x", b"1"),
        "rename": ("x", "y"),
        "sync_dir": (),
        "list": (),
        "free_bytes": (),
    }
    disk = FaultyDisk({0: failure}, contents={"x": b"1"})

    with pytest.raises(OSError, match=r"space|Input"):
        getattr(disk, operation)(*arguments.get(operation, ("x",)))
