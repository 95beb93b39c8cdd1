"""The drawing sheet of a map: scale, signs, title, grid and legend.

A text that would overlap another one is left out, so important texts are placed first.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import isqrt, sqrt

from msgspec import Struct

from pendula.fleet.map.geometry import Path
from pendula.fleet.model import CurveKind
from pendula.fleet.units import MILLION
from pendula.svg import Dot, box, circle, number, opening, path, trace, words

# Marks also differ in lightness, so that they can be distinguished without colours.
STYLE = (
    "svg{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:11px}"
    "text{fill:#1c2733}.paper{fill:#fff}.sheet{fill:#fcfcfb;stroke:#d5dae0}"
    ".grid{stroke:#eceff1;stroke-width:1;fill:none}.tick{fill:#8b95a1;font-size:9px}"
    ".h1{font-size:21px;font-weight:650}.h2{font-size:10.5px;font-weight:650;fill:#5c6773;letter-spacing:.06em}"
    ".soft{fill:#5c6773}.mono{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:10px}"
    ".floor{fill:#e2e6ec}.lane{fill:none;stroke:#8591a0;stroke-width:1.4}"
    ".free,.unwanted,.forbidden{fill:none;stroke-linejoin:round}"
    ".free{stroke:#35a671}.unwanted{stroke:#f3b63f}.forbidden{stroke:#c0453c}"
    ".arrow{fill:#1c2733;stroke:#fff;stroke-width:.8;stroke-linejoin:round}"
    ".reverse{fill:#fff;stroke:#1c2733;stroke-width:1.2;stroke-linejoin:round}"
    ".zone{fill:#2f6db5;fill-opacity:.05;stroke:#2f6db5;stroke-opacity:.55;stroke-width:1;stroke-dasharray:4 3}"
    ".calm{fill:none;stroke-opacity:.3}"
    ".clash{fill:url(#hatch);stroke:none}.rim{fill:none;stroke:#7a35c0;stroke-width:1.4}"
    ".link{fill:none;stroke:#7a35c0;stroke-width:1;stroke-dasharray:2 3}.by{fill:#6a2bab}"
    ".hold{stroke:#12212f;fill:none;stroke-linecap:butt}"
    ".rest{fill:#fff;fill-opacity:.55;stroke:#12212f;stroke-width:.9;stroke-dasharray:3 2}"
    ".spot{fill:#fff;stroke:#3c4856;stroke-width:1.5}"
    ".station{fill:#1d5fbf;stroke:#fff;stroke-width:1.5}.parking{fill:#22303d;stroke:#fff;stroke-width:1.5}"
    ".load{fill:#fff}.glyph{fill:#fff;font-weight:700;text-anchor:middle}"
    ".name{font-weight:600}.small{font-size:9px}.halo{paint-order:stroke;stroke:#fff;stroke-width:3px;"
    "stroke-linejoin:round}.middle{text-anchor:middle}.end{text-anchor:end}"
    ".bar{fill:#1c2733}.hollow{fill:#fff}.outline{fill:none;stroke:#1c2733;stroke-width:1}"
    ".dim{opacity:.35}.chosen{fill:#e0248f;fill-opacity:.3;stroke:#e0248f;stroke-width:1.6;stroke-linejoin:round}"
    ".excluded{fill:#7a35c0;fill-opacity:.16;stroke:#7a35c0;stroke-opacity:.35;stroke-width:.7}"
    ".following{fill:#0d8f8a;fill-opacity:.16;stroke:#0d8f8a;stroke-opacity:.35;stroke-width:.7}"
    ".picked{fill:none;stroke:#e0248f;stroke-width:3;stroke-linecap:round;stroke-linejoin:round}"
)
HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="#7a35c0" fill-opacity=".08"/>'
    '<line x1="0" y1="0" x2="0" y2="6" stroke="#7a35c0" stroke-opacity=".55" stroke-width="1.4"/></pattern></defs>'
)


def area(shapes: Iterable[Sequence[Dot]], classes: str) -> str:
    """Polygons as one shape. All have the same orientation, so overlaps are painted once."""
    steps = "".join(trace(dots, closed=True) for dots in shapes)
    return path(steps, classes) if steps else ""


def arrow(tip: Dot, ahead: Dot, size: float, classes: str) -> str:
    """An arrow head around `tip` along the unit vector `ahead`."""
    (x, y), (ux, uy) = tip, ahead
    back = (x - ux * size * 0.55, y - uy * size * 0.55)
    wing = size * 0.58
    notch = (x - ux * size * 0.2, y - uy * size * 0.2)
    left, right = (back[0] - uy * wing, back[1] + ux * wing), (back[0] + uy * wing, back[1] - ux * wing)
    return path(trace([(x + ux * size * 0.7, y + uy * size * 0.7), left, notch, right], closed=True), classes)


def station(at: Dot, size: float) -> str:
    """A square with a load on it."""
    x, y = at
    half = size * 0.92
    load = size * 0.4
    face = box(x - half, y - half, 2 * half, 2 * half, "station", half * 0.3)
    return face + box(x - load, y - load, 2 * load, 2 * load, "load")


def parking(at: Dot, size: float) -> str:
    """A disc with a P, if it is large enough to read."""
    letter = words(at[0], at[1] + size * 0.46, "P", "glyph", size * 1.3) if size >= 5 else ""
    return circle(at, size, "parking") + letter


def text_width(text: str, size: float = 11) -> float:
    """The approximate width of a text in a sans-serif font; wide letters of other scripts count double."""
    return sum(1.05 if ord(char) > 0x2E7F else 0.58 for char in text) * size


def shortened(text: str, width: float, size: float = 11) -> str:
    """A text cut to a width."""
    if text_width(text, size) <= width:
        return text
    while len(text) > 1 and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


MARGIN = 28
# Distance of texts from the border of the page.
_BORDER = 3.0
LEAST_WIDTH = 940
# Padding around the map, in micrometres.
PAD_UM = 1_500_000
# The usual area of a map in square pixels, with limits of the scale and of the longer side.
_AREA = 1_500_000
_LARGEST, _LEAST, _LONGEST = 40.0, 9.0, 1700.0
# A curve is drawn in pieces of at most this length.
_CURVE_STEP_UM = 250_000
_STEPS_M = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000)


class Sheet(Struct, frozen=True):
    """Mapping of micrometres to pixels; y points up on the site and down on the sheet."""

    low: tuple[int, int]
    high: tuple[int, int]
    # Pixels per metre.
    scale: float
    left: float
    top: float

    @property
    def width(self) -> float:
        return (self.high[0] - self.low[0]) / MILLION * self.scale

    @property
    def height(self) -> float:
        return (self.high[1] - self.low[1]) / MILLION * self.scale

    def dot(self, x_um: float, y_um: float) -> Dot:
        return (
            self.left + (x_um - self.low[0]) / MILLION * self.scale,
            self.top + (self.high[1] - y_um) / MILLION * self.scale,
        )

    def px(self, um: float) -> float:
        return um / MILLION * self.scale


def sheet_of(low: tuple[int, int], high: tuple[int, int], top: float) -> Sheet:
    """A sheet for everything between two corners, large enough to read and small enough to print."""
    low = (low[0] - PAD_UM, low[1] - PAD_UM)
    high = (high[0] + PAD_UM, high[1] + PAD_UM)
    wide, tall = (high[0] - low[0]) / MILLION, (high[1] - low[1]) / MILLION
    fitting = isqrt(int(_AREA * 10_000 / (wide * tall))) / 100
    scale = max(_LEAST, min(_LARGEST, fitting, _LONGEST / wide, _LONGEST / tall))
    # On a map of many kilometres cells are invisible anyway.
    scale = round(min(scale, 20_000 / max(wide, tall)), 4)
    left = MARGIN + 16 + max(0.0, (LEAST_WIDTH - 2 * MARGIN - 16 - wide * scale) / 2)
    return Sheet(low, high, scale, left, top)


def step_m(sheet: Sheet, least_px: float) -> int:
    """The least round number of metres that is at least `least_px` long."""
    return next((step for step in _STEPS_M if step * sheet.scale >= least_px), _STEPS_M[-1])


def grid(sheet: Sheet) -> list[str]:
    """The frame of the map with lines at round metres, and their numbers outside of it."""
    left, top, right, bottom = sheet.left, sheet.top, sheet.left + sheet.width, sheet.top + sheet.height
    parts = [box(left, top, sheet.width, sheet.height, "sheet")]
    step = step_m(sheet, 60)
    lines: list[str] = []
    for metre in range(-(-sheet.low[0] // (step * MILLION)) * step, sheet.high[0] // MILLION + 1, step):
        x, _ = sheet.dot(metre * MILLION, 0)
        lines.append(f"M{number(x)} {number(top)}V{number(bottom)}")
        parts.append(words(x, bottom + 13, f"{metre}", "tick middle"))
    for metre in range(-(-sheet.low[1] // (step * MILLION)) * step, sheet.high[1] // MILLION + 1, step):
        _, y = sheet.dot(0, metre * MILLION)
        lines.append(f"M{number(left)} {number(y)}H{number(right)}")
        parts.append(words(left - 5, y + 3, f"{metre}", "tick end"))
    parts.insert(1, path("".join(lines), "grid"))
    parts += [words(right, bottom + 26, "x in m", "tick end"), words(left - 5, top - 6, "y in m", "tick end")]
    return parts


def scale_bar(sheet: Sheet, x: float, y: float) -> tuple[str, float]:
    """A bar of a round length in four parts, and its width with labels."""
    metres = step_m(sheet, 110)
    part = metres * sheet.scale / 4
    shapes = [box(x + k * part, y, part, 6, "hollow" if k % 2 else "bar") for k in range(4)]
    shapes.append(box(x, y, 4 * part, 6, "outline"))
    shapes += [words(x, y - 5, "0", "small middle"), words(x + 4 * part, y - 5, f"{metres} m", "small middle")]
    return "".join(shapes), 4 * part + 20


def legend(entries: Sequence[tuple[str, str, float]], x: float, y: float, right: float) -> tuple[list[str], float]:
    """Rows of entries (label, sign drawn around the origin, width), and the y position of the next row."""
    parts: list[str] = []
    at = x
    for label, sign, wide in entries:
        whole = wide + 7 + text_width(label) + 18
        if at > x and at + whole > right:
            at, y = x, y + 24
        parts.append(f'<g transform="translate({number(at)} {number(y)})">{sign}{words(wide + 7, 4, label)}</g>')
        at += whole
    return parts, y + 24


def layer(name: str, shapes: Iterable[str], classes: str = "") -> str:
    """Shapes as one named group."""
    dimmed = f' class="{classes}"' if classes else ""
    body = "\n".join(shape for shape in shapes if shape)
    return f'<g id="{name}"{dimmed}>\n{body}\n</g>' if body else ""


def document(width: float, height: float, parts: Iterable[str], summary: str) -> str:
    """The whole file; `summary` is the text for screen readers."""
    head = opening(width, height, summary)
    body = "\n".join(part for part in parts if part)
    return f"{head}\n<style>{STYLE}</style>\n{HATCH}\n{box(0, 0, width, height, 'paper')}\n{body}\n</svg>\n"


class Labels:
    """Placement of texts without overlaps; a text without room is left out."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._taken: dict[tuple[int, int], list[tuple[float, float, float, float]]] = {}

    def place(self, x: float, y: float, text: str, anchor: int, classes: str, size: float) -> str:
        """The text on the base line `y`, left of (-1), centred on (0) or right of (1) `x`; empty without room. A text
        that would leave the page is moved back."""
        wide = text_width(text, size)
        x += self._onto_the_page(x - wide * (1 - anchor) / 2, wide)
        left = x - wide * (1 - anchor) / 2
        frame = (left - 1, y - size * 0.85, left + wide + 1, y + size * 0.25)
        squares = [
            (column, row)
            for column in range(int(frame[0] // 64), int(frame[2] // 64) + 1)
            for row in range(int(frame[1] // 64), int(frame[3] // 64) + 1)
        ]
        if any(_over(frame, other) for square in squares for other in self._taken.get(square, ())):
            return ""
        for square in squares:
            self._taken.setdefault(square, []).append(frame)
        side = {-1: " end", 0: " middle", 1: ""}[anchor]
        return words(x, y, text, f"{classes} halo{side}", size)

    def _onto_the_page(self, left: float, wide: float) -> float:
        """The sideways shift that keeps a text on the page; wider texts start at the left border."""
        page = max(float(LEAST_WIDTH), self._sheet.left + self._sheet.width + MARGIN)
        return max(min(left, page - _BORDER - wide), _BORDER) - left


def _over(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def positions(path: Path, low: int, high: int) -> list[int]:
    """Positions to draw a piece of a path through: its ends, the vertices between, and steps of a curve."""
    if path.kind is CurveKind.BEZIER:
        count = max(1, -(-(high - low) // _CURVE_STEP_UM))
        return [low + (high - low) * k // count for k in range(count + 1)]
    return [low, *(s for s in path.s if low < s < high), high]


def ahead(path: Path, s: int) -> Dot:
    """The unit vector of the direction of travel at a position."""
    leg = min(max(bisect_right(path.s, s) - 1, 0), len(path.s) - 2)
    dx, dy = path.x[leg + 1] - path.x[leg], path.y[leg + 1] - path.y[leg]
    size = sqrt(dx * dx + dy * dy) or 1.0
    return dx / size, dy / size


def back(path: Path) -> Dot:
    """The unit vector against the direction of travel at the end."""
    ux, uy = ahead(path, path.length_um)
    return -ux, -uy


def beside(path: Path, s: int, aside_um: float) -> Dot:
    """A point `aside_um` to the right of the path, in micrometres."""
    x, y = path.point(s)
    ux, uy = ahead(path, s)
    return x + uy * aside_um, y - ux * aside_um
