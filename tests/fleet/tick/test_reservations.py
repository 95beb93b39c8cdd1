"""Reservations up to the lookahead: they are shown, order the queue, and yield to every truck that needs the place."""

import pytest
from msgspec.structs import replace

from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator import Fault, FaultKind
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.turns import order_of

AHEAD_UM = (5_300_000, 8_000_000, 30_000_000)


def looking(name: str, lookahead_um: int, upto_ms: int, **changes: int) -> Run:
    scenario = shipped(name)
    traffic = replace(scenario.traffic, lookahead_um=lookahead_um, **changes)
    run = Run(replace(scenario, traffic=traffic, expect=()))
    run.run(upto_ms)
    return run


def shown_ahead_um(run: Run, robot_id: str) -> int:
    groups = run.traffic.snapshot().edgeGroups
    ahead = [
        occupant.reservedAheadM for group in groups for occupant in group.occupants if occupant.robotId == robot_id
    ]
    return int(1_000_000 * sum(ahead))


@pytest.mark.req("FLT-COR-1", "FLT-DCL-4")
@pytest.mark.parametrize("lookahead_um", AHEAD_UM)
def test_an_unblocked_truck_reserves_up_to_the_lookahead(lookahead_um: int) -> None:
    run = looking("near-lanes-apart", lookahead_um, 8_000)
    record = run.traffic.records[0]
    assert record.track is not None
    ahead_um = min(lookahead_um, record.track.goal_um - record.at_um)

    assert record.v_um_s > 500_000
    assert ahead_um <= record.reserved_um - record.at_um <= ahead_um + run.site.params.cell_len_um
    assert shown_ahead_um(run, "R1") == record.reserved_um - record.at_um


@pytest.mark.req("FLT-COR-1")
def test_units_are_taken_whole_even_if_they_end_beyond_the_lookahead() -> None:
    run = looking("spur", 5_300_000, 100)
    shown_um = 0
    while shown_um <= 8_000_000 and run.world.now_ms < 60_000:
        run.step()
        shown_um = max(shown_ahead_um(run, record.robot_id) for record in run.traffic.records)

    # A spur is one section, and so one unit.
    assert shown_um > 8_000_000


@pytest.mark.req("FLT-COR-1", "FLT-DCL-4")
def test_the_resources_a_truck_holds_do_not_depend_on_the_lookahead() -> None:
    runs = [looking("near-lanes-apart", lookahead_um, 8_000) for lookahead_um in AHEAD_UM]
    held = [(run.traffic.records[0].grant_um, sorted(run.traffic.records[0].held)) for run in runs]
    first = runs[0].traffic.records[0]

    assert held[0] == held[1] == held[2]
    needs_um = 3_420_000
    cell_um = runs[0].site.params.cell_len_um
    assert needs_um - cell_um <= first.grant_um - first.at_um <= needs_um + cell_um


@pytest.mark.req("FLT-COR-1")
def test_the_digest_of_the_hall_depends_on_the_lookahead() -> None:
    digests = {looking("hall", lookahead_um, 20_000).result().form["digest"] for lookahead_um in AHEAD_UM}

    assert len(digests) == 3


@pytest.mark.req("FLT-DCL-4", "FLT-RES-12")
def test_a_reservation_gives_way_to_a_truck_that_needs_the_place() -> None:
    run = looking("crossing", 30_000_000, 100)
    first, second = run.traffic.records
    while first.reserved_um < 25_000_000:
        run.step()
        first, second = run.traffic.records
    granted_um, end_um = first.grant_um, first.reserved_um
    # It stands still with what it has reserved; the other truck comes to the crossing, and needs it.
    run.world.start_fault(0, Fault(FaultKind.STAND, 30_000))
    waited = False
    while second.grant_um < 28_000_000:
        outputs = run.step()
        first, second = outputs.scene.records
        waited |= second.waiting is not None
        for record in (first, second):
            truck = run.traffic._locks.truck(record.number)
            need = truck.demand.needs(truck.position, record.base + max(record.reserved, record.granted))
            assert not run.traffic._locks.in_the_way(record.number, need)

    assert granted_um < 19_500_000
    assert (first.reserved_um < end_um, waited) == (True, False)


@pytest.mark.req("FLT-DCL-4", "FLT-RES-8", "FLT-RES-9")
def test_of_trucks_of_one_rank_the_earliest_reservation_comes_first() -> None:
    run = looking("crossing", 8_000_000, 1_000)
    first, second = (record.copied() for record in run.traffic.records)
    first.reserved_ms, second.reserved_ms = {first.granted + 1: 900}, {second.granted + 1: 400}
    first.rank = second.rank = 20

    assert [record.robot_id for record in order_of([first, second], None, frozenset(), 1_000)] == ["R2", "R1"]


@pytest.mark.req("FLT-COR-1", "FLT-COR-7")
def test_a_reservation_ends_where_the_lookback_of_the_truck_ahead_begins() -> None:
    ends = []
    for lookback_um in (1_000_000, 3_000_000):
        run = looking("follow", 30_000_000, 20_000, lookback_um=lookback_um)
        leader, follower = run.traffic.records
        ends.append((leader.at_um, follower.grant_um, follower.reserved_um))

    (at, granted, near), (also_at, also_granted, far) = ends
    assert (at, granted) == (also_at, also_granted)
    assert far < near


@pytest.mark.req("FLT-DCL-1")
def test_reservations_are_saved_and_restored() -> None:
    run = looking("crossing", 8_000_000, 6_000)
    again = type(run.engine).from_state(run.config, run.engine.state())

    for old, new in zip(run.traffic.records, again.traffic.records, strict=True):
        assert (old.reserved, old.reserved_ms) == (new.reserved, new.reserved_ms)
    assert TrafficParams().lookahead_um == 8_000_000
