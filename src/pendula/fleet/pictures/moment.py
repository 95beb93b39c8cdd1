"""A moment of a run as a picture: the map, every truck with its envelope and stop line, and an arrow to its blocker."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot

from pendula import svg
from pendula.fleet.pictures import sheet as ink
from pendula.fleet.pictures.map import EVERYTHING, TOP, Layer, bounds, map_svg
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.envelope import envelope_of
from pendula.fleet.trucks.outline import Corners, body_corners, envelope_corners
from pendula.fleet.trucks.profiles import RobotProfile

_END = "</svg>"
_WAITS, _GOES = "#c2410c", "#1d4ed8"


@dataclass(frozen=True, slots=True)
class ShownTruck:
    """A truck at a moment. `stop_um` is its stop line, `blocker` the blocking truck, `sentence` its tooltip."""

    robot_id: str
    profile: RobotProfile
    x_m: float
    y_m: float
    yaw_rad: float
    stop_um: tuple[int, int] | None = None
    blocker: str | None = None
    sentence: str = ""


def moment_svg(site: CompiledMap, trucks: Sequence[ShownTruck], layers: Iterable[Layer] = EVERYTHING) -> str:
    """The map with its trucks on it; the same moment gives the same bytes."""
    sheet = ink.sheet_of(*bounds(site), TOP)
    places = {truck.robot_id: sheet.dot(truck.x_m * 1e6, truck.y_m * 1e6) for truck in trucks}
    shapes = [shape for truck in trucks for shape in _truck(sheet, truck, places)]
    picture = map_svg(site, layers)
    end = picture.rindex(_END)
    return picture[:end] + ink.layer("trucks", shapes) + "\n" + picture[end:]


def _truck(sheet: ink.Sheet, truck: ShownTruck, places: dict[str, tuple[float, float]]) -> list[str]:
    colour = _GOES if truck.blocker is None else _WAITS
    pose = truck.x_m, truck.y_m, truck.yaw_rad
    around = _dots(sheet, envelope_corners(envelope_of(truck.profile), *pose))
    body = _dots(sheet, body_corners(truck.profile, *pose))
    at = places[truck.robot_id]
    shapes = [
        _outline(around, f"fill:{colour};fill-opacity:.15;stroke:{colour};stroke-dasharray:3 2"),
        _outline(body, f"fill:{colour};fill-opacity:.85"),
    ]
    # Above the envelope, where it is readable.
    top = min(y for _, y in around)
    shapes.append(svg.words(at[0], top - 4, truck.robot_id, "name halo middle"))
    drawn = [svg.tooltip(truck.sentence or truck.robot_id, *shapes)]
    if truck.stop_um is not None:
        x, y = sheet.dot(*truck.stop_um)
        drawn.append(f'<circle cx="{svg.number(x)}" cy="{svg.number(y)}" r="4" style="fill:none;stroke:{colour}"/>')
    if truck.blocker in places:
        drawn.append(_arrow(at, places[truck.blocker]))
    return drawn


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A dashed line with an arrow head just before the other truck."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    size = hypot(dx, dy) or 1.0
    ux, uy = dx / size, dy / size
    tip = end[0] - 8 * ux, end[1] - 8 * uy
    wings = [(tip[0] - 7 * ux + 4 * side * uy, tip[1] - 7 * uy - 4 * side * ux) for side in (1, -1)]
    way = svg.trace([start, tip])
    line = f'<path d="{way}" style="fill:none;stroke:{_WAITS};stroke-width:1.5;stroke-dasharray:6 3"/>'
    return line + _outline([tip, *wings], f"fill:{_WAITS}")


def _outline(dots: Sequence[tuple[float, float]], style: str) -> str:
    return f'<path d="{svg.trace(dots, closed=True)}" style="{style}"/>'


def _dots(sheet: ink.Sheet, corners: Corners) -> list[tuple[float, float]]:
    return [sheet.dot(x * 1e6, y * 1e6) for x, y in corners]
