"""A simulated hall that is begun anew in the middle of a fleet's life: trucks stand where they were heard of."""

import pytest
from msgspec.structs import replace

from pendula.fleet.commands import Tick
from pendula.fleet.events import Incident
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator.connection import SimulatedGateway
from pendula.fleet.simulator.standing import standing_world
from pendula.fleet.tasks import OperationDone


@pytest.mark.req("FLT-FAIL-14")
def test_trucks_go_on_after_everything_was_restarted_while_they_drove_turned_and_loaded() -> None:
    hall = shipped("hall")
    brief = tuple(replace(one, pick_ms=2_000, drop_ms=2_000) for one in hall.streams)
    run = Run(replace(hall, streams=brief))
    incidents = []
    held: set[str] = set()
    for number in range(1, 2000):
        now = run.world.now_ms
        restarted = number % 181 == 0
        if restarted:
            records = run.traffic.records
            run.world = standing_world(run.site, records, run.dispatch, run.scenario.world, run.scenario.seed, now)
            held |= {run.dispatch.phase(one.number).value for one in records}
        gateway = SimulatedGateway(run.world)
        heard = gateway.received()
        done = tuple(map(OperationDone, heard.done))
        told = run.engine.apply(Tick(now, heard.reports, task_events=done, restarted=restarted))
        incidents += [one for one in told.events if isinstance(one, Incident)]
        orders = run.engine.orders_out
        gateway.announce(orders.routes)
        gateway.operate(orders.operations)
        gateway.send(orders.commands)
        run.world.advance(now + 100)

    assert incidents == []
    assert run.dispatch.book.done >= 2
    assert len(held) >= 3
