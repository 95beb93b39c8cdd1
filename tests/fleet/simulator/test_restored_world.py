"""A simulated hall that starts from the state of a fleet: trucks stand at their last reported poses."""

from math import hypot

import pytest
from msgspec.structs import replace

from pendula.fleet.commands import Tick
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import CommandMode
from pendula.fleet.events import Incident
from pendula.fleet.gateway import read_gateway
from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator.world import SimulatedGateway, World, restored_world
from pendula.fleet.units import MILLION


def hall_with_brief_stops() -> Run:
    hall = shipped("hall")
    brief = tuple(replace(stream, pick_ms=2_000, drop_ms=2_000) for stream in hall.streams)
    return Run(replace(hall, streams=brief))


def restarted_world(run: Run) -> World:
    return restored_world(
        run.site, run.traffic.records, run.dispatch, run.scenario.world, run.scenario.seed, run.world.now_ms
    )


@pytest.mark.campaign
@pytest.mark.req("FLT-FAIL-14")
def test_after_a_restart_trucks_have_their_last_reported_poses() -> None:
    run = hall_with_brief_stops()
    seen = set()
    for number in range(1, 1600):
        outputs = run.step()
        if number % 7:
            continue
        for record, aim, after in zip(run.traffic.records, outputs.aims, restarted_world(run).latest, strict=True):
            pose = record.pose
            assert pose is not None
            seen |= {run.dispatch.phase(record.number).value, aim.mode}

            # Both reports may be wrong, and the truck beside its line to either side.
            errors_um = 2 * (FL_STD.localization_error.value_um + FL_STD.tracking_error.value_um)
            assert hypot(after.x_um - pose.x_um, after.y_um - pose.y_um) <= errors_um, (number, record.robot_id)
            # So may both yaws, within the extra margin at the corners.
            wrong_urad = 2 * FL_STD.extra_margin_um * MILLION // run.site.envelope.turn_radius_um
            most_urad = run.site.params.tangent_eps_urad + wrong_urad
            assert abs(turn_urad(pose.yaw_urad, after.yaw_urad)) < most_urad, (number, record.robot_id)

    assert seen >= {"TO_PICK", "LOADING", "TO_DROP", CommandMode.TURN, CommandMode.GO, CommandMode.HOLD}


@pytest.mark.req("FLT-FAIL-14")
@pytest.mark.parametrize(
    ("every", "ticks"),
    [
        (211, 1500),
        pytest.param(197, 1500, marks=pytest.mark.campaign),
        *(pytest.param(every, 2000, marks=pytest.mark.long) for every in (127, 151, 181)),
    ],
)
def test_trucks_continue_after_repeated_restarts(every: int, ticks: int) -> None:
    run = hall_with_brief_stops()
    incidents = []
    for number in range(1, ticks):
        now = run.world.now_ms
        restarted = number % every == 0
        if restarted:
            run.world = restarted_world(run)
        gateway = SimulatedGateway(run.world)
        came = gateway.poll()
        outcome = run.engine.apply(Tick(now, read_gateway(came).reports, task_events=came.over, restarted=restarted))
        incidents += [event for event in outcome.events if isinstance(event, Incident)]
        orders = run.engine.orders_out
        gateway.announce(orders.routes)
        gateway.operate(orders.operations)
        gateway.send(orders.commands)
        run.world.advance(now + 100)

    assert incidents == []
    assert run.dispatch.book.done >= 1
