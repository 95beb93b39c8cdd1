"""Plant each mistake in a copy of the source and check that the tests of its law fail.

    python tests/mutations/run.py            all of them
    python tests/mutations/run.py journal    those with the word in their name

A mistake is a table in `mutations.toml`: the file, the function `in` it, a pattern that matches one place there, its
replacement, and the tests that must fail. A mistake that no test finds, or without a place, fails this run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.mutations.anchors import NotOnce, planted

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPIED = ("src", "tests", "bench", "pyproject.toml", "README.md", "LICENSE")


class Mistake(NamedTuple):
    name: str
    law: str
    file: str
    where: str | None  # the function; None in files that are not Python
    find: str
    replace: str
    tests: list[str]


def read_mistakes(text: str) -> list[Mistake]:
    return [
        Mistake(name, table["law"], table["file"], table.get("in"), table["find"], table["replace"], table["tests"])
        for name, table in tomllib.loads(text).items()
    ]


def with_mistake(mistake: Mistake, source: str) -> str:
    """The source of its file with the mistake; raises `NotOnce` unless its place exists exactly once."""
    if mistake.where is not None:
        return planted(source, mistake.where, mistake.find, mistake.replace)
    if source.count(mistake.find) != 1:
        raise NotOnce(f"the text occurs {source.count(mistake.find)} times in {mistake.file}, not once")
    return source.replace(mistake.find, mistake.replace)


def plant(mistake: Mistake, tree: Path) -> None:
    path = tree / mistake.file
    path.write_text(with_mistake(mistake, path.read_text()))


def is_noticed(mistake: Mistake, tree: Path) -> bool:
    """Whether the tests fail. Only failing tests count: a mistake that keeps pytest from running proves nothing."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--with-campaign", *mistake.tests]
    finished = subprocess.run(command, cwd=tree, env=_environment(tree), capture_output=True, text=True, check=False)
    if finished.returncode not in (0, 1):
        raise ValueError(f"pytest could not run\n{finished.stdout[-2000:]}{finished.stderr[-2000:]}")
    return finished.returncode == 1


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def copy_tree(target: Path) -> None:
    skipped = shutil.ignore_patterns("__pycache__", "page", "node_modules")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=skipped)
        else:
            shutil.copy(source, target / name)


def judge(mistake: Mistake) -> str:
    with tempfile.TemporaryDirectory(prefix="pendula-mutation-") as place:
        tree = Path(place)
        copy_tree(tree)
        try:
            plant(mistake, tree)
            return "red" if is_noticed(mistake, tree) else "GREEN"
        except ValueError as trouble:
            return f"BROKEN ({trouble})"


def main(words: list[str]) -> int:
    if {"-h", "--help"} & set(words):
        sys.stdout.write(__doc__)
        return 0
    mistakes = [m for m in read_mistakes((HERE / "mutations.toml").read_text()) if all(w in m.name for w in words)]
    if not mistakes:
        sys.stderr.write(f"no mistake has {' and '.join(map(repr, words))} in its name\n")
        return 2
    unnoticed = 0
    for mistake in mistakes:
        verdict = judge(mistake)
        unnoticed += verdict != "red"
        sys.stdout.write(f"{verdict:6} {mistake.name}: {mistake.law}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(mistakes) - unnoticed} passed, {unnoticed} failed\n")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
