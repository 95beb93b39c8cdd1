"""Places that operators close and open: trucks detour or wait, trucks inside leave, and all tasks are done."""

import pytest
from msgspec.structs import replace

from pendula.documents import Format, read_bytes
from pendula.fleet.commands import Tick
from pendula.fleet.contracts import OperatorAction, TaskState
from pendula.fleet.engine import FleetEngine
from pendula.fleet.gateway import read_gateway
from pendula.fleet.scenarios import Run, Scenario, shipped
from pendula.fleet.scenarios.reading import read_scenario
from pendula.fleet.scenarios.running import ScenarioRefused
from pendula.fleet.tick import phases
from pendula.fleet.tick.orders import shut_of
from tests.campaigns import campaign_after
from tests.fleet.scenarios.random_closings import changed, closed_and_opened
from tests.fleet.scenarios.random_runs import drawn

LANE, STATION = "EDGE_GROUP:A<->B", "NODE:E"
# From W to the stations E and P two ways lead, over A and B or over C and D.
TWO_WAYS = """
contractVersion: 1.0.0
name: two-ways
map:
  contractVersion: 1.0.0
  mapId: two-ways
  nodes:
    - {id: W, x: 0, y: 0, kind: ParkPoint}
    - {id: V, x: 15, y: 0}
    - {id: Q, x: 15, y: -15}
    - {id: A, x: 40, y: 0}
    - {id: B, x: 70, y: 0}
    - {id: E, x: 85, y: 0, kind: ActionPoint}
    - {id: C, x: 40, y: 15}
    - {id: D, x: 70, y: 15}
    - {id: P, x: 85, y: 15, kind: ActionPoint}
  edges:
    - {id: "1", start: W, end: V, props: {direction: both}}
    - {id: "2", start: V, end: Q, props: {direction: both}}
    - {id: "3", start: V, end: A, props: {direction: both}}
    - {id: "4", start: A, end: B, props: {direction: both}}
    - {id: "5", start: B, end: E, props: {direction: both}}
    - {id: "6", start: A, end: C, props: {direction: both}}
    - {id: "7", start: C, end: D, props: {direction: both}}
    - {id: "8", start: D, end: B, props: {direction: both}}
    - {id: "9", start: D, end: P, props: {direction: both}}
robots:
  - {robotId: R1, startNodeId: W, parkNodeId: W}
tasks:
  - {taskId: T1, atMs: 0, pickNodeId: E, dropNodeId: P, pickDurationMs: 2000, dropDurationMs: 1000}
events: []
durationMs: 600000
"""


def scenario(*events: str) -> Scenario:
    text = (
        TWO_WAYS.replace("events: []", "events:" + "".join(f"\n  - {event}" for event in events))
        if events
        else TWO_WAYS
    )
    return read_scenario(read_bytes(text.encode(), form=Format.YAML), None)


def two_ways(until_ms: int = 5_000) -> Run:
    run = Run(scenario())
    run.run(until_ms)
    return run


def edges_ahead(run: Run) -> list[str]:
    track = run.traffic.records[0].track
    assert track is not None
    return [run.site.network.edges[segment.edge].key for segment in track.plan.whole]


def holds(run: Run, name: str) -> bool:
    return not shut_of(run.site, name).resources.isdisjoint(run.traffic.records[0].keeps)


@pytest.mark.campaign
@pytest.mark.req("FLT-PLAN-8", "FLT-PLAN-10")
def test_a_truck_goes_round_a_lane_that_is_closed_before_it() -> None:
    run = two_ways(2_000)
    before = edges_ahead(run)
    assert not holds(run, LANE)
    assert changed(run, "CLOSE_RESOURCE", LANE).accepted
    passed = False
    while not run.is_over and run.now_ms < 300_000:
        run.step()
        passed = passed or holds(run, LANE)

    assert "A->B" in before
    assert (passed, run.dispatch.book.done) == (False, 1)
    assert run.result().form["violations"] == []


@pytest.mark.req("FLT-PLAN-8", "FLT-RES-13")
def test_a_truck_inside_a_closed_lane_leaves_it_and_does_not_come_back() -> None:
    run = two_ways()
    while not holds(run, LANE):
        run.step()
    assert changed(run, "CLOSE_RESOURCE", LANE).accepted
    while holds(run, LANE) and run.now_ms < 200_000:
        run.step()
    left_ms, again = run.now_ms, False
    while not run.is_over and run.now_ms < 400_000:
        run.step()
        again = again or holds(run, LANE)

    assert left_ms < 200_000
    assert (again, run.dispatch.book.done) == (False, 1)


@pytest.mark.req("FLT-PLAN-8", "FLT-TASK-13", "FLT-OBS-7")
def test_a_task_of_a_closed_station_waits_with_a_reason_until_it_is_opened() -> None:
    run = two_ways(0)
    assert changed(run, "CLOSE_RESOURCE", STATION).accepted
    run.run(60_000)
    waits = run.engine.why({"task": "T1"})
    assert changed(run, "OPEN_RESOURCE", STATION).accepted
    run.run()

    assert waits.code == "WAY_CLOSED"
    assert "NODE:E is closed by anna (wet floor)" in waits.sentence
    assert (run.is_over, run.dispatch.book.done) == (True, 1)


@pytest.mark.campaign
@pytest.mark.req("FLT-PLAN-8", "FLT-TASK-13")
def test_a_truck_on_its_way_to_a_station_that_is_closed_goes_home_and_its_task_waits() -> None:
    run = two_ways(15_000)
    assert changed(run, "CLOSE_RESOURCE", STATION).accepted
    run.run(120_000)
    state, at_rest = run.dispatch.book.open["T1"].state, run.dispatch.drivers[0].at_rest
    assert changed(run, "OPEN_RESOURCE", STATION).accepted
    run.run()

    assert (state, at_rest) == (TaskState.READY, True)
    assert run.dispatch.book.done == 1


def loaded(run: Run) -> Run:
    while not run.dispatch.book.open["T1"].loaded:
        run.step()
    return run


@pytest.mark.req("FLT-PLAN-8", "FLT-OBS-7", "FLT-OBS-8")
def test_a_loaded_truck_waits_before_its_closed_drop_and_why_says_what_is_closed() -> None:
    run = loaded(two_ways())
    assert changed(run, "CLOSE_RESOURCE", "NODE:P").accepted
    run.run(run.now_ms + 60_000)
    answer = run.engine.why({"robot": "R1"})
    about = run.engine.why({"task": "T1"})
    snapshot = run.traffic.snapshot()
    assert changed(run, "OPEN_RESOURCE", "NODE:P").accepted
    run.run()

    assert (answer.code, answer.facts["requestedResourceId"]) == ("WAIT_CLOSED", "NODE:P")
    assert answer.sentence.startswith("R1 waits: the node P is closed, by anna (wet floor); for ")
    assert [reason.code for reason in about.because] == ["WAIT_CLOSED"]
    assert isinstance(snapshot.closings, tuple)
    assert [(closing.resourceId, closing.operatorId, closing.reason) for closing in snapshot.closings] == [
        ("NODE:P", "anna", "wet floor")
    ]
    assert run.dispatch.book.done == 1


@pytest.mark.req("FLT-PLAN-8", "FLT-LIVE-4", "FLT-LIVE-9")
def test_a_closing_that_leaves_a_truck_no_way_to_rest_is_refused_unless_it_is_forced() -> None:
    run = loaded(two_ways())
    refused = changed(run, "CLOSE_RESOURCE", "NODE:A")
    closed = run.traffic.closings
    forced = changed(run, "CLOSE_RESOURCE", "NODE:A", force=True)
    while run.why("R1").code != "WAIT_CLOSED" and run.now_ms < 400_000:
        run.step()
    waits, sound = run.why("R1").code, run.traffic.broken()
    assert changed(run, "OPEN_RESOURCE", "NODE:A").accepted
    run.run()

    assert (refused.accepted, refused.code, closed) == (False, "CUTS_OFF", ())
    assert refused.message.startswith("R1 could no longer reach a rest node")
    assert forced.accepted
    assert (waits, sound) == ("WAIT_CLOSED", [])
    assert (run.is_over, run.dispatch.book.done) == (True, 1)


@pytest.mark.req("FLT-PLAN-8", "FLT-LIVE-4")
def test_a_closing_that_was_refused_changes_nothing() -> None:
    untouched, refusing = loaded(two_ways()), loaded(two_ways())
    refused = changed(refusing, "CLOSE_RESOURCE", "NODE:A")
    untouched.step()

    assert not refused.accepted
    assert refusing.traffic.state() == untouched.traffic.state()


@pytest.mark.req("FLT-PLAN-8", "FLT-FAIL-11")
def test_closing_a_closed_or_opening_an_open_place_changes_nothing() -> None:
    run = two_ways()
    opened = changed(run, "OPEN_RESOURCE", LANE)
    first = changed(run, "CLOSE_RESOURCE", LANE, "EDGE:C->D", force=True)
    before = run.traffic.closings
    again = changed(run, "CLOSE_RESOURCE", LANE)

    assert (opened.accepted, first.accepted, again.accepted) == (True, True, True)
    assert run.traffic.closings == before
    assert [closing.resource for closing in before] == ["EDGE:C->D", LANE]


@pytest.mark.req("FLT-PLAN-8", "FLT-FAIL-11")
@pytest.mark.parametrize(
    ("name", "meant"),
    [("EDGE:A-B", "EDGE:A->B"), ("A<->B", "EDGE_GROUP:A<->B"), ("NODE:e", "NODE:E"), ("CS:SPUR-E", "NODE:E")],
)
def test_an_unknown_resource_is_rejected_with_a_suggestion(name: str, meant: str) -> None:
    answer = changed(two_ways(), "CLOSE_RESOURCE", name)

    assert (answer.accepted, answer.code) == (False, "UNKNOWN_PLACE")
    assert f"There is no {name!r} to close or open" in answer.message
    assert name.startswith("CS:") or f"(did you mean {meant}?)" in answer.message


@pytest.mark.req("FLT-PLAN-8", "FLT-FAIL-11")
@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"robotId": "R1"}, "ACTION_CONTRADICTS"),
        ({"resources": ()}, "ACTION_INCOMPLETE"),
        ({"type": "OPEN_RESOURCE", "force": True}, "ACTION_CONTRADICTS"),
        ({"type": "PAUSE_FLEET", "force": True}, "ACTION_CONTRADICTS"),
    ],
)
def test_an_action_that_contradicts_itself_closes_nothing(members: dict[str, object], code: str) -> None:
    run = two_ways()
    plain = OperatorAction("1.0.0", "op", run.now_ms, "anna", "CLOSE_RESOURCE", "wet", resources=(LANE,))
    run.act(replace(plain, **members))
    run.step()

    assert [answer.code for _, answer in run.engine.inbox.saved().answers] == [code]
    assert run.traffic.closings == ()


@pytest.mark.campaign
@pytest.mark.req("FLT-PLAN-8", "FLT-TEST-5")
def test_a_scenario_closes_and_opens_places() -> None:
    run = Run(
        scenario(
            f'{{atMs: 0, type: CLOSE_RESOURCE, resources: ["{STATION}"], reason: wet floor}}',
            f'{{atMs: 30000, type: OPEN_RESOURCE, resources: ["{STATION}"]}}',
        )
    )
    run.run(20_000)
    closed = [closing.resource for closing in run.traffic.closings]
    run.run()

    assert closed == [STATION]
    assert (run.traffic.closings, run.dispatch.book.done) == ((), 1)


@pytest.mark.req("FLT-PLAN-8", "FLT-TEST-5")
def test_a_scenario_that_closes_an_unknown_resource_does_not_start() -> None:
    given = scenario('{atMs: 0, type: CLOSE_RESOURCE, resources: ["EDGE:A-B"]}')

    with pytest.raises(ScenarioRefused, match="did you mean EDGE:A->B"):
        Run(given)


@pytest.mark.req("FLT-OBS-4", "FLT-OBS-2")
def test_a_restored_state_keeps_closings_and_continues_equally() -> None:
    run = loaded(two_ways())
    assert changed(run, "CLOSE_RESOURCE", "NODE:P").accepted
    run.run(run.now_ms + 40_000)
    twin = FleetEngine.from_state(run.config, run.engine.state())
    assert twin.traffic.closings == run.traffic.closings
    assert twin.why({"robot": "R1"}) == run.engine.why({"robot": "R1"})
    for _ in range(20):
        tick = Tick(run.now_ms, read_gateway(run.gateway.poll()).reports)
        run.engine.apply(tick)
        twin.apply(tick)
        run.world.advance(run.now_ms + 100)

    assert twin.state() == run.engine.state()


@pytest.mark.req("FLT-LIVE-4", "FLT-PLAN-8")
def test_a_witness_that_leads_into_a_closed_place_is_a_broken_invariant() -> None:
    run = two_ways(2_000)
    run.traffic._locks.shut = (shut_of(run.site, LANE),)

    assert run.traffic.broken() == ["I-12: the witness leads truck 0 into what is closed"]


@pytest.mark.req("FLT-FAIL-16")
def test_a_tick_that_fails_closes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = two_ways()
    with monkeypatch.context() as failing:
        failing.setattr(phases, "broken", lambda *_, **__: [("I-5", "R1 is in a lane and does not hold it")])
        action = OperatorAction("1.0.0", "op", run.now_ms, "anna", "CLOSE_RESOURCE", "wet", resources=(LANE,))
        run.act(action)
        run.step()
    after = run.traffic.closings
    assert changed(run, "CLOSE_RESOURCE", LANE).accepted

    assert after == ()
    assert run.traffic.broken() == []


@pytest.mark.req("FLT-PLAN-8", "FLT-LIVE-4", "FLT-LIVE-9", "FLT-TEST-41", "FLT-TEST-48")
@pytest.mark.parametrize("seed", campaign_after(1, range(12)))
def test_random_closings_let_no_truck_in_and_in_the_end_every_task_is_done(seed: int) -> None:
    _, wrong = closed_and_opened(drawn(seed, 5, 45_000))

    assert wrong == []


@pytest.mark.long
@pytest.mark.req("FLT-PLAN-8", "FLT-LIVE-4", "FLT-LIVE-9", "FLT-TEST-41", "FLT-TEST-48")
@pytest.mark.parametrize("seed", range(1_000, 1_200))
def test_many_random_closings_of_larger_fleets(seed: int) -> None:
    _, wrong = closed_and_opened(drawn(seed, 10, 90_000))

    assert wrong == []


@pytest.mark.campaign
@pytest.mark.req("FLT-PLAN-8", "FLT-LIVE-9", "FLT-FAIL-9")
def test_a_truck_that_fails_while_a_lane_is_closed_comes_back_and_all_gets_done() -> None:
    run = Run(shipped("offline"))
    run.run(12_000)
    names = [f"NODE:{node.id}" for node in run.site.network.nodes]
    for name in names[:3]:
        assert changed(run, "CLOSE_RESOURCE", name, force=True).accepted
    run.run(90_000)
    sound = run.traffic.broken()
    assert changed(run, "OPEN_RESOURCE", *names[:3]).accepted
    run.run()

    assert sound == []
    assert run.result().form["violations"] == []


@pytest.mark.campaign
@pytest.mark.req("FLT-OBS-4")
def test_a_run_in_which_places_are_closed_repeats_to_the_same_digest() -> None:
    def digest() -> str:
        run, _ = closed_and_opened(drawn(3, 5, 30_000))
        return str(run.result().form["digest"])

    assert digest() == digest()
