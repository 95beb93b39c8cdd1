"""What runs, forks and reasons look like on a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from pendula.cli.output import facts, table
from pendula.credit.runs.forking import Cleared, Comparison
from pendula.credit.runs.headless import ClearingRow, Diagnostic, Result
from pendula.credit.state.counters import Counters
from pendula.kernel.engine import Reason

# Nobody reads more on a terminal; `--json` has everything.
MOST_SHOWN = 200
CLEARING = ("tick", "equivalent", "why", "cycles", "cleared", "debts less by")
METRICS = (
    "success_rate",
    "avg_route_length",
    "total_debt",
    "clearing_volume",
    "active_participants",
    "active_trustlines",
)


def ran(result: Result) -> RenderableType:
    """What was paid, what stands at the end, what was cleared, and what to look at."""
    ended = "" if result.state == "running" else f", {result.state}"
    pairs = [
        ("scenario", printable(result.scenario_id)),
        ("run", f"{result.run_id}, seed {result.seed}, {_many(result.ticks, 'tick')}{ended}"),
        ("payments", _payments(result.counters)),
        ("plan", result.digests["plan"]),
        ("ledger", result.digests["ledger"]),
    ]
    return Group(facts(pairs), *_metrics(result.metrics), *_cleared(result.clearing), *_warnings(result.diagnostics))


def checked(told: Mapping[str, Any]) -> RenderableType:
    """One sentence, then the warnings."""
    counts = f"{_many(told['participants'], 'participant')}, {_many(told['trustlines'], 'line')}"
    units = ", ".join(told["equivalents"])
    lines: list[RenderableType] = [_line(f"{told['file']} is sound: {counts}, in {units}.")]
    for one in told["warnings"]:
        lines.append(_warning(f"{one.path}: {one.message} ({one.code})"))
    return Group(*lines)


def forked(comparison: Comparison) -> RenderableType:
    """What was changed, since when it shows, and both ways side by side."""
    first = comparison.first_difference["ledger"]
    since = "the ledgers are the same" if first is None else f"the ledgers differ from tick {first} on"
    rows = [(name, *values) for name, values in comparison.settings.items()]
    parts: list[RenderableType] = [
        _line(f"Forked before tick {comparison.tick}, {_many(comparison.ticks, 'tick')} from there: {since}.")
    ]
    if rows:
        parts.append(table(("setting", "original", "fork"), rows))
    parts.append(table(("", "original", "fork", "difference"), list(_side_by_side(comparison))))
    for name, branch in (("original", comparison.original), ("fork", comparison.fork)):
        parts += _cleared(branch.clearing, f"Clearing, {name}")
        parts += _warnings(branch.diagnostics)
    return Group(*parts)


def reasoned(tick: int, reason: Reason) -> RenderableType:
    """The sentence, below it what it rests on."""
    tree = Tree(_line(f"before tick {tick}: {reason.sentence} ({reason.code})"))
    routes: Any = reason.facts.get("routes", ())
    for route in routes:
        tree.add(_line(f"{route['amount']} over {' → '.join(route['path'])}"))
    for one in reason.because:
        tree.add(_line(one.sentence))
    return tree


def _payments(counters: Counters) -> str:
    tried, made = counters.attempts_total, counters.committed_total
    share = f" ({_per_cent(made, tried)})" if tried else ""
    rest = f"{counters.rejected_total} refused, {counters.errors_total} failed, {counters.dropped_total} dropped"
    return f"{tried} tried, {made} made{share}, {rest}"


def _per_cent(part: int, whole: int) -> str:
    """With one digit, half up, in integers."""
    tenths = (2000 * part + whole) // (2 * whole)
    return f"{tenths // 10}.{tenths % 10} %"


def _metrics(metrics: Mapping[str, Mapping[str, str | None]]) -> Iterator[RenderableType]:
    if metrics:
        rows = [(key.replace("_", " "), *(_short(values.get(key)) for values in metrics.values())) for key in METRICS]
        yield table(("in the last tick", *metrics), rows)


def _short(value: str | None) -> str:
    """Without zeros that say nothing."""
    return "–" if value is None else value.rstrip("0").rstrip(".")


def _cleared(rows: Sequence[ClearingRow], title: str = "Clearing") -> Iterator[RenderableType]:
    if not rows:
        return
    measured = any(row.optimum for row in rows)
    columns = (*CLEARING, "optimum") if measured else CLEARING
    cells = [
        (
            *(str(row.tick), row.equivalent, row.reason, str(row.cleared_cycles), row.cleared_amount),
            row.debt_reduction,
            *((row.optimum or "–",) if measured else ()),
        )
        for row in rows[:MOST_SHOWN]
    ]
    yield table(columns, cells, title)
    if len(rows) > MOST_SHOWN:
        yield Text(f"… and {len(rows) - MOST_SHOWN} more; --json has them all\n")


def _warnings(diagnostics: Sequence[Diagnostic]) -> Iterator[RenderableType]:
    for one in diagnostics[:MOST_SHOWN]:
        yield _warning(f"{one.message} ({one.code})")
    if len(diagnostics) > MOST_SHOWN:
        yield Text(f"… and {len(diagnostics) - MOST_SHOWN} more warnings; --json has them all")


def _side_by_side(comparison: Comparison) -> Iterator[tuple[str, str, str, str]]:
    original, fork, less = comparison.original, comparison.fork, comparison.difference
    yield "state", original.state, fork.state, ""
    for name, count in less.counters.items():
        yield name, str(getattr(original.counters, name)), str(getattr(fork.counters, name)), _signed(str(count))
    for code, values in less.metrics.items():
        for key, value in values.items():
            both = original.metrics.get(code, {}).get(key), fork.metrics[code][key]
            yield f"{code} {key}", _short(both[0]), _short(both[1]), _signed(_short(value))
    for name in Cleared.__struct_fields__:
        left, right, change = (str(getattr(one.cleared, name)) for one in (original, fork, less))
        yield f"clearing: {name}", left, right, _signed(change)


def _signed(number: str) -> str:
    return number if number.startswith(("-", "–")) or not number.strip("0.") else f"+{number}"


def _warning(sentence: str) -> Text:
    return Text.assemble(("warning: ", "yellow"), printable(sentence))


def _line(sentence: str) -> Text:
    return Text(printable(sentence))


def printable(text: str) -> str:
    """Names come from a file; what a terminal would take for a command is escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
