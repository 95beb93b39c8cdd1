"""Map compiler: a source map into a compiled map and a report of all findings. Only this package needs shapely.

compile         a source map, truck profiles and parameters into a compiled map, or a report of errors
source_form     the canonical form of a source map, from which `mapHash` is computed
normal_form     a source map as a network: sorted nodes, directed edges with keys, curves and lanes
kinks           bends in nodes that a truck passes without stopping
swept           the area an envelope sweeps while its pivot is anywhere in a cell
cell_shapes     all cells of a network, cut and swept
disc_windows    where on every edge an envelope would enter the turning disc of a node
overlaps        which swept areas meet, and the distances of the others
validation      findings about a readable map: tight bends, narrow lanes, bad parking
"""

from pendula.fleet.compiler.compile import Report, compile_map, examine
from pendula.fleet.compiler.normal_form import normalised
from pendula.fleet.compiler.swept import pose_slack, sweep_slack

__all__ = ["Report", "compile_map", "examine", "normalised", "pose_slack", "sweep_slack"]
