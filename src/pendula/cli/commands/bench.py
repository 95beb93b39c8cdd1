"""`pendula bench`: benchmarks of Pendula beside its peers, in one run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.output import JsonFlag, Output, example, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pendula.cli.benchmarks import Row

COLUMNS = ("measured", "ours", "yardstick", "unit", "ratio", "target", "verdict")


def register(program: typer.Typer) -> None:
    program.command("bench", epilog=example("pendula bench kernel", "pendula bench --quick --json > bench.json"))(bench)


def bench(
    scheduler: Annotated[
        str | None, typer.Argument(metavar="SCHEDULER", help="Only this one.", show_default="all")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds: seconds, not minutes; more noise.")] = False,
    json: JsonFlag = False,
) -> None:
    """Measure Pendula beside its peers in one run, with the same work on both sides.

    A ratio is Pendula's value divided by the peer's. A missed target is not an error: the exit code is 0.
    """
    from pendula.cli.benchmarks import checkout, load, machine, schedulers_with_benchmarks

    out = Output(json)
    root = checkout()
    benches = {name: load(root, name) for name in ([scheduler] if scheduler else schedulers_with_benchmarks(root))}
    results = {name: _run(out, name, bench.run, quick) for name, bench in benches.items()}
    document = {
        "benches": [{"scheduler": name, "rows": rows} for name, rows in results.items()],
        "machine": machine(),
        "quick": quick,
    }
    out.result(document, lambda: _drawn(results) if results else "This checkout has no benchmarks.")


def _run(out: Output, scheduler: str, run: Any, quick: bool) -> list["Row"]:
    with out.status(f"bench {scheduler}") as say:
        return list(run(quick, say))


def _drawn(results: dict[str, list["Row"]]) -> "RenderableType":
    from rich.console import Group

    parts: list[RenderableType] = []
    for scheduler, rows in results.items():
        parts.append(table(COLUMNS, [_cells(row) for row in rows], title=scheduler))
        parts.extend(_notes(rows))
    return Group(*parts)


def _cells(row: "Row") -> Sequence[str]:
    beside = "" if row.yardstick is None else f"{row.yardstick:,} {row.against}".rstrip()
    ratio = "" if row.ratio is None else str(row.ratio)
    return (
        row.name,
        f"{row.ours:,}",
        beside,
        row.unit,
        ratio,
        row.target or "",
        str(row.verdict) if row.target else "",
    )


def _notes(rows: Sequence["Row"]) -> list["RenderableType"]:
    """Notes on the rows, each sentence once and in their order."""
    from rich.text import Text

    lines = [f"{row.name}: {note}" for row in rows for note in (row.sentence, row.fairness) if note]
    return [Text(line) for line in dict.fromkeys(lines)]
