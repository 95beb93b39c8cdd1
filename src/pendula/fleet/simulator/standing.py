"""Simulated trucks where a fleet believes them to be: a simulation that begins in the middle of a fleet's life.

What a restart of everything does to a simulated hall: the trucks stand, with what they carry, where they were last
heard of, know the route they were on, and have acknowledged what they had acknowledged.
"""

from collections.abc import Sequence

from pendula.fleet.contracts.traffic import CommandMode, Phase
from pendula.fleet.driving.records import Record
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.simulator.kinematics import Order, SimulatedTruck
from pendula.fleet.simulator.settings import WorldSettings
from pendula.fleet.simulator.world import Start, World
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tasks import Dispatch


def standing_world(
    site: CompiledMap, records: Sequence[Record], dispatch: Dispatch, settings: WorldSettings, seed: int, now_ms: int
) -> World:
    """A world at a time of the fleet; what trucks were loading or unloading they begin anew."""
    world = World(site, [start_of(one) for one in records], settings, seed, now_ms)
    for record, truck in zip(records, world.trucks, strict=True):
        _take_up(record, truck)
        world.loaded[record.number] = record.load
        task = dispatch.task_of(record.number)
        phase = dispatch.phase(record.number)
        if task is not None and phase in (Phase.LOADING, Phase.UNLOADING):
            loads = phase is Phase.LOADING
            world.operate(record.number, task.order.pick_ms if loads else task.order.drop_ms, loads)
    world.look_anew()
    return world


def start_of(record: Record) -> Start:
    """Where a truck stands: on its way, or in its node at the end of the first way in."""
    network = record.site.network
    plan = None if record.track is None else record.track.plan
    if plan is not None and plan.segments:
        at = min(max(record.at_um, plan.start_um), plan.length_um)
        segment = plan.segments[plan.segment_at(at)]
        edge, on_um = segment.edge, at - segment.route_s0_um
    elif network.incoming[record.node]:
        edge = network.incoming[record.node][0]
        on_um = network.edges[edge].path.length_um
    else:
        edge, on_um = network.outgoing[record.node][0], 0
    yaw = truck_yaw(network.edges[edge].path.heading(on_um), network.edges[edge].style)
    return Start(record.robot_id, record.profile, edge, on_um, yaw if record.pose is None else record.pose.yaw_urad)


def _take_up(record: Record, truck: SimulatedTruck) -> None:
    plan = None if record.track is None else record.track.plan
    if plan is None:
        return
    truck.resume(plan, plan.segment_at(min(max(record.at_um, plan.start_um), plan.length_um)) if plan.segments else 0)
    truck.order = Order(
        seq=record.ack_seq,
        mode=CommandMode.HOLD,
        route=(plan.route_id, plan.revision),
        target_um=truck.s_um,
        stop_line_um=truck.s_um,
        limit_um_s=0,
        yaw_urad=None,
        valid_ms=0,
    )
