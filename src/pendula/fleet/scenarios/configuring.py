"""The engine configuration of a scenario, with which its journal begins."""

from collections.abc import Mapping

from pendula.fleet.commands import Config, StartPlace
from pendula.fleet.driving.params import spelled_out
from pendula.fleet.routing.planner import Anchor, AtNode, OnEdge
from pendula.fleet.scenarios.model import Scenario
from pendula.fleet.site.compiled_map import CompiledMap


def config_of(scenario: Scenario, site: CompiledMap, starts: Mapping[str, Anchor]) -> Config:
    """`starts` are the anchors of trucks that do not start at rest."""
    return Config(
        source=scenario.source,
        profiles=scenario.profiles,
        fleet=scenario.fleet,
        compiled_hash=site.compiled_hash,
        compile_params=scenario.compile_params,
        traffic=spelled_out(scenario.traffic, scenario.profiles),
        starts=tuple(_place(site, robot_id, starts[robot_id]) for robot_id in sorted(starts)),
        streams=scenario.streams,
        dispatch=scenario.dispatch,
        override=scenario.override,
        seed=scenario.seed,
    )


def _place(site: CompiledMap, robot_id: str, start: Anchor) -> StartPlace:
    match start:
        case OnEdge(edge, s_um):
            return StartPlace(robot_id, edge_key=site.network.edges[edge].key, s_um=s_um)
        case AtNode(node, yaw):
            return StartPlace(robot_id, node_id=site.network.nodes[node].id, yaw_urad=yaw)
