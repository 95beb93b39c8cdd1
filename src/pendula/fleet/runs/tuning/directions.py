"""Which way round a one-way preference sends the trucks of a scenario: the directions to draw into its map."""

from pendula.fleet.compiler.compile import compile_map
from pendula.fleet.routing.opposition import opposite_edges
from pendula.fleet.routing.planner import Planner
from pendula.fleet.scenarios import Scenario
from pendula.fleet.tasks.ways import against_the_stream_us


def preferred_edges(scenario: Scenario, trucks: int, milli: int) -> tuple[str, ...]:
    """The edges that are preferred to those of the same lane which run the other way, where most trips of the first
    trucks by name go one way. Empty where no lane is driven both ways, or nothing is preferred."""
    if not milli:
        return ()
    site = compile_map(scenario.source, scenario.profiles, scenario.compile_params)
    robots = sorted(scenario.robots, key=lambda one: one.robot_id)[:trucks]
    active = {one.robot_id for one in robots}
    streams = [one for one in scenario.streams if not one.robot_ids or active & {*one.robot_ids}]
    rests = [site.node_number[one.park_node_id] for one in robots]
    opposite, edges = opposite_edges(site), site.network.edges
    profile = next(one for one in scenario.profiles if one.profile_id == robots[0].profile_id)
    dearer = against_the_stream_us(site, Planner(site, profile), streams, rests, milli)
    return tuple(sorted({edges[other].key for edge in dearer for other in opposite[edge] if other not in dearer}))
