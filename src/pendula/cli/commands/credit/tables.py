"""Tables of runs, forks, explanations, comparisons and sweeps for the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from pendula.cli.output import facts, plain_line, reason_tree, table
from pendula.cli.text import per_cent, printable
from pendula.credit.runs.forking import Cleared, Comparison
from pendula.credit.runs.headless import ClearingRow, Diagnostic, Result
from pendula.credit.state.counters import Counters
from pendula.kernel.engine import Reason
from pendula.kernel.wording import counted

if TYPE_CHECKING:
    from pendula.credit.studies.comparison import Comparison as Compared
    from pendula.credit.studies.comparison import Row
    from pendula.credit.studies.figures import Columns

# Rows of a table; `--json` has everything.
MOST_SHOWN = 200
SWEPT = (
    *("committed_rate", "no_capacity_rate", "served_share_", "errors", "clearing_calls", "mean_interval"),
    *("mean_cost", "total_debt_"),
)
CLEARING = ("tick", "equivalent", "why", "cycles", "cleared", "debts less by")
OVERALL = (
    *("success_rate", "avg_route_length", "wanted", "served", "served_share", "volume", "cleared_amount"),
    *("debt_reduction", "total_debt"),
)
# Values at the end of a run.
ENDS = ("active_participants", "active_trustlines")
PEOPLE_SHOWN = 3


def render_run(result: Result) -> RenderableType:
    ended = "" if result.state == "running" else f", {result.state}"
    pairs = [
        ("scenario", printable(result.scenario_id)),
        ("run", f"{result.run_id}, seed {result.seed}, {counted(result.ticks, 'tick')}{ended}"),
        ("payments", _payments(result.counters, result.queue_depth)),
        ("plan", result.digests["plan"]),
        ("ledger", result.digests["ledger"]),
    ]
    return Group(
        facts(pairs),
        *_over_the_run(result),
        *_rejected(result),
        *_cleared(result.clearing),
        *_warnings(result.diagnostics),
    )


def render_check(report: Mapping[str, Any]) -> RenderableType:
    counts = f"{counted(report['participants'], 'participant')}, {counted(report['trustlines'], 'line')}"
    units = ", ".join(report["equivalents"])
    lines: list[RenderableType] = [plain_line(f"{report['file']} is sound: {counts}, in {units}.")]
    lines += [_warning(f"{warning.path}: {warning.message} ({warning.code})") for warning in report["warnings"]]
    return Group(*lines)


def render_fork(comparison: Comparison) -> RenderableType:
    """The changed settings, the first difference, and both branches side by side."""
    first = comparison.first_difference["ledger"]
    since = "the ledgers are identical" if first is None else f"the ledgers differ from tick {first} on"
    rows = [(name, *values) for name, values in comparison.settings.items()]
    parts: list[RenderableType] = [
        plain_line(f"Forked before tick {comparison.tick}, {counted(comparison.ticks, 'tick')} each: {since}.")
    ]
    if rows:
        parts.append(table(("setting", "original", "fork"), rows))
    parts.append(table(("", "original", "fork", "difference"), list(_side_by_side(comparison))))
    for name, branch in (("original", comparison.original), ("fork", comparison.fork)):
        parts += _cleared(branch.clearing, f"Clearing, {name}")
        parts += _warnings(branch.diagnostics)
    return Group(*parts)


def render_reason(tick: int, reason: Reason) -> RenderableType:
    return reason_tree(f"before tick {tick}: {reason.sentence} ({reason.code})", reason, _routes)


def _routes(reason: Reason) -> Iterator[str]:
    routes: Any = reason.facts.get("routes", ())
    return (f"{route['amount']} over {' → '.join(route['path'])}" for route in routes)


def render_comparison(comparison: "Compared") -> RenderableType:
    """The settings that differ, the medians and their differences, their confidence, and the verdict."""
    seeds = comparison.seeds
    head = f"{comparison.scenario_id}: {counted(len(seeds), 'seed')} from {seeds[0]} on, "
    head += f"{counted(comparison.ticks, 'tick')}, the first {comparison.skip} not counted"
    settings = [(name, *values) for name, values in comparison.settings.items()]
    a, b = comparison.names
    rows = [_cells(row) for row in comparison.rows]
    verdict = comparison.verdict
    conclusion = "B is as good as A" if verdict.passed else "B is not shown to be as good as A"
    lines = [Text(f"  {'ok ' if check.passed else 'NO '} {check.name}: {check.sentence}") for check in verdict.checks]
    if (worth := verdict.worth_its_calls) is not None:
        calls = "B is worth its calls" if worth.passed else "B is not worth its calls"
        lines.append(Text(f"{calls} compared with a cadence of as many: {worth.sentence}"))
    same = "" if comparison.same is None else f"\n{comparison.same}."
    return Group(
        Text(printable(head) + same),
        table(("setting", f"A: {printable(a)}", f"B: {printable(b)}"), settings),
        table(("median", "A", "B", "B less A", "from", "to", "B is"), rows),
        *_confidence(comparison),
        Text(f"{conclusion}:", style="bold"),
        *lines,
    )


def render_sweep(columns: "Columns", varied: Sequence[str]) -> RenderableType:
    """Medians over seeds, one row per combination, and the digest of all runs."""
    from pendula.credit.studies.sweeps import summarise

    medians = summarise(columns, varied)
    names = [name for name in medians.values if name in varied or name == "runs" or name.startswith(SWEPT)]
    at = [list(medians.values).index(name) for name in names]
    rows = [tuple(_rounded(row[place]) for place in at) for row in medians.rows()[:MOST_SHOWN]]
    parts: list[RenderableType] = [table([name.replace("_", " ") for name in names], rows, "Medians over seeds")]
    if len(medians) > MOST_SHOWN:
        parts.append(
            Text(f"… and {counted(len(medians) - MOST_SHOWN, 'more combination')}; --csv and --json have them all")
        )
    return Group(*parts, Text(f"{counted(len(columns), 'run')}, digest {columns.digest}"))


def _payments(counters: Counters, waiting: int) -> str:
    tried, made = counters.attempts_total, counters.committed_total
    share = f" ({per_cent(made, tried)})" if tried else ""
    rest = f"{counters.rejected_total} rejected, {counters.errors_total} failed, {counters.dropped_total} dropped"
    queued = f", {waiting} waiting" if waiting else ""
    return f"{tried} tried, {made} made{share}, {rest}{queued}"


def _over_the_run(result: Result) -> Iterator[RenderableType]:
    if result.metrics:
        rows = [
            (key.replace("_", " "), *(_rounded(values.get(key)) for values in by_equivalent.values()))
            for by_equivalent, keys in ((result.totals, OVERALL), (result.metrics, ENDS))
            for key in keys
        ]
        yield table(("over the run", *result.totals), rows)


def _rejected(result: Result) -> Iterator[RenderableType]:
    """Rejected payments by reason, group and participant, most frequent first."""
    refusals = result.refusals
    if not refusals.reasons:
        return
    groups = [(f"group {printable(name)}", count) for name, count in _most(refusals.groups) if name]
    people = [(printable(name), count) for name, count in _most(refusals.participants)[:PEOPLE_SHOWN]]
    rows = [*_most(refusals.reasons), *groups, *people]
    yield table(("rejected", "payments"), [(name, str(count)) for name, count in rows])


def _most(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The largest counts first; ties are in the order of names."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _short(value: str | None) -> str:
    """Without trailing zeros."""
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
    for diagnostic in diagnostics[:MOST_SHOWN]:
        times = f" {diagnostic.count} times in total, last at tick {diagnostic.last_tick}." if diagnostic.count else ""
        yield _warning(f"{diagnostic.message}{times} ({diagnostic.code})")
    if len(diagnostics) > MOST_SHOWN:
        yield Text(f"… and {counted(len(diagnostics) - MOST_SHOWN, 'more warning')}; --json has them all")


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
        left, right, change = (str(getattr(branch.cleared, name)) for branch in (original, fork, less))
        yield f"clearing: {name}", left, right, _signed(change)


def _signed(number: str) -> str:
    return number if number.startswith(("-", "–")) or not number.strip("0.") else f"+{number}"


def _warning(sentence: str) -> Text:
    return Text.assemble(("warning: ", "yellow"), printable(sentence))


def _cells(row: "Row") -> tuple[str, ...]:
    texts = (_rounded(text) for text in (row.a, row.b, row.difference, row.low, row.high))
    # Separate words can wrap on a narrow terminal; a long name would be cut.
    return row.measure.replace("_", " "), *texts, row.shown


def _confidence(comparison: "Compared") -> list[RenderableType]:
    """The confidence of the intervals; it depends on the number of compared seeds."""
    levels = sorted({row.coverage for row in comparison.rows if row.coverage is not None})
    if not levels:
        return []
    confidence = " or ".join(f"{_rounded(_hundredfold(level))} %" for level in levels)
    return [Text(f"Each interval, from … to …, contains its median with {confidence} confidence.\n")]


def _hundredfold(text: str) -> str:
    return format((Decimal(text) * 100).quantize(Decimal("0.1")), "f")


def _rounded(text: int | str | None) -> str:
    """Round to four decimal places, without trailing zeros."""
    if not isinstance(text, str):
        return "–" if text is None else str(text)
    if not text.removeprefix("-").replace(".", "", 1).isdigit():
        return text
    plain = format(Decimal(text).quantize(Decimal("0.0001")), "f").rstrip("0").rstrip(".")
    return "0" if plain == "-0" else plain
