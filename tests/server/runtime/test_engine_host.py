"""Engines on failing disks: the error is reported at its engine and all others continue."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from pendula.kernel.disk import Disk, replace
from pendula.server.runtime.engine_host import real_disk
from pendula.server.settings import Settings
from pendula.testing import FaultyDisk
from pendula.testing.tally import Command, Tally
from tests.server.living import BASE, TALLY, client_of, code_of, running, supervisor_of
from tests.server.tally_scheduler import SCHEDULER

pytestmark = pytest.mark.anyio
ADD = {"type": "add", "amount": 1}
TWO = msgspec.structs.replace(TALLY, engines={"main": {"seed": 7}, "other": {"seed": 8}})


def main_on(disk: Disk) -> Callable[[Path], Callable[[], Disk]]:
    """The engine `main` on the given disk, every other one on a real one."""
    return lambda path: (lambda: disk) if path.name == "main" else real_disk(path)


async def calls_of_a_start(settings: Settings) -> int:
    disk = FaultyDisk()
    async with running(settings, [TWO], disk=main_on(disk)):
        return len(disk.calls)


async def add(client: httpx.AsyncClient, engine: str = "main") -> httpx.Response:
    return await client.post(f"/api/v1/tally/{engine}/commands", json=ADD)


async def readiness(client: httpx.AsyncClient) -> tuple[int, dict[str, Any]]:
    response = await client.get("/readyz")
    return response.status_code, {check["name"]: check["reason"] for check in response.json()["checks"]}


@pytest.mark.parametrize("failure", ["no_space", "io_error"])
@pytest.mark.parametrize("later", [0, 1])
async def test_a_failed_write_or_sync_stops_one_engine_for_good(settings: Settings, failure: Any, later: int) -> None:
    disk = FaultyDisk({await calls_of_a_start(settings) + later: failure})
    async with running(settings, [TWO], disk=main_on(disk)) as app, client_of(app) as client:
        assert await readiness(client) == (200, {"tokens": None, "tally/main": None, "tally/other": None})

        failed = await add(client)
        again = await add(client)

        for response in (failed, again):
            assert (response.status_code, code_of(response)) == (503, "journal_broken")
        assert (await add(client, "other")).status_code == 200
        status, checks = await readiness(client)
        assert (status, checks["tally/main"], checks["tally/other"]) == (503, "journal_broken", None)
        scheduler = (await client.get("/api/v1/schedulers")).json()["schedulers"][0]
        assert (scheduler["state"], scheduler["reason"]["code"]) == ("broken", "journal_broken")
        assert [engine["broken"] is None for engine in scheduler["engines"]] == [False, True]
        assert (await client.get("/healthz")).status_code == 200
        assert b'pendula_engine_broken{engine="main",scheduler="tally"} 1.0' in (await client.get("/metrics")).content


async def test_commands_are_refused_before_the_disk_is_full(settings: Settings) -> None:
    disk = FaultyDisk()
    async with running(settings, [TWO], disk=main_on(disk)) as app, client_of(app) as client:
        disk.free = 0
        assert (await add(client)).status_code == 200

        refused = await add(client)

        assert (refused.status_code, code_of(refused)) == (503, "disk_low")
        assert await readiness(client) == (503, {"tokens": None, "tally/main": "disk_low", "tally/other": None})
        assert (await client.get(f"{BASE}/state")).json()["state"]["total"] == 1


# Enough for a command, too little for the two snapshots that would make it prunable.
FULL_BYTES = 500


async def test_a_full_journal_refuses_commands(settings: Settings) -> None:
    given = msgspec.structs.replace(settings, limits={"journal_bytes": FULL_BYTES})
    async with running(given) as app, client_of(app) as client:
        answers = [await add(client) for _ in range(20)]

    assert answers[0].status_code == 200
    assert (answers[-1].status_code, code_of(answers[-1])) == (503, "journal_full")


async def test_the_engines_of_a_scheduler_share_its_journal_bytes(settings: Settings) -> None:
    given = msgspec.structs.replace(settings, limits={"journal_bytes": 2 * FULL_BYTES})
    async with running(given, [TWO]) as app, client_of(app) as client:
        answers = [await add(client) for _ in range(20)]
        allowed = answers[-1].json()["error"]["details"]["allowed"]

        assert (code_of(answers[-1]), allowed) == ("journal_full", FULL_BYTES)
        assert (await add(client, "other")).status_code == 200


async def test_an_unopenable_journal_fails_readiness_of_its_engine_alone(settings: Settings) -> None:
    async with running(settings, [TWO]) as app, client_of(app) as client:
        for _ in range(3):
            await add(client)
    path = Path(settings.data) / "schedulers" / "tally" / "main" / "00000000.journal"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    async with running(settings, [TWO]) as app, client_of(app) as client:
        status, checks = await readiness(client)
        refused = await add(client)

        assert (status, checks["tally/main"], checks["tally/other"]) == (503, "journal_corrupt", None)
        assert (refused.status_code, code_of(refused)) == (503, "engine_unavailable")
        assert (await client.get(f"{BASE}/stream")).status_code == 503
        assert (await add(client, "other")).status_code == 200


class DecidesOtherwise(Tally):
    decisions = Tally.decisions + 1


async def test_a_demo_with_other_decisions_restarts_and_its_old_journal_is_kept(settings: Settings) -> None:
    demo = msgspec.structs.replace(settings, demo=True)
    before = msgspec.structs.replace(TALLY, engines={"main": {"seed": 7}}, demo=SCHEDULER.demo)
    async with running(demo, [before]):
        pass
    journal = Path(settings.data) / "schedulers" / "tally" / "demo" / "00000000.journal"
    written = journal.read_bytes()

    now = msgspec.structs.replace(before, engine=DecidesOtherwise, engines={})
    async with running(demo, [now]) as app, client_of(app) as client:
        status, checks = await readiness(client)

    # A journal of a user stays in place, and its engine reports why it cannot continue.
    assert (status, checks["tally/main"], checks["tally/demo"]) == (503, "other_decisions", None)
    kept = Path(settings.data) / "aside" / f"tally-demo-{Tally.decisions}" / journal.name
    assert kept.read_bytes() == written
    assert journal.read_bytes() != written


async def test_an_invalid_configuration_fails_readiness_of_its_engine_alone(settings: Settings) -> None:
    wrong = msgspec.structs.replace(TALLY, engines={"main": {"seed": "x"}, "other": {"seed": 8}})
    async with running(settings, [wrong]) as app, client_of(app) as client:
        status, checks = await readiness(client)

        assert (status, checks["tally/main"], checks["tally/other"]) == (503, "input_refused", None)


async def test_an_engine_defect_is_reported_and_changes_nothing(settings: Settings) -> None:
    class Fragile(Tally):
        def apply(self, command: Command) -> Any:
            outcome = super().apply(command)
            assert self.why({"take": 3}).code != "enough", "three is too much"
            return outcome

    fragile = msgspec.structs.replace(TALLY, engine=Fragile)
    async with running(settings, [fragile]) as app, client_of(app) as client:
        answers = [await add(client) for _ in range(4)]

        assert [answer.status_code for answer in answers] == [200, 200, 503, 503]
        assert code_of(answers[-1]) == "engine_defect"
        assert (await client.get(f"{BASE}/state")).json()["state"]["total"] == 2


async def test_too_many_waiting_commands_are_answered_with_retry_after(settings: Settings) -> None:
    import threading

    given = msgspec.structs.replace(settings, limits={"waiting_commands": 1})
    async with running(given) as app, client_of(app) as client:
        host = supervisor_of(app).host("tally", "main")
        at_work, go_on = threading.Event(), threading.Event()

        def hold(driver: object) -> None:
            at_work.set()
            assert go_on.wait(120)

        holding = asyncio.create_task(host.ask(hold))
        await asyncio.to_thread(at_work.wait, 120)
        waiting = asyncio.create_task(add(client))
        while (
            b'pendula_waiting_commands{engine="main",scheduler="tally"} 1.0'
            not in (await client.get("/metrics")).content
        ):
            await asyncio.sleep(0)

        refused = await add(client)
        go_on.set()

        assert (refused.status_code, code_of(refused)) == (503, "busy")
        assert refused.headers["retry-after"] == "1"
        assert (await waiting).status_code == 200
        await holding


async def test_the_event_loop_responds_while_an_engine_works(settings: Settings) -> None:
    import threading

    async with running(settings) as app, client_of(app) as client:
        go_on = threading.Event()
        holding = asyncio.create_task(supervisor_of(app).host("tally", "main").ask(lambda _: go_on.wait(120)))

        assert (await client.get("/api/v1/schedulers")).status_code == 200
        go_on.set()
        assert await holding


async def test_the_server_responds_while_an_engine_starts(settings: Settings) -> None:
    import threading

    from pendula.server.app import create_app

    go_on = threading.Event()
    disk = FaultyDisk()

    def slow(path: Path) -> Callable[[], Disk]:
        def make() -> Disk:
            assert go_on.wait(120)
            return disk

        return make

    app = create_app(settings, [TALLY], disk=slow)
    async with app.router.lifespan_context(app), client_of(app) as client:
        assert await readiness(client) == (503, {"tokens": None, "tally/main": "starting"})
        assert (await client.get("/api/v1/schedulers")).json()["schedulers"][0]["state"] == "starting"
        refused = await add(client)
        assert (refused.status_code, code_of(refused)) == (503, "engine_unavailable")
        go_on.set()
        await supervisor_of(app).opened()
        assert (await add(client)).status_code == 200


async def test_concurrent_commands_share_flushes(settings: Settings) -> None:
    disk = FaultyDisk()
    async with running(settings, [TALLY], disk=main_on(disk)) as app, client_of(app) as client:
        before = len(disk.calls)
        answers = await asyncio.gather(*(add(client) for _ in range(100)))
        syncs = [call for call in disk.calls[before:] if call.operation == "sync"]

    assert {answer.status_code for answer in answers} == {200}
    assert len(syncs) < 50


async def test_a_wrong_configuration_can_be_corrected(settings: Settings) -> None:
    wrong = msgspec.structs.replace(TALLY, engines={"main": {"seed": "x"}})
    async with running(settings, [wrong]):
        pass

    async with running(settings) as app, client_of(app) as client:
        assert (await add(client)).status_code == 200


async def test_a_journal_of_another_scheduler_is_not_reused(settings: Settings) -> None:
    class Other(Tally):
        scheduler = "other"

    async with running(settings):
        pass
    async with running(settings, [msgspec.structs.replace(TALLY, engine=Other)]) as app, client_of(app) as client:
        assert await readiness(client) == (503, {"tokens": None, "tally/main": "wrong_journal"})


async def test_a_damaged_end_of_a_journal_is_reported_by_readiness(settings: Settings) -> None:
    disk = FaultyDisk()
    async with running(settings, [TWO], disk=main_on(disk)) as app, client_of(app) as client:
        await add(client)
        # As after a kill, before a snapshot ends the journal.
        left = disk.after_crash(1)
    name = "00000000.journal"
    whole = left.read(name)
    replace(left, name, whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])

    async with running(settings, [TWO], disk=main_on(left)) as app, client_of(app) as client:
        response = await client.get("/readyz")

    checks = {check["name"]: check for check in response.json()["checks"]}
    assert (response.status_code, checks["tally/main"]["reason"]) == (200, None)
    assert "is complete but has a wrong checksum" in checks["tally/main"]["note"]
    assert checks["tally/other"]["note"] is None


async def test_history_pruned_during_a_read_is_read_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(settings) as app, client_of(app) as client:
        await add(client)
        journal = supervisor_of(app).host("tally", "main").driver.journal
        read, tries = journal.read, []

        def once_pruned(start: int = 0) -> Any:
            tries.append(start)
            if len(tries) == 1:
                raise FileNotFoundError
            return read(start)

        monkeypatch.setattr(journal, "read", once_pruned)

        assert len((await client.get(f"{BASE}/journal")).json()["records"]) == 2
