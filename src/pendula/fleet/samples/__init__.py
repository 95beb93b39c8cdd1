"""Maps of our own, for documents, tests and measurements.

scenes         small scenes, the reference truck, and `Sketch` to draw others
halls          the reference hall with its fleet, warehouses, grids
random_maps    a map for every seed
"""

from pendula.fleet.samples.halls import large, reference_fleet, reference_hall, warehouse
from pendula.fleet.samples.random_maps import random_map
from pendula.fleet.samples.scenes import FL_STD, Sketch

__all__ = ["FL_STD", "Sketch", "large", "random_map", "reference_fleet", "reference_hall", "warehouse"]
