"""Throughput over trucks as one SVG: a line for each strength of the one-way preference, the longest wait at each dot.

Plain SVG without scripts, readable on light and on dark paper. The same outcome gives the same bytes.
"""

from collections.abc import Iterator, Sequence

from pendula import svg
from pendula.fleet.runs.tuning.outcome import Outcome, Row
from pendula.kernel.wording import counted

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 640, 80, 400
COLOURS = 6
_STEPS = (1, 2, 5)

_STYLE = (
    "svg{--paper:#fff;--ink:#1c2733;--soft:#66717e;--line:#e3e7ec;--c0:#1f66c1;--c1:#c2500a;--c2:#2c7a3f;--c3:#8a3fa8;"
    "--c4:#a8831b;--c5:#5b6470;font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif;font-size:12px}"
    "@media(prefers-color-scheme:dark){svg{--paper:#14191f;--ink:#e8edf2;--soft:#98a4b1;--line:#2b333d;--c0:#6cb0ff;"
    "--c1:#ff9d57;--c2:#7fd08f;--c3:#d597ee;--c4:#e5c05a;--c5:#b3bcc6}}"
    "text{fill:var(--ink)}.paper{fill:var(--paper)}.soft{fill:var(--soft)}.grid{stroke:var(--line)}"
    ".h1{font-size:17px;font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}.best{fill:none;stroke:var(--ink);stroke-width:2}"
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
        return (LEFT + RIGHT) / 2 if first == last else LEFT + (RIGHT - LEFT) * (trucks - first) / (last - first)

    def down(self, tasks: int) -> float:
        return BOTTOM - (BOTTOM - TOP) * tasks / self.most


def throughput_svg(outcome: Outcome, title: str) -> str:
    """The picture, 860 pixels wide. Of trials that differ by their parameters alone the best one counts."""
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
    found: dict[tuple[int, int], Row] = {}
    for row in rows:
        key = (row.one_way_milli, row.trucks)
        if key not in found or _value(row) > _value(found[key]):
            found[key] = row
    return [found[key] for key in sorted(found)]


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
    for number, milli in enumerate(sorted({row.one_way_milli for row in rows})):
        yield from _curve([row for row in rows if row.one_way_milli == milli], number, scale)
    if best is not None:
        yield svg.circle((scale.across(best.trucks), scale.down(best.tasks_per_hour)), 9, "best")


def _curve(rows: Sequence[Row], number: int, scale: _Scale) -> Iterator[str]:
    colour = f"c{number % COLOURS}"
    dots = [(scale.across(row.trucks), scale.down(row.tasks_per_hour)) for row in rows]
    yield svg.path(svg.trace(dots), f"line {colour}")
    for row, dot in zip(rows, dots, strict=True):
        told = f"{counted(row.trucks, 'truck')}, one-way {row.one_way_milli}: {row.tasks_per_hour} tasks an hour"
        mark = svg.circle(dot, 5, f"dot {colour}" if row.acceptable else "not")
        yield svg.tooltip(f"{told}, longest wait {row.longest_wait_ms // 1000} s", mark)
        yield svg.words(dot[0], dot[1] - 10, f"{row.longest_wait_ms // 1000} s", f"mid {colour}", size=10)
    yield svg.words(RIGHT + 24, TOP + 20 * number + 8, f"one-way {rows[0].one_way_milli}", colour)


def _step(most: int) -> int:
    """A round step that makes four to ten lines."""
    size = 1
    while True:
        for one in _STEPS:
            if one * size * 10 > most:
                return one * size
        size *= 10
