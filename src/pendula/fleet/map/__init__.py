"""Maps and trucks, as a running fleet loads them: networks, exclusion, sites with their files, routes, liveness."""

from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.site_file import cell_form, from_bytes, shape_form, to_bytes
from pendula.fleet.map.trucks import (
    Envelope,
    ErrorValue,
    RobotProfile,
    Source,
    doubts,
    envelope_of,
    largest_envelope,
    stop_distance_um,
)

__all__ = [
    "CompiledMap",
    "Envelope",
    "ErrorValue",
    "RobotProfile",
    "Source",
    "cell_form",
    "doubts",
    "envelope_of",
    "from_bytes",
    "largest_envelope",
    "shape_form",
    "stop_distance_um",
    "to_bytes",
]
