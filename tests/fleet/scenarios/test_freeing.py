"""Forced release for a failed or paused truck: resources before or behind it, never its place."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from msgspec import UNSET

from pendula.fleet.contracts import AnchorPlace, CommandMode, OperatorAction, Phase
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator import FaultKind
from pendula.fleet.simulator.truck import Fault
from pendula.fleet.tasks.operators import ActionResult
from pendula.fleet.tick.orders import releasable
from pendula.fleet.tick.reasons import resource_id
from pendula.fleet.tick.records import Record
from pendula.fleet.units import MILLION
from pendula.kernel.rng import Pcg32
from tests.campaigns import campaign_after

HOUR_MS = 3_600_000
TROUBLES = (None, FaultKind.OFFLINE, FaultKind.SILENCE, FaultKind.FAULT, FaultKind.STUCK)


def record(run: Run) -> Record:
    return run.traffic.records[0]


def keeps(run: Run) -> list[str]:
    return sorted({resource_id(run.site, resource) for resource in record(run).keeps})


def offered(run: Run) -> list[str]:
    return releasable(record(run), run.traffic.now_ms, run.engine.config.traffic)


def submit(run: Run, kind: str, *names: str, first: str | None = None) -> ActionResult:
    """The answer to an operator."""
    action_id = f"op-{run.now_ms}"
    run.act(
        OperatorAction(
            *("1.0.0", action_id, run.now_ms, "anna", kind, "it stands in the way"),
            robotId="R1",
            resources=names or UNSET,
            physicallySecured=True,
            confirmationOf=UNSET if first is None else first,
        )
    )
    run.step()
    return next(answer for action, answer in run.engine.inbox.saved().answers if action.actionId == action_id)


def submit_confirmed(run: Run, kind: str, *names: str) -> ActionResult:
    first = submit(run, kind, *names)
    return submit(run, kind, *names, first=first.actionId) if first.code == "CONFIRMATION_NEEDED" else first


def on_a_lane(run: Run) -> bool:
    return run.world.trucks[0].v_um_s > 1_000_000 and not record(run).zones


def in_its_spur(run: Run) -> bool:
    return run.world.trucks[0].v_um_s > 0 and any(name.startswith("CS:") for name in keeps(run))


def at_work(run: Run) -> bool:
    return run.dispatch.phase(0) is Phase.LOADING


def turns(run: Run) -> bool:
    last = run.engine.last
    return last is not None and last.commands[0].mode is CommandMode.TURN


PLACES = (on_a_lane, in_its_spur, at_work, turns)
# The first round has every trouble and every place.
CASES = [
    pytest.param(PLACES[(index + turn) % len(PLACES)], trouble)
    for turn in range(len(PLACES))
    for index, trouble in enumerate(TROUBLES)
]


def troubled(run: Run, trouble: FaultKind | None) -> None:
    """The truck is paused or has a fault; a while later it stands."""
    if trouble is None:
        submit(run, "PAUSE_ROBOT")
    else:
        run.world.start_fault(0, Fault(trouble, HOUR_MS))
    run.run(run.now_ms + 8_000)


def every_name_is_freed_or_refused(run: Run) -> None:
    for name in keeps(run):
        may = offered(run)
        answer = submit_confirmed(run, "FORCE_RELEASE", name)

        if not answer.accepted:
            assert answer.code in ("ROBOT_STILL_THERE", "ROBOT_NOT_STOPPED", "NOTHING_HELD"), answer
            assert name not in may, answer
        else:
            assert (answer.freedResources, name in may) == ((name,), True)
            assert name not in keeps(run)


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-1", "FLT-TEST-44")
@pytest.mark.parametrize(("there", "trouble"), campaign_after(len(TROUBLES), CASES))
def test_the_place_of_a_truck_is_not_freed_but_the_offered_resources_are(
    there: Callable[[Run], bool], trouble: FaultKind | None
) -> None:
    run = Run(shipped("hall"))
    while not there(run):
        run.step()
    troubled(run, trouble)
    every_name_is_freed_or_refused(run)

    assert keeps(run)
    assert run.run(run.now_ms + 30_000).form["incidents"] == []
    assert submit_confirmed(run, "REMOVE_ROBOT").accepted
    assert keeps(run) == []


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-1", "FLT-TEST-44")
@pytest.mark.parametrize("seed", campaign_after(1, range(6)))
def test_no_forced_release_makes_a_tick_fail(seed: int) -> None:
    draw = Pcg32.seeded(seed, 1)
    run = Run(shipped("hall"))
    run.run(5_000 + 100 * draw.bounded(900))
    troubled(run, TROUBLES[draw.bounded(len(TROUBLES))])
    every_name_is_freed_or_refused(run)

    assert run.run(run.now_ms + 30_000).form["incidents"] == []


@pytest.mark.req("FLT-FAIL-11", "FLT-FAIL-7", "FLT-RES-13")
def test_a_truck_whose_way_ahead_was_freed_continues_from_its_node_and_releases_it() -> None:
    run = Run(shipped("hall"))
    # It has loaded at the end of its spur, has to turn there, and holds its way out.
    run.run(56_500)
    run.world.start_fault(0, Fault(FaultKind.OFFLINE, 20_000))
    run.run(run.now_ms + 8_000)
    assert submit_confirmed(run, "FORCE_RELEASE", "EDGE_GROUP:A1<->A2").accepted
    run.run(run.now_ms + 23_000)
    truck = run.world.trucks[0]
    place = AnchorPlace(run.site.network.edges[truck.edge].key, Decimal(truck.on_um) / MILLION)
    relocate = OperatorAction("1.0.0", "op", run.now_ms, "anna", "RELOCATE", "I see it", robotId="R1", anchor=place)
    run.act(relocate)
    run.step()
    node, kept = record(run).node, keeps(run)
    run.run(run.now_ms + 60_000)

    assert run.site.network.nodes[node].id == "WEST"
    assert {"NODE:WEST", "CS:SPUR-WEST"} <= {*kept}
    assert record(run).stop_code is None
    # Others may enter the spur that it has left.
    assert {"NODE:WEST", "CS:SPUR-WEST"}.isdisjoint(keeps(run))
    assert run.result().form["incidents"] == []
