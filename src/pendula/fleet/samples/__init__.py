"""Bundled sample maps, for documentation, tests and benchmarks.

scenes         small scenes, the reference truck, and `Sketch` to draw others
scene_fleets   fleets for which the small scenes and the halls are LIVE
halls          the reference hall with its fleet, warehouses, grids
random_maps    a random map for every seed
live_maps      maps that are LIVE by construction, with their fleets: random ones, and grids with spurs
built          realistic warehouses: one-way aisles, two-lane main ways, docks, parking streets
catalogue      all samples by name, with their options
"""

from pendula.fleet.samples.built import built_warehouse
from pendula.fleet.samples.halls import large, reference_fleet, reference_hall, warehouse
from pendula.fleet.samples.live_maps import Sample, live_map, spur_grid
from pendula.fleet.samples.random_maps import random_map
from pendula.fleet.samples.scenes import FL_STD, Sketch

__all__ = [
    "FL_STD",
    "Sample",
    "Sketch",
    "built_warehouse",
    "large",
    "live_map",
    "random_map",
    "reference_fleet",
    "reference_hall",
    "spur_grid",
    "warehouse",
]
