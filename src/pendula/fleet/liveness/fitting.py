"""Mismatches of a fleet and a map, checked before the map conditions: unknown names, other truck profiles, undeclared
stations in dead ends."""

from collections.abc import Mapping, Sequence

from pendula.fleet.model import Code, Finding, Fleet, Stream, Truck, finding, pick_is_drop
from pendula.fleet.sentences import map_finding
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.profiles import RobotProfile, hash_of
from pendula.kernel.wording import suggestion


def fleet_findings(site: CompiledMap, fleet: Fleet, profiles: Sequence[RobotProfile]) -> list[Finding]:
    """Findings that forbid checking the map conditions for a fleet."""
    known = site.node_number
    findings = []
    if hash_of(profiles) != site.profile_hash:
        message = "the map was compiled for other truck profiles"
        findings.append(finding(Code.PROFILE_HASH_MISMATCH, message, "compile it again", expected=site.profile_hash))
    names = {profile.profile_id for profile in profiles}
    seen: set[str] = set()
    for truck in fleet.trucks:
        if truck.robot_id in seen:
            message = f"there are two trucks {truck.robot_id!r}"
            findings.append(finding(Code.DUPLICATE_ID, message, "rename one", id=truck.robot_id))
        seen.add(truck.robot_id)
        if truck.profile_id not in names:
            message = f"truck {truck.robot_id!r} has the unknown profile {truck.profile_id!r}"
            message += suggestion(truck.profile_id, sorted(names))
            findings.append(finding(Code.PROFILE_MISSING_FIELD, message, "add the profile", robotId=truck.robot_id))
        if truck.park_node_id not in known:
            message = f"the rest node {truck.park_node_id!r} of truck {truck.robot_id!r} is not a node"
            message += suggestion(truck.park_node_id, tuple(known))
            findings.append(
                finding(Code.MISSING_PARKING_NODE, message, "name an existing node", robotId=truck.robot_id)
            )
    for stream in fleet.streams:
        for name in dict.fromkeys((*stream.pick_node_ids, *stream.drop_node_ids)):
            if name not in known:
                message = f"stream {stream.stream_id!r} names {name!r}, which is not a node"
                message += suggestion(name, tuple(known))
                findings.append(finding(Code.MISSING_PICK_DROP_NODE, message, "name an existing node", nodeId=name))
            if name in stream.pick_node_ids and name in stream.drop_node_ids:
                message = pick_is_drop(f"stream {stream.stream_id!r}", name)
                findings.append(finding(Code.MISSING_PICK_DROP_NODE, message, "name another node", nodeId=name))
        for name in stream.robot_ids:
            if name not in seen:
                message = f"stream {stream.stream_id!r} names the truck {name!r}, which is not in the fleet"
                message += suggestion(name, sorted(seen))
                findings.append(finding(Code.MAP_PARSE_ERROR, message, "name a truck of the fleet", robotId=name))
    return findings


def serves(truck: Truck, stream: Stream, number: Mapping[str, int], network_of: Sequence[int]) -> bool:
    """Whether a truck serves a stream: the stream names it, or names no truck and has a stop in the network of its rest
    node."""
    if stream.robot_ids:
        return truck.robot_id in stream.robot_ids
    own = network_of[number[truck.park_node_id]]
    return any(network_of[number[name]] == own for name in (*stream.pick_node_ids, *stream.drop_node_ids))


def undeclared_dead_ends(site: CompiledMap, fleet: Fleet) -> list[Finding]:
    """Picks and drops in dead ends that the map does not declare as stations. Without a section a second truck may
    follow the first one in."""
    network = site.network
    guarded = {member.group for section in site.sections for member in section.members}
    stops = {
        site.node_number[name]
        for stream in fleet.streams
        for name in (*stream.pick_node_ids, *stream.drop_node_ids)
        if name in site.node_number
    }
    return [
        map_finding(Code.DEAD_END_WITHOUT_TOKEN, nodeId=network.nodes[node].id)
        for node in sorted(stops)
        if _is_dead_end(site, node) and network.meeting[node][0] not in guarded
    ]


def _is_dead_end(site: CompiledMap, node: int) -> bool:
    """Whether trucks enter and leave a node by the same lane."""
    network = site.network
    return network.degree(node) == 1 and bool(network.incoming[node] and network.outgoing[node])
