"""A comparison as one SVG: the medians of both sides over ticks, with the middle half of all seeds as a band.

Plain SVG without scripts, readable on light and on dark paper. Floats are for places on the paper only; the same
comparison gives the same bytes.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor, log10

from msgspec import Struct

from pendula import svg
from pendula.credit.studies.columns import Columns
from pendula.credit.studies.comparison import Comparison, Curve, Panel
from pendula.credit.studies.statistics import in_order, quantile
from pendula.kernel.wording import counted

WIDTH = 960
LEFT, RIGHT = 76, 770
TALL, GAP, TOP = 220, 62, 92
LABEL_CHARS = 24
PANELS_MOST = 7
LABELS_MOST = 9
_BETWEEN_LABELS = 32

_STYLE = (
    "svg{--paper:#fff;--ink:#1c2733;--soft:#66717e;--line:#e3e7ec;--rest:#f3f5f7;--a:#1f66c1;--b:#c2500a;"
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:12px}"
    "@media(prefers-color-scheme:dark){svg{--paper:#14191f;--ink:#e8edf2;--soft:#98a4b1;--line:#2b333d;--rest:#1b222a;"
    "--a:#6cb0ff;--b:#ff9d57}}"
    "text{fill:var(--ink)}.paper{fill:var(--paper)}.rest{fill:var(--rest)}.soft{fill:var(--soft)}"
    ".grid{stroke:var(--line);stroke-width:1}.h1{font-size:18px;font-weight:600}.h2{font-size:13px;font-weight:600}"
    ".halo{paint-order:stroke;stroke:var(--rest);stroke-width:3px}.end{text-anchor:end}.mid{text-anchor:middle}.name{font-weight:600}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.band{stroke:none;fill-opacity:.18}"
    ".line.a{stroke:var(--a)}.line.b{stroke:var(--b)}.band.a,text.a{fill:var(--a)}.band.b,text.b{fill:var(--b)}"
)


class _Scale(Struct, frozen=True):
    """From ticks and values to places on the paper."""

    ticks: int
    low: float
    high: float
    step: float
    y: float

    def across(self, tick: float) -> float:
        return LEFT + (RIGHT - LEFT) * tick / max(1, self.ticks - 1)

    def down(self, value: float) -> float:
        return self.y + TALL * (self.high - value) / (self.high - self.low)


class Named(Struct, frozen=True):
    """A panel with the names of its two curves; a curve without points is left out."""

    panel: Panel
    names: tuple[str, str]


class Page(Struct, frozen=True):
    """What a picture is about: over how many ticks, and how many of the first are not counted."""

    heading: str
    summary: str
    ticks: int
    skip: int = 0
    labels: tuple[str, ...] = ()  # of the places across, where they are not ticks


def comparison_svg(comparison: Comparison, title: str | None = None) -> str:
    """The picture, 960 pixels wide, a panel for the committed rate and one for the debts of each equivalent."""
    page = Page(title or comparison.scenario_id, _summary(comparison), comparison.ticks, comparison.skip)
    return panels_svg(page, [Named(panel, comparison.names) for panel in comparison.panels])


def panels_svg(page: Page, panels: Sequence[Named]) -> str:
    """Panels below each other, the first few of them, 960 pixels wide."""
    parts = [svg.words(20, 34, _short(page.heading, 90), "h1"), svg.words(20, 56, page.summary, "soft")]
    y = TOP + 8.0
    for one in panels[:PANELS_MOST]:
        parts += _panel(one, page, y)
        y += TALL + GAP
    if len(panels) > PANELS_MOST:
        parts.append(
            svg.words(20, y - 8, f"Not drawn: {counted(len(panels) - PANELS_MOST, 'more equivalent')}.", "soft")
        )
        y += 16
    head = svg.opening(WIDTH, y - 8, f"{page.heading}: {page.summary}")
    paper = f'<rect width="{WIDTH}" height="{svg.number(y - 8)}" class="paper"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", paper, *parts, "</svg>\n"])


def _summary(comparison: Comparison) -> str:
    seeds = len(comparison.seeds)
    word = "as good as" if comparison.verdict.passed else "not shown to be as good as"
    names = [_short(name, 40) for name in comparison.names]
    return f"Median and middle half of {seeds} seeds · {names[1]} is {word} {names[0]}"


def _panel(named: Named, page: Page, y: float) -> Iterator[str]:
    panel = named.panel
    scale = _scale(panel, page.ticks, y)
    unit = f", {panel.unit}" if panel.unit else ""
    yield svg.words(20, y - 16, panel.title + unit, "h2")
    yield from _axes(scale, page, bool(panel.unit))
    sides = [side for side in (("a", panel.a, named.names[0]), ("b", panel.b, named.names[1])) if side[1].middle]
    for side, curve, _ in sides:
        yield _band(curve, scale, side)
    for side, curve, name in sides:
        many = ": median" if curve.low != curve.high else ""
        yield svg.tooltip(f"{name}{many}", _path(_places(curve.middle, scale), f"line {side}"))
    yield from _labels(panel, named.names, scale)


def _scale(panel: Panel, ticks: int, y: float) -> _Scale:
    values = [float(value) for curve in (panel.a, panel.b) for value in (*curve.low, *curve.high) if value is not None]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if panel.unit:
        low = 0.0
    step = _step(high - low)
    low = floor(low / step) * step
    high = max(low + step, -floor(-high / step) * step)
    return _Scale(ticks, low, high, step, y)


def _step(span: float) -> float:
    """A round distance that gives four to ten lines."""
    if span <= 0:
        return 1.0
    power = 10.0 ** floor(log10(span / 4))
    return next(power * factor for factor in (5, 2, 1) if span / (power * factor) >= 4)


def _axes(scale: _Scale, page: Page, amounts: bool) -> Iterator[str]:
    bottom = scale.y + TALL
    if page.skip:
        edge = scale.across(min(page.skip, scale.ticks - 1))
        yield svg.box(LEFT, scale.y, edge - LEFT, TALL, "rest")
        yield svg.words((LEFT + edge) / 2, scale.y + 14, "not counted", "soft mid halo")
    for number in range(round((scale.high - scale.low) / scale.step) + 1):
        value = scale.low + number * scale.step
        place = scale.down(value)
        yield svg.line(LEFT, place, RIGHT, place, "grid")
        yield svg.words(
            LEFT - 8, place + 4, f"{value:,.0f}" if amounts and scale.step >= 1 else f"{value:.2f}", "soft end"
        )
    if page.labels:
        every = -(-len(page.labels) // LABELS_MOST)
        for at in range(0, len(page.labels), every):
            yield svg.words(scale.across(at), bottom + 18, _short(page.labels[at], LABEL_CHARS // 2), "soft mid")
        return
    across = max(1, int(_step(scale.ticks)))
    for tick in range(0, scale.ticks, across):
        yield svg.words(scale.across(tick), bottom + 18, str(tick), "soft mid")
    yield svg.words(RIGHT + 10, bottom + 18, "tick", "soft")


def _labels(panel: Panel, names: tuple[str, str], scale: _Scale) -> Iterator[str]:
    """Each curve is named where it ends; two that end together are moved apart."""
    ends = []
    for side, curve, name in (("a", panel.a, names[0]), ("b", panel.b, names[1])):
        last = next((value for value in reversed(curve.middle) if value is not None), None)
        if last is not None:
            ends.append((scale.down(float(last)), side, name, float(last)))
    ends.sort()
    if len(ends) == 2 and ends[1][0] - ends[0][0] < _BETWEEN_LABELS:
        middle = (ends[0][0] + ends[1][0]) / 2
        middle = min(max(middle, scale.y + _BETWEEN_LABELS / 2), scale.y + TALL - _BETWEEN_LABELS / 2)
        ends = [(middle + (at - 0.5) * _BETWEEN_LABELS, *end[1:]) for at, end in enumerate(ends)]
    for place, side, name, value in ends:
        told = f"{value:,.2f}" if panel.unit else f"{value:.3f}"
        yield svg.words(RIGHT + 10, place, _short(name, LABEL_CHARS), f"name {side}")
        yield svg.words(RIGHT + 10, place + 14, told, "soft")


def _places(values: Sequence[Fraction | None], scale: _Scale) -> list[list[tuple[float, float]]]:
    """Pieces of a line; it breaks where there is no value."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for tick, value in enumerate(values):
        if value is not None:
            pieces[-1].append((scale.across(tick), scale.down(float(value))))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _band(curve: Curve, scale: _Scale, side: str) -> str:
    edges = zip(_places(curve.low, scale), _places(curve.high, scale), strict=True)
    return _path([low + high[::-1] for low, high in edges], f"band {side}", closed=True)


def _path(pieces: Sequence[Sequence[tuple[float, float]]], classes: str, closed: bool = False) -> str:
    return svg.path("".join(svg.trace(piece, closed) for piece in pieces), classes)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def sweep_svg(columns: Columns, axes: Sequence[str], title: str) -> str:
    """A sweep, combination by combination: rates and debts, the median over seeds and the middle half as a band."""
    groups: dict[tuple[int | str | None, ...], list[int]] = {}
    for at in range(len(columns)):
        groups.setdefault(tuple(columns.values[name][at] for name in axes), []).append(at)
    labels = tuple(" ".join(_told(value) for value in values) or "as it is" for values in groups)
    panels = []
    debts = [name for name in columns.values if name.startswith("total_debt_")]
    for name in ("committed_rate", "no_capacity_rate", *debts):
        runs = [in_order(_value(columns.values[name][at]) for at in places) for places in groups.values()]
        quartiles = [tuple(quantile(values, Fraction(part, 4)) for values in runs) for part in (1, 2, 3)]
        unit = name.removeprefix("total_debt_") if name in debts else ""
        heading = "Total debt" if unit else name.replace("_", " ").capitalize()
        panels.append(Named(Panel(heading, unit, Curve(*quartiles), Curve((), (), ())), ("median", "")))
    summary = f"{len(columns)} runs · over {', '.join(axes) or 'seeds alone'}"
    return panels_svg(Page(title, _short(summary, 120), len(groups), labels=labels), panels)


def _value(cell: int | str | None) -> Fraction | None:
    return None if cell is None else Fraction(cell)


def _told(value: int | str | None) -> str:
    text = "none" if value is None else str(value)
    return text.rstrip("0").rstrip(".") if "." in text else text
