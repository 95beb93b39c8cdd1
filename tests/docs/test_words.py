"""The documentation stays short, and source and documentation stay in plain English: both are counted."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.markdown import ROOT

FOLDERS = ("tutorials", "how-to", "explanation")
MOST_WORDS = 45_000

AVOIDED = ("nobody", "somebody", "whoever", "anybody", "told", "telling", "anew", "wish", "wishes", "deed")
MOST_AVOIDED = 40
WRITTEN = ("src/pendula", "web/src", "docs", "README.md")
SUFFIXES = {".py", ".ts", ".tsx", ".css", ".html", ".sql", ".md", ".toml", ".yaml", ".json", ".json5"}
# The built page, and types that are generated from the descriptions of the server.
GENERATED = (ROOT / "src/pendula/server/page", ROOT / "web/src/api/types.ts")


def written_files() -> Iterator[Path]:
    """Source, page and documentation. Parts of longer names in code do not count."""
    for place in (ROOT / name for name in WRITTEN):
        files = [place] if place.is_file() else sorted(place.rglob("*"))
        yield from (
            file
            for file in files
            if file.suffix in SUFFIXES and not any(file.is_relative_to(other) for other in GENERATED)
        )


def test_tutorials_how_tos_and_explanations_stay_short() -> None:
    pages = [page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
    words = {page.stem: len(page.read_text(encoding="utf-8").split()) for page in pages}

    assert len(words) > 50
    assert sum(words.values()) <= MOST_WORDS


def test_avoided_words_are_rare() -> None:
    avoided = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)
    places = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}"
        for file in written_files()
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1)
        for match in avoided.finditer(line)
    ]

    assert len(places) <= MOST_AVOIDED, "\n".join(places)
