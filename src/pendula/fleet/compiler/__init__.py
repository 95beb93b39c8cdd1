"""The map compiler, and sample maps. It runs offline, and only it needs shapely."""

from pendula.fleet.compiler.compile import Report, compile_map, examine
from pendula.fleet.compiler.generated_maps import Sample, built_warehouse, live_map, random_map, spur_grid
from pendula.fleet.compiler.normal_form import normalised
from pendula.fleet.compiler.samples import FL_STD, Sketch, large, reference_fleet, reference_hall, warehouse
from pendula.fleet.compiler.swept import pose_slack, sweep_slack

__all__ = [
    "FL_STD",
    "Report",
    "Sample",
    "Sketch",
    "built_warehouse",
    "compile_map",
    "examine",
    "large",
    "live_map",
    "normalised",
    "pose_slack",
    "random_map",
    "reference_fleet",
    "reference_hall",
    "spur_grid",
    "sweep_slack",
    "warehouse",
]
