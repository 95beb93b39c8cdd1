"""Units in the order of ranks: which trucks a waiter bars, and which never."""

import pytest
from msgspec.structs import replace

from pendula.fleet import compile_map
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.model import SourceMember, SourceSection
from pendula.fleet.tick import TickInputs, TrafficParams
from pendula.fleet.tick.draft import Draft
from pendula.fleet.tick.granting import _still_blocked, grant
from pendula.fleet.tick.phases import PHASES
from pendula.fleet.tick.reasons import WAIT_CRITICAL_SECTION, WAIT_NODE, WAIT_QUEUE_ORDER, WAIT_SAFE_STATE
from pendula.fleet.tick.records import Record, Stop, Waiting
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Yard


def about_to_grant() -> Draft:
    """A tick just before units are granted: three of four trucks have routes, and none has a unit."""
    fleet = reference_fleet(4)
    yard = Yard(scene("reference-hall"), fleet, [FL_STD], TrafficParams(max_admissions_per_tick=3))
    yard.step()
    for truck, stream in zip(fleet.trucks[:3], (*fleet.streams, *fleet.streams), strict=False):
        yard.send(truck.robot_id, stream.pick_node_ids[0], stream.drop_node_ids[0])
    reports = tuple(yard._report(driver) for driver in yard.drivers.values())
    draft = yard.traffic._draft(TickInputs(yard.now + 100, reports, tuple(yard.submitted.values())))
    for phase in PHASES[: PHASES.index(grant)]:
        phase(draft)
    return draft


def barred_by_last_truck(draft: Draft) -> list[int]:
    """The trucks barred while the last truck of the witness bars all others from everything."""
    waiter = draft.locks.witness[-1][0]
    draft.queue.ask(waiter, frozenset(range(len(draft.locks.exclusion))))
    grant(draft)
    return [
        record.number
        for record in draft.records
        if record.waiting is not None and record.waiting.code == WAIT_QUEUE_ORDER
    ]


@pytest.mark.req("FLT-RES-10", "FLT-LIVE-13")
def test_a_waiter_bars_all_but_the_first_truck_of_the_stored_witness() -> None:
    draft = about_to_grant()
    moves = [i for i, position in draft.locks.witness if position]

    assert len(moves) == 3
    assert barred_by_last_truck(draft) == [moves[1]]


def first_of(draft: Draft) -> Record:
    """The first truck of the stored witness."""
    return draft.records[next(i for i, position in draft.locks.witness if position)]


@pytest.mark.req("FLT-LIVE-13", "FLT-OSC-3")
def test_a_truck_in_its_retry_pause_is_granted_what_the_stored_witness_allows() -> None:
    draft = about_to_grant()
    first = first_of(draft)
    first.waiting, first.again_ms = Waiting(WAIT_SAFE_STATE, 0, 3, None, (3, first.number)), draft.now_ms + 4_000
    grant(draft)

    assert first.granted > 0


@pytest.mark.req("FLT-LIVE-13", "FLT-RES-18")
@pytest.mark.parametrize(("stopped", "granted"), [(False, False), (True, True)])
def test_a_lane_drains_against_the_first_of_the_witness_unless_the_blocker_of_the_waiter_is_stopped(
    stopped: bool, granted: bool
) -> None:
    draft = about_to_grant()
    first = first_of(draft)
    every = range(len(draft.ground.site.network.groups))
    waiter = draft.locks.witness[-1][0]
    draft.directions.drained = {group: (way, waiter) for group in every for way in (True, False)}
    draft.directions.ways = {group: frozenset(range(len(draft.locks.exclusion))) for group in every}
    # The waiter waits for a truck that stands until an operator acts.
    draft.records[waiter].waiting = Waiting(WAIT_NODE, 0, 3, None)
    draft.records[3].stop_code = Stop.OPERATOR if stopped else None
    grant(draft)

    assert (first.granted > 0) is granted


@pytest.mark.req("FLT-LIVE-13")
@pytest.mark.parametrize(("ticks", "granted"), [(3, False), (4, True)])
def test_an_undecided_route_holds_the_first_truck_of_the_witness_for_a_few_ticks_only(
    ticks: int, granted: bool
) -> None:
    draft = about_to_grant()
    first = first_of(draft)
    assert first.track is not None
    first.pending, first.pending_since_ms = first.track.plan, draft.now_ms - ticks * draft.params.tick_period_ms
    grant(draft)

    assert (first.granted > 0) is granted


@pytest.mark.req("FLT-OSC-3", "FLT-LIVE-13")
def test_a_pause_ends_while_nothing_changes() -> None:
    fleet = reference_fleet(4)
    yard = Yard(scene("reference-hall"), fleet, [FL_STD])
    yard.endless = True
    pauses, longest_ms = 0, 8 * yard.params.cooldown_ms
    begun = [yard.now] * 4
    for _ in range(3_000):
        before = [record.again_ms for record in yard.traffic.records]
        yard.step()
        for record, again_ms in zip(yard.traffic.records, before, strict=True):
            if record.again_ms != again_ms:
                assert yard.now >= again_ms, "a pause is renewed before it is over"
                assert record.again_ms - yard.now <= longest_ms
                pauses += 1

    assert pauses > len(begun)


@pytest.mark.req("FLT-OSC-3", "FLT-DCL-8")
def test_a_truck_that_waits_for_a_full_section_is_checked_again_when_any_truck_leaves_it() -> None:
    source = samples.reference_hall()
    edge = source.edges[0]
    section = SourceSection("S", 2, (SourceMember(f"{edge.start}<->{edge.end}"),))
    site = compile_map(replace(source, sections=(section,)), [FL_STD])
    yard = Yard(site, reference_fleet(4), [FL_STD])
    draft = yard.traffic._draft(TickInputs(100))
    token, waits = site.token(0), draft.records[0]
    for inside in (1, 2):
        draft.locks.hold(inside, [token])
    waits.waiting, waits.ripe = Waiting(WAIT_CRITICAL_SECTION, token, 1, token), frozenset()

    before = _still_blocked(draft, waits)
    draft.locks.drop(2, [token])

    assert (before, _still_blocked(draft, waits)) == (True, False)
