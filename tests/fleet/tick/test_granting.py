"""Units in the order of ranks: who is barred by a waiter, and who never is."""

import pytest

from pendula.fleet.samples import FL_STD, reference_fleet
from pendula.fleet.tick import TickInputs, TrafficParams
from pendula.fleet.tick.draft import Draft
from pendula.fleet.tick.granting import grant
from pendula.fleet.tick.phases import PHASES
from pendula.fleet.views.reasons import WAIT_QUEUE_ORDER
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Yard


def about_to_grant() -> Draft:
    """A tick in which three trucks of four have routes and none has a unit yet, up to where units are granted."""
    fleet = reference_fleet(4)
    yard = Yard(scene("reference-hall"), fleet, [FL_STD], TrafficParams(max_admissions_per_tick=3))
    yard.step()
    for truck, stream in zip(fleet.trucks[:3], (*fleet.streams, *fleet.streams), strict=False):
        yard.send(truck.robot_id, stream.pick_node_ids[0], stream.drop_node_ids[0])
    reports = tuple(yard._report(one) for one in yard.drivers.values())
    draft = yard.traffic._draft(TickInputs(yard.now + 100, reports, tuple(yard.submitted.values())))
    for phase in PHASES[: PHASES.index(grant)]:
        phase(draft)
    return draft


def barred_by_the_last(draft: Draft) -> list[int]:
    """Who is barred where the last truck of the witness keeps everybody else off everything."""
    waiter = draft.locks.witness[-1][0]
    draft.queue.ask(waiter, frozenset(range(len(draft.locks.exclusion))))
    grant(draft)
    return [one.number for one in draft.records if one.waiting is not None and one.waiting.code == WAIT_QUEUE_ORDER]


@pytest.mark.req("FLT-RES-10", "FLT-LIVE-13")
def test_a_waiter_bars_all_but_the_truck_with_which_the_stored_witness_begins() -> None:
    draft = about_to_grant()
    moves = [i for i, position in draft.locks.witness if position]

    assert len(moves) == 3
    assert barred_by_the_last(draft) == [moves[1]]
