"""The source as syntax trees, for the tests of this folder."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/pendula"
SCHEDULERS = ("actions", "credit", "fleet", "jobs", "playback")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(folder: Path = SOURCE) -> list[Path]:
    """Every Python file below a folder, by name; the built page has none."""
    return sorted(folder.rglob("*.py"))


def packages() -> list[Path]:
    return [path.parent for path in modules() if path.name == "__init__.py" and path.parent != SOURCE]


def members(package: Path) -> list[str]:
    """The names of a package's modules and sub-packages."""
    files = [path.stem for path in package.glob("*.py") if path.name not in ("__init__.py", "__main__.py")]
    folders = [path.parent.name for path in package.glob("*/__init__.py")]
    return sorted(files + folders)


def named(path: Path) -> str:
    """`credit/ledger/book.py` for a file of the package."""
    return path.relative_to(SOURCE).as_posix()


def calls(path: Path) -> Iterator[tuple[str, int]]:
    """The calls of a module, with the number of positional arguments."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), len(node.args)


@cache
def exceptions() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "exceptions.toml").read_text(encoding="utf-8"))
