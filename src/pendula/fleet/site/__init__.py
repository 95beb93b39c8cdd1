"""The compiled map and its file, as loaded by the running system.

compiled_map    queries of the running system about a site, in integers
disc_index      cells and zones within a disc, for a truck whose position is in doubt
file            the bytes of a compiled map: canonical JSON, its hash, detection of damaged files
file_names      the readable part of the file: names and metres, as in the contract
"""

from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.site.disc_index import DiscIndex
from pendula.fleet.site.file import from_bytes, to_bytes
from pendula.fleet.site.file_names import cell_form, shape_form

__all__ = ["CompiledMap", "DiscIndex", "cell_form", "from_bytes", "shape_form", "to_bytes"]
