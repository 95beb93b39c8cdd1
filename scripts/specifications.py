"""Writes the table of sections of the specifications with their tests, and checks the tests.

    python scripts/specifications.py             write the table into build/reference/specifications.md
    python scripts/specifications.py --check     write nothing; fail when a test lacks a part

The table is not committed: the documentation site has it (scripts/docs_hooks.py). A test in tests/specifications
carries `@pytest.mark.section("3.3 Ack", interface="HTTP")`; the first paragraph of its docstring says what the section
requires. Intended differences from a specification are in `differences.toml`.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "tests/specifications"
DIFFERENCES = f"{FOLDER}/differences.toml"
PAGE = "build/reference/specifications.md"
INTERFACES = ("command line", "HTTP", "library", "page")
MOST_DIFFERENCES = 10
SPECIFICATIONS = {
    "actions": "ticklos scheduler with 24 one-hour epochs (German)",
    "jobs": "scheduler interface v0.1, `next_action_at` (Chinese)",
    "credit": "simulation runner: ticks and determinism (Russian)",
    "playback": "play scheduler (English)",
    "fleet": "fleet manager: deterministic corridor locking v0.2 (Polish)",
}


@dataclass(frozen=True)
class Section:
    """A test of one section of a specification."""

    scheduler: str
    title: str
    interface: str
    asks: str
    test: str

    @property
    def order(self) -> tuple[list[tuple[int, str]], str]:
        """By the parts of the number, so that 2.10 follows 2.9; appendices (A, B1) last."""
        number = self.title.partition(" ")[0]
        parts = [(int(part), "") if part.isdigit() else (sys.maxsize, part) for part in number.split(".")]
        return parts, self.test


class Faulty(Exception):
    """A test of a section lacks something; the message has its place."""


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="scripts/specifications.py", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if there are faults")
    options = parser.parse_args(arguments)
    try:
        text = written(root)
    except Faulty as fault:
        print(fault, file=sys.stderr)
        return 1
    if not options.check:
        (root / PAGE).parent.mkdir(parents=True, exist_ok=True)
        (root / PAGE).write_text(text, encoding="utf-8")
    return 0


def written(root: Path) -> str:
    """The table of a checkout."""
    return page(list(sections(root)), differences(root))


def sections(root: Path) -> Iterator[Section]:
    """Every marked test, by scheduler and section."""
    for scheduler in SPECIFICATIONS:
        found = [
            _section(scheduler, path.relative_to(root).as_posix(), node, decorator)
            for path in sorted((root / FOLDER).glob(f"test_{scheduler}*.py"))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path)))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
            for decorator in _marks(node, path)
        ]
        yield from sorted(found, key=lambda section: section.order)


def _marks(node: ast.FunctionDef | ast.AsyncFunctionDef, path: Path) -> list[ast.Call]:
    marks = [
        decorator
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.section"
    ]
    if not marks:
        raise Faulty(f"{path.name}: {node.name} names no section; add @pytest.mark.section(title, interface=…)")
    return marks


def _section(scheduler: str, path: str, node: ast.FunctionDef | ast.AsyncFunctionDef, mark: ast.Call) -> Section:
    where = f"{path}: {node.name}"
    match mark:
        case ast.Call(
            args=[ast.Constant(value=str(title))], keywords=[ast.keyword("interface", ast.Constant(str(interface)))]
        ):
            pass
        case _:
            raise Faulty(f'{where}: write @pytest.mark.section("3.3 Ack", interface="HTTP") with literals')
    if interface not in INTERFACES:
        raise Faulty(f"{where}: unknown interface {interface!r}; allowed are {', '.join(INTERFACES)}")
    asks = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    if len(asks) < 20 or not re.match(r"[0-9A-Z][0-9.]* ", title):
        raise Faulty(f"{where}: the title begins with the number, and the docstring says what the section asks")
    return Section(scheduler, title, interface, asks, f"{path}::{node.name}")


def differences(root: Path) -> list[dict[str, str]]:
    """Intended differences from specifications, each with its reason."""
    rows: list[dict[str, str]] = tomllib.loads((root / DIFFERENCES).read_text(encoding="utf-8")).get("difference", [])
    if len(rows) > MOST_DIFFERENCES:
        raise Faulty(f"{DIFFERENCES}: {len(rows)} rows; at most {MOST_DIFFERENCES} are allowed")
    for row in rows:
        if set(row) != {"scheduler", "section", "says", "does", "reason"} or row["scheduler"] not in SPECIFICATIONS:
            raise Faulty(f"{DIFFERENCES}: a row has scheduler, section, says, does and reason; found {sorted(row)}")
    return rows


def page(found: Sequence[Section], kept_different: Sequence[dict[str, str]]) -> str:
    lines = [
        "# The specifications, section by section",
        "",
        "Each row is a test that does what the section asks, through the",
        "outermost interface that applies.",
    ]
    for scheduler, subject in SPECIFICATIONS.items():
        lines += ["", f"## {scheduler}: {subject}", "", "| section | asks | interface | test |", "|---|---|---|---|"]
        for section in (section for section in found if section.scheduler == scheduler):
            test = section.test.rpartition("::")[2]
            lines.append(f"| {_cell(section.title)} | {_cell(section.asks)} | {section.interface} | `{test}` |")
    lines += ["", "## Intended differences", ""]
    if kept_different:
        lines += ["| scheduler | section | says | does | reason |", "|---|---|---|---|---|"]
        for row in kept_different:
            lines.append("| " + " | ".join(_cell(row[key]) for key in row) + " |")
    else:
        lines.append("Nothing.")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
