"""A compiled map as GeoJSON for other programs: nodes, lanes, swept areas, turning discs with their windows, conflicts.

Coordinates are metres in the frame of the map, not degrees. Every feature has a `kind` and an `id`. The same map gives
the same bytes.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pendula.fleet.map.site import CompiledMap
from pendula.fleet.pictures.map import EVERYTHING, Layer
from pendula.fleet.units import half_up, plain
from pendula.kernel.canonical import encode

# Corners per quarter of a disc, all on its rim.
_QUARTER = 16
Position = list[Any]


def map_geojson(site: CompiledMap, layers: Iterable[Layer] = EVERYTHING) -> bytes:
    """The map as one FeatureCollection, in canonical JSON."""
    selected = frozenset(layers)
    features: list[dict[str, Any]] = []
    for layer, make in (
        (Layer.EDGES, _nodes),
        (Layer.EDGES, _edges),
        (Layer.CELLS, _cells),
        (Layer.ZONES, _zones),
        (Layer.ZONES, _windows),
        (Layer.CONFLICTS, _conflicts),
    ):
        if layer in selected:
            features += make(site)
    return encode(
        {
            "type": "FeatureCollection",
            "mapId": site.map_id,
            "compiledMapHash": site.compiled_hash,
            "units": {"length": "m", "angle": "rad"},
            "features": features,
        }
    )


def _feature(kind: str, name: str, shape: str, coordinates: object, **more: object) -> dict[str, Any]:
    return {
        "type": "Feature",
        "id": f"{kind}:{name}",
        "geometry": {"type": shape, "coordinates": coordinates},
        "properties": {"kind": kind, "id": name, **more},
    }


def _at(x_um: int, y_um: int) -> Position:
    return [plain(x_um), plain(y_um)]


def _nodes(site: CompiledMap) -> Iterator[dict[str, Any]]:
    for node in site.network.nodes:
        place = _at(node.at.x_um, node.at.y_um)
        yield _feature("node", node.id, "Point", place, station=node.station, parking=node.parking)


def _edges(site: CompiledMap) -> Iterator[dict[str, Any]]:
    for edge in site.network.edges:
        line = [_at(x, y) for x, y in zip(edge.path.x, edge.path.y, strict=True)]
        facts = {"edgeGroupKey": edge.group_key, "movestyle": edge.style.value, "lengthM": plain(edge.path.length_um)}
        yield _feature("edge", edge.key, "LineString", line, **facts)


def _cells(site: CompiledMap) -> Iterator[dict[str, Any]]:
    """The swept areas of cells: the quadrangles that conflicts are computed from."""
    cells = site.cells
    first = cells.quad_first.tolist()
    for cell in range(len(cells)):
        quads = cells.quads[first[cell] : first[cell + 1]].tolist()
        areas = [[[_at(x, y) for x, y in (*quad, quad[0])]] for quad in quads]
        facts = {
            "edgeKey": site.network.edges[int(cells.edge[cell])].key,
            "s0M": plain(int(cells.s0[cell])),
            "s1M": plain(int(cells.s1[cell])),
            "stand": site.stand(cell).value,
        }
        yield _feature("cell", site.cell_name(cell), "MultiPolygon", areas, **facts)


def _zones(site: CompiledMap) -> Iterator[dict[str, Any]]:
    radius = site.zones.radius_um
    rim = _rim(radius)
    for number, node in enumerate(site.network.nodes):
        if not node.turning:
            continue
        ring = [_at(node.at.x_um + x, node.at.y_um + y) for x, y in rim]
        overlaps = [site.network.nodes[other].id for other in site.zones.overlaps[number]]
        yield _feature("zone", node.id, "Polygon", [ring], radiusM=plain(radius), overlaps=overlaps)


def _rim(radius: int) -> list[tuple[int, int]]:
    """Corners on a circle around the origin, counter-clockwise, closed."""
    squares = _QUARTER * _QUARTER
    quarter = [
        (half_up(radius * (squares - k * k), squares + k * k), half_up(radius * 2 * _QUARTER * k, squares + k * k))
        for k in range(_QUARTER)
    ]
    turned = [quarter]
    for _ in range(3):
        turned.append([(-y, x) for x, y in turned[-1]])
    return [*(corner for part in turned for corner in part), quarter[0]]


def _windows(site: CompiledMap) -> Iterator[dict[str, Any]]:
    """The parts of edges on which a truck would enter the disc of a node."""
    for window in site.zones.windows:
        edge, node = site.network.edges[window.edge], site.network.nodes[window.node].id
        facts = {"nodeId": node, "edgeKey": edge.key, "s0M": plain(window.s0), "s1M": plain(window.s1)}
        name = f"{node}:{edge.key}:{facts['s0M']}"
        yield _feature("window", name, "LineString", _piece(site, window.edge, window.s0, window.s1), **facts)


def _conflicts(site: CompiledMap) -> Iterator[dict[str, Any]]:
    groups = site.network.groups
    for conflict in site.named:
        lines = [_piece(site, edge, low, high) for edge, low, high in conflict.windows]
        members = {"a": groups[conflict.a].key, "b": groups[conflict.b].key}
        yield _feature("conflict", conflict.id, "MultiLineString", lines, **members)


def _piece(site: CompiledMap, edge: int, low: int, high: int) -> list[Position]:
    return [_at(x, y) for x, y in site.network.edges[edge].path.piece(low, high)]
