"""The thread of the store: commands go before what is written down, which waits merged and bounded."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pendula.credit.served.records import Owner, Record
from pendula.credit.served.series import Measured
from pendula.credit.served.store import Store, Unwritten
from pendula.kernel.errors import WorldBroken
from pendula.server.schedulers.credit.running import store_thread
from pendula.server.schedulers.credit.running.store_thread import StoreThread

pytestmark = pytest.mark.anyio


class WatchedStore(Store):
    """Notes what it does, in order."""

    done: list[Any]

    def write(self, runs: Mapping[str, Unwritten]) -> None:
        self.done.append({run_id: len(waiting.measured) for run_id, waiting in runs.items()})
        super().write(runs)


class Kept:
    """A keeper with its store, and how many measurements it has given up, time by time."""

    def __init__(self, store: WatchedStore) -> None:
        self.store = store
        self.dropped: list[int] = []
        self.store_thread = StoreThread(self.dropped.append)

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """The thread of the store does something else as long as this is entered."""
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
        found = await self.store_thread.ask(lambda store: store.series(run_id, "UNIT", range(100_000)), of=run_id)
        (values,) = [one.points for one in found if one.key == "total_debt"]
        return [point.v for point in values]


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    store = WatchedStore(tmp_path / "store.db")
    store.done = []
    made = Kept(store)
    await made.store_thread.open(lambda: store)
    yield made
    await made.store_thread.close()


def record(run_id: str) -> Record:
    return Record(run_id, "ring", Owner("ann", "participant"), "real", 7, "request", True, 50, "2026-01-01T00:00:00Z")


def values(*times: int) -> list[Measured]:
    return [Measured("UNIT", "total_debt", at, f"{at}.00000000") for at in times]


async def test_a_command_goes_before_everything_that_waits_to_be_written(kept: Kept) -> None:
    runs = [f"run_{number}" for number in range(20)]
    for run_id in runs:
        await kept.create(run_id)
    async with kept.busy():
        for at in range(100):
            for run_id in runs:
                kept.store_thread.measure(run_id, values(at))
        command = asyncio.ensure_future(kept.store_thread.ask(lambda _: kept.store.done.append("command")))
        await asyncio.sleep(0)
    await command
    assert len(await kept.series(runs[-1])) == 100_000

    assert kept.store.done[0] == "command"
    assert len(kept.store.done) == 2, "what waits of all runs is one transaction"
    assert kept.store.done[1] == dict.fromkeys(runs, 100)


async def test_of_a_run_the_newest_record_is_written_and_all_that_it_measured(kept: Kept) -> None:
    async with kept.busy():
        for tick in range(50):
            saved = record("run_1")
            saved.tick_index = tick
            kept.store_thread.save(saved, {"ticks": tick} if tick == 10 else None)
            kept.store_thread.measure("run_1", values(tick))
    found = await kept.series("run_1")
    stored = await kept.store_thread.ask(lambda store: store.record("run_1"))

    assert kept.store.done == [{"run_1": 50}]
    assert stored is not None
    assert stored.tick_index == 49
    assert found[:50] == [f"{at}.00000000" for at in range(50)]
    summaries = await kept.store_thread.ask(lambda store: store._rows("SELECT summary FROM runs"))
    assert summaries == [('{"ticks":10}',)]


async def test_no_transaction_and_no_line_is_longer_than_its_bound(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_thread, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(store_thread, "MEASURED_MOST", 1000)
    for run_id in ("run_1", "run_2"):
        await kept.create(run_id)
    async with kept.busy():
        for at in range(1300):
            kept.store_thread.measure("run_1", values(at))
        kept.store_thread.measure("run_2", values(1, 2))
    first, second = await kept.series("run_1"), await kept.series("run_2")

    assert sum(kept.dropped) == 300
    assert first[299:301] == [None, "300.00000000"]
    assert first[1299] == "1299.00000000"
    assert second[2] == "2.00000000"
    assert max(sum(runs.values()) for runs in kept.store.done) <= 100


async def test_what_waits_of_a_deleted_run_is_not_written(kept: Kept) -> None:
    await kept.create("run_1")
    async with kept.busy():
        kept.store_thread.save(record("run_1"))
        kept.store_thread.measure("run_1", values(1))
        deleting = asyncio.ensure_future(kept.store_thread.delete("run_1"))
        await asyncio.sleep(0)
    await deleting

    assert await kept.store_thread.ask(lambda store: store.record("run_1"), of="run_1") is None
    assert (kept.store.done, kept.store_thread.failures) == ([], 0)


async def test_a_run_that_begins_again_measured_nothing_before(kept: Kept) -> None:
    await kept.create("run_1")
    kept.store_thread.measure("run_1", values(1))
    assert (await kept.series("run_1"))[1] == "1.00000000"
    async with kept.busy():
        kept.store_thread.measure("run_1", values(2))
        kept.store_thread.forget_measured("run_1")
        kept.store_thread.measure("run_1", values(3))

    assert (await kept.series("run_1"))[:4] == [None, None, None, "3.00000000"]


async def test_what_cannot_be_written_of_one_run_costs_no_other(kept: Kept) -> None:
    """Nothing may be measured of a run that is not stored."""
    await kept.create("run_1")
    async with kept.busy():
        kept.store_thread.measure("run_0", values(1))
        kept.store_thread.measure("run_1", values(1))

    assert (await kept.series("run_1"))[1] == "1.00000000"
    assert await kept.series("run_0") == [None] * 100_000
    assert kept.store_thread.failures == 1


async def test_what_waits_is_written_before_the_store_is_closed(tmp_path: Path) -> None:
    store_thread = StoreThread()
    await store_thread.open(lambda: Store(tmp_path / "store.db"))
    for number in range(30):
        store_thread.save(record(f"run_{number}"))
        store_thread.measure(f"run_{number}", values(1))
    await store_thread.close()

    store = Store(tmp_path / "store.db")
    assert len(store.records()) == 30
    store.close()


async def test_what_a_question_raises_reaches_whoever_asked(kept: Kept) -> None:
    def fails(_: Store) -> None:
        raise WorldBroken("the disk is gone")

    with pytest.raises(WorldBroken, match="the disk is gone"):
        await kept.store_thread.ask(fails)

    assert await kept.store_thread.ask(Store.records) == []
