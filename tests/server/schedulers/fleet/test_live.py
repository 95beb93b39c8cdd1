"""A live fleet over HTTP under failure: failed, missed and late ticks, and the replies to its gateway."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import OperatorAnswered
from pendula.fleet.explain import of_dropped
from pendula.fleet.runs import Recording, recording_disk
from pendula.fleet.tasks import Operation, OperationDone, OperationFailed
from pendula.fleet.tick.observing import LastDropped
from pendula.kernel.commit import Busy, Closed
from pendula.kernel.journal import JournalInUse
from pendula.server.errors import EngineUnavailable
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.fleet import loop as loops
from pendula.server.schedulers.fleet import routes
from pendula.server.schedulers.fleet.fleets import fleets_of
from pendula.server.schedulers.fleet.loop import MOST_FAILED, FleetLoop
from pendula.server.schedulers.fleet.routes import scheduler_for
from pendula.server.schedulers.fleet.trucks import RemoteTrucks
from pendula.server.settings import Settings
from tests.server.living import client_of, code_of, running, supervisor_of
from tests.server.schedulers.fleet.halls import BASE, HALL, made

pytestmark = pytest.mark.anyio
HALL_AT = f"{BASE}/hall"
PROFILE = Path(__file__).parents[3] / "fleet/golden/RobotProfile.json"


@pytest.fixture
def schedulers(settings: Settings) -> Sequence[SchedulerSpec]:
    return (scheduler_for(settings),)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        await made(client, live=True)
        yield client


@pytest.fixture
def loop(app: FastAPI, client: httpx.AsyncClient) -> FleetLoop:
    return fleets_of(supervisor_of(app)).loop("hall")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.01)


async def later(loop: FleetLoop, ticks: int) -> None:
    """So many ticks later."""
    after = loop.engine.traffic.tick_number + ticks
    await until(lambda: loop.engine.traffic.tick_number >= after)


def failing(loop: FleetLoop, times: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The next ticks fail, so many of them; those before do not when they are computed again."""
    decide, failed, since = FleetEngine._decide, list[int](), loop.engine.now()

    def decided(engine: FleetEngine, command: Any, routes: Any) -> Any:
        if len(failed) < times and command.now_ms > since:
            failed.append(command.now_ms)
            raise ZeroDivisionError("a tick that cannot be computed")
        return decide(engine, command, routes)

    monkeypatch.setattr(FleetEngine, "_decide", decided)
    return failed


@pytest.mark.req("FLT-RTP-13")
@pytest.mark.parametrize(
    ("capabilities", "verbs", "limited"), [(["pause"], ["pause"], False), (["stop", "speedLimit"], ["stop"], True)]
)
async def test_orders_fit_the_capabilities_of_their_trucks(
    app: FastAPI, capabilities: list[str], verbs: list[str], limited: bool
) -> None:
    profile = json.loads(PROFILE.read_bytes()) | {"capabilities": capabilities}
    async with client_of(app) as client:
        fleet = HALL | {"profiles": [profile]}
        answer = await client.post(BASE, params={"name": "hall", "live": True}, json=fleet)
        assert answer.status_code == 201, answer.text
        commands = (await client.get(f"{HALL_AT}/orders")).json()["commands"]

    # No truck has reported yet.
    assert [(one["mode"], one["verbs"]) for one in commands] == [("STOP", verbs)] * 3
    assert [("speedLimitMps" in one) for one in commands] == [limited] * 3


@pytest.mark.req("FLT-FAIL-16")
async def test_a_failed_tick_leaves_no_trace_and_the_fleet_continues(
    client: httpx.AsyncClient, loop: FleetLoop, quiet_logs: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    await later(loop, 2)
    failed = failing(loop, 2, monkeypatch)
    refused = await client.post(f"{HALL_AT}/actions", json={"type": "PAUSE_FLEET", "reason": "fire drill"})
    await until(lambda: len(failed) == 2)
    await later(loop, 3)
    again = await client.post(f"{HALL_AT}/actions", json={"type": "PAUSE_FLEET", "reason": "fire drill"})

    assert code_of(refused) == "engine_defect"
    assert again.status_code == 200, again.text
    assert "a tick that cannot be computed" in quiet_logs.getvalue()


@pytest.mark.req("FLT-FAIL-16", "FLT-RTP-9")
async def test_a_fleet_whose_ticks_all_fail_stops_and_sends_no_orders(
    client: httpx.AsyncClient, loop: FleetLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await later(loop, 2)
    failed = failing(loop, 1_000, monkeypatch)
    await until(loop._task.done)
    orders = await client.get(f"{HALL_AT}/orders")
    report = await client.post(f"{HALL_AT}/reports", json={"reports": []})

    assert len(failed) == MOST_FAILED
    # A gateway that asked on would hear the last command for ever.
    assert (orders.status_code, code_of(orders)) == (503, "fleet_stopped")
    assert (report.status_code, code_of(report)) == (503, "fleet_stopped")


@pytest.mark.req("FLT-FAIL-16")
async def test_a_tick_without_disk_space_is_missed_and_ends_nothing(
    loop: FleetLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, missed = loop.host.submit, list[object]()

    async def crowded(command: object, by: str, request_id: str | None) -> Any:
        if len(missed) < 3:
            missed.append(command)
            raise Busy("1024 commands wait already")
        return await submit(command, by, request_id)

    monkeypatch.setattr(loop.host, "submit", crowded)
    await until(lambda: len(missed) == 3)
    await later(loop, 3)

    assert not loop._task.done()


@pytest.mark.req("FLT-FAIL-16")
async def test_the_decisions_of_a_late_tick_are_not_sent(loop: FleetLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(loop.trucks, RemoteTrucks)
    await until(lambda: bool(loop.trucks.commands))  # type: ignore[attr-defined]
    submit, seen = loop.host.submit, list[tuple[int, int]]()

    async def slow(command: object, by: str, request_id: str | None) -> Any:
        answer = await submit(command, by, request_id)
        if not seen:
            await asyncio.sleep(0.3)
        return answer

    def noted(*_: object) -> None:
        trucks = loop.trucks
        assert isinstance(trucks, RemoteTrucks)
        seen.append((loop.engine.traffic.records[0].seq, trucks.commands["R1"].seq))

    monkeypatch.setattr(loop.host, "submit", slow)
    monkeypatch.setattr(loop, "_record_alerts", noted)
    await until(lambda: bool(seen))
    decided, sent = seen[0]

    assert sent < decided


@pytest.mark.req("FLT-FAIL-16")
async def test_an_expired_command_is_not_served(
    client: httpx.AsyncClient, loop: FleetLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await client.get(f"{HALL_AT}/orders")
    # As if every tick took too long: what it decides is not sent.
    monkeypatch.setattr(loop, "_is_late", lambda *_: True)
    await later(loop, 10)
    answer = await client.get(f"{HALL_AT}/orders")
    monkeypatch.setattr(loop, "_is_late", lambda *_: False)
    await later(loop, 2)
    again = await client.get(f"{HALL_AT}/orders")

    # Also before the first tick: it is waited for.
    assert len(first.json()["commands"]) == 3
    assert (answer.status_code, code_of(answer)) == (503, "fleet_stopped")
    assert len(again.json()["commands"]) == 3


@pytest.mark.parametrize("over", [{"done": ["R1"]}, {"failed": {"R1": "no pallet"}}])
async def test_a_completion_is_answered_after_it_is_written(
    client: httpx.AsyncClient, loop: FleetLoop, over: dict[str, Any]
) -> None:
    answer = await client.post(f"{HALL_AT}/reports", json=over)

    written = [bytes(one.body) for one in loop.host.journal.read() if one.kind == "input"]
    assert answer.status_code == 204
    assert any(b'"type":"operation' in one for one in written)


async def test_an_unknown_member_beside_the_reports_is_refused_with_the_nearest_name(
    client: httpx.AsyncClient, loop: FleetLoop
) -> None:
    answer = await client.post(f"{HALL_AT}/reports", json={"report": []})

    assert answer.status_code == 422
    assert "did you mean reports?" in answer.text


async def test_a_request_waiting_for_a_tick_gets_an_error_when_the_fleet_ends(
    client: httpx.AsyncClient, loop: FleetLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def over(*_: object) -> None:
        await until(lambda: bool(loop._queue.actions))
        raise Closed("it is over")

    monkeypatch.setattr(loop, "_tick", over)
    answer = await client.post(f"{HALL_AT}/actions", json={"type": "PAUSE_FLEET", "reason": "x"})

    assert (answer.status_code, code_of(answer)) == (503, "fleet_stopped")
    assert "has stopped" in answer.json()["error"]["message"]


async def test_a_failed_operation_or_one_without_a_task_is_not_offered_again() -> None:
    trucks = RemoteTrucks(["R1", "R2", "R3"])
    both = [Operation(name, "LOAD", "WEST", 500, f"T-{name}/LOAD") for name in ("R1", "R2")]
    trucks.operate(both)
    trucks.issue_operations()
    trucks.receive([], [], [OperationFailed("R1", "no pallet")])
    # The tick that was under way knew nothing of it.
    trucks.operate(both)
    assert sorted(trucks.operations) == ["R2"]
    assert [one.robot_id for one in trucks.take_failed()] == ["R1"]
    trucks.receive([], [OperationDone("R2")], [])
    trucks.operate(both[1:])
    assert sorted(trucks.operations) == []
    assert trucks.poll().done == (OperationDone("R2", "T-R2/LOAD"),)
    # Nobody is about anything any more, and somebody who was forgotten is not.
    trucks.operate(both)
    trucks.operate([])

    assert trucks.operations == {}


@pytest.mark.req("FLT-FAIL-14", "FLT-FAIL-10")
async def test_a_restart_allows_time_for_trucks_to_stop(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    async with running(settings, schedulers) as app, client_of(app) as client:
        await made(client, live=True)
        loop = fleets_of(supervisor_of(app)).loop("hall")
        await later(loop, 3)
    left_ms = loop.engine.now()
    async with running(settings, schedulers) as app:
        fleets = fleets_of(supervisor_of(app))
        await until(lambda: "hall" in fleets._loops)
        again = fleets.loop("hall")
        await until(lambda: again.engine.now() > left_ms)
        began_ms = again.engine.now()
        written = [bytes(one.body) for one in again.host.journal.read() if one.kind == "input"]

    # What was said before is too old to be a place from which a truck jumps.
    assert began_ms - left_ms > loop.engine.config.traffic.robot_offline_ms
    # One tick reports the time without a manager.
    assert sum(b'"restarted":true' in one for one in written) == 1


async def test_a_starting_fleet_is_not_reported_as_unknown(app: FastAPI) -> None:
    fleets = fleets_of(supervisor_of(app))

    with pytest.raises(EngineUnavailable, match="is starting"):
        fleets.loop("hall")


@pytest.mark.req("FLT-OBS-2")
async def test_a_served_fleet_has_a_checkpoint_every_minute(
    settings: Settings, schedulers: Sequence[SchedulerSpec], loop: FleetLoop
) -> None:
    seldom = scheduler_for(msgspec.structs.replace(settings, limits={"snapshot_every": 50}))

    assert (schedulers[0].snapshot_every, loop.host._snapshot_every) == (600, 600)
    assert seldom.snapshot_every == 50


@pytest.mark.parametrize(("live", "simulated"), [("true", False), ("false", True)])
async def test_a_map_says_whether_its_trucks_can_be_drilled(app: FastAPI, live: str, simulated: bool) -> None:
    async with client_of(app) as client:
        await made(client, live=live)
        reply = (await client.get(f"{BASE}/hall/map")).json()

    assert reply["simulated"] is simulated


async def test_a_fleet_has_either_one_server_or_one_manager(app: FastAPI, settings: Settings) -> None:
    folder = Path(settings.data) / "schedulers" / "fleet" / "hall"
    async with client_of(app) as client:
        await made(client)
        with pytest.raises(JournalInUse, match="another manager writes this journal"):
            Recording.resume(recording_disk(folder))
        await client.post(f"{BASE}/hall/close")
        with Recording.resume(recording_disk(folder)):
            opened = (await client.post(f"{BASE}/hall/open")).json()
        await client.post(f"{BASE}/hall/close")
        again = (await client.post(f"{BASE}/hall/open")).json()

    assert "is in use: another program has this journal open" in opened["fleets"][0]["broken"]
    assert again["fleets"][0]["broken"] is None


@pytest.mark.parametrize(("live", "instead"), [("true", "false"), ("false", "true")])
async def test_a_refused_fleet_does_not_affect_the_fleet_of_the_same_name(
    app: FastAPI, live: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client_of(app) as client:
        await made(client, live=live)
        before = await client.get(f"{BASE}/hall/orders")

        # No map is compiled for it.
        monkeypatch.setattr(routes, "_prepare", None)
        again = await client.post(BASE, params={"name": "hall", "live": instead}, json=HALL)
        await client.post(f"{BASE}/hall/close")
        await client.post(f"{BASE}/hall/open")

        assert code_of(again) == "engine_exists"
        assert (await client.get(f"{BASE}/hall/orders")).status_code == before.status_code


def submitting(loop: FleetLoop, monkeypatch: pytest.MonkeyPatch, ends: Callable[[Any], Awaitable[None]]) -> None:
    """Ticks are told to `ends` before they are decided."""
    submit = loop.host.submit

    async def submitted(command: Any, by: str, request_id: str | None) -> Any:
        await ends(command)
        return await submit(command, by, request_id)

    monkeypatch.setattr(loop.host, "submit", submitted)


async def test_a_request_waiting_for_a_tick_gets_an_error_on_a_defect(
    client: httpx.AsyncClient, loop: FleetLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = loop._record_alerts

    def mistaken(engine: FleetEngine, events: Sequence[Any]) -> None:
        note(engine, events)
        if any(isinstance(one, OperatorAnswered) for one in events):
            raise ZeroDivisionError("an unexpected defect")

    monkeypatch.setattr(loop, "_record_alerts", mistaken)
    answer = await client.post(f"{HALL_AT}/actions", json={"type": "PAUSE_FLEET", "reason": "x"})

    assert (answer.status_code, code_of(answer)) == (503, "fleet_stopped")
    assert "has stopped" in answer.json()["error"]["message"]


async def test_a_request_waiting_for_an_aborted_tick_gets_an_error(
    client: httpx.AsyncClient, loop: FleetLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def endless(command: Any) -> None:
        if command.operator_actions:
            begun.set()
            await asyncio.Event().wait()

    submitting(loop, monkeypatch, endless)
    action = {"type": "PAUSE_FLEET", "reason": "x"}
    asked = asyncio.create_task(client.post(f"{HALL_AT}/actions", json=action))
    await begun.wait()
    await loop.close()
    answer = await asked

    assert (answer.status_code, code_of(answer)) == (503, "fleet_stopped")
    assert "has stopped" in answer.json()["error"]["message"]


@pytest.mark.req("FLT-OBS-9")
async def test_failing_metrics_end_no_fleet_and_are_logged_once(
    client: httpx.AsyncClient, loop: FleetLoop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object) -> None:
        raise ZeroDivisionError("a figure that cannot be computed")

    for name in ("ticked", "lost", "forget"):
        monkeypatch.setattr(loop._metrics, name, wrong)
    monkeypatch.setattr(loop.watch, "note", wrong)
    await later(loop, 3)
    answer = await client.post(f"{HALL_AT}/actions", json={"type": "PAUSE_FLEET", "reason": "fire drill"})
    await later(loop, 3)

    assert answer.status_code == 200, answer.text
    reply = [one.msg["event"] for one in caplog.records if isinstance(one.msg, dict)]
    assert reply.count("metrics_failed") == 1


def over_in(loop: FleetLoop) -> int:
    """How often the journal has that an operation is over."""
    return sum(b'"type":"operation' in bytes(one.body) for one in loop.host.journal.read() if one.kind == "input")


@pytest.mark.req("FLT-FAIL-16")
@pytest.mark.parametrize("over", [{"done": ["R1"]}, {"failed": {"R1": "no pallet"}}])
@pytest.mark.parametrize(("failures", "status", "written"), [(1, 204, 1), (2, 503, 0)])
async def test_a_completion_is_either_kept_for_the_next_tick_or_refused(
    client: httpx.AsyncClient,
    loop: FleetLoop,
    monkeypatch: pytest.MonkeyPatch,
    over: dict[str, Any],
    failures: int,
    status: int,
    written: int,
) -> None:
    failed: list[object] = []

    async def crowded(command: Any) -> None:
        if command.task_events and len(failed) < failures:
            failed.append(command)
            raise Busy("1000 commands wait already")

    submitting(loop, monkeypatch, crowded)
    answer = await client.post(f"{HALL_AT}/reports", json=over)
    await later(loop, 3)

    assert len(failed) == failures
    assert answer.status_code == status
    assert over_in(loop) == written


async def test_a_completion_refused_by_a_full_queue_does_not_count(
    client: httpx.AsyncClient, loop: FleetLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "MOST_WAITING", 0)
    answer = await client.post(f"{HALL_AT}/reports", json={"done": ["R1"]})
    await later(loop, 3)

    assert (answer.status_code, code_of(answer)) == (503, "fleet_busy")
    assert over_in(loop) == 0


@pytest.mark.parametrize("given", ["application/json", "application/json5"])
async def test_reports_are_accepted_as_json5_with_either_content_type(client: httpx.AsyncClient, given: str) -> None:
    text = "[{robotId: 'R1', nowMs: 0, pose: {x: 0, y: 0, yaw: 0}, v: 0, status: 'OK'}] // by hand"
    answer = await client.post(f"{HALL_AT}/reports", content=text, headers={"content-type": given})
    elsewhere = await client.post(
        f"{HALL_AT}/why", content="{question: null}", headers={"content-type": "application/json5"}
    )

    assert answer.status_code == 204, answer.text
    assert (elsewhere.status_code, code_of(elsewhere)) == (415, "wrong_content_type")


# Reports that are dropped


AHEAD_MS = 1_760_000_000_000


def report(robot_id: str, now_ms: int) -> dict[str, Any]:
    """A truck somewhere, well and standing."""
    pose = {"x": 0, "y": 0, "yaw": 0}
    return {"robotId": robot_id, "nowMs": now_ms, "pose": pose, "v": 0, "status": "OK"}


async def why(client: httpx.AsyncClient, robot_id: str) -> dict[str, Any]:
    reply: dict[str, Any] = (await client.post(f"{HALL_AT}/why", json={"question": {"robot": robot_id}})).json()
    return reply


@pytest.mark.req("FLT-FAIL-17", "FLT-OBS-7")
async def test_a_dropped_report_shows_in_the_view_the_reason_and_the_alert_of_its_truck(
    client: httpx.AsyncClient, loop: FleetLoop
) -> None:
    body = [report("R1", AHEAD_MS), report("R9", 0)]
    assert (await client.post(f"{HALL_AT}/reports", json=body)).status_code == 204
    await until(lambda: {*loop.engine.dropped} == {"R1", "R9"})
    await later(loop, 1)
    moment = (await client.get(f"{HALL_AT}/now")).json()
    known, unknown = await why(client, "R1"), await why(client, "R9")
    await until(lambda: any(one.robot_ids == ["R1"] for one in loop.alerts))

    last = moment["last_dropped"]["R1"]
    assert (last["code"], last["at"], last["ahead"]) == ("REPORT_FROM_THE_FUTURE", AHEAD_MS, AHEAD_MS - last["now"])
    assert moment["last_dropped"]["R9"]["code"] == "UNKNOWN_ROBOT"
    assert known["facts"]["lastDropped"]["aheadMs"] == last["ahead"]
    near = "; its last report was dropped: REPORT_FROM_THE_FUTURE, its time is 4888"
    assert known["sentence"].startswith(f"R1 stops: it has not reported yet{near}")
    assert moment["trucks"][0]["sentence"] == known["sentence"]
    assert unknown["facts"]["lastDropped"]["code"] == "UNKNOWN_ROBOT"
    alert = next(one for one in loop.alerts if one.robot_ids == ["R1"])
    assert alert.message.startswith(f"R1 has never reported; its place stays reserved{near}")


@pytest.mark.req("FLT-FAIL-17")
async def test_an_accepted_report_clears_the_note_of_a_dropped_one(client: httpx.AsyncClient, loop: FleetLoop) -> None:
    await client.post(f"{HALL_AT}/reports", json=report("R1", AHEAD_MS))
    await until(lambda: "R1" in loop.engine.dropped)
    async with asyncio.timeout(120):
        while "R1" in loop.engine.dropped:
            await client.post(f"{HALL_AT}/reports", json=report("R1", loop.engine.now()))
            await asyncio.sleep(0.01)

    assert "lastDropped" not in (await why(client, "R1"))["facts"]


@pytest.mark.req("FLT-OBS-7")
@pytest.mark.parametrize(
    ("at_ms", "said"),
    [
        (1_300, "its last report was dropped: CODE, its time is 300 ms ahead of the fleet"),
        (1_000, "its last report was dropped: CODE"),
        (None, "its last report was dropped: CODE"),
        (7_201_000, "its last report was dropped: CODE, its time is 2 h ahead of the fleet"),
    ],
)
def test_a_dropped_report_names_the_deviation_of_its_time(at_ms: int | None, said: str) -> None:
    assert of_dropped(LastDropped("CODE", 1_000, at_ms)) == said
