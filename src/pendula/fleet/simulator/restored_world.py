"""A simulated hall that starts from the state of a running fleet, as after a restart of the server.

The trucks stand at their last reported positions, with their loads, routes and acknowledged sequence numbers.
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

# A truck that turns in a node may report a position this far before it.
_IN_NODE_UM = 300_000


def restored_world(
    site: CompiledMap, records: Sequence[Record], dispatch: Dispatch, settings: WorldSettings, seed: int, now_ms: int
) -> World:
    """The world at a time of the fleet; running loading and unloading operations start again."""
    world = World(site, [start_of(record) for record in records], settings, seed, now_ms)
    world.follow(records)
    for record, truck in zip(records, world.trucks, strict=True):
        if record.removed_ms is None:
            _restore_route(record, truck)
        elif record.pose is not None:
            world.put(record.number, record.pose.x_um, record.pose.y_um, record.pose.yaw_urad)
            # A truck that has reported since its removal is in the hall again.
            world.out[record.number] = record.is_out
        world.loaded[record.number] = record.load
        task = dispatch.task_of(record.number)
        phase = dispatch.phase(record.number)
        if task is not None and phase in (Phase.LOADING, Phase.UNLOADING):
            loads = phase is Phase.LOADING
            world.operate(record.number, task.order.pick_ms if loads else task.order.drop_ms, loads)
    world.refresh_reports()
    for record in records:
        if record.is_out:
            # The truck is off: keep the time of its last report.
            world.latest[record.number] = replace(world.latest[record.number], at_ms=record.report_ms)
    return world


def start_of(record: Record) -> Start:
    """Where a truck stands: on its route, or in its node at the end of the first way in."""
    network = record.site.network
    plan = _plan_of(record)
    if plan is not None and plan.segments:
        number, on_um = _position_on(record, plan)
        edge = plan.segments[number].edge
    else:
        node = plan.start.node if plan is not None and isinstance(plan.start, AtNode) else record.node
        ways = network.incoming[node]
        edge = ways[0] if ways else network.outgoing[node][0]
        on_um = network.edges[edge].path.length_um if ways else 0
    yaw = truck_yaw(network.edges[edge].path.heading(on_um), network.edges[edge].style)
    return Start(record.robot_id, record.profile, edge, on_um, yaw if record.pose is None else record.pose.yaw_urad)


def _plan_of(record: Record) -> RoutePlan | None:
    return None if record.track is None else record.track.plan


def _position_on(record: Record, plan: RoutePlan) -> tuple[int, int]:
    """The segment of a truck and its position on it. A node belongs to the segment before it until the truck has done
    its act there, then to the next one, regardless of the noise in the reported position."""
    assert record.track is not None
    at_um = min(max(record.at_um, plan.start_um), plan.length_um)
    done = record.track.acts[: record.acted]
    if done and at_um <= done[-1].s_um:
        return plan.passed(done[-1].s_um), 0
    act = record.act
    if act is not None and at_um < act.s_um <= min(at_um + _IN_NODE_UM, record.grant_um, plan.length_um):
        at_um = act.s_um if _is_turning(record, plan, act.s_um) else at_um
    number = plan.segment_at(at_um)
    return number, at_um - plan.segments[number].route_s0_um


def _is_turning(record: Record, plan: RoutePlan, node_um: int) -> bool:
    """Whether a truck before a node does not face along its lane: then it is already turning in the node."""
    along = plan.pose_at(node_um).yaw_urad
    return record.pose is not None and abs(turn_urad(along, record.pose.yaw_urad)) > plan.site.params.tangent_eps_urad


def _restore_route(record: Record, truck: SimulatedTruck) -> None:
    plan = _plan_of(record)
    if plan is None:
        return
    truck.resume(plan, _position_on(record, plan)[0] if plan.segments else 0)
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
