"""Who excludes whom, as the running system asks for it: integers and ranges of numbers, and no swept geometry.

relation             a symmetric relation over numbered resources, kept as ranges of numbers
cells                edges cut into short ranges of pivot positions, each with the area it may cover
turning_discs        windows on edges in which an envelope meets the disc of a node; discs that overlap
conflicts            named conflicts of two groups, and opposite directions of one
corridors            maximal chains of groups in which nothing branches, and how far apart trucks follow in them
critical_sections    sections an author drew, and one for every dead end in which trucks load or park
standing             where a truck may be left standing, why not elsewhere, and where to wait at a mouth

Areas are swept and compared by the compiler; what it finds is kept here.
"""

from pendula.fleet.exclusion.cells import Cells
from pendula.fleet.exclusion.conflicts import Conflict
from pendula.fleet.exclusion.corridors import Corridor
from pendula.fleet.exclusion.critical_sections import Member, Section
from pendula.fleet.exclusion.relation import Relation
from pendula.fleet.exclusion.standing import Mouth, Standing
from pendula.fleet.exclusion.turning_discs import Window, Zones

__all__ = ["Cells", "Conflict", "Corridor", "Member", "Mouth", "Relation", "Section", "Standing", "Window", "Zones"]
