"""The documentation stays short and in plain English: both are counted."""

import re
from pathlib import Path

from scripts import reference
from tests.docs.markdown import ROOT

FOLDERS = ("tutorials", "how-to", "explanation")
MOST_WORDS = 45_000

AVOIDED = ("nobody", "somebody", "whoever", "anybody", "told", "telling", "anew", "wish", "wishes", "deed")
MOST_AVOIDED = 5
GENERATED = {*reference.PAGES, "traceability.md", "specifications.md", "fleet-contracts.md"}


def written_by_hand() -> list[Path]:
    """README.md and the pages of `docs/` that no script writes."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    by_hand = [page for page in pages if not (page.parent.name == "reference" and page.name in GENERATED)]
    return [ROOT / "README.md", *by_hand]


def test_tutorials_how_tos_and_explanations_stay_short() -> None:
    pages = [page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
    words = {page.stem: len(page.read_text(encoding="utf-8").split()) for page in pages}

    assert len(words) > 50
    assert sum(words.values()) <= MOST_WORDS


def test_avoided_words_are_rare() -> None:
    avoided = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)
    places = [
        f"{page.relative_to(ROOT)}:{number}: {match[0]}"
        for page in written_by_hand()
        for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1)
        for match in avoided.finditer(line)
    ]

    assert len(places) <= MOST_AVOIDED, "\n".join(places)
