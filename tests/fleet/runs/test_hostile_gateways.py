"""A gateway is third-party code: whatever it raises or returns, no truck moves because of it and nothing is lost."""

import threading
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from pendula.fleet.contracts import AnchorPlace, CommandMode, OperatorAction, RobotState, RollingTargetCommand
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import AlertRaised, ReportDropped, TickFailed
from pendula.fleet.gateway import GatewayFailed, Received, read_gateway
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.runs import Manager, Recording, reading, recording_disk
from pendula.fleet.runs.recording import MOST_TICK_BYTES
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator.truck import Fault, FaultKind
from pendula.fleet.tasks import Operation, OperationDone
from pendula.fleet.tasks.model import GoodsReported, TaskOrder, TaskSubmitted
from pendula.fleet.tick import traffic
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import WorldBroken, WrongUsage
from pendula.kernel.replay import replay
from tests.campaigns import campaign_after

PERIOD_MS = 100
RAISED = [ValueError("no"), OSError(5, "radio"), RecursionError(), MemoryError(), AssertionError(), TimeoutError()]
ENDS: list[type[BaseException]] = [KeyboardInterrupt, SystemExit, GeneratorExit]
DOORS = ("poll", "announce", "operate", "send")


class Gateway:
    """The simulated hall behind a door that may be rigged: `rigged[name]` is called before the door is passed."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.rigged: dict[str, Callable[[], object]] = {}
        self.told: list[RollingTargetCommand] = []
        self.operations: list[Operation] = []
        self.handed: Callable[[Received], Any] = lambda came: came

    def poll(self) -> Any:
        self._pass("poll")
        return self.handed(self.run.gateway.poll())

    def announce(self, routes: Sequence[Any]) -> None:
        self._pass("announce")
        self.run.gateway.announce(routes)

    def operate(self, operations: Sequence[Operation]) -> None:
        self._pass("operate")
        self.operations += operations
        self.run.gateway.operate(operations)

    def send(self, commands: Sequence[RollingTargetCommand]) -> None:
        self._pass("send")
        self.told = list(commands)
        self.run.gateway.send(commands)

    def _pass(self, name: str) -> None:
        self.rigged.get(name, lambda: None)()


class Live:
    """A manager of two trucks that cross, in virtual time."""

    def __init__(self, directory: Path, name: str = "crossing") -> None:
        self.run = Run(shipped(name))
        self.gateway = Gateway(self.run)
        self.directory = directory
        engine = FleetEngine.create(self.run.config)
        recording = Recording.begin(engine, self.run.config, recording_disk(directory), background=False)
        self.manager = Manager(recording, self.gateway, lambda: self.run.world.now_ms)
        self.events: list[object] = []

    def tick(self, count: int = 1) -> Outcome[Any] | None:
        outcome = None
        for _ in range(count):
            try:
                outcome = self.manager.tick(self.run._task_events(self.run.world.now_ms, ()))
                self.events += () if outcome is None else outcome.events
            finally:
                self.run.world.advance(self.run.world.now_ms + PERIOD_MS)
        return outcome

    def restart(self) -> None:
        self.manager.recording.close()
        recording = Recording.resume(recording_disk(self.directory), background=False)
        self.manager = Manager(recording, self.gateway, lambda: self.run.world.now_ms)

    def replays(self) -> bool:
        self.manager.recording.close()
        with reading(self.directory) as journal:
            return replay(journal, lambda _: FleetEngine).first_difference is None

    def alerts(self) -> list[str]:
        return [one.alert.code for one in self.events if isinstance(one, AlertRaised)]

    def speeds(self) -> list[int]:
        return [one.v_um_s for one in self.run.world.trucks]


def raising(error: BaseException) -> Callable[[], None]:
    def it() -> None:
        raise error

    return it


@pytest.mark.req("FLT-RTP-11", "FLT-FAIL-16")
@pytest.mark.parametrize("door", campaign_after(2, DOORS))
def test_a_gateway_that_raises_costs_no_tick_and_is_reported_once(tmp_path: Path, door: str) -> None:
    live = Live(tmp_path / "j")
    live.tick(100)
    live.gateway.rigged[door] = raising(OSError(5, "radio"))
    for error in (*RAISED, *RAISED):
        live.gateway.rigged[door] = raising(error)
        assert live.tick() is not None
    assert live.manager.trouble is not None
    live.gateway.rigged.clear()
    live.tick(150)

    assert live.manager.trouble is None
    assert live.alerts().count("GATEWAY_FAILED") == 1
    assert any(live.speeds())
    assert live.replays()


@pytest.mark.req("FLT-RTP-11")
@pytest.mark.parametrize(
    ("door", "end"),
    [
        *campaign_after(2, [pytest.param(door, one) for one in ENDS for door in ("poll", "send")]),
        *(pytest.param(door, one, marks=pytest.mark.long) for door in ("announce", "operate") for one in ENDS),
    ],
)
def test_a_gateway_that_exits_the_program_leaves_a_journal_that_resumes(
    tmp_path: Path, door: str, end: type[BaseException]
) -> None:
    live = Live(tmp_path / "j")
    live.tick(100)
    live.gateway.rigged[door] = raising(end())
    with pytest.raises(end):
        live.tick()
    live.gateway.rigged.clear()
    # A program that catches it can continue with this manager, another one with the next.
    live.tick(5)
    live.restart()
    live.tick(100)

    assert any(live.speeds())
    assert live.replays()


@pytest.mark.req("FLT-OBS-3")
def test_an_interrupt_during_a_tick_leaves_a_journal_that_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(tmp_path / "j")
    live.tick(100)
    sent = live.gateway.told
    with monkeypatch.context() as patch:
        patch.setattr(FleetEngine, "_decide", lambda *_: raising(KeyboardInterrupt())())
        with pytest.raises(KeyboardInterrupt):
            live.tick()
    # Half a tick is in memory: nothing more is decided on it, and nobody is told anything.
    with pytest.raises(WorldBroken, match="recover from the journal"):
        live.tick()
    assert live.gateway.told == sent
    live.restart()
    live.tick(100)

    assert any(live.speeds())
    assert live.replays()


@pytest.mark.req("FLT-FAIL-16")
@pytest.mark.parametrize("door", DOORS)
def test_a_gateway_that_calls_the_manager_is_refused_without_harm(tmp_path: Path, door: str) -> None:
    live = Live(tmp_path / "j")
    live.tick(20)
    refused: list[BaseException] = []

    def again() -> None:
        try:
            live.manager.tick()
        except WrongUsage as error:
            refused.append(error)
            raise

    live.gateway.rigged[door] = again
    live.tick(3)
    live.gateway.rigged.clear()
    live.tick(5)

    assert len(refused) == 3
    assert live.manager.trouble is None
    assert live.replays()


@pytest.mark.req("FLT-FAIL-16")
def test_a_second_thread_is_refused_while_a_tick_runs(tmp_path: Path) -> None:
    live = Live(tmp_path / "j")
    entered, leave = threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        leave.wait(240)

    live.gateway.rigged["poll"] = hang
    first = threading.Thread(target=live.tick)
    first.start()
    entered.wait(240)
    try:
        with pytest.raises(WrongUsage, match="a tick is running"):
            live.manager.tick()
    finally:
        leave.set()
        first.join()

    assert live.replays()


@pytest.mark.req("FLT-FAIL-16")
def test_a_hanging_gateway_makes_its_tick_late_and_no_outdated_command_is_sent(tmp_path: Path) -> None:
    live = Live(tmp_path / "j")
    live.tick(100)
    seq = live.gateway.told[0].seq
    live.gateway.rigged["poll"] = lambda: live.run.world.advance(live.run.world.now_ms + 3_000)
    live.tick()
    live.gateway.rigged.clear()

    assert live.gateway.told[0].seq == seq
    assert live.speeds() == [0] * len(live.speeds())
    # Nothing is granted on reports that are three seconds old; then all trucks continue.
    live.tick()
    assert {one.mode for one in live.gateway.told} <= {CommandMode.STOP} or live.gateway.told[0].seq == seq
    live.tick(150)
    assert any(live.speeds())
    assert live.replays()


def spoiled(report: RobotState, **members: Any) -> RobotState:
    return structs.replace(report, **members)


def misplaced(report: RobotState, **members: Any) -> RobotState:
    return spoiled(report, pose=structs.replace(report.pose, **members))


class Trap:
    """An object that raises on every access."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


GARBAGE: list[tuple[str, Callable[[RobotState], Any]]] = [
    ("NaN", lambda one: misplaced(one, y=float("nan"))),
    ("a Decimal that is none", lambda one: misplaced(one, x=Decimal("sNaN"))),
    ("infinity", lambda one: spoiled(one, v=Decimal("Infinity"))),
    ("True", lambda one: misplaced(one, yaw=True)),
    ("text", lambda one: spoiled(one, nowMs="1000")),
    ("half a millisecond", lambda one: spoiled(one, nowMs=1.5)),
    ("endless", lambda one: misplaced(one, x=10**400)),
    ("a gigabyte of digits", lambda one: misplaced(one, x=Decimal("1e999999999"))),
    ("far", lambda one: misplaced(one, x=10**6)),
    ("fast", lambda one: spoiled(one, v=1000)),
    ("turned for ever", lambda one: misplaced(one, yaw=1e300)),
    ("another version", lambda one: spoiled(one, contractVersion="2.0.0")),
    ("an unknown state", lambda one: spoiled(one, status="DANCING")),
    ("half a character", lambda one: spoiled(one, status="\ud800")),
    ("a number for load", lambda one: spoiled(one, loadOnBoard=1)),
    ("nothing", lambda _: None),
    ("an exception", lambda _: ValueError("x")),
    ("a trap", lambda _: Trap()),
    ("a name of half a character", lambda one: spoiled(one, robotId="R\ud800")),
    ("a name that is none", lambda one: spoiled(one, robotId=7)),
    ("a stranger", lambda one: spoiled(one, robotId="R\u202e9\x1b[31m")),
]


# The rest is tried with `--long`: what is made of it is the same.
SHOWN = ("NaN", "endless", "an unknown state", "a trap", "a stranger")


@pytest.mark.req("FLT-FAIL-1", "FLT-FAIL-16")
@pytest.mark.parametrize(
    "done",
    [OperationDone("R1", "x" * 20_000_000), OperationDone("R" * 20_000_000), OperationDone("\ud800"), "R" * 20_000_000],
    ids=["operation", "truck", "surrogate", "name"],
)
def test_a_completion_of_an_unknown_operation_costs_no_tick(tmp_path: Path, done: str | OperationDone) -> None:
    live = Live(tmp_path / "j")
    live.tick(10)
    live.gateway.handed = lambda came: Received(came.reports, (done,))
    told = [live.tick(), live.tick()]

    assert None not in told
    assert read_gateway(Received((), (done,))).done == ()
    assert live.replays()


@pytest.mark.parametrize("again", campaign_after(1, ["restart", "announce"]))
def test_a_carried_truck_does_not_resume_its_old_route(tmp_path: Path, again: str) -> None:
    live = Live(tmp_path / "j")
    live.tick(60)
    live.run.world.start_fault(1, Fault(FaultKind.CARRIED, 1_000, 900_000, 2_000_000))
    live.tick(3)
    truck = live.run.world.trucks[1]
    there = truck.edge, truck.on_um
    if again == "restart":
        live.restart()
    else:
        live.gateway.rigged["announce"] = raising(ZeroDivisionError())
        live.tick()
        live.gateway.rigged.clear()
    live.tick(100)

    assert (truck.edge, truck.on_um, truck.route) == (*there, None)
    assert live.replays()


@pytest.mark.req("FLT-FAIL-17", "FLT-FAIL-1")
@pytest.mark.parametrize(
    "spoil",
    [pytest.param(one, id=name, marks=() if name in SHOWN else pytest.mark.long) for name, one in GARBAGE],
)
def test_garbage_of_one_truck_stops_that_truck_alone_and_replays(
    tmp_path: Path, spoil: Callable[[RobotState], Any]
) -> None:
    live = Live(tmp_path / "j")
    live.tick(100)

    def handed(came: Received) -> Received:
        first = came.reports[0].robotId
        return Received(tuple(spoil(one) if one.robotId == first else one for one in came.reports), came.done)

    live.gateway.handed = handed
    live.events = []
    live.tick(40)
    first, *others = live.manager.recording.engine.traffic.records

    assert first.stop_code in ("STOP_STALE_TELEMETRY", "STOP_OFFLINE")
    assert {one.stop_code for one in others} == {None}
    assert live.manager.trouble is None
    assert any(isinstance(one, ReportDropped) for one in live.events)
    live.gateway.handed = lambda came: came
    live.restart()
    live.tick(60)
    assert live.manager.recording.engine.traffic.records[0].stop_code is None
    assert live.replays()


@pytest.mark.req("FLT-FAIL-1")
@pytest.mark.parametrize(
    "handed",
    campaign_after(
        3,
        [
            lambda _: None,
            lambda _: 7,
            lambda came: came.reports,
            lambda came: Received(None, came.done),  # type: ignore[arg-type]
            lambda came: Received(came.reports, None),  # type: ignore[arg-type]
            lambda came: Received(tuple(came.reports) * 10_000, came.done),
            lambda came: (one for one in came.reports),
        ],
    ),
)
def test_an_invalid_result_of_a_gateway_counts_as_no_report(tmp_path: Path, handed: Callable[[Received], Any]) -> None:
    live = Live(tmp_path / "j")
    live.tick(100)
    live.gateway.handed = handed
    live.tick(25)
    records = live.manager.recording.engine.traffic.records

    assert {one.stop_code for one in records} == {"STOP_OFFLINE"}
    assert live.alerts().count("GATEWAY_FAILED") == 1
    assert live.replays()


def test_a_wrong_type_from_a_gateway_is_refused_with_the_right_type() -> None:
    with pytest.raises(GatewayFailed, match=r"poll\(\) must return a Received, not NoneType"):
        read_gateway(None)


def _acknowledged(change: Callable[[RobotState], Iterable[RobotState]]) -> Callable[[Received], Received]:
    return lambda came: Received(tuple(new for one in came.reports for new in change(one)), came.done)


@pytest.mark.req("FLT-RTP-8", "FLT-RES-13")
@pytest.mark.parametrize(
    "change",
    campaign_after(
        2,
        [
            lambda one: (one, one, one),
            lambda one: (spoiled(one, nowMs=one.nowMs - 1, lastAckSeq=max(0, one.lastAckSeq - 50)), one),
            lambda one: (one, spoiled(one, nowMs=one.nowMs - 1, lastAckSeq=0)),
            lambda one: (spoiled(one, lastAckSeq=10**9),),
        ],
    ),
    ids=["again", "older beside it", "older after it", "never sent"],
)
def test_repeated_reordered_or_unknown_acknowledgements_release_nothing_early(
    tmp_path: Path, change: Callable[[RobotState], Iterable[RobotState]]
) -> None:
    live = Live(tmp_path / "j")
    live.gateway.handed = _acknowledged(change)
    for _ in range(300):
        live.tick()
        for one in live.manager.recording.engine.traffic.records:
            assert one.ack_seq <= one.seq
    assert live.manager.recording.engine.broken() == []
    assert any(live.speeds())
    assert live.replays()


@pytest.mark.req("FLT-FAIL-18", "FLT-FAIL-1")
def test_of_two_contradicting_reports_of_one_time_the_safer_one_counts(tmp_path: Path) -> None:
    live = Live(tmp_path / "j")
    live.gateway.handed = _acknowledged(lambda one: (one, spoiled(one, lastAckSeq=0)))
    live.tick(60)
    records = live.manager.recording.engine.traffic.records

    assert [(one.ack_seq, one.stop_code) for one in records] == [(0, "STOP_NO_COMMS")] * 2
    assert not any(live.speeds())


@pytest.mark.req("FLT-RTP-11")
def test_an_unsent_operation_is_sent_when_the_gateway_works_again(tmp_path: Path) -> None:
    live = Live(tmp_path / "j", "hall")
    lost: list[int] = []

    def fail() -> None:
        lost.append(live.run.world.now_ms)
        raise OSError(5, "radio")

    def begins() -> bool:
        return bool(live.manager.recording.engine.orders_out.operations)

    live.gateway.rigged["operate"] = lambda: fail() if begins() or (lost and len(lost) < 30) else None
    for _ in range(900):
        live.tick()
        if len(lost) >= 30:
            break
    live.gateway.rigged.clear()
    live.tick(2)

    assert len(lost) >= 30
    assert {one.robot_id for one in live.manager.recording.engine.dispatch.operations()} <= {
        one.robot_id for one in live.gateway.operations
    }
    assert live.gateway.operations
    assert live.replays()


@pytest.mark.campaign
@pytest.mark.req("FLT-FAIL-16", "FLT-TASK-7")
def test_a_completion_before_a_failed_tick_is_applied_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(tmp_path / "j", "hall")
    done: list[str] = []

    def handed(came: Received) -> Received:
        done.extend(one.robot_id for one in came.over)
        return came

    live.gateway.handed = handed
    decide = FleetEngine._decide

    def failing(engine: FleetEngine, command: Any, routes: Any) -> Any:
        if len(done) == 1 and not failed:
            failed.append(engine.now())
            raise ZeroDivisionError
        return decide(engine, command, routes)

    failed: list[int] = []
    monkeypatch.setattr(FleetEngine, "_decide", failing)
    for _ in range(900):
        live.tick()
        if failed:
            break
    live.tick(2)
    engine = live.manager.recording.engine
    driver = next(one for one in engine.dispatch.drivers if one.robot_id == done[0])

    assert failed
    # It goes on with what it has loaded.
    assert driver.robot_id not in {one.robot_id for one in engine.dispatch.operations()}
    assert driver.task is not None
    assert live.replays()


@pytest.mark.req("FLT-FAIL-16")
def test_a_clock_set_ahead_and_back_sends_nothing_in_between(tmp_path: Path) -> None:
    live = Live(tmp_path / "j")
    live.tick(100)
    jump = 0
    live.manager._now_ms = lambda: live.run.world.now_ms + jump
    jump = 86_400_000
    live.tick()
    jump = 0
    seq = live.gateway.told[0].seq
    live.tick(30)

    assert live.gateway.told[0].seq == seq
    assert live.speeds() == [0] * len(live.speeds())
    assert live.replays()


def an_action(**members: Any) -> OperatorAction:
    told = {"actionId": "a", "ts": 0, "operatorId": "o", "type": "PAUSE_ROBOT", "reason": "r", "robotId": "R1"}
    return OperatorAction(**{"contractVersion": CONTRACT_VERSION, "role": "operator", **told, **members})


def an_order(**members: Any) -> TaskSubmitted:
    told = {"task_id": "t", "pick_node_id": "A", "drop_node_id": "B", "at_ms": 0}
    return TaskSubmitted(TaskOrder(**{**told, **members}))


NO_INPUTS: list[tuple[Any, Any]] = [
    (an_order(task_id=5), None),
    (an_order(robot_ids="R1"), None),
    (an_order(priority=Decimal("1.5")), None),
    (GoodsReported("A", None), None),  # type: ignore[arg-type]
    (OperationDone(None), None),  # type: ignore[arg-type]
    ({"type": "GOODS"}, None),
    (None, an_action(ts="1")),
    (None, an_action(actionId=None)),
    (None, an_action(robotId=["R1"])),
    (None, an_action(reason=object())),
    (None, {"type": "PAUSE_FLEET"}),
    *(
        (None, an_action(anchor=AnchorPlace("A->B", Decimal(one))))
        for one in ("NaN", "Infinity", "1e30", "1e9999", "-1")
    ),
    (None, an_action(reason="\ud800")),
    (None, an_action(reason="y" * 2001)),
    (an_order(task_id="t" * MOST_TICK_BYTES), None),
    (None, an_action(type="FORCE_RELEASE", resources=("r" * 1000,) * 17)),
]


@pytest.mark.req("FLT-FAIL-16", "FLT-TASK-7")
def test_a_completion_is_applied_after_any_number_of_rejected_ticks(tmp_path: Path) -> None:
    live = Live(tmp_path / "j", "hall")
    done: list[str] = []

    for _ in range(900):
        came = live.run.gateway.poll()
        done.extend(one if isinstance(one, str) else one.robot_id for one in came.done)
        live.gateway.handed = lambda _, came=came: came  # type: ignore[misc]
        if done:
            break
        live.tick()
    for _ in range(3):
        with pytest.raises(WrongUsage):
            live.manager.tick(["no event"])  # type: ignore[list-item]
        live.gateway.handed = lambda came: came
        live.run.world.advance(live.run.world.now_ms + PERIOD_MS)
    live.tick(2)
    engine = live.manager.recording.engine

    assert done
    # It goes on with what it has loaded.
    assert done[0] not in {one.robot_id for one in engine.dispatch.operations()}
    assert live.replays()


@pytest.mark.req("FLT-RTP-11")
def test_a_gateway_error_in_a_rejected_tick_is_reported_in_the_next(tmp_path: Path) -> None:
    live = Live(tmp_path / "j")
    live.tick(3)
    live.gateway.rigged["poll"] = raising(OSError(5, "radio"))
    with pytest.raises(WrongUsage):
        live.manager.tick(["no event"])  # type: ignore[list-item]
    live.tick(3)

    assert live.alerts().count("GATEWAY_FAILED") == 1
    assert live.replays()


@pytest.mark.req("FLT-FAIL-16")
@pytest.mark.parametrize("name", ["R" * 70_000_000, "R" * 513, "\N{GRINNING FACE}" * 129])
def test_an_invalid_truck_name_is_dropped_and_other_reports_are_read(tmp_path: Path, name: str) -> None:
    live = Live(tmp_path / "j")
    live.tick(20)
    live.gateway.handed = lambda came: Received(
        (*came.reports, *(structs.replace(one, robotId=name) for one in came.reports)), (name,)
    )
    outcome = live.tick(3)
    live.gateway.handed = lambda came: came

    assert outcome is not None
    assert {(one.robot_id, one.code) for one in live.events if isinstance(one, ReportDropped)} == {
        ("", "UNKNOWN_ROBOT")
    }
    assert live.manager.trouble is None
    assert live.replays()


@pytest.mark.req("FLT-OBS-4")
@pytest.mark.parametrize(("event", "action"), NO_INPUTS)
def test_input_that_a_journal_cannot_restore_is_refused(tmp_path: Path, event: Any, action: Any) -> None:
    live = Live(tmp_path / "j")
    live.tick(3)
    with pytest.raises(WrongUsage, match="The tick cannot be encoded"):
        live.manager.tick([one for one in [event] if one is not None], [one for one in [action] if one is not None])
    live.tick(3)
    live.restart()
    live.tick(3)

    assert live.replays()


@pytest.mark.req("FLT-OBS-4")
@pytest.mark.parametrize("now", [-5, True, None, "400", Decimal(400), 400.5, float("nan"), 1 << 54])
def test_a_clock_without_a_valid_time_is_refused_and_the_journal_continues(tmp_path: Path, now: Any) -> None:
    live = Live(tmp_path / "j")
    live.tick(3)
    manager, live.manager = live.manager, Manager(live.manager.recording, live.gateway, lambda: now)
    with pytest.raises(WrongUsage, match="The tick cannot be encoded"):
        live.tick()
    live.manager = manager
    live.tick(3)
    live.restart()
    live.tick(3)

    assert live.replays()


@pytest.mark.req("FLT-FAIL-14")
def test_a_failed_first_tick_does_not_consume_the_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live(tmp_path / "j")
    live.tick(100)
    live.restart()
    with monkeypatch.context() as patch:
        patch.setattr(traffic, "PHASES", (lambda _: 1 / 0,))
        failed = live.tick()
    live.tick(2)
    live.manager.recording.close()
    with reading(live.directory) as journal:
        told = [b'"restarted":true' in bytes(one.body) for one in journal.read() if one.kind == "input"]

    assert failed is not None
    assert any(isinstance(one, TickFailed) for one in failed.events)
    assert told[100:] == [True, True, False]
