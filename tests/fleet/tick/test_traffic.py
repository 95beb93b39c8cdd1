"""Traffic as a whole: accepted and rejected starts, atomic ticks, the same results for any order of inputs."""

from collections.abc import Iterator
from random import Random

import pytest
from msgspec import UNSET

from pendula.fleet import AtNode, Fleet, Stream, Truck, compile_map
from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import CommandMode, Phase
from pendula.fleet.tick import TickInputs, Traffic, TrafficParams, TrafficRefused, phases
from pendula.fleet.tick.draft import Draft
from pendula.fleet.tick.traffic import TickOutputs
from tests.fleet.sites import scene, sketched
from tests.fleet.tick.yard import Yard


def hall(trucks: int = 3) -> Yard:
    yard = Yard(scene("reference-hall"), reference_fleet(trucks), [FL_STD])
    yard.endless = True
    return yard


def seesaw() -> Yard:
    """Two trucks on the demonstration hall, where the first blocks the second."""
    fleet = Fleet((Truck("R1", "FL-STD", "PK1"), Truck("R2", "FL-STD", "PK2")), (Stream("S", ("AP1",), ("LM3",)),))
    return Yard(scene("hall-demo"), fleet, [FL_STD])


@pytest.mark.req("FLT-DCL-5", "FLT-COR-10", "FLT-GEO-15")
def test_a_truck_without_a_route_holds_only_its_standing_set() -> None:
    yard = seesaw()
    snapshot = yard.step().snapshot()

    assert [(lock.nodeId, lock.robotId) for lock in snapshot.nodeLocks] == [("PK1", "R1"), ("PK2", "R2")]
    assert [group.edgeGroupKey for group in snapshot.edgeGroups] == ["LM3<->PK1", "LM3<->PK2"]


@pytest.mark.req("FLT-LIVE-7")
def test_a_fleet_that_is_not_live_is_refused_without_an_override() -> None:
    fleet = Fleet((Truck("R1", "FL-STD", "PK1"), Truck("R2", "FL-STD", "PK1")), ())

    with pytest.raises(TrafficRefused) as refused:
        Traffic.create(scene("hall-demo"), fleet, [FL_STD])

    assert "not LIVE" in str(refused.value)


@pytest.mark.req("FLT-LIVE-7")
def test_an_override_is_shown_in_every_snapshot() -> None:
    fleet = Fleet((Truck("R1", "FL-STD", "PK1"), Truck("R2", "FL-STD", "LM2")), (Stream("S", ("AP1",), ("LM3",)),))
    yard = Yard(scene("hall-demo"), fleet, [FL_STD], override=True)

    assert [yard.step().snapshot().liveOverride for _ in range(3)] == [True, True, True]


@pytest.mark.req("FLT-LIVE-7")
def test_a_start_where_two_trucks_stand_in_one_node_is_refused() -> None:
    site = scene("hall-demo")
    at = AtNode(site.node_number["LM2"])

    with pytest.raises(TrafficRefused) as refused:
        Traffic.create(site, seesaw().fleet, [FL_STD], starts={"R1": at, "R2": at})

    assert "W4: truck 'R2' cannot start where it stands, because of 'R1'" in str(refused.value)


@pytest.mark.req("FLT-LIVE-7")
def test_a_rest_is_checked_with_the_arrival_tolerance_of_traffic() -> None:
    """With 0.1 m a truck in a spur of 3.7 m blocks no other, with 0.3 m it may keep the cell before."""
    sketch = sketched(("W", -20, 0), ("M", 0, 0), ("E", 20, 0), ("P", 0, 3.7, "ParkPoint"))
    sketch.chain("W", "M", "E")
    sketch.lane("M", "P")
    site = compile_map(sketch.done(), [FL_STD])
    fleet = Fleet((Truck("R1", "FL-STD", "P"), Truck("R2", "FL-STD", "W")), (Stream("S", ("E",), ("W",), ("R2",)),))

    assert Traffic.create(site, fleet, [FL_STD]).certificate.live
    with pytest.raises(TrafficRefused, match="not LIVE"):
        Traffic.create(site, fleet, [FL_STD], TrafficParams(arrive_tol_um=300_000))


@pytest.mark.req("FLT-LIVE-7")
def test_contradicting_parameters_are_rejected_at_the_start() -> None:
    with pytest.raises(TrafficRefused) as refused:
        Traffic.create(scene("hall-demo"), seesaw().fleet, [FL_STD], TrafficParams(lookahead_um=5_000_000))

    assert "LOOKAHEAD_TOO_SHORT" in str(refused.value)


@pytest.mark.req("FLT-TASK-9", "FLT-TASK-11", "FLT-DCL-20")
@pytest.mark.req("FLT-API-5")
def test_trucks_finish_their_tasks_one_after_the_other_and_rest() -> None:
    yard = seesaw()
    yard.send("R1", "AP1", "LM3")
    yard.send("R2", "AP1", "LM3")
    yard.run(2_500)

    assert [(driver.done, driver.phase) for driver in yard.drivers.values()] == [(1, Phase.IDLE), (1, Phase.IDLE)]


@pytest.mark.req("FLT-TASK-11", "FLT-RES-14")
def test_a_truck_that_loads_holds_its_node_and_its_spur() -> None:
    yard = seesaw()
    yard.send("R1", "AP1", "LM3")
    while yard.drivers["R1"].phase is not Phase.LOADING:
        yard.step()
    snapshot = yard.step().snapshot()

    assert ("AP1", "R1") in [(lock.nodeId, lock.robotId) for lock in snapshot.nodeLocks]
    assert snapshot.csLocks is not UNSET
    assert ("SPUR-AP1", ("R1",)) in [(lock.criticalSectionId, lock.robotIds) for lock in snapshot.csLocks]


@pytest.mark.req("FLT-OBS-7", "FLT-OBS-8")
def test_why_names_the_blocker_the_resource_and_the_chain_to_its_root() -> None:
    yard = seesaw()
    yard.send("R1", "AP1", "LM3")
    yard.run(150)
    yard.send("R2", "AP1", "LM3")
    yard.run(120)
    why = yard.traffic.why("R2")

    assert (why.blocker, why.chain, why.hold_reason) == ("R1", ("R2", "R1"), "TRAFFIC_HOLD")
    assert why.code is not None
    assert why.code.startswith("WAIT_")


@pytest.mark.req("FLT-DCL-2", "FLT-EVO-7")
def test_a_failed_tick_changes_nothing_and_stops_all_trucks(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = hall()
    yard.run(120)
    before = yard.traffic.snapshot()

    def fails(draft: Draft) -> None:
        raise AssertionError("planted")

    with monkeypatch.context() as planted:
        planted.setattr("pendula.fleet.tick.traffic.PHASES", (*phases.PHASES, fails))
        outputs = yard.traffic.tick(
            TickInputs(yard.now + 100, tuple(yard._report(driver) for driver in yard.drivers.values()))
        )
    after = outputs.snapshot()

    assert outputs.error == "AssertionError: planted"
    assert {command.mode for command in outputs.commands} == {CommandMode.STOP}
    assert (after.edgeGroups, after.nodeLocks, after.robots) == (before.edgeGroups, before.nodeLocks, before.robots)


@pytest.mark.req("FLT-DCL-2")
def test_traffic_continues_after_a_failed_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    yard, twin = hall(), hall()
    yard.run(120)
    twin.run(120)
    with monkeypatch.context() as planted:
        planted.setattr("pendula.fleet.tick.traffic.PHASES", (*phases.PHASES, "no phase"))
        yard.traffic.tick(TickInputs(yard.now + 50))
    yard.run(50)
    twin.run(50)

    assert yard.traffic.snapshot().edgeGroups == twin.traffic.snapshot().edgeGroups


def recorded(yard: Yard, ticks: int) -> Iterator[TickInputs]:
    """The inputs of a run."""
    tick = yard.traffic.tick
    seen: list[TickInputs] = []

    def listening(inputs: TickInputs) -> TickOutputs:
        seen.append(inputs)
        return tick(inputs)

    yard.traffic.tick = listening  # type: ignore[method-assign]
    yard.run(ticks)
    yield from seen


@pytest.mark.req("FLT-DCL-1", "FLT-TEST-43", "FLT-EVO-7")
def test_the_order_of_inputs_makes_no_difference() -> None:
    yard = hall()
    inputs = list(recorded(yard, 200))
    shuffle = Random(7)
    digests = []
    for _ in range(3):
        traffic = Traffic.create(yard.site, yard.fleet, yard.profiles, yard.params)
        outputs = None
        for tick_inputs in inputs:
            reports, routes = [*tick_inputs.reports], [*tick_inputs.routes]
            shuffle.shuffle(reports)
            shuffle.shuffle(routes)
            outputs = traffic.tick(TickInputs(tick_inputs.now_ms, tuple(reports), tuple(routes)))
        assert outputs is not None
        digests.append(outputs.digest())

    assert len(set(digests)) == 1
    assert yard.last is not None
    assert digests[0] == yard.last.digest()


@pytest.mark.req("FLT-EVO-7")
def test_traffic_restored_from_its_state_continues_identically() -> None:
    yard, twin = hall(), hall()
    yard.run(150)
    twin.run(150)
    twin.traffic = Traffic.from_state(twin.site, twin.fleet, twin.profiles, twin.params, yard.traffic.state())
    yard.run(60)
    twin.run(60)

    assert twin.traffic.state() == yard.traffic.state()


def test_a_state_of_other_parameters_is_refused() -> None:
    yard = hall()

    with pytest.raises(TrafficRefused):
        Traffic.from_state(yard.site, yard.fleet, yard.profiles, TrafficParams(starve_ms=70_000), yard.traffic.state())


@pytest.mark.req("FLT-LIVE-12", "FLT-DCL-4")
def test_a_tick_admits_a_limited_number_of_routes() -> None:
    yard = hall(4)
    yard.step()
    admitted = [len(yard.step().accepted_routes) for _ in range(2)]

    assert admitted == [2, 2]


@pytest.mark.req("FLT-LIVE-10", "FLT-TASK-8")
def test_while_a_truck_starves_no_other_truck_sets_out() -> None:
    yard = seesaw()
    yard.step()
    record = yard.traffic._records[0]
    record.waiting_since_ms = record.request_ms = yard.now - 70_000
    yard.traffic._records[0].phase = Phase.TO_PICK
    record.pending_since_ms = yard.now - 70_000
    record.retry_ms = yard.now
    yard.send("R2", "AP1", "LM3")

    assert yard.step().accepted_routes == ()


@pytest.mark.req("FLT-RTP-5", "FLT-RTP-8")
def test_every_truck_gets_a_command_with_a_higher_number_in_every_tick() -> None:
    yard = seesaw()
    first, second = yard.step().commands, yard.step().commands

    assert [b.seq - a.seq for a, b in zip(first, second, strict=True)] == [1, 1]
