"""All metrics of a run, tick by tick: one row per tick and equivalent, as columns and as curves.

series = Series(headless.run)
headless.step(200, series.watch)
series.columns().csv()
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from msgspec import UNSET, Struct

from pendula.credit.engine import Run
from pendula.credit.events import ClearingDone, Event, Ticked, TxFailed, TxUpdated
from pendula.credit.model import Code
from pendula.credit.money import atoms_of_sum
from pendula.credit.studies.comparison import SERVED_TITLE, Curve, Panel
from pendula.credit.studies.figures import WINDOW, Columns, Kind, columns_of, text_of, window_rates

COUNTS = ("committed", "rejected", "no_capacity", "no_route_at_all", "errors", "timeouts", "cleared_cycles")
AMOUNTS = ("cleared_amount", "debt_reduction", "optimum")
METRICS = (
    *("success_rate", "avg_route_length", "wanted", "served", "served_share", "volume", "total_debt"),
    *("clearing_volume", "bottlenecks_score", "active_participants", "active_trustlines"),
)
NOTHING = Curve((), (), ())


class Row(Struct):
    """One tick of one equivalent; amounts and metrics as text, null if undefined."""

    tick: int
    sim_time_ms: int
    equivalent: str
    counts: dict[str, int]
    amounts: dict[str, str | None]
    metrics: dict[str, str | None]
    queue_depth: int = 0  # of all equivalents together


class Series:
    """Collects rows from the events of a run; a tick that a guardrail ended has no row."""

    def __init__(self, run: Run) -> None:
        self._codes = tuple(run.network.ledgers)
        self.rows: list[Row] = []

    def watch(self, events: Sequence[Event]) -> None:
        """The events of one tick or of several."""
        fresh = self._fresh()
        for event in events:
            match event:
                case TxUpdated(seq=int()):
                    fresh[event.equivalent].counts["committed"] += 1
                case TxFailed(seq=int()) if event.equivalent in fresh:
                    _refused(fresh[event.equivalent].counts, event)
                case ClearingDone():
                    _cleared(fresh[event.equivalent], event)
                case Ticked():
                    self._close(fresh, event)
                    fresh = self._fresh()
                case _:
                    pass

    def _fresh(self) -> dict[str, Row]:
        return {code: Row(0, 0, code, dict.fromkeys(COUNTS, 0), dict.fromkeys(AMOUNTS), {}) for code in self._codes}

    def _close(self, fresh: dict[str, Row], event: Ticked) -> None:
        for code, row in fresh.items():
            row.tick, row.sim_time_ms = event.tick_index, event.sim_time_ms
            row.queue_depth = event.waiting
            row.metrics = dict(event.metrics.get(code, {}))
            self.rows.append(row)

    def columns(self) -> Columns:
        """All series, a row per tick and equivalent."""
        kinds = {"tick": Kind.INTEGER, "sim_time_ms": Kind.INTEGER, "equivalent": Kind.TEXT}
        kinds |= dict.fromkeys(COUNTS, Kind.INTEGER) | dict.fromkeys((*AMOUNTS, *METRICS), Kind.DECIMAL)
        kinds["queue_depth"] = Kind.INTEGER
        rows: list[list[int | str | None]] = [
            [
                *(row.tick, row.sim_time_ms, row.equivalent),
                *(row.counts[name] for name in COUNTS),
                *(row.amounts[name] for name in AMOUNTS),
                *(row.metrics.get(name) for name in METRICS),
                row.queue_depth,
            ]
            for row in self.rows
        ]
        return columns_of(kinds, rows)

    def panels(self) -> list[tuple[Panel, tuple[str, str]]]:
        """The panels of a run with the names of their two curves: rates and refusals, then debts by unit."""
        ticks = sorted({row.tick for row in self.rows})
        sums = {name: _summed(self.rows, ticks, name) for name in COUNTS}
        tried = [a + b + c for a, b, c in zip(sums["committed"], sums["rejected"], sums["errors"], strict=True)]
        rates = (window_rates(sums[name], tried) for name in ("committed", "no_capacity", "no_route_at_all"))
        committed, no_capacity, never = (_curve(rate) for rate in rates)
        drawn = [
            (Panel(f"Committed rate over {WINDOW} ticks", "", committed, NOTHING), ("committed", "")),
            (Panel(f"Refused, of those tried, over {WINDOW} ticks", "", no_capacity, never), REFUSALS),
        ]
        for code in self._codes:
            rows = [row for row in self.rows if row.equivalent == code]
            served, wanted = ([_atoms(row.metrics.get(name)) for row in rows] for name in ("served", "wanted"))
            drawn.append((Panel(f"{SERVED_TITLE}, {code}", "", _curve(window_rates(served, wanted)), NOTHING), SERVED))
            debts = _curve([_number(row.metrics.get("total_debt")) for row in rows])
            drawn.append((Panel("Total debt, and cleared in all", code, debts, _curve(_running(rows))), DEBTS))
        return drawn


SERVED = ("served share", "")
REFUSALS = ("no capacity", "no route at all")
DEBTS = ("total debt", "cleared so far")


def _refused(counts: dict[str, int], event: TxFailed) -> None:
    code = event.error.code
    if code in (Code.PAYMENT_TIMEOUT, Code.INTERNAL_ERROR):
        counts["errors"] += 1
        counts["timeouts"] += code == Code.PAYMENT_TIMEOUT
        return
    never = "no_route_at_all" in event.error.details
    counts["rejected"] += 1
    counts["no_route_at_all"] += never
    counts["no_capacity"] += code == Code.ROUTING_NO_CAPACITY and not never


def _cleared(row: Row, event: ClearingDone) -> None:
    row.counts["cleared_cycles"] += event.cleared_cycles
    amounts: dict[str, Any] = {"cleared_amount": event.cleared_amount, "debt_reduction": event.debt_reduction}
    if event.optimum is not UNSET:
        amounts["optimum"] = event.optimum
    for name, amount in amounts.items():
        row.amounts[name] = text_of(Fraction(row.amounts[name] or 0) + Fraction(amount))


def _summed(rows: Sequence[Row], ticks: Sequence[int], name: str) -> list[int]:
    sums = dict.fromkeys(ticks, 0)
    for row in rows:
        sums[row.tick] += row.counts[name]
    return list(sums.values())


def _running(rows: Sequence[Row]) -> list[Fraction | None]:
    total, sums = Fraction(0), list[Fraction | None]()
    for row in rows:
        total += Fraction(row.amounts["debt_reduction"] or 0)
        sums.append(total)
    return sums


def _atoms(text: str | None) -> int:
    """The atoms of a metric; 0 if it is undefined."""
    return 0 if text is None else atoms_of_sum(text)


def _number(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _curve(values: Sequence[Fraction | None]) -> Curve:
    line = tuple(values)
    return Curve(line, line, line)
