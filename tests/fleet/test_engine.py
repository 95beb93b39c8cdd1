"""The events of ticks, and when trucks get no command."""

from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from msgspec.structs import replace

from pendula.fleet import compiled_sites
from pendula.fleet.commands import Commands, Tick
from pendula.fleet.compiled_sites import OtherMap
from pendula.fleet.contracts import Alert, CommandMode, OperatorAction
from pendula.fleet.engine import BadConfig, FleetEngine
from pendula.fleet.events import AlertRaised, FleetEvent, Granted, HoldChanged, OperatorAnswered, Ticked, TickLate
from pendula.fleet.saving import BadState
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.sentences import alert_sentence
from pendula.fleet.simulator.truck import Fault, FaultKind
from pendula.kernel.engine import Outcome
from tests.fleet.test_contract import head_on


def events_of(ticks: int) -> list[tuple[FleetEvent, ...]]:
    config, commands = head_on(ticks)
    engine = FleetEngine.create(config)
    return [engine.apply(command).events for command in commands]


def test_every_tick_event_has_digests_of_locks_and_commands() -> None:
    outcomes = events_of(40)

    first = [events[0] for events in outcomes]
    assert all(isinstance(event, Ticked) for event in first)
    assert [event.tick for event in first if isinstance(event, Ticked)] == list(range(1, 41))
    assert all(a.commands != b.commands for a, b in pairwise(first) if isinstance(a, Ticked) and isinstance(b, Ticked))


def test_a_hold_is_an_event_only_when_it_changes() -> None:
    holds: dict[str, list[HoldChanged]] = {}
    for events in events_of(300):
        for event in events:
            if isinstance(event, HoldChanged):
                holds.setdefault(event.robot_id, []).append(event)

    assert sorted(holds) == ["R1", "R2"]
    assert any(change.blocker_robot_id for sequence in holds.values() for change in sequence)
    assert all(a != b for sequence in holds.values() for a, b in pairwise(sequence))


def test_a_grant_event_has_the_place_where_it_ends() -> None:
    config, commands = head_on(60)
    engine = FleetEngine.create(config)
    ends: dict[str, int] = {}
    for command in commands:
        for event in engine.apply(command).events:
            if isinstance(event, Granted):
                ends[event.robot_id] = event.grant_end_um

    assert ends
    assert ends == {record.robot_id: record.grant_um for record in engine.traffic.records if record.robot_id in ends}


@pytest.mark.req("FLT-FAIL-16")
def test_a_late_tick_sends_no_commands_and_the_next_tick_does() -> None:
    config, commands = head_on(30)
    engine = FleetEngine.create(config)
    for command in commands:
        engine.apply(command)
    now, period = engine.now(), engine.config.traffic.tick_period_ms

    late = engine.apply(Tick(now + 2 * period + 1))
    sent = engine.orders_out.commands
    engine.apply(Tick(now + 3 * period + 1))

    assert not sent
    assert isinstance(late.events[-1], TickLate)
    assert late.events[-1].gap_ms == 2 * period + 1
    assert len(engine.orders_out.commands) == 2


@pytest.mark.req("FLT-FAIL-16")
def test_a_tick_after_two_periods_is_not_late() -> None:
    config, commands = head_on(3)
    engine = FleetEngine.create(config)
    for command in commands:
        engine.apply(command)

    outcome = engine.apply(Tick(engine.now() + 2 * engine.config.traffic.tick_period_ms))

    assert not Counter(type(event) for event in outcome.events)[TickLate]
    assert engine.orders_out.commands


@pytest.mark.req("FLT-FAIL-12")
def test_a_fleet_does_not_start_on_a_map_other_than_its_configured_map(monkeypatch: pytest.MonkeyPatch) -> None:
    config, _ = head_on(3)
    assert isinstance(config, dict)
    monkeypatch.setattr(compiled_sites, "_cache", type(compiled_sites._cache)())

    with pytest.raises(OtherMap) as refused:
        FleetEngine.create({**config, "compiledHash": "sha256:" + "0" * 64})

    assert refused.value.details["found"] == config["compiledHash"]


def test_a_map_that_is_not_stored_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    config, commands = head_on(3)
    before = [FleetEngine.create(config).apply(command).events for command in commands[:1]]
    monkeypatch.setattr(compiled_sites, "_cache", type(compiled_sites._cache)())

    assert [FleetEngine.create(config).apply(command).events for command in commands[:1]] == before


@pytest.mark.parametrize("config", [None, {}, {"source": {}}, {"profiles": [], "unknown": 1}])
def test_an_invalid_configuration_is_refused(config: object) -> None:
    with pytest.raises(BadConfig):
        FleetEngine.create(config)  # type: ignore[arg-type]


def test_an_engine_continues_from_the_state_in_its_configuration() -> None:
    config, commands = head_on(30)
    assert isinstance(config, dict)
    whole = FleetEngine.create(config)
    for command in commands[:20]:
        whole.apply(command)

    part = FleetEngine.create({**config, "state": msgspec.json.decode(whole.state())})

    assert part.state() == whole.state()
    for command in commands[20:]:
        assert part.apply(command).events == whole.apply(command).events


def test_why_names_the_blocker_and_includes_its_reason() -> None:
    run = Run(shipped("head-on"))
    reason = run.engine.why({"robot": "R1"})
    while not reason.because and run.now_ms < 60_000:
        run.step()
        waiting = [run.engine.why({"robot": name}) for name in ("R1", "R2")]
        reason = max(waiting, key=lambda reason: len(reason.because))

    assert reason.because[0].facts["robotId"] == reason.facts["blockerRobotId"]
    assert str(reason.facts["blockerRobotId"]) in reason.sentence


def paused(action_id: str, now_ms: int, reason: str = "floor cleaning") -> OperatorAction:
    return OperatorAction("1.0.0", action_id, now_ms, "anna", "PAUSE_ROBOT", reason, robotId="R1")


def answers_of(events: tuple[FleetEvent, ...]) -> list[tuple[str, bool, str | None]]:
    return [
        (event.answer.actionId, event.answer.accepted, event.answer.code)
        for event in events
        if isinstance(event, OperatorAnswered)
    ]


@pytest.mark.req("FLT-FAIL-11")
def test_a_repeated_action_stops_its_truck_once_and_is_answered_every_time() -> None:
    config, commands = head_on(60)
    engine = FleetEngine.create(config)
    for command in commands[:30]:
        engine.apply(command)
    now = engine.now()

    first = engine.apply(Tick(now, operator_actions=(paused("op-1", now),)))
    again = FleetEngine.from_state(config, engine.state()).apply(Tick(now, operator_actions=(paused("op-1", now),)))
    other = engine.apply(Tick(now, operator_actions=(paused("op-1", now, "lunch"),)))

    assert answers_of(first.events) == answers_of(again.events) == [("op-1", True, None)]
    assert answers_of(other.events) == [("op-1", False, "ACTION_ID_TAKEN")]
    assert [command.mode for command in engine.orders_out.commands if command.robotId == "R1"] == [CommandMode.STOP]
    assert engine.why({"robot": "R1"}).code == "STOP_OPERATOR"


def test_an_unknown_task_cannot_be_cancelled() -> None:
    config, _ = head_on(1)
    engine = FleetEngine.create(config)
    action = OperatorAction("1.0.0", "op-2", 0, "anna", "CANCEL_TASK", "order cancelled", taskId="T-none")

    answers = answers_of(engine.apply(Tick(0, operator_actions=(action,))).events)

    assert [(name, accepted) for name, accepted, _ in answers] == [("op-2", False)]


@pytest.mark.req("FLT-FAIL-14")
def test_after_a_restart_no_grant_grows_before_every_truck_has_reported() -> None:
    config, commands = head_on(150)
    engine = FleetEngine.create(config)
    for command in commands[:30]:
        engine.apply(command)
    before = [record.grant_um for record in engine.traffic.records]
    now = engine.now()

    engine.apply(Tick(now, restarted=True))
    engine.apply(Tick(now, reports=tuple(report for report in commands[30].reports if report.robot_id == "R1")))
    alone = [record.grant_um for record in engine.traffic.records]
    for command in commands[30:]:
        engine.apply(command)

    assert alone == before
    assert [record.grant_um for record in engine.traffic.records] != before


class AlertCollector:
    """An applier that collects alerts."""

    def __init__(self, engine: FleetEngine) -> None:
        self._engine = engine
        self.alerts: list[Alert] = []

    def apply(self, command: Commands) -> Outcome[FleetEvent]:
        outcome = self._engine.apply(command)
        self.alerts += [event.alert for event in outcome.events if isinstance(event, AlertRaised)]
        return outcome


def too_late_at_its_pick() -> tuple[Run, AlertCollector]:
    """A healthy truck that reports and has not loaded in time."""
    scenario = shipped("task-held")
    tasks = tuple(replace(task, pick_ms=19_900) for task in scenario.tasks)
    slow = replace(scenario.world, operation_permille=900)
    limits = replace(scenario.dispatch, operation_timeout_ms=20_000)
    run = Run(replace(scenario, actions=(), tasks=tasks, world=slow, dispatch=limits, seed=2))
    applier = AlertCollector(run.engine)
    run.applier = applier
    while not applier.alerts:
        run.step()
        assert run.now_ms < 120_000
    run.run(run.now_ms + 2_000)
    return run, applier


@pytest.mark.req("FLT-OBS-7", "FLT-TASK-12")
def test_a_loading_timeout_is_named_for_the_truck_and_for_its_task() -> None:
    engine = too_late_at_its_pick()[0].engine

    assert engine.why({"robot": "R1"}).code == "STOP_ROBOT_FAULT"
    assert engine.why({"robot": "R1"}).sentence == (
        "R1 stops: it did not load within 20000 ms; it continues when its fault is cleared."
    )
    assert engine.why({"task": "T1"}).sentence == (
        "Task 'T1' is held: R1 did not load within 20000 ms; it continues when the fault of R1 is cleared."
    )


@pytest.mark.req("FLT-TASK-12")
def test_an_operation_timeout_is_one_alert_with_its_details() -> None:
    alerts = too_late_at_its_pick()[1].alerts

    assert [(alert.code, alert.severity, alert.robotId) for alert in alerts] == [("ROBOT_FAULT", "ERROR", "R1")]
    assert alert_sentence(alerts[0].code, "R1", alerts[0].details) == "R1 did not load within 20000 ms"
    assert alerts[0].details["cutOff"] == []


def test_a_fault_reported_by_the_truck_is_named_as_such() -> None:
    run = Run(shipped("task-held"))
    run.run(5_000)
    run.world.start_fault(0, Fault(FaultKind.FAULT, 5_000))
    run.run(7_000)

    assert run.engine.why({"robot": "R1"}).sentence == "R1 stops: it reports a fault."


@pytest.mark.req("FLT-FAIL-12")
def test_a_state_of_another_form_is_refused() -> None:
    config, _ = head_on(3)
    state = FleetEngine.create(config).state()
    other = state.replace(b'"form":1,"traffic"', b'"form":9,"traffic"')

    assert other != state
    with pytest.raises(BadState, match="has form 9, this version reads form 1"):
        FleetEngine.from_state(config, other)
