"""Simulated trucks where a fleet believes them to be: a simulation that begins in the middle of a fleet's life.

What a restart of everything does to a simulated hall: the trucks stand, with what they carry, where they were last
heard of, know the route they were on, and have acknowledged what they had acknowledged.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from pendula.fleet.contracts.traffic import CommandMode, Phase
from pendula.fleet.driving.records import Record
from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.routing.planner import AtNode
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.simulator.kinematics import Order, SimulatedTruck
from pendula.fleet.simulator.settings import WorldSettings
from pendula.fleet.simulator.world import Start, World
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tasks import Dispatch

# So near before a node a truck may say it is that turns in it.
_IN_NODE_UM = 300_000


def standing_world(
    site: CompiledMap, records: Sequence[Record], dispatch: Dispatch, settings: WorldSettings, seed: int, now_ms: int
) -> World:
    """A world at a time of the fleet; what trucks were loading or unloading they begin anew."""
    world = World(site, [start_of(one) for one in records], settings, seed, now_ms)
    world.follow(records)
    for record, truck in zip(records, world.trucks, strict=True):
        if record.removed_ms is None:
            _take_up(record, truck)
        elif record.pose is not None:
            world.put(record.number, record.pose.x_um, record.pose.y_um, record.pose.yaw_urad)
            # One that has reported since it was removed is in the hall again.
            world.out[record.number] = record.is_out
        world.loaded[record.number] = record.load
        task = dispatch.task_of(record.number)
        phase = dispatch.phase(record.number)
        if task is not None and phase in (Phase.LOADING, Phase.UNLOADING):
            loads = phase is Phase.LOADING
            world.operate(record.number, task.order.pick_ms if loads else task.order.drop_ms, loads)
    world.look_anew()
    for record in records:
        if record.is_out:
            # It is off: what it said last is all that is known of it.
            world.latest[record.number] = replace(world.latest[record.number], at_ms=record.report_ms)
    return world


def start_of(record: Record) -> Start:
    """Where a truck stands: on its way, or in its node at the end of the first way in."""
    network = record.site.network
    plan = _way_of(record)
    if plan is not None and plan.segments:
        number, on_um = _on_way(record, plan)
        edge = plan.segments[number].edge
    else:
        node = plan.start.node if plan is not None and isinstance(plan.start, AtNode) else record.node
        ways = network.incoming[node]
        edge = ways[0] if ways else network.outgoing[node][0]
        on_um = network.edges[edge].path.length_um if ways else 0
    yaw = truck_yaw(network.edges[edge].path.heading(on_um), network.edges[edge].style)
    return Start(record.robot_id, record.profile, edge, on_um, yaw if record.pose is None else record.pose.yaw_urad)


def _way_of(record: Record) -> RoutePlan | None:
    return None if record.track is None else record.track.plan


def _on_way(record: Record, plan: RoutePlan) -> tuple[int, int]:
    """The segment that a truck is on, and where on it. A node belongs to the segment before it as long as the truck
    has something to do there, and to the next one from then on, whatever noise made of its place."""
    assert record.track is not None
    at_um = min(max(record.at_um, plan.start_um), plan.length_um)
    done = record.track.acts[: record.acted]
    if done and at_um <= done[-1].s_um:
        return plan.passed(done[-1].s_um), 0
    act = record.act
    if act is not None and at_um < act.s_um <= min(at_um + _IN_NODE_UM, record.grant_um, plan.length_um):
        at_um = act.s_um if _looks_aside(record, plan, act.s_um) else at_um
    number = plan.segment_at(at_um)
    return number, at_um - plan.segments[number].route_s0_um


def _looks_aside(record: Record, plan: RoutePlan, node_um: int) -> bool:
    """Whether a truck before a node does not look along its lane: it is in the node already, and turns."""
    along = plan.pose_at(node_um).yaw_urad
    return record.pose is not None and abs(turn_urad(along, record.pose.yaw_urad)) > plan.site.params.tangent_eps_urad


def _take_up(record: Record, truck: SimulatedTruck) -> None:
    plan = _way_of(record)
    if plan is None:
        return
    truck.resume(plan, _on_way(record, plan)[0] if plan.segments else 0)
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
