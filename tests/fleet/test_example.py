"""The example hall: its script prints what its readme promises."""

import subprocess
import sys
from pathlib import Path

from tests.docs.markdown import ROOT

FOLDER = ROOT / "examples/hall"


def test_the_survey_prints_a_route_a_spur_and_a_bad_place_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "hall.svg"

    output = subprocess.run(
        [sys.executable, FOLDER / "survey.py", picture], capture_output=True, check=True, timeout=300
    ).stdout.decode()

    assert "R1 goes to the goods in 29.0 s:\n  P1->A2     8.0 m, then turns by +1.57 rad\n" in output
    assert "  8.0 m: live, R2 keeps off A2->P1, B1->P3, P1->A2, P3->B1\n" in output
    assert "  3.5 m: live, R2 keeps off A1->A2, A2->A1, " in output
    assert "  A1: not live: truck 'R1' cannot go from 'EAST' to 'WEST' while 'R3' rests in 'A1'; " in output
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_the_folder_contains_every_file_its_readme_names() -> None:
    names = sorted(path.name for path in FOLDER.iterdir() if path.name != "__pycache__")

    assert names == ["README.md", "survey.py"]
