"""Simulate a village of a hundred three times: never cleared, cleared at intervals, cleared when needed.

python examples/village/lives.py [village.svg]
"""

import sys
from pathlib import Path

from pendula.credit.authoring.example import LIVES, TICKS, Life, live

WINDOW = 10  # ticks; a single tick has too few payments for a share
COLOURS = ("#b71c1c", "#1565c0", "#2e7d32")


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


lives = {name: live(values) for name, values in LIVES.items()}
for name, life in lives.items():
    show(name, life)

if len(sys.argv) > 1:
    curves = "".join(curve(life, colour) for life, colour in zip(lives.values(), COLOURS, strict=True))
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {6 * TICKS + 10} 230">{curves}</svg>'
    Path(sys.argv[1]).write_text(picture, encoding="utf-8")
