"""A truck that rolled into the resources of another stays; the other leaves over what is clear of it."""

import pytest
from msgspec.structs import replace

from pendula.fleet.contracts import OperatorAction
from pendula.fleet.explain import truck
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator import Fault, FaultKind
from pendula.fleet.tick.records import Stop

MINUTE_MS = 60_000


def rolled_into_the_disc(*, turned: bool) -> Run:
    """Both trucks turn in the crossing X: R2 first, and R1 rolls over its stop line into the disc before R2 has turned,
    or while R2 stands there and has turned."""
    run = Run(replace(shipped("crossing-turn"), expect=(), duration_ms=10 * MINUTE_MS))
    first, second = run.traffic.records
    while not (first.waiting and first.waiting.by == 1 and first.grant_um - first.at_um < 100_000):
        run.step()
        first, second = run.traffic.records
    if turned:
        act = second.acted
        while second.acted == act:
            run.step()
            first, second = run.traffic.records
        run.world.start_fault(1, Fault(FaultKind.STAND, 8_000))
    run.world.start_fault(0, Fault(FaultKind.OVERRUN, 1, by_um=300_000))
    while run.traffic.records[0].stop_code != Stop.OVERRUN or run.world.trucks[0].v_um_s:
        run.step()
    run.run(run.now_ms + 5_000)
    return run


def cleared(run: Run) -> None:
    run.act(OperatorAction("1.0.0", f"op-{run.now_ms}", run.now_ms, "anna", "CLEAR_FAULT", "I see it", robotId="R1"))


@pytest.mark.campaign
@pytest.mark.req("FLT-FAIL-6", "FLT-RTP-10")
def test_a_truck_that_has_turned_leaves_its_disc_after_another_rolled_into_it() -> None:
    run = rolled_into_the_disc(turned=True)
    zone = run.site.zone(run.site.node_number["X"])
    rolled, leaves = run.traffic.records
    assert rolled.doubt is not None
    assert zone in rolled.doubt.extra
    assert zone in leaves.held
    granted_um = leaves.grant_um
    run.run(run.now_ms + MINUTE_MS)
    rolled, leaves = run.traffic.records
    between = rolled.stop_code, leaves.at_rest, leaves.grant_um > granted_um
    cleared(run)
    run.run(run.now_ms + 2 * MINUTE_MS)

    assert between == (Stop.OVERRUN, True, True)
    assert [(one.stop_code, one.at_rest) for one in run.traffic.records] == [(None, True), (None, True)]
    assert run.measures.breaches == []


@pytest.mark.req("FLT-FAIL-6", "FLT-FAIL-11")
def test_a_truck_that_must_still_turn_stays_and_both_name_the_truck_to_push_back() -> None:
    run = rolled_into_the_disc(turned=False)
    rolled, waits = (truck(run.traffic, run.dispatch, name).sentence for name in ("R1", "R2"))
    codes = [one.stop_code for one in run.traffic.records]
    remedy = "R1 stands in NODE:X, where R2 has yet to pass or turn: push R1 0."
    cleared(run)
    run.run(run.now_ms + 30_000)
    still = [one.stop_code for one in run.traffic.records]
    # A person pushes it back, along the way that it still has.
    run.world.trucks[0].on_um -= 350_000
    run.run(run.now_ms + 3 * MINUTE_MS)

    assert codes == still == [Stop.OVERRUN, Stop.FOREIGN_OCCUPANCY]
    for text in (rolled, waits):
        assert remedy in text
        assert " m back along its way, then clear the fault of R1 (CLEAR_FAULT)" in text
    assert [(one.stop_code, one.at_rest) for one in run.traffic.records] == [(None, True), (None, True)]
    assert run.measures.breaches == []


@pytest.mark.req("FLT-DCL-2", "FLT-FAIL-6")
def test_the_overrun_of_a_truck_survives_a_restart_of_traffic() -> None:
    run = rolled_into_the_disc(turned=True)
    again = type(run.engine).from_state(run.config, run.engine.state()).traffic
    before, after = run.traffic._locks, again._locks

    assert after.truck(0).reaches == before.truck(0).reaches != set()
    assert (after.reached, again.state()) == (before.reached, run.traffic.state())
