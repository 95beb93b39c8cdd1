"""The source as syntax trees, for the tests of this folder."""

import ast
from functools import cache
from pathlib import Path

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
