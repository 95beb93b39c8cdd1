"""Traffic and tasks of autonomous forklifts, part one: from a graph of aisles to a compiled map, and routes on it.

units, angles                   micrometres, microradians, and an arctangent that is the same everywhere
model, profiles, envelope       source maps, trucks with their margins, what a truck needs around it
outline                         corners of trucks, for pictures
loading, source_form, unread    documents into models with all their faults, and back; what nobody reads
bezier, curves, paths           geometry of edges
network, lanes, reach, extent   nodes, directed edges, groups; what hangs together; how much a map may hold
swept, shapes, kinks, cells     areas an envelope covers, also in nodes; cells of pivot positions
conflicts, zones, relation      what excludes what
corridors, sections             chains and dead ends
transitions, standing           turns in nodes; where a truck may be left standing
validation, liveness, clearance what is wrong with a map; whether a fleet can run on it for ever
compiled, artifact, compiler    the compiled map, its file, how it is made
planner, routes, snapping       the cheapest way, where on it a truck is
progress, replanning            how far a truck has come; when it may look for another way
contracts, traffic_contracts    the payloads, and their schemas (schema)
drawing, sheet, parts, geojson  the picture of a map, and its shapes for other tools
maps                            maps of our own
"""

from pendula.fleet.compiler.compile import Report, compile_map, examine
from pendula.fleet.liveness.certificate import Certificate, certify
from pendula.fleet.model import (
    Code,
    CompileParams,
    Finding,
    Fleet,
    MapDamaged,
    MapRefused,
    Severity,
    SourceMap,
    Stream,
    Truck,
)
from pendula.fleet.reading import findings_of, read_fleet, read_params, read_profiles, read_source_map
from pendula.fleet.routing.planner import AtNode, Closed, OnEdge, Planner
from pendula.fleet.routing.progress import PoseJump, Progress, advanced, started
from pendula.fleet.routing.route_plan import Pose, Projection, RoutePlan, plan_route, splice
from pendula.fleet.routing.snapping import Snapper
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.site.file import from_bytes, to_bytes
from pendula.fleet.trucks.envelope import Envelope, envelope_of, largest_envelope
from pendula.fleet.trucks.profiles import RobotProfile

__all__ = [
    "AtNode",
    "Certificate",
    "Closed",
    "Code",
    "CompileParams",
    "CompiledMap",
    "Envelope",
    "Finding",
    "Fleet",
    "MapDamaged",
    "MapRefused",
    "OnEdge",
    "Planner",
    "Pose",
    "PoseJump",
    "Progress",
    "Projection",
    "Report",
    "RobotProfile",
    "RoutePlan",
    "Severity",
    "Snapper",
    "SourceMap",
    "Stream",
    "Truck",
    "advanced",
    "certify",
    "compile_map",
    "envelope_of",
    "examine",
    "findings_of",
    "from_bytes",
    "largest_envelope",
    "plan_route",
    "read_fleet",
    "read_params",
    "read_profiles",
    "read_source_map",
    "splice",
    "started",
    "to_bytes",
]
