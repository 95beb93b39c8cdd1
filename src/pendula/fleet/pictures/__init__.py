"""A compiled map as a picture, and as shapes for other tools.

map          the picture: lanes with their directions, cells by where a truck may stand, discs, conflicts
sheet        what it is drawn on: scale, grid, legend, signs, labels that keep out of each other's way
moment       a moment of a run: trucks, stop lines, who waits for whom
highlight    what an id stands for, and what is said of an edge, a node, a run of cells
geojson      nodes, lanes and swept areas as GeoJSON
"""

from pendula.fleet.pictures.geojson import map_geojson
from pendula.fleet.pictures.map import Layer, map_svg

__all__ = ["Layer", "map_geojson", "map_svg"]
