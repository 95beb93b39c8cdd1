"""Large reads of a simulator run in their own threads and end at a time limit."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from pendula.credit import views
from pendula.credit.engine import Run
from pendula.credit.ledger.payment import PaymentProcessor
from pendula.kernel.cancellation import Cancellation, Cancelled, cancellable
from pendula.kernel.limits import PAST_READS, PAST_READS_PER_CALLER
from pendula.server.schedulers.credit.output import RunContext
from pendula.server.schedulers.credit.routes import networks, streams
from pendula.server.schedulers.credit.service import QUEUE_FACTOR
from pendula.server.schedulers.credit.store import Store
from tests.server.living import code_of
from tests.server.schedulers.credit.simulators import Simulator

pytestmark = pytest.mark.anyio


class Threads:
    """Records the names of the threads that call a function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> None:
        self.names: set[str] = set()
        function = getattr(place, name)

        def noted(*args: Any, **named: Any) -> Any:
            self.names.add(threading.current_thread().name)
            return function(*args, **named)

        monkeypatch.setattr(place, name, noted)


async def test_a_query_to_an_ended_run_does_not_block_the_event_loop(
    still: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await still.start()
    await still.ok(f"/runs/{run_id}/stop")
    why, digests = Threads(monkeypatch, Run, "why"), Threads(monkeypatch, Run, "digests")

    await still.ok(f"/runs/{run_id}/why", {"question": {"run": True}})
    details = await still.look(f"/runs/{run_id}/details")

    assert details["digests"] is not None
    assert {name.partition("_")[0] for name in why.names | digests.names} == {"questions-to-ended-runs"}


@pytest.mark.parametrize("ended", [False, True])
async def test_payment_targets_block_neither_the_engine_nor_the_event_loop(
    still: Simulator, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    run_id = await still.start(scenario_id="village-100")
    if ended:
        await still.ok(f"/runs/{run_id}/stop")
    finding = Threads(monkeypatch, PaymentProcessor, "find_routes")
    query = {"equivalent": "UNIT", "from_pid": "agent-1"}

    with_amounts = await still.look(f"/runs/{run_id}/payment-targets", **query, include_max_available="true")
    without = await still.look(f"/runs/{run_id}/payment-targets", **query)

    assert {name.partition("_")[0] for name in finding.names} == {"simulator-reads"}
    assert {one["to_pid"] for one in with_amounts["items"]} <= {one["to_pid"] for one in without["items"]}
    assert with_amounts["items"]


async def test_the_search_for_payment_targets_can_be_cancelled(still: Simulator) -> None:
    run_id = await still.start(scenario_id="village-100")
    run = await still.service.find(still.service._records[run_id].owner, run_id)
    cancellation = Cancellation()
    searched: list[int] = []

    def find(engine: Run) -> None:
        ledger = engine.network.ledgers["UNIT"]
        find_routes = ledger.processor.find_routes

        class Watched(PaymentProcessor):
            def find_routes(self, sender: int, receiver: int, amount: int) -> Any:
                searched.append(receiver)
                cancellation.cancel()
                return find_routes(sender, receiver, amount)

        processor = Watched(ledger.book, engine.settings)
        sender = ledger.book.people.index["agent-1"]
        with pytest.raises(Cancelled), cancellable(cancellation):
            views.targets(ledger.book, processor, sender, 6, amounts=True)

    await run.ask(find)

    assert len(searched) == 1


async def test_files_and_previews_are_read_in_the_lane_of_large_reads(
    still: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await still.start()
    looked = [
        Threads(monkeypatch, networks, "encode_view"),
        Threads(monkeypatch, streams, "last_events"),
        Threads(monkeypatch, networks, "_preview"),
        Threads(monkeypatch, RunContext, "index"),
        Threads(monkeypatch, networks, "targets"),
    ]
    for one in looked:
        one.names.clear()

    await still.look(f"/runs/{run_id}/events/last", equivalent="HOUR")
    await still.look("/scenarios/ring-of-five/graph/preview")
    await still.look(f"/runs/{run_id}/graph/snapshot", equivalent="HOUR")
    await still.look(f"/runs/{run_id}/artifacts")
    await still.look(f"/runs/{run_id}/payment-targets", from_pid="anna", include_max_available="true")

    for one in looked:
        assert any(name.startswith("simulator-reads") for name in one.names)
        assert not any(name == threading.main_thread().name for name in one.names)


async def test_the_number_of_metrics_reads_waiting_for_the_store_is_limited(
    still: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await still.start()
    most = QUEUE_FACTOR * PAST_READS_PER_CALLER.default
    queried: list[str] = []
    released = asyncio.Event()
    query_store = still.service.query_store

    async def held(run_id: str, question: Callable[[Store], Any]) -> Any:
        queried.append(run_id)
        await released.wait()
        return await query_store(run_id, question)

    monkeypatch.setattr(still.service, "query_store", held)
    reads = [asyncio.create_task(still.get(f"/runs/{run_id}/metrics")) for _ in range(most)]
    lane = still.service.large_reads
    async with asyncio.timeout(240):
        while lane.inside < most or not queried:
            await asyncio.sleep(0.001)
        another = await still.get(f"/runs/{run_id}/metrics")
    waiting = len(queried)
    released.set()
    answers = await asyncio.gather(*reads)

    assert waiting == 1, "one of two threads is left for other callers"
    assert (another.status_code, code_of(another)) == (503, "past_busy")
    assert {one.status_code for one in answers} == {200}


async def test_details_are_not_null_because_too_many_reads_wait(still: Simulator) -> None:
    run_id = await still.start()
    await still.ok(f"/runs/{run_id}/stop")
    await still.look(f"/runs/{run_id}/details")
    lane = still.service.ended_questions
    with ExitStack() as others:
        for _ in range(PAST_READS.default + 1):
            others.enter_context(lane.place())
        busy = await still.get(f"/runs/{run_id}/details")

    assert (busy.status_code, code_of(busy)) == (503, "past_busy")
    assert (await still.look(f"/runs/{run_id}/details"))["digests"] is not None
