"""Examine a hall before trucks drive: a route, shorter spurs, a bad place to rest, and a picture.

python examples/hall/survey.py [hall.svg]
"""

import sys
from pathlib import Path

from msgspec.structs import replace

from pendula.fleet import AtNode, CompiledMap, Fleet, Planner, Point, RoutePlan, SourceMap, Truck, certify, plan_route
from pendula.fleet import compile_map as compiled
from pendula.fleet.compiler import FL_STD, reference_fleet, reference_hall
from pendula.fleet.pictures import map_svg

METRE = 1_000_000


def say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")


def with_spur(metres: float) -> SourceMap:
    """The hall with a shorter spur to P1."""
    hall = reference_hall()
    moved = Point(14 * METRE, round(-metres * METRE))
    return replace(hall, nodes=tuple(replace(node, at=moved) if node.id == "P1" else node for node in hall.nodes))


def verdict(site: CompiledMap, fleet: Fleet) -> str:
    """Whether the fleet is live, and the edges closed to R2; or the counterexample."""
    certificate, _ = certify(site, fleet, [FL_STD])
    assert certificate is not None
    why = certificate.counterexample
    if why is not None:
        return f"not live: {why.message}; {why.remedy}"
    keys = sorted(site.network.edges[edge].key for edge in certificate.closed["R2"].edges)
    return f"live, R2 keeps off {', '.join(keys)}"


hall, fleet = compiled(reference_hall(), [FL_STD]), reference_fleet()
say(f"{hall.map_id}: {len(hall.network.nodes)} nodes, {len(hall.cells)} cells, {len(fleet.trucks)} trucks")

node = hall.node_number
route = plan_route(Planner(hall, FL_STD), "R1", "first", AtNode(node["P1"]), (node["WEST"], node["EAST"]), node["P1"])
if isinstance(route, RoutePlan):
    say(f"\nR1 goes to the goods in {route.cost_us / 1e6:.1f} s:")
    for segment in route.segments:
        turn = f", then turns by {segment.turn_urad / 1e6:+.2f} rad" if segment.turn_urad else ""
        say(f"  {hall.network.edges[segment.edge].key:8}  {segment.length_um / 1e6:4.1f} m{turn}")

say("\nHow long must the spur to P1 be?")
for metres in (8.0, 5.0, 3.5):
    say(f"  {metres} m: {verdict(compiled(with_spur(metres), [FL_STD]), fleet)}")

say("\nMay R3 rest in a junction?")
for junction in ("B2", "A1"):
    moved = replace(fleet, trucks=(*fleet.trucks[:2], Truck("R3", "FL-STD", junction)))
    say(f"  {junction}: {verdict(hall, moved)}")

if len(sys.argv) > 1:
    Path(sys.argv[1]).write_text(map_svg(hall), encoding="utf-8")
