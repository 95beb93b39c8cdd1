"""Search for a fleet on a map that comes without one: the first candidate for which the map is LIVE.

Trucks rest at parking nodes and carry between stations; where the map has none, at other nodes. The same map gives the
same fleet. The search is bounded, so it may miss an existing fleet.
"""

from collections.abc import Iterator
from itertools import islice, permutations

from msgspec.structs import replace

from pendula.fleet.liveness.certificate import certify
from pendula.fleet.model import Fleet, Stream, Truck
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.profiles import RobotProfile

_MOST_STREAMS = 40
_MOST_RESTS = 30


def fitting_fleet(site: CompiledMap, profile: RobotProfile, trucks: int = 4) -> Fleet | None:
    """A fleet of at most `trucks` trucks and one stream that is LIVE on the map; None if the search finds none."""
    rests = _rests(site)
    for pick, drop in islice(_stops(site), _MOST_STREAMS):
        fleet = Fleet((), (Stream("S1", (pick,), (drop,)),))
        for rest in rests:
            if rest not in (pick, drop):
                number = len(fleet.trucks) + 1
                candidate = replace(fleet, trucks=(*fleet.trucks, Truck(f"R{number}", profile.profile_id, rest)))
                fleet = candidate if _is_live(site, candidate, profile) else fleet
            if len(fleet.trucks) == trucks:
                break
        if fleet.trucks:
            return fleet
    return None


def _is_live(site: CompiledMap, fleet: Fleet, profile: RobotProfile) -> bool:
    certificate, _ = certify(site, fleet, [profile])
    return certificate is not None and certificate.live


def _rests(site: CompiledMap) -> list[str]:
    """Candidates: parking nodes first, then ends of dead ends, then all other nodes."""
    network = site.network
    order = sorted(range(len(network.nodes)), key=lambda node: (not network.nodes[node].parking, network.degree(node)))
    return [network.nodes[node].id for node in order[:_MOST_RESTS]]


def _stops(site: CompiledMap) -> Iterator[tuple[str, str]]:
    """Pairs of stations, then pairs that include other nodes; parking nodes are excluded."""
    nodes = site.network.nodes
    stations = [node.id for node in nodes if node.station]
    others = [node.id for node in nodes if not node.station and not node.parking]
    yield from islice(permutations(stations, 2), _MOST_STREAMS // 2)
    yield from permutations([*stations, *others], 2)
