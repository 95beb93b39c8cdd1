"""The tick of the contract's examples: R1 stands in LM2 and turns, R2 follows on `LM1->LM2`."""

from functools import cache

from pendula.fleet import AtNode, Fleet, OnEdge, Planner, RoutePlan, Stream, Truck, plan_route
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import Phase
from pendula.fleet.tick import NodeLockPolicy, TickInputs, TickOutputs, Traffic, TrafficParams
from pendula.fleet.tick.observing import TruckReport
from tests.fleet.routes import on
from tests.fleet.sites import scene

NOW = 123_456_789
FLEET = Fleet((Truck("R1", "FL-STD", "PK1"), Truck("R2", "FL-STD", "PK2")), (Stream("S-A", ("AP1",), ("LM3",)),))
# Positions of R1 and R2 on their routes, tick by tick, in millimetres; the last ones are those of the example.
FIRST = [9_000, 9_100, 9_200, 9_300, 9_400, 9_550, 9_800] + [10_000] * 12
SECOND = [4_200 - 40 * back for back in range(len(FIRST) - 1, -1, -1)]


def task_route(traffic: Traffic, robot_id: str, route_id: str, start: OnEdge | AtNode, rest: str) -> RoutePlan:
    number = traffic.site.node_number
    planned = plan_route(
        Planner(traffic.site, FL_STD),
        robot_id,
        route_id,
        start,
        (number["AP1"], number["LM3"]),
        number[rest],
        closed=traffic.closed[robot_id],
    )
    assert isinstance(planned, RoutePlan)
    return planned


def report(
    robot_id: str, at_ms: int, s_mm: int, v_mm_s: int, y_mm: int = 0, yaw_mrad: int = 0, *, ack: int
) -> TruckReport:
    return TruckReport(
        robot_id=robot_id,
        at_ms=at_ms,
        x_um=s_mm * 1000,
        y_um=y_mm * 1000,
        yaw_urad=yaw_mrad * 1000,
        v_um_s=v_mm_s * 1000,
        phase=Phase.TO_PICK,
        last_ack_seq=ack,
    )


@cache
def example(
    policy: NodeLockPolicy = NodeLockPolicy.TURNING, lookahead_um: int = 8_000_000
) -> tuple[Traffic, TickOutputs]:
    """Traffic after the tick of the examples, and the result of that tick."""
    site = scene("hall-demo")
    starts = {"R1": on(site, "LM1->LM2", FIRST[0] / 1000), "R2": on(site, "LM1->LM2", SECOND[0] / 1000)}
    params = TrafficParams(node_lock_policy=policy, lookahead_um=lookahead_um)
    traffic = Traffic.create(site, FLEET, [FL_STD], params, starts=starts)
    routes: tuple[RoutePlan, ...] = (
        task_route(traffic, "R1", "route-R1-4", starts["R1"], "PK1"),
        task_route(traffic, "R2", "route-R2-9", starts["R2"], "PK2"),
    )
    outputs, ack = None, 0
    for back, (first, second) in enumerate(zip(FIRST, SECOND, strict=True), 1 - len(FIRST)):
        now = NOW + 100 * back
        reports = (
            report("R1", now - 49, first, 0 if first == 10_000 else 200, ack=ack),
            report("R2", now - 49, second, 400, 20, 10, ack=ack),
        )
        outputs = traffic.tick(TickInputs(now, reports, routes))
        routes, ack = (), outputs.commands[0].seq
    assert outputs is not None
    return traffic, outputs
