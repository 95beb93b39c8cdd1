"""SVG primitives for the pictures of all schedulers: numbers, texts, tooltips and plain shapes, as strings.

All text is escaped here. Numbers have one decimal of a pixel, so that pictures are the same on every machine.
"""

from collections.abc import Sequence
from re import compile as regex
from xml.sax.saxutils import escape

Dot = tuple[float, float]

# Characters that XML forbids even escaped, or that change the text direction; replaced by U+FFFD.
_FORBIDDEN = regex(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def safe(text: str) -> str:
    """Text escaped for XML content and attributes."""
    return escape(_FORBIDDEN.sub("\ufffd", text), {'"': "&quot;"})


def number(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def words(x: float, y: float, text: str, classes: str = "", size: float | None = None) -> str:
    """A text on the base line `y`; `size` in pixels overrides the style sheet."""
    named = f' class="{classes}"' if classes else ""
    sized = f' style="font-size:{number(size)}px"' if size is not None else ""
    return f'<text x="{number(x)}" y="{number(y)}"{named}{sized}>{safe(text)}</text>'


def tooltip(text: str, *shapes: str) -> str:
    """Shapes with a tooltip."""
    return f"<g><title>{safe(text)}</title>{''.join(shapes)}</g>"


def box(x: float, y: float, width: float, height: float, classes: str, radius: float = 0) -> str:
    rounded = f' rx="{number(radius)}"' if radius else ""
    sides = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect {sides}{rounded} class="{classes}"/>'


def circle(centre: Dot, radius: float, classes: str) -> str:
    return f'<circle cx="{number(centre[0])}" cy="{number(centre[1])}" r="{number(radius)}" class="{classes}"/>'


def line(x1: float, y1: float, x2: float, y2: float, classes: str) -> str:
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line {ends} class="{classes}"/>'


def trace(dots: Sequence[Dot], closed: bool = False) -> str:
    """The commands of a path through some dots."""
    steps = "L".join(f"{number(x)} {number(y)}" for x, y in dots)
    return f"M{steps}Z" if closed else f"M{steps}"


def path(steps: str, classes: str, width: float | None = None) -> str:
    """A path; `width` is its stroke width and overrides the style sheet."""
    wide = f' style="stroke-width:{number(width)}px"' if width is not None else ""
    return f'<path d="{steps}" class="{classes}"{wide}/>'


def opening(width: float, height: float, summary: str) -> str:
    """The opening tag of a picture; `summary` is read by screen readers."""
    wide, tall = number(width), number(height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" '
        f'role="img" aria-label="{safe(summary)}">'
    )
