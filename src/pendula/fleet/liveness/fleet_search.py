"""A fleet for a map that came without one: the first that can run on it for ever, found by trying.

Trucks rest in parks and carry between stations where the map has them, and in other nodes where it has none. The same
map gives the same fleet; how much is tried is bounded, so a map may be given none although one exists.
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
    """Up to so many trucks and one stream, LIVE on the map; None where nothing that was tried is."""
    rests = _rests(site)
    for pick, drop in islice(_stops(site), _MOST_STREAMS):
        fleet = Fleet((), (Stream("S1", (pick,), (drop,)),))
        for rest in rests:
            if rest not in (pick, drop):
                number = len(fleet.trucks) + 1
                grown = replace(fleet, trucks=(*fleet.trucks, Truck(f"R{number}", profile.profile_id, rest)))
                fleet = grown if _live(site, grown, profile) else fleet
            if len(fleet.trucks) == trucks:
                break
        if fleet.trucks:
            return fleet
    return None


def _live(site: CompiledMap, fleet: Fleet, profile: RobotProfile) -> bool:
    certificate, _ = certify(site, fleet, [profile])
    return certificate is not None and certificate.live


def _rests(site: CompiledMap) -> list[str]:
    """Parks first, then the ends of dead ends, then all others."""
    network = site.network
    order = sorted(range(len(network.nodes)), key=lambda node: (not network.nodes[node].parking, network.degree(node)))
    return [network.nodes[node].id for node in order[:_MOST_RESTS]]


def _stops(site: CompiledMap) -> Iterator[tuple[str, str]]:
    """Pairs of stations; where there are none, of nodes in which nobody is meant to park."""
    nodes = site.network.nodes
    stations = [node.id for node in nodes if node.station]
    others = [node.id for node in nodes if not node.station and not node.parking]
    yield from islice(permutations(stations, 2), _MOST_STREAMS // 2)
    yield from permutations([*stations, *others], 2)
