"""The directions in which a one-way preference sends the trucks of a scenario, for its map."""

from pendula.fleet.compiler.compile import compile_map
from pendula.fleet.routing.opposition import opposite_edges
from pendula.fleet.routing.planner import Planner
from pendula.fleet.scenarios import Scenario
from pendula.fleet.tasks.ways import against_the_stream_us


def preferred_edges(scenario: Scenario, trucks: int, milli: int) -> tuple[str, ...]:
    """The preferred edges of lanes with two directions, where most trips of the first trucks by name go one way. Empty
    if no lane is driven both ways, or without a preference."""
    if not milli:
        return ()
    site = compile_map(scenario.source, scenario.profiles, scenario.compile_params)
    robots = sorted(scenario.robots, key=lambda robot: robot.robot_id)[:trucks]
    active = {robot.robot_id for robot in robots}
    streams = [stream for stream in scenario.streams if not stream.robot_ids or active & {*stream.robot_ids}]
    rests = [site.node_number[robot.park_node_id] for robot in robots]
    opposite, edges = opposite_edges(site), site.network.edges
    profile = next(profile for profile in scenario.profiles if profile.profile_id == robots[0].profile_id)
    dearer = against_the_stream_us(site, Planner(site, profile), streams, rests, milli)
    return tuple(sorted({edges[other].key for edge in dearer for other in opposite[edge] if other not in dearer}))
