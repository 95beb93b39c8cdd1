"""A blocker is named with the resource it holds, and queues are for the resource waited for."""

import pytest
from msgspec.structs import replace

from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tick.invariants import falsely_blamed
from pendula.fleet.tick.reasons import WAIT_QUEUE_ORDER, held_against, queue_of
from tests.campaigns import campaign_except
from tests.fleet.scenarios.watching import false_blockers


def waits(name: str) -> Run:
    """A shipped scenario at the moment when a truck begins to wait for a resource of another."""
    run = Run(replace(shipped(name), expect=()))
    while not any(record.waiting is not None and record.waiting.theirs is not None for record in run.traffic.records):
        run.step()
    return run


@pytest.mark.req("FLT-DCL-14")
@pytest.mark.parametrize(
    "name",
    campaign_except(("crossing", "preemption"), ["crossing", "near-lanes", "overrun", "preemption", "task-held"]),
)
def test_every_blocker_holds_the_resource_it_is_named_with(name: str) -> None:
    run = Run(replace(shipped(name), expect=(), duration_ms=90_000))
    wrong: list[str] = []
    while run.now_ms < run.scenario.duration_ms and not run.is_over:
        wrong += false_blockers(run.step())

    assert wrong == []
    assert run.measures.violations["I-14"] == 0


@pytest.mark.req("FLT-DCL-14", "FLT-OSC-1")
def test_a_truck_that_waits_at_a_crossing_requests_its_own_lane_and_queues_for_the_other() -> None:
    run = waits("crossing")
    waiter = next(record for record in run.traffic.records if record.waiting is not None)
    outputs = run.step()
    result = next(result for result in outputs.results if result.robotId == waiter.robot_id)
    queues = {queue.resourceId: [queued.robotId for queued in queue.queue] for queue in outputs.snapshot().queues or ()}
    assert result.blocker is not None
    held, requested = result.blocker.blockerResourceId, result.requestedResourceId

    assert held != requested
    assert queues == {held: [waiter.robot_id]}
    assert outputs.results[1 - waiter.number].ok


@pytest.mark.req("FLT-DCL-14")
def test_a_blocker_that_does_not_hold_what_is_named_breaks_an_invariant() -> None:
    run = waits("crossing")
    records, locks = run.traffic._records, run.traffic._locks
    waiter = next(record for record in records if record.waiting is not None)
    found = held_against(waiter, records)
    assert found is not None
    before = list(falsely_blamed(records, locks))
    locks.truck(found.by.number).held.discard(found.resource)

    assert before == []
    assert [name for name, _ in falsely_blamed(records, locks)] == ["I-14"]


@pytest.mark.req("FLT-OSC-1")
def test_a_truck_that_may_not_overtake_stands_in_the_queue_of_the_waiter() -> None:
    run = waits("crossing")
    records = [record.copied() for record in run.traffic.records]
    waiter = next(record for record in records if record.waiting is not None)
    other = records[1 - waiter.number]
    assert waiter.waiting is not None
    third = other.copied()
    third.number = 2
    third.waiting = replace(waiter.waiting, code=WAIT_QUEUE_ORDER, by=waiter.number, theirs=None)

    assert queue_of(third, [*records, third]) == queue_of(waiter, records)
