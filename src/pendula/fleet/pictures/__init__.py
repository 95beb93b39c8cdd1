"""A compiled map as an SVG picture, and as GeoJSON for other tools.

map          the picture: lanes with their directions, cells by where a truck may stand, discs, conflicts
sheet        the drawing sheet: scale, grid, legend, signs, labels that do not overlap
moment       a moment of a run: trucks, stop lines, arrows to blocking trucks
highlight    parts of a map by id, and tooltips of edges, nodes and cells
geojson      nodes, lanes and swept areas as GeoJSON
"""

from pendula.fleet.pictures.geojson import map_geojson
from pendula.fleet.pictures.map import Layer, map_svg

__all__ = ["Layer", "map_geojson", "map_svg"]
