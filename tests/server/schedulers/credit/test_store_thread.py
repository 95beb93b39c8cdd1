"""The store thread: queries come before pending writes, which are merged and bounded."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pendula.credit.views import Measured
from pendula.kernel.errors import WorldBroken
from pendula.server.schedulers.credit import store as store_thread
from pendula.server.schedulers.credit.records import Owner, Record
from pendula.server.schedulers.credit.store import Store, StoreThread, Unwritten

pytestmark = pytest.mark.anyio


class WatchedStore(Store):
    """Records its writes in order."""

    done: list[Any]

    def write(self, runs: Mapping[str, Unwritten]) -> None:
        self.done.append({run_id: len(waiting.measured) for run_id, waiting in runs.items()})
        super().write(runs)


class Fixture:
    """A store thread with its store, and the counts of dropped measurements."""

    def __init__(self, store: WatchedStore) -> None:
        self.store = store
        self.dropped: list[int] = []
        self.store_thread = StoreThread(self.dropped.append)

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Block the store thread."""
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        held = threading.Event()

        def hold(_: Store) -> None:
            loop.call_soon_threadsafe(begun.set)
            held.wait()

        holding = asyncio.ensure_future(self.store_thread.ask(hold))
        await begun.wait()
        try:
            yield
        finally:
            held.set()
            await holding

    async def create(self, run_id: str) -> None:
        await self.store_thread.ask(lambda store: store.save(record(run_id)))

    async def series(self, run_id: str) -> list[str | None]:
        all_series = await self.store_thread.ask(lambda store: store.series(run_id, "UNIT", range(100_000)), of=run_id)
        (values,) = [one.points for one in all_series if one.key == "total_debt"]
        return [point.v for point in values]


@pytest.fixture
async def fixture(tmp_path: Path) -> AsyncIterator[Fixture]:
    store = WatchedStore(tmp_path / "store.db")
    store.done = []
    made = Fixture(store)
    await made.store_thread.open(lambda: store)
    yield made
    await made.store_thread.close()


def record(run_id: str) -> Record:
    return Record(run_id, "ring", Owner("ann", "participant"), "real", 7, "request", True, 50, "2026-01-01T00:00:00Z")


def values(*times: int) -> list[Measured]:
    return [Measured("UNIT", "total_debt", at, f"{at}.00000000") for at in times]


async def test_a_query_comes_before_pending_writes(fixture: Fixture) -> None:
    runs = [f"run_{number}" for number in range(20)]
    for run_id in runs:
        await fixture.create(run_id)
    async with fixture.busy():
        for at in range(100):
            for run_id in runs:
                fixture.store_thread.measure(run_id, values(at))
        command = asyncio.ensure_future(fixture.store_thread.ask(lambda _: fixture.store.done.append("command")))
        await asyncio.sleep(0)
    await command
    assert len(await fixture.series(runs[-1])) == 100_000

    assert fixture.store.done[0] == "command"
    assert len(fixture.store.done) == 2, "all pending writes are one transaction"
    assert fixture.store.done[1] == dict.fromkeys(runs, 100)


async def test_the_newest_record_and_all_measurements_of_a_run_are_written(fixture: Fixture) -> None:
    async with fixture.busy():
        for tick in range(50):
            saved = record("run_1")
            saved.tick_index = tick
            fixture.store_thread.save(saved, {"ticks": tick} if tick == 10 else None)
            fixture.store_thread.measure("run_1", values(tick))
    points = await fixture.series("run_1")
    stored = await fixture.store_thread.ask(lambda store: store.record("run_1"))

    assert fixture.store.done == [{"run_1": 50}]
    assert stored is not None
    assert stored.tick_index == 49
    assert points[:50] == [f"{at}.00000000" for at in range(50)]
    summaries = await fixture.store_thread.ask(lambda store: store._rows("SELECT summary FROM runs"))
    assert summaries == [('{"ticks":10}',)]


async def test_transactions_and_queues_are_bounded(fixture: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_thread, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(store_thread, "MEASURED_MOST", 1000)
    for run_id in ("run_1", "run_2"):
        await fixture.create(run_id)
    async with fixture.busy():
        for at in range(1300):
            fixture.store_thread.measure("run_1", values(at))
        fixture.store_thread.measure("run_2", values(1, 2))
    first, second = await fixture.series("run_1"), await fixture.series("run_2")

    assert sum(fixture.dropped) == 300
    assert first[299:301] == [None, "300.00000000"]
    assert first[1299] == "1299.00000000"
    assert second[2] == "2.00000000"
    assert max(sum(runs.values()) for runs in fixture.store.done) <= 100


async def test_pending_writes_of_a_deleted_run_are_dropped(fixture: Fixture) -> None:
    await fixture.create("run_1")
    async with fixture.busy():
        fixture.store_thread.save(record("run_1"))
        fixture.store_thread.measure("run_1", values(1))
        deleting = asyncio.ensure_future(fixture.store_thread.delete("run_1"))
        await asyncio.sleep(0)
    await deleting

    assert await fixture.store_thread.ask(lambda store: store.record("run_1"), of="run_1") is None
    assert (fixture.store.done, fixture.store_thread.failures) == ([], 0)


async def test_a_restarted_run_has_no_earlier_measurements(fixture: Fixture) -> None:
    await fixture.create("run_1")
    fixture.store_thread.measure("run_1", values(1))
    assert (await fixture.series("run_1"))[1] == "1.00000000"
    async with fixture.busy():
        fixture.store_thread.measure("run_1", values(2))
        fixture.store_thread.forget_measured("run_1")
        fixture.store_thread.measure("run_1", values(3))

    assert (await fixture.series("run_1"))[:4] == [None, None, None, "3.00000000"]


async def test_a_failed_write_of_one_run_does_not_affect_others(fixture: Fixture) -> None:
    """Measurements need a stored run."""
    await fixture.create("run_1")
    async with fixture.busy():
        fixture.store_thread.measure("run_0", values(1))
        fixture.store_thread.measure("run_1", values(1))

    assert (await fixture.series("run_1"))[1] == "1.00000000"
    assert await fixture.series("run_0") == [None] * 100_000
    assert fixture.store_thread.failures == 1


async def test_pending_writes_finish_before_the_store_closes(tmp_path: Path) -> None:
    store_thread = StoreThread()
    await store_thread.open(lambda: Store(tmp_path / "store.db"))
    for number in range(30):
        store_thread.save(record(f"run_{number}"))
        store_thread.measure(f"run_{number}", values(1))
    await store_thread.close()

    store = Store(tmp_path / "store.db")
    assert len(store.records()) == 30
    store.close()


async def test_the_exception_of_a_query_reaches_its_caller(fixture: Fixture) -> None:
    def fails(_: Store) -> None:
        raise WorldBroken("the disk is gone")

    with pytest.raises(WorldBroken, match="the disk is gone"):
        await fixture.store_thread.ask(fails)

    assert await fixture.store_thread.ask(Store.records) == []
