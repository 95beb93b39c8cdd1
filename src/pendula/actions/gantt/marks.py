"""The style sheet and the shapes of the picture: bars, bolts, diamonds, crosses."""

from pendula import svg
from pendula.svg import box, number, path

# Neighbours in the list of verbs differ most.
_LIGHT = (
    *("#a5c8ee", "#f7bd7f", "#9fd39a", "#f2a7a0", "#c8b6ea", "#dfd46f", "#8fd5d2", "#f3b4d3", "#c4c9d0", "#d9b99f"),
    *("#b7b9f5", "#b9d98c", "#f5cf63", "#e3bcf0", "#93d8b4", "#eab29a", "#9bcfe0", "#cfd0a8", "#f0b3bd", "#b5c4d8"),
)
_DARK = (
    *("#2d5f92", "#97571a", "#2f7438", "#96403b", "#654d9b", "#736b1c", "#1f7370", "#93477a", "#55606d", "#775640"),
    *("#4a4fa8", "#567a26", "#8a6a10", "#7b4a8a", "#23754f", "#8d5238", "#2f6f85", "#63653a", "#8b4452", "#455a74"),
)
COLOURS = len(_LIGHT)

STYLE = (
    "svg{--paper:#fff;--ink:#1c2733;--soft:#66717e;--line:#dfe4ea;--band:#f5f7f9;--edge:#00000040;--hatch:#8a95a3;"
    "--bolt:#c62828;--light:#00796b;--cross:#ad5a00;"
    + "".join(f"--c{place}:{colour};" for place, colour in enumerate(_LIGHT))
    + "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:11px}"
    "@media(prefers-color-scheme:dark){svg{--paper:#14191f;--ink:#e8edf2;--soft:#98a4b1;--line:#2b333d;--band:#1a2028;"
    "--edge:#ffffff38;--hatch:#7d8998;--bolt:#ff7b72;--light:#4fd1c0;--cross:#f0a050;"
    + "".join(f"--c{place}:{colour};" for place, colour in enumerate(_DARK))
    + "}}"
    "text{fill:var(--ink)}.paper{fill:var(--paper)}.band{fill:var(--band)}.soft{fill:var(--soft)}"
    ".grid{stroke:var(--line);stroke-width:1}.rule{stroke:var(--soft);stroke-width:1}"
    ".h1{font-size:17px;font-weight:600}.h2{font-size:13px;font-weight:600}.small{font-size:10px}"
    ".lane{text-anchor:end}.lock{font-style:italic}"
    ".bar{stroke:var(--edge);stroke-width:1}.wait{fill:url(#hatch);stroke:var(--hatch);stroke-width:.6}"
    ".aside{stroke:var(--hatch);stroke-width:1.6;stroke-dasharray:1 4;stroke-linecap:round}"
    ".queue{fill:var(--hatch)}.hatching{stroke:var(--hatch);stroke-width:1.4}"
    ".bolt{fill:var(--bolt)}.light{fill:var(--light)}.dim{fill:var(--paper);stroke:var(--light);stroke-width:1.2}"
    ".cross{stroke:var(--cross);stroke-width:2;stroke-linecap:round}"
    ".by{fill:var(--bolt)}.known{fill:var(--light)}.refused{fill:var(--cross)}"
    ".halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}"
    + "".join(f".v{place}{{fill:var(--c{place})}}" for place in range(COLOURS))
)

HATCH = (
    '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatching" x1="0" y1="0" x2="0" y2="5"/></pattern></defs>'
)


def words(x: float, y: float, text: str, classes: str = "") -> str:
    """A text element; nothing for an empty text."""
    return svg.words(x, y, text, classes) if text else ""


def bar(x: float, y: float, width: float, height: float, classes: str, *, from_before: bool, goes_on: bool) -> str:
    """A bar, notched on the left if it began before the panel, pointed on the right if it continues after it."""
    if not (from_before or goes_on):
        return box(x, y, width, height, classes, min(3.0, width / 2))
    tip = min(6.0, width / 2)
    right, middle, bottom = x + width, y + height / 2, y + height
    notch = f"L{number(x + tip)} {number(middle)}" if from_before else ""
    if goes_on:
        head = f"H{number(right - tip)}L{number(right)} {number(middle)}L{number(right - tip)} {number(bottom)}"
    else:
        head = f"H{number(right)}V{number(bottom)}"
    return path(f"M{number(x)} {number(y)}{head}H{number(x)}{notch}Z", classes)


def bolt(x: float, y: float) -> str:
    """A bolt with its tip at (x, y)."""
    return path(f"M{number(x)} {number(y)}l-1.6 -7.4h3.4l-1.6 -6.6h5.4l-2 4.6h3.2z", "bolt halo")


def diamond(x: float, y: float, bright: bool) -> str:
    return path(f"M{number(x)} {number(y - 5)}l5 5l-5 5l-5 -5z", "light halo" if bright else "dim")


def cross(x: float, y: float) -> str:
    return path(f"M{number(x - 3)} {number(y - 3)}l6 6m0 -6l-6 6", "cross")
