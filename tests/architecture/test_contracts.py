"""Import contracts can fail: a cycle for types, a decision that reads a clock, a scheduler that imports another."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.source import ROOT

PLANTED = {
    # A cycle through an import that only a type checker follows.
    "src/pendula/documents/faults.py": "\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
    "    from pendula.documents.reading import Document\n",
    # A new module of a package that decides is covered without being listed.
    "src/pendula/credit/tick/planted.py": "import time\n",
    "src/pendula/server/schedulers/playback/planted.py": "from pendula.server.schedulers.actions import views\n",
    # Charts do not import the state of a run.
    "src/pendula/credit/studies/planted.py": "from pendula.credit.state import run_state\n",
}
BROKEN = (
    "No cycles, not even for types",
    "Decisions import no clock, disk, network or random state",
    "Schedulers of the server are independent",
    "credit: only the engine and its phases import the state of a run",
)


def test_planted_imports_break_their_contracts(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "page"))
    shutil.copy(ROOT / ".importlinter", tmp_path)
    for name, text in PLANTED.items():
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write(text)

    ended = _lint(tmp_path)

    assert ended.returncode == 1
    assert [name for name in BROKEN if f"{name} BROKEN" not in ended.stdout] == []


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "lint-imports"
    words = [str(program), "--no-cache"]
    return subprocess.run(
        words, cwd=folder, env={"PYTHONPATH": "src", "PATH": ""}, capture_output=True, text=True, check=False
    )
