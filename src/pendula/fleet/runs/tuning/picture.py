"""Throughput over trucks as one SVG: a line for each strength of the one-way preference, the longest wait at each dot.

Plain SVG without scripts, readable on light and on dark paper. Of equal lines the first is the widest, so that all
are visible; a wait without space is only in the tooltip of its dot. The same outcome gives the same bytes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pendula import svg
from pendula.fleet.runs.tuning.outcome import Outcome, Row
from pendula.kernel.wording import counted

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 640, 80, 400
# From the axis to the first dot, for the labels of its waits.
INSET = 24
COLOURS = 6
DOT = 5.0
STROKE = 2.0
# Visible width of a lower mark on each side of the one above it.
RIM = 2.0
LABEL_SIZE = 10
LETTER = 6.0
_STEPS = (1, 2, 5)

_STYLE = (
    "svg{--paper:#fff;--ink:#1c2733;--soft:#66717e;--line:#e3e7ec;--c0:#1f66c1;--c1:#c2500a;--c2:#2c7a3f;--c3:#8a3fa8;"
    "--c4:#a8831b;--c5:#5b6470;font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif;font-size:12px}"
    "@media(prefers-color-scheme:dark){svg{--paper:#14191f;--ink:#e8edf2;--soft:#98a4b1;--line:#2b333d;--c0:#6cb0ff;"
    "--c1:#ff9d57;--c2:#7fd08f;--c3:#d597ee;--c4:#e5c05a;--c5:#b3bcc6}}"
    "text{fill:var(--ink)}.paper{fill:var(--paper)}.soft{fill:var(--soft)}.grid{stroke:var(--line)}"
    ".h1{font-size:17px;font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}"
    ".line{fill:none;stroke-linecap:round}.best{fill:none;stroke:var(--ink);stroke-width:2}"
    + "".join(f".line.c{k}{{stroke:var(--c{k})}}.dot.c{k},text.c{k}{{fill:var(--c{k})}}" for k in range(COLOURS))
    + ".not{fill:var(--paper);stroke:var(--soft);stroke-width:2}"
)


class _Scale:
    def __init__(self, rows: Sequence[Row]) -> None:
        self.trucks = sorted({row.trucks for row in rows})
        self.step = _step(max(row.tasks_per_hour for row in rows))
        self.most = self.step * (max(row.tasks_per_hour for row in rows) // self.step + 1)

    def across(self, trucks: int) -> float:
        first, last = self.trucks[0], self.trucks[-1]
        if first == last:
            return (LEFT + RIGHT) / 2
        return LEFT + INSET + (RIGHT - LEFT - 2 * INSET) * (trucks - first) / (last - first)

    def down(self, tasks: int) -> float:
        return BOTTOM - (BOTTOM - TOP) * tasks / self.most

    def dot(self, row: Row) -> svg.Dot:
        return self.across(row.trucks), self.down(row.tasks_per_hour)


def throughput_svg(outcome: Outcome, title: str) -> str:
    """The picture, 860 pixels wide. Of trials that differ only by parameters it shows the best."""
    rows = [row for row in _shown(outcome.rows) if row.refused is None]
    summary = _summary(outcome)
    parts = [
        svg.opening(WIDTH, HEIGHT, f"{title}: {summary}"),
        f"<style>{_STYLE}</style>",
        svg.box(0, 0, WIDTH, HEIGHT, "paper"),
        svg.words(20, 32, title, "h1"),
        svg.words(20, 54, summary, "soft"),
    ]
    if rows:
        parts += _plot(rows, outcome.best)
    return "".join([*parts, "</svg>\n"])


def _summary(outcome: Outcome) -> str:
    best = outcome.best
    if best is None:
        return "no trial was acceptable"
    return (
        f"best: {counted(best.trucks, 'truck')}, one-way {best.one_way_milli}, {best.tasks_per_hour} tasks an hour, "
        f"longest wait {best.longest_wait_ms // 1000} s"
    )


def _shown(rows: Sequence[Row]) -> list[Row]:
    """The best row of every number of trucks and strength."""
    best: dict[tuple[int, int], Row] = {}
    for row in rows:
        key = (row.one_way_milli, row.trucks)
        if key not in best or _value(row) > _value(best[key]):
            best[key] = row
    return [best[key] for key in sorted(best)]


def _value(row: Row) -> tuple[bool, int]:
    return row.acceptable, row.tasks_per_hour


def _plot(rows: Sequence[Row], best: Row | None) -> Iterator[str]:
    scale = _Scale(rows)
    for tasks in range(0, scale.most + 1, scale.step):
        yield svg.line(LEFT, scale.down(tasks), RIGHT, scale.down(tasks), "grid")
        yield svg.words(LEFT - 8, scale.down(tasks) + 4, str(tasks), "soft end")
    for trucks in scale.trucks:
        yield svg.words(scale.across(trucks), BOTTOM + 20, str(trucks), "soft mid")
    yield svg.words((LEFT + RIGHT) / 2, BOTTOM + 42, "trucks", "soft mid")
    yield svg.words(LEFT, TOP - 10, "tasks an hour; at each dot the longest wait; hollow: not acceptable", "soft")
    curves = [
        [row for row in rows if row.one_way_milli == milli] for milli in sorted({row.one_way_milli for row in rows})
    ]
    yield from _lines(curves, scale)
    yield from _dots(curves, scale)
    yield from _waits(curves, scale)
    for number, curve in enumerate(curves):
        yield svg.words(RIGHT + 24, TOP + 20 * number + 8, f"one-way {curve[0].one_way_milli}", _colour(number))
    if best is not None:
        yield svg.circle(scale.dot(best), DOT + RIM * len(curves) + RIM, "best")


def _colour(number: int) -> str:
    return f"c{number % COLOURS}"


def _lines(curves: Sequence[Sequence[Row]], scale: _Scale) -> Iterator[str]:
    """Each segment of each line; of equal segments the first is the widest and the lowest."""
    segments = [
        (number, (scale.dot(first), scale.dot(second)))
        for number, curve in enumerate(curves)
        for first, second in pairwise(curve)
    ]
    above = Counter(ends for _, ends in segments)
    for number, ends in segments:
        above[ends] -= 1
        yield svg.path(svg.trace(ends), f"line {_colour(number)}", STROKE + 2 * RIM * above[ends])


def _dots(curves: Sequence[Sequence[Row]], scale: _Scale) -> Iterator[str]:
    above = Counter(scale.dot(row) for curve in curves for row in curve)
    for number, curve in enumerate(curves):
        for row in curve:
            dot = scale.dot(row)
            above[dot] -= 1
            label = f"{counted(row.trucks, 'truck')}, one-way {row.one_way_milli}: {row.tasks_per_hour} tasks an hour"
            mark = svg.circle(dot, DOT + RIM * above[dot], f"dot {_colour(number)}" if row.acceptable else "not")
            yield svg.tooltip(f"{label}, longest wait {row.longest_wait_ms // 1000} s", mark)


def _waits(curves: Sequence[Sequence[Row]], scale: _Scale) -> Iterator[str]:
    """The longest wait at each dot, above or below it where there is space."""
    reach = DOT + RIM * len(curves)
    taken = [_around(scale.dot(row), 2 * DOT, 2 * DOT) for curve in curves for row in curve]
    for number, curve in enumerate(curves):
        for row in curve:
            text = f"{row.longest_wait_ms // 1000} s"
            x, y = scale.dot(row)
            steps = [reach + LABEL_SIZE * (0.6 + 1.1 * away) for away in range(len(curves) + 1)]
            places = [
                _around((x, y + side * step), LETTER * len(text), LABEL_SIZE) for step in steps for side in (-1, 1)
            ]
            free = [box for box in places if box.inside() and not any(box.meets(other) for other in taken)]
            if free:
                taken.append(free[0])
                yield svg.words(x, free[0].bottom - 1, text, f"mid {_colour(number)}", size=LABEL_SIZE)


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def inside(self) -> bool:
        return self.top > TOP - 8 and self.bottom < BOTTOM + 6


def _around(dot: svg.Dot, width: float, height: float) -> _Box:
    return _Box(dot[0] - width / 2, dot[1] - height / 2, dot[0] + width / 2, dot[1] + height / 2)


def _step(most: int) -> int:
    """A round step that makes four to ten lines."""
    size = 1
    while True:
        for step in _STEPS:
            if step * size * 10 > most:
                return step * size
        size *= 10
