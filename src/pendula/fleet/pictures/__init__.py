"""A compiled map as an SVG picture, and as GeoJSON for other tools."""

from pendula.fleet.pictures.geojson import map_geojson
from pendula.fleet.pictures.map import Layer, map_svg

__all__ = ["Layer", "map_geojson", "map_svg"]
