"""Traffic and tasks of autonomous forklifts: maps and their compiler, routes, locks, commands, tasks.

units         micrometres, microradians, and metres as text
model         source maps, fleets, parameters, findings with their codes
trucks        what a truck is, and the room it needs around it
geometry      angles, curves and quadrangles, the same on every machine
reading       documents to models, with all their faults
network       nodes, directed edges, groups, connected components
exclusion     what excludes what: cells, turning discs, conflicts, corridors, sections
site          what the running system loads: the compiled map and its file
compiler      offline: from a source map to a compiled one
routing       the cheapest route, and the position of a truck on it
liveness      whether a fleet can run on a map without ever blocking itself
traffic       grants: locks and the refuge rule
driving       trucks on their routes: tracks, records, parameters
targets       target, stop line and speed of a truck
views         requests, snapshots and reasons
turns         ranks, queues, directions
health        faults, operator orders, recovery
tick          the ticks of traffic
operators     operator actions on a running fleet, and their answers
gateway       the connection to trucks
ports         the parts that can be replaced
contracts     the payloads of the scheduler, and their schemas
pictures      a map as a picture, and as GeoJSON
samples       built-in maps
simulator     trucks in virtual time, with noise, delays and losses
scenarios     a map, trucks and tasks in a file, run in virtual time
checker       the independent judge of a run, from poses alone
commands      the input of a fleet: configuration and ticks
events        the output of a fleet
engine        the state machine of the scheduler
tick_events   the events of a tick
explain       why a truck stands
sentences     sentences of codes and facts
saving        a fleet as bytes and back
compiled_sites  compiled maps by their hash
runs          journals of fleets, and what is made of them

`.importlinter` has the order of the layers.
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
