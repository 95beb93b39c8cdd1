"""Routes of the reference truck, shared by the routing tests."""

from pendula.fleet import AtNode, CompiledMap, OnEdge, Planner, RoutePlan, plan_route
from pendula.fleet.compiler.samples import FL_STD


def route(site: CompiledMap, start: OnEdge | AtNode, *stops: str, rest: str | None = None) -> RoutePlan:
    number = site.node_number
    planned = plan_route(
        Planner(site, FL_STD),
        "R2",
        "route-R2-9",
        start,
        tuple(number[stop] for stop in stops),
        None if rest is None else number[rest],
    )
    assert isinstance(planned, RoutePlan), planned
    return planned


def on(site: CompiledMap, key: str, s_m: float) -> OnEdge:
    return OnEdge(site.edge_number[key], round(s_m * 1e6))
