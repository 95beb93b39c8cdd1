"""Traffic and tasks of autonomous forklifts, part one: from a graph of aisles to a compiled map, and routes on it.

units         micrometres, microradians, and metres as text
model         source maps, fleets, parameters, findings with their codes
trucks        what a truck is, and the room it needs around it
geometry      angles, curves and quadrangles, the same on every machine
reading       documents into models, with all their faults
network       nodes, directed edges, groups, and what hangs together
exclusion     who excludes whom: cells, turning discs, conflicts, corridors, sections
site          what the running system loads: the compiled map and its file
compiler      offline: from a source map to a compiled one
routing       the cheapest way, where on it a truck is
liveness      whether a fleet can run on a map for ever
traffic       who may go on: locks and the refuge rule
driving       trucks on their ways: tracks, records, parameters
targets       where a truck is told to go
views         requests, snapshots and reasons
turns         whose turn it is: ranks, queues, directions
health        whether a truck can be counted on: faults, orders of people, recovery
tick          one tick of traffic after the other
operators     what people do to a running fleet, and what came of it
gateway       what a connection to trucks must do
ports         the parts that can be replaced alone
contracts     the payloads of the scheduler, and their schemas
pictures      a map as a picture, and as GeoJSON
samples       maps of our own
simulator     trucks in virtual time, with noise, delays and losses
scenarios     a map, trucks and tasks in a file, run in virtual time
checker       the independent judge of a run, from poses alone
commands      what goes into a fleet: its configuration, its ticks
events        what comes out of it
engine        the state machine of the scheduler
telling       the events of a tick
explain       why a truck stands
sentences     sentences of codes and facts, where they are shown
saving        a fleet as bytes and back
compiled_sites  compiled maps by their hash
runs          a fleet written down: journals and what is made of them

What may know what is in the layers of `pyproject.toml`.
"""

from pendula.fleet.compiler import Report, compile_map, examine
from pendula.fleet.liveness import Certificate, certify
from pendula.fleet.model import (
    Code,
    CompileParams,
    Finding,
    Fleet,
    Granularity,
    MapDamaged,
    MapRefused,
    MoveStyle,
    Point,
    Severity,
    SourceMap,
    Stream,
    Truck,
)
from pendula.fleet.reading import findings_of, read_fleet, read_params, read_profiles, read_source_map
from pendula.fleet.routing import (
    AtNode,
    Closed,
    OnEdge,
    Planner,
    Pose,
    PoseJump,
    Progress,
    Projection,
    RoutePlan,
    Snapper,
    advanced,
    plan_route,
    splice,
    started,
)
from pendula.fleet.site import CompiledMap, from_bytes, to_bytes
from pendula.fleet.trucks import Envelope, RobotProfile, envelope_of, largest_envelope

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
    "Granularity",
    "MapDamaged",
    "MapRefused",
    "MoveStyle",
    "OnEdge",
    "Planner",
    "Point",
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
