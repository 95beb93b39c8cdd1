"""What the running system loads: the compiled map and its file.

compiled_map    everything the running system asks about a site, answered in integers
disc_index      which cells and zones lie in a disc, for a truck whose place is in doubt
file            the bytes of a compiled map: canonical JSON, its hash, and what a damaged file is
file_names      the part of the file that people read: names and metres, as the contract shows it
"""

from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.site.disc_index import DiscIndex
from pendula.fleet.site.file import from_bytes, to_bytes
from pendula.fleet.site.file_names import cell_form, shape_form

__all__ = ["CompiledMap", "DiscIndex", "cell_form", "from_bytes", "shape_form", "to_bytes"]
