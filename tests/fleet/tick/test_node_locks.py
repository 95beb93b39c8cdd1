"""A truck that stops in a node on its route locks the node, under either policy."""

import pytest
from msgspec.structs import replace

from pendula.fleet.contracts import OperatorAction
from pendula.fleet.map.trucks import brakes_um
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator import Fault, FaultKind

MINUTE_MS = 60_000


def in_passing(name: str, robot: int, node_id: str) -> Run:
    """A shipped scenario at the moment in which a truck on its way through a node would stop in it if it braked."""
    run = Run(replace(shipped(name), expect=(), duration_ms=10 * MINUTE_MS))
    node = run.site.node_number[node_id]
    while run.now_ms < run.scenario.duration_ms:
        run.step()
        record = run.traffic.records[robot]
        for segment in () if record.track is None else record.track.segments[:-1]:
            ends = run.site.network.edges[segment.edge].end == node
            end_um = segment.route_s0_um + segment.length_um
            stops_um = record.at_um + brakes_um(record.profile, record.v_um_s)
            if ends and record.v_um_s > 300_000 and abs(stops_um - end_um) < 100_000:
                return run
    raise AssertionError(f"no truck came through {node_id}")


def holders(run: Run, node_id: str) -> list[str]:
    return [one.robotId for one in run.traffic.snapshot().nodeLocks if one.nodeId == node_id]


@pytest.mark.req("FLT-DCL-5", "FLT-GEO-15", "FLT-RES-20")
def test_a_truck_that_stops_by_itself_in_a_node_holds_it_until_it_has_left() -> None:
    run = in_passing("crossing", 0, "X")
    before = holders(run, "X")
    run.world.start_fault(0, Fault(FaultKind.STAND, 4_000))
    while run.traffic.records[0].v_um_s > 20_000:
        run.step()
    run.run(run.now_ms + 500)
    there = holders(run, "X")
    run.run(run.now_ms + MINUTE_MS)

    assert (before, there, holders(run, "X")) == ([], ["R1"], [])
    assert all(one.at_rest for one in run.traffic.records)
    assert run.measures.violations == {}


@pytest.mark.req("FLT-DCL-5")
def test_a_truck_that_an_operator_stops_in_the_window_of_a_node_holds_it() -> None:
    run = in_passing("crossing", 0, "X")
    run.act(OperatorAction("1.0.0", "p", run.now_ms, "anna", "PAUSE_ROBOT", "look", robotId="R1"))
    run.run(run.now_ms + 4_000)
    paused = holders(run, "X")
    run.act(OperatorAction("1.0.0", "r", run.now_ms, "anna", "RESUME_ROBOT", "seen", robotId="R1"))
    run.run(run.now_ms + MINUTE_MS)

    assert paused == ["R1"]
    assert all(one.at_rest for one in run.traffic.records)
    assert run.measures.violations == {}


@pytest.mark.req("FLT-DCL-5", "FLT-LIVE-13")
def test_a_node_partly_held_by_another_truck_is_not_locked() -> None:
    run = in_passing("crossing", 0, "X")
    other = run.traffic._locks
    zone = run.site.zone(run.site.node_number["X"])
    near = next(int(one) for one in other.exclusion.row(zone) if other.owner[one] < 0 and one != zone)
    other.hold(1, [near])
    run.traffic._records[1].held[near] = 1 << 62
    run.world.start_fault(0, Fault(FaultKind.STAND, 2_000))
    run.run(run.now_ms + 1_500)

    assert holders(run, "X") == []
