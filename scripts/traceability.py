"""Writes the table of requirements with the tests that prove them, and checks the marks.

    python scripts/traceability.py             write the table into build/reference/traceability.md
    python scripts/traceability.py --check     fail when a mark names no requirement, or a scheduler that
                                               pyproject.toml declares complete has a MUST without a test
    python scripts/traceability.py --refresh   read ids and forces again from the requirement documents, then write

The table is not committed: the documentation site has it (scripts/docs_hooks.py). The requirement documents are
beside the checkout and may be absent; docs/reference/requirements.json has a copy of ids and forces. Tests are
found by `@pytest.mark.req("ID", …)` without importing them.
"""

import argparse
import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = "../shared/requirements"
LIST = "docs/reference/requirements.json"
PAGE = "build/reference/traceability.md"

# Lines that begin with `**ACT-TIME-1 (MUST)**`, `- **SIM-DET-1** MUST.`, `| FLT-TEST-10 (MUST) |`.
_DEFINITION = re.compile(
    r"\s*(?:[-*]\s+|\|\s*)?(?P<bold>\*\*)?(?P<id>[A-Z]+-[A-Z0-9]+-[0-9]+[a-z]?)\b\**\s*\(?(?P<force>MUST|SHOULD|MAY)?\b"
)
# A requirement without a force counts as MUST.
STRICTEST = "MUST"

Forces = dict[str, str]


@dataclass(frozen=True)
class Mark:
    """One requirement named by one test; `requirement` is None where the mark cannot be read without running it."""

    requirement: str | None
    test: str
    line: int


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="scripts/traceability.py", description="Which tests prove which requirement.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="change nothing; fail if there are faults")
    what.add_argument("--refresh", action="store_true", help="read the requirement documents again first")
    options = parser.parse_args(arguments)
    if options.refresh and not refresh(root):
        print(f"There are no requirement documents at {DOCUMENTS}; {LIST} is unchanged", file=sys.stderr)
        return 1
    schedulers = read_list(root)
    marks = marks_of(root)
    if options.check:
        faults = list(faults_of(root, schedulers, marks))
        print("\n".join(faults), end="\n" if faults else "")
        return 1 if faults else 0
    (root / PAGE).parent.mkdir(parents=True, exist_ok=True)
    (root / PAGE).write_text(page(schedulers, marks), encoding="utf-8")
    return 0


# ---- requirements ----------------------------------------------------------------------------------------------------


def refresh(root: Path) -> bool:
    """Write the list of ids again from the documents; False where there are none."""
    documents = next((found for place in checkouts(root) if (found := sorted((place / DOCUMENTS).glob("*.md")))), None)
    if documents is None:
        return False
    schedulers = {document.stem: defined_in(document.read_text(encoding="utf-8")) for document in documents}
    (root / LIST).write_text(json.dumps(schedulers, indent=1) + "\n", encoding="utf-8")
    return True


def checkouts(root: Path) -> Iterator[Path]:
    """This checkout and, for a git worktree, its main checkout, which has the documents beside it."""
    yield root
    link = root / ".git"
    if link.is_file():
        folder = Path(link.read_text(encoding="utf-8").removeprefix("gitdir:").strip())
        yield (root / folder).parents[2]


def defined_in(text: str) -> Forces:
    """The ids that a document defines, in its order, each with its force."""
    found: Forces = {}
    for line in text.splitlines():
        match = _DEFINITION.match(line)
        if match is not None and (match["force"] or match["bold"]):
            found.setdefault(match["id"], match["force"] or STRICTEST)
    return found


def read_list(root: Path) -> dict[str, Forces]:
    schedulers: dict[str, Forces] = json.loads((root / LIST).read_text(encoding="utf-8"))
    return schedulers


# ---- marks -----------------------------------------------------------------------------------------------------------


def marks_of(root: Path) -> list[Mark]:
    """Every mark of every test below `tests/`, sorted."""
    found: list[Mark] = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        found += Marks(path.relative_to(root).as_posix(), tree).all()
    return found


class Marks:
    """The marks of one module: on functions, on classes for all their tests, on the module, in parameters."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self._path = path
        self._tree = tree
        # Parameters and marks may be defined elsewhere and used by name.
        self._named = {
            target.id: list(_requirements(statement.value))
            for statement in tree.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }

    def all(self) -> list[Mark]:
        return sorted(
            set(self._in_body(self._tree.body, "", self._named.get("pytestmark", []))),
            key=lambda mark: (mark.requirement or "", mark.test, mark.line),
        )

    def _in_body(
        self, body: Sequence[ast.stmt], prefix: str, inherited: list[tuple[str | None, int]]
    ) -> Iterator[Mark]:
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                yield from self._in_body(node.body, f"{prefix}{node.name}::", inherited + self._on(node))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                for requirement, line in inherited + self._on(node):
                    yield Mark(requirement, f"{self._path}::{prefix}{node.name}", line)

    def _on(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[str | None, int]]:
        found: list[tuple[str | None, int]] = []
        for decorator in node.decorator_list:
            found += _requirements(decorator)
            names = {inner.id for inner in ast.walk(decorator) if isinstance(inner, ast.Name)}
            found += [mark for name in sorted(names) for mark in self._named.get(name, [])]
        return found


def _requirements(expression: ast.expr) -> Iterator[tuple[str | None, int]]:
    """The arguments of every `pytest.mark.req(…)` inside an expression."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and _is_req(node.func):
            for argument in node.args:
                match argument:
                    case ast.Constant(value=str(requirement)):
                        yield requirement, argument.lineno
                    case _:
                        yield None, argument.lineno


def _is_req(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(attr="req", value=ast.Attribute(attr="mark")) | ast.Name(id="req"):
            return True
    return False


# ---- page and check --------------------------------------------------------------------------------------------------


def written(root: Path) -> str:
    """The table of a checkout."""
    return page(read_list(root), marks_of(root))


def page(schedulers: Mapping[str, Forces], marks: Sequence[Mark]) -> str:
    tests: dict[str, list[str]] = {}
    for mark in marks:
        if mark.requirement is not None and mark.test not in tests.setdefault(mark.requirement, []):
            tests[mark.requirement].append(mark.test)
    lines = [
        # Otherwise most search results of the site would be names of tests.
        *("---", "search:", "  exclude: true", "---", ""),
        "# Requirements and the tests that prove them",
        "",
        "A scheduler that `pyproject.toml` lists as complete has a test for each MUST. To run one test:",
        "`pytest NAME`.",
        "",
        "| scheduler | requirements | MUST | MUST with a test |",
        "|---|---|---|---|",
    ]
    for scheduler, forces in schedulers.items():
        must = [requirement for requirement, force in forces.items() if force == "MUST"]
        proven = sum(requirement in tests for requirement in must)
        lines.append(f"| [{scheduler}](#{scheduler}) | {len(forces)} | {len(must)} | {proven} |")
    for scheduler, forces in schedulers.items():
        lines += ["", f"## {scheduler}", "", *_of_scheduler(forces, tests)]
    return "\n".join(lines) + "\n"


def _of_scheduler(forces: Forces, tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    proven = [requirement for requirement in forces if requirement in tests]
    if proven:
        yield "| requirement | force | tests |"
        yield "|---|---|---|"
    for requirement in proven:
        named = "<br>".join(f"`{test}`" for test in sorted(tests[requirement]))
        yield f"| {requirement} | {forces[requirement]} | {named} |"
    for force in ("MUST", "SHOULD", "MAY"):
        rest = [requirement for requirement in forces if forces[requirement] == force and requirement not in tests]
        if rest:
            yield ""
            yield f"{force} without a test ({len(rest)}): {', '.join(rest)}."


def faults_of(root: Path, schedulers: Mapping[str, Forces], marks: Sequence[Mark]) -> Iterator[str]:
    """One sentence for each fault."""
    known = {requirement for forces in schedulers.values() for requirement in forces}
    for mark in marks:
        path = mark.test.partition("::")[0]
        if mark.requirement is None:
            yield f"{path}:{mark.line}: the requirement is not written out; a mark takes plain strings"
        elif mark.requirement not in known:
            yield f"{path}:{mark.line}: {mark.requirement} is no requirement; {LIST} lists them"
    proven = {mark.requirement for mark in marks}
    for scheduler in complete_schedulers(root):
        if scheduler not in schedulers:
            yield f"pyproject.toml: {scheduler} is complete without requirements; known are {', '.join(schedulers)}"
        for requirement, force in schedulers.get(scheduler, {}).items():
            if force == "MUST" and requirement not in proven:
                yield f"{requirement}: {scheduler} is declared complete, and no test is marked with this MUST"


def complete_schedulers(root: Path) -> list[str]:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    schedulers: list[str] = settings.get("tool", {}).get("pendula", {}).get("complete", [])
    return schedulers


if __name__ == "__main__":
    sys.exit(main())
