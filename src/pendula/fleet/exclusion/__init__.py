"""Mutual exclusion of resources for the running system: integers and ranges of numbers, without swept geometry.

relation             a symmetric relation over numbered resources, stored as ranges of numbers
cells                edges cut into short ranges of pivot positions, each with its swept area
turning_discs        windows on edges in which an envelope meets the disc of a node; discs that overlap
conflicts            named conflicts of two groups, and opposite directions of one
corridors            maximal chains of groups without branches, and the following distance in them
critical_sections    authored sections, and a generated one for every dead end in which trucks load or park
standing             where a truck may stand, why not elsewhere, and where to wait at a mouth

The compiler sweeps and compares areas; this package holds the results.
"""

from pendula.fleet.exclusion.cells import Cells
from pendula.fleet.exclusion.conflicts import Conflict
from pendula.fleet.exclusion.corridors import Corridor
from pendula.fleet.exclusion.critical_sections import Member, Section
from pendula.fleet.exclusion.relation import Relation
from pendula.fleet.exclusion.standing import Mouth, Standing
from pendula.fleet.exclusion.turning_discs import Window, Zones

__all__ = ["Cells", "Conflict", "Corridor", "Member", "Mouth", "Relation", "Section", "Standing", "Window", "Zones"]
