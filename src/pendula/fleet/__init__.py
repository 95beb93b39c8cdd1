"""Traffic and tasks of autonomous forklifts: maps and their compiler, routes, locks, commands, tasks.

Packages, from the lowest: `map`, `compiler` (offline), `pictures`, `traffic` (locks), `tick`, `tasks`, `gateway`,
`simulator`, `checker` (an independent judge), `scenarios`, `runs`. At the root are the nouns (`model`, `units`,
`contracts`), the state machine (`commands`, `engine`, `events`, `saving`) and its answers (`explain`, `sentences`).
`.importlinter` has the order.
"""

from pendula.fleet.compiler import Report, compile_map, examine
from pendula.fleet.map import CompiledMap, Envelope, RobotProfile, envelope_of, from_bytes, largest_envelope, to_bytes
from pendula.fleet.map.liveness import Certificate, certify
from pendula.fleet.map.planner import AtNode, Closed, OnEdge, Planner
from pendula.fleet.map.reading import findings_of, read_fleet, read_params, read_profiles, read_source_map
from pendula.fleet.map.routes import (
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
