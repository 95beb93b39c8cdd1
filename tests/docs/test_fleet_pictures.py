"""The pictures of the documentation are what `pendula fleet draw` makes of their maps, and small."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts import pictures
from tests.docs.markdown import ROOT

MOST_BYTES = 60_000


@pytest.mark.req("FLT-MAP-21")
def test_the_pictures_are_up_to_date() -> None:
    assert pictures.main(["--check"]) == 0


def test_every_picture_is_on_a_page_and_there_are_no_others() -> None:
    there = sorted(path.name for path in pictures.FOLDER.iterdir())
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs/explanation").glob("*.md")]

    assert there == sorted(pictures.PICTURES)
    assert [name for name in there if not any(f"(pictures/{name})" in page for page in pages)] == []


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_small_and_whole(name: str) -> None:
    data = (pictures.FOLDER / name).read_bytes()

    assert len(data) <= MOST_BYTES
    assert ElementTree.fromstring(data).tag.endswith("svg")


def test_an_outdated_picture_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    assert pictures.main([]) == 0
    assert pictures.main(["--check"]) == 0
    (tmp_path / "cell.svg").write_text("<svg/>", encoding="utf-8")

    assert pictures.main(["--check"]) == 1
    told = "docs/explanation/pictures/cell.svg is not up to date; run python scripts/pictures.py\n"
    assert capsys.readouterr().err == told
