"""Simulate a village of a hundred three times: never cleared, cleared at intervals, cleared when needed.

python examples/village/lives.py [village.svg]
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pendula.credit import Headless, Result, Settings, Ticked, change_settings, plan_run
from pendula.credit.authoring import village
from pendula.documents import Document, from_value

# Everything comes from one seed.
PARTICIPANTS = 100
SEED = 7
TICKS = 120
CAP = "500"

# Clearing settings of each variant, by name.
LIVES: Mapping[str, Mapping[str, str]] = {
    "never cleared": {"clearing_enabled": "off"},
    "cleared every 25 ticks": {},
    "cleared when it is needed": {
        "clearing_policy": "adaptive",
        "adaptive_window_ticks": "10",
        "adaptive_no_capacity_high": "0.4",
        "adaptive_no_capacity_low": "0.2",
    },
}
WINDOW = 10  # ticks; a single tick has too few payments for a share
COLOURS = ("#b71c1c", "#1565c0", "#2e7d32")


class Life(NamedTuple):
    """The result of a run of the village, and its payments per tick: tried and made."""

    result: Result
    payments: tuple[tuple[int, int], ...]

    def per_cent(self, since: int, until: int) -> int:
        """The share of payments that were made from one tick to before another, rounded down; 0 if none was tried."""
        tried, paid = (sum(column) for column in zip((0, 0), *self.payments[since:until], strict=True))
        return 100 * paid // tried if tried else 0


def scenario() -> Document:
    return from_value(village(PARTICIPANTS, SEED), "village")


def live(values: Mapping[str, str]) -> Life:
    """Run the village with these settings and a suitable cap."""
    settings = change_settings(Settings(), {"amount_cap": CAP, **values})
    headless = Headless(plan_run(scenario(), settings=settings, patches=False))
    payments: list[tuple[int, int]] = []

    def count(events: Sequence[object]) -> None:
        payments.extend((event.planned, event.committed) for event in events if isinstance(event, Ticked))

    headless.step(TICKS, count)
    return Life(headless.result(), tuple(payments))


def show(name: str, life: Life) -> None:
    counters, debt = life.result.counters, life.result.metrics["UNIT"]["total_debt"] or "0"
    sys.stdout.write(f"\n{name}: {counters.committed_total} of {counters.attempts_total} payments were made\n")
    for tick in range(0, TICKS, WINDOW):
        share = life.per_cent(tick, tick + WINDOW)
        sys.stdout.write(f"  {tick:3}  {share:3} %  {'█' * (share // 2)}\n")
    cleared = sum(row.cleared_cycles for row in life.result.clearing)
    sys.stdout.write(f"  {len(life.result.clearing)} clearings, {cleared} circles; debts at the end {debt[:-6]}\n")


def curve(life: Life, colour: str) -> str:
    points = (f"{6 * tick},{220 - 2 * life.per_cent(tick - WINDOW, tick)}" for tick in range(WINDOW, TICKS + 1))
    return f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(points)}"/>'


if __name__ == "__main__":
    lives = {name: live(values) for name, values in LIVES.items()}
    for name, life in lives.items():
        show(name, life)
    if len(sys.argv) > 1:
        curves = "".join(curve(life, colour) for life, colour in zip(lives.values(), COLOURS, strict=True))
        picture = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {6 * TICKS + 10} 230">{curves}</svg>'
        Path(sys.argv[1]).write_text(picture, encoding="utf-8")
