"""A comparison as one SVG: the medians of both sides over ticks, with the middle half of all seeds as a band.

Plain SVG without scripts, readable on light and on dark paper. Floats are for places on the paper only; the same
comparison gives the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor, log10
from typing import TypeAlias

from msgspec import Struct

from pendula import svg
from pendula.credit.studies.comparison import Comparison, Curve, Panel
from pendula.credit.studies.figures import Columns, in_order, median, median_interval, quantile
from pendula.kernel.wording import counted

WIDTH = 960
LEFT, RIGHT = 76, 770
TALL, GAP, TOP = 220, 62, 92
LABEL_CHARS = 24
PANELS_MOST = 7
LABELS_MOST = 9
HEAT_LEFT, CELL_TALL, CELL_WIDE_MOST = 180.0, 44.0, 130.0
HEAT_SHADES = 8
Key: TypeAlias = tuple[int | str | None, ...]
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
    ".heat{fill:var(--a)}"
    + "".join(f".s{shade}{{fill-opacity:.{8 * shade + 6:02d}}}" for shade in range(9))
    + ".line.a{stroke:var(--a)}.line.b{stroke:var(--b)}.band.a,text.a{fill:var(--a)}.band.b,text.b{fill:var(--b)}"
)


class _Scale(Struct, frozen=True):
    """Maps ticks and values to coordinates."""

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
    """The subject of a chart: the number of ticks, and how many of the first are skipped."""

    heading: str
    summary: str
    ticks: int
    skip: int = 0
    labels: tuple[str, ...] = ()  # of the x axis, if it has no ticks


def comparison_svg(comparison: Comparison, title: str | None = None) -> str:
    """A chart 960 pixels wide: a panel for the committed rate and one for the debts of each equivalent."""
    page = Page(title or comparison.scenario_id, _summary(comparison), comparison.ticks, comparison.skip)
    return panels_svg(page, [Named(panel, comparison.names) for panel in comparison.panels])


def panels_svg(page: Page, panels: Sequence[Named]) -> str:
    """The first few panels below each other, 960 pixels wide."""
    parts: list[str] = []
    y = TOP + 8.0
    for panel in panels[:PANELS_MOST]:
        parts += _panel(panel, page, y)
        y += TALL + GAP
    if len(panels) > PANELS_MOST:
        parts.append(svg.words(20, y - 8, f"Not drawn: {counted(len(panels) - PANELS_MOST, 'more panel')}.", "soft"))
        y += 16
    return _document(page, parts, y - 8)


def _document(page: Page, parts: Sequence[str], height: float) -> str:
    head = svg.opening(WIDTH, height, f"{page.heading}: {page.summary}")
    paper = f'<rect width="{WIDTH}" height="{svg.number(height)}" class="paper"/>'
    titles = svg.words(20, 34, _short(page.heading, 90), "h1"), svg.words(20, 56, page.summary, "soft")
    return "\n".join([head, f"<style>{_STYLE}</style>", paper, *titles, *parts, "</svg>\n"])


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
    """A round step that gives four to ten grid lines."""
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
    """Labels at the ends of curves, moved apart if they overlap."""
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
        label = f"{value:,.2f}" if panel.unit else f"{value:.3f}"
        yield svg.words(RIGHT + 10, place, _short(name, LABEL_CHARS), f"name {side}")
        yield svg.words(RIGHT + 10, place + 14, label, "soft")


def _places(values: Sequence[Fraction | None], scale: _Scale) -> list[list[tuple[float, float]]]:
    """Segments of a line, interrupted by missing values."""
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
    """A chart of a sweep by combination: rates and debts over seeds.

    One setting is drawn as a curve, the median with the middle half of all seeds as a band. Two or more are drawn as
    heat maps: the last setting across, the others down, in each cell the median and its interval.
    """
    groups: dict[Key, list[int]] = {}
    for at in range(len(columns)):
        groups.setdefault(tuple(columns.values[name][at] for name in axes), []).append(at)
    shares = [name for name in columns.values if name.startswith("served_share_")]
    debts = [name for name in columns.values if name.startswith("total_debt_")]
    drawn = [name for name in ("committed_rate", "no_capacity_rate", *shares, *debts) if name in columns.values]
    measured = {
        name: {key: in_order(_value(columns.values[name][at]) for at in places) for key, places in groups.items()}
        for name in drawn
    }
    summary = _short(f"{len(columns)} runs · over {', '.join(axes) or 'seeds alone'}", 120)
    if len(axes) > 1:
        return _heat_maps(Page(title, summary, len(groups)), axes, measured)
    labels = tuple(" ".join(_cell_text(value) for value in key) or "as it is" for key in groups)
    panels = []
    for name, runs in measured.items():
        quartiles = [tuple(quantile(values, Fraction(part, 4)) for values in runs.values()) for part in (1, 2, 3)]
        panels.append(Named(Panel(*_heading(name), Curve(*quartiles), Curve((), (), ())), ("median", "")))
    return panels_svg(Page(title, summary, len(groups), labels=labels), panels)


def _heading(name: str) -> tuple[str, str]:
    """Title and unit of a measure; no unit for a rate."""
    if name.startswith("total_debt_"):
        return "Total debt", name.removeprefix("total_debt_")
    if name.startswith("served_share_"):
        return f"Paid, of what was wanted, {name.removeprefix('served_share_')}", ""
    return name.replace("_", " ").capitalize(), ""


def _heat_maps(page: Page, axes: Sequence[str], measured: Mapping[str, Mapping[Key, Sequence[Fraction]]]) -> str:
    note = "Each cell: the median over seeds; below it the interval of that median. The tooltip says how sure it is."
    parts = [svg.words(20, 74, note, "soft")]
    y = TOP + 16.0
    for name, values in list(measured.items())[:PANELS_MOST]:
        drawn, y = _heat_map(_heading(name), axes, values, y)
        parts += drawn
    return _document(page, parts, y)


def _heat_map(
    heading: tuple[str, str], axes: Sequence[str], values: Mapping[Key, Sequence[Fraction]], y: float
) -> tuple[list[str], float]:
    """A heat map and the position of the next one; darker is more."""
    title, unit = heading
    rows = list(dict.fromkeys(key[:-1] for key in values))
    across = list(dict.fromkeys(key[-1] for key in values))
    left = HEAT_LEFT
    wide = min(CELL_WIDE_MOST, (WIDTH - 20 - left) / len(across))
    middles = [float(middle) for middle in map(median, values.values()) if middle is not None]
    low, high = (min(middles), max(middles)) if middles else (0.0, 0.0)
    parts = [svg.words(20, y, title + (f", {unit}" if unit else ""), "h2")]
    parts.append(svg.words(20, y + 20, _short(f"{', '.join(axes[:-1])} ↓", LABEL_CHARS), "soft"))
    parts.append(svg.words(left, y + 20, _short(f"{axes[-1]} →", 90), "soft"))
    for column, value in enumerate(across):
        label = _short(_cell_text(value), max(3, int(wide / 7)))
        parts.append(svg.words(left + wide * (column + 0.5), y + 38, label, "mid"))
    for row, names in enumerate(rows):
        top = y + 46 + CELL_TALL * row
        parts.append(
            svg.words(left - 8, top + CELL_TALL / 2 + 4, _short(" ".join(map(_cell_text, names)), LABEL_CHARS), "end")
        )
        for column, value in enumerate(across):
            cell = values.get((*names, value), ())
            x = left + wide * column
            parts += _cell(cell, (x, top, wide), (low, high), bool(unit))
    return parts, y + 46 + CELL_TALL * len(rows) + 40


def _cell(
    values: Sequence[Fraction], place: tuple[float, float, float], span: tuple[float, float], amounts: bool
) -> Iterator[str]:
    x, y, wide = place
    middle, interval = median(values), median_interval(sorted(values))
    if middle is None or interval is None:
        yield svg.box(x, y, wide - 2, CELL_TALL - 2, "rest")
        yield svg.words(x + wide / 2, y + CELL_TALL / 2 + 4, "–", "soft mid")
        return
    low, high = span
    shade = 0 if high == low else round(HEAT_SHADES * (float(middle) - low) / (high - low))
    text, ends = _figure(middle, amounts), f"{_figure(interval.low, amounts)} … {_figure(interval.high, amounts)}"
    words = f"{text}; {ends} with {float(100 * interval.coverage):.1f} %, {len(values)} seeds"
    shapes = [svg.box(x, y, wide - 2, CELL_TALL - 2, f"heat s{shade}")]
    if 7 * len(text) < wide:
        shapes.append(svg.words(x + wide / 2, y + 19, text, "mid name halo"))
    if 6 * len(ends) < wide:
        shapes.append(svg.words(x + wide / 2, y + 35, ends, "mid halo", 10))
    yield svg.tooltip(words, *shapes)


def _figure(value: Fraction, amounts: bool) -> str:
    return f"{float(value):,.0f}" if amounts else f"{float(value):.3f}"


def _value(cell: int | str | None) -> Fraction | None:
    return None if cell is None else Fraction(cell)


def _cell_text(value: int | str | None) -> str:
    text = "none" if value is None else str(value)
    return text.rstrip("0").rstrip(".") if "." in text else text
