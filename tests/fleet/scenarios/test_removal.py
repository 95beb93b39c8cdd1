"""A removed truck leaves the simulated hall: it is off and blocks no other truck until it is put back."""

from decimal import Decimal
from math import hypot

import pytest
from msgspec import UNSET

from pendula.fleet.contracts import AnchorPlace, OperatorAction
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator import FaultKind
from pendula.fleet.simulator.truck import Fault
from pendula.fleet.simulator.world import World, restored_world
from pendula.fleet.tick.records import Record
from pendula.fleet.units import MILLION


def submit(run: Run, kind: str, first: str | None = None, anchor: AnchorPlace | None = None) -> str | None:
    """An operator action for R1, and the code of its answer."""
    action_id = f"op-{run.now_ms}"
    run.act(
        OperatorAction(
            *("1.0.0", action_id, run.now_ms, "anna", kind, "it is broken"),
            robotId="R1",
            physicallySecured=True,
            confirmationOf=UNSET if first is None else first,
            anchor=UNSET if anchor is None else anchor,
        )
    )
    run.step()
    return next(answer.code for action, answer in run.engine.inbox.saved().answers if action.actionId == action_id)


def remove(run: Run) -> None:
    first = f"op-{run.now_ms}"
    assert submit(run, "REMOVE_ROBOT") == "CONFIRMATION_NEEDED"
    assert submit(run, "REMOVE_ROBOT", first) is None


def stopped(at_ms: int = 12_000) -> Run:
    """R1 has been paused on its way."""
    run = Run(shipped("hall"))
    run.run(at_ms)
    assert submit(run, "PAUSE_ROBOT") is None
    run.run(run.now_ms + 5_000)
    return run


def record(run: Run) -> Record:
    return run.traffic.records[0]


def place(run: Run, truck: int) -> tuple[int, int]:
    entry = run.world.trucks[truck]
    return run.site.network.edges[entry.edge].path.point(entry.on_um)


def away_m(run: Run, truck: int, there: tuple[int, int]) -> float:
    x, y = place(run, truck)
    return hypot(x - there[0], y - there[1]) / MILLION


def put_at(run: Run, there: tuple[int, int]) -> None:
    """Carry R1 to a place."""
    x, y = place(run, 0)
    run.world.start_fault(0, Fault(FaultKind.CARRIED, 0, x_um=there[0] - x, y_um=there[1] - y))


def restarted_world(run: Run) -> World:
    return restored_world(
        run.site, run.traffic.records, run.dispatch, run.scenario.world, run.scenario.seed, run.world.now_ms
    )


def broken(run: Run) -> dict[str, int]:
    return dict(run.measures.violations)


@pytest.mark.req("FLT-FAIL-11", "FLT-TEST-46")
def test_other_trucks_drive_through_the_place_of_a_removed_truck() -> None:
    run = stopped(34_000)
    there, lane = place(run, 0), run.site.network.group_of[run.world.trucks[0].edge]
    remove(run)
    nearest, edges = 100.0, set()
    while run.now_ms < 82_000:
        run.step()
        nearest = min(nearest, *(away_m(run, truck, there) for truck in (1, 2, 3)))
        edges |= {truck.edge for truck in run.world.trucks[1:] if run.site.network.group_of[truck.edge] == lane}

    assert nearest < 0.1
    assert len(edges) == 2, "others drove the lane both ways"
    assert broken(run) == {}
    assert [truck.robot_id for truck in run.shown_trucks()] == ["R2", "R3", "R4"]


@pytest.mark.req("FLT-FAIL-11", "FLT-TEST-46")
@pytest.mark.parametrize("removed", [False, True])
def test_a_truck_that_is_in_the_hall_or_was_put_back_is_counted_where_it_is(removed: bool) -> None:
    run = stopped()
    if removed:
        remove(run)
    put_at(run, place(run, 1))
    run.step()

    assert run.measures.violations["I-2"] > 0
    assert all("R1 and R2" in breach.sentence for breach in run.measures.breaches if breach.invariant == "I-2")


@pytest.mark.req("FLT-FAIL-11")
def test_a_removed_truck_is_off_in_every_phase() -> None:
    run = stopped()
    remove(run)
    heard_ms = record(run).report_ms
    run.run(run.now_ms + 20_000)

    assert (record(run).report_ms, record(run).is_out) == (heard_ms, True)
    assert submit(run, "RELOCATE", anchor=AnchorPlace(run.site.network.edges[0].key, Decimal(1))) == "ROBOT_SILENT"
    assert submit(run, "RESUME_ROBOT") is None
    assert run.world.out == [True, False, False, False]


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-7")
def test_a_truck_that_was_put_back_drives_home_after_its_relocation() -> None:
    run = stopped()
    remove(run)
    run.run(run.now_ms + 30_000)
    node = run.site.network.nodes[record(run).rest].at
    # A metre before its rest node, at the end of a way that no other truck takes.
    way = run.site.network.edges[run.site.network.incoming[record(run).rest][0]]
    there = way.path.point(way.path.length_um - MILLION)
    put_at(run, there)
    heard = set()
    for _ in range(50):
        run.step()
        pose = record(run).pose
        assert pose is not None
        heard |= set() if record(run).is_out else {round(hypot(pose.x_um - there[0], pose.y_um - there[1]) / MILLION)}
    assert heard == {0}, "the truck sent no reports of its old place"
    assert record(run).stop_code == "STOP_OPERATOR"
    assert submit(run, "RESUME_ROBOT") is None
    assert submit(run, "RELOCATE", anchor=AnchorPlace(way.key, Decimal(way.path.length_um - MILLION) / MILLION)) is None
    run.run(run.now_ms + 30_000)

    assert record(run).stop_code is None
    assert away_m(run, 0, (node.x_um, node.y_um)) < 0.05
    assert broken(run) == {}


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-14")
def test_removed_and_returned_trucks_survive_a_restart() -> None:
    run = stopped()
    there = place(run, 0)
    remove(run)
    away = restarted_world(run)
    away.advance(run.now_ms + 1_000)
    assert away.latest[0].at_ms == record(run).report_ms, "it says nothing"
    run.world.start_fault(0, Fault(FaultKind.CARRIED, 0, x_um=-MILLION))
    run.run(run.now_ms + 1_000)
    back = restarted_world(run)
    back.follow(run.traffic.records)
    removed_again = restarted_world(run)
    remove(run)
    removed_again.follow(run.traffic.records)

    assert (away.out[0], back.out[0], removed_again.out[0]) == (True, False, True)
    edge, on_um = away.trucks[0].edge, away.trucks[0].on_um
    x, y = run.site.network.edges[edge].path.point(on_um)
    assert hypot(x - there[0], y - there[1]) < 100_000
    assert back.trucks[0].edge == run.world.trucks[0].edge
    assert abs(back.trucks[0].on_um - run.world.trucks[0].on_um) < 100_000
