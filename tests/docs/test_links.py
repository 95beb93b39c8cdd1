"""Every relative link in the documentation leads somewhere, and every page can be reached from the index."""

import os
from pathlib import Path

import pytest

from tests.docs.markdown import GENERATED, ROOT, anchors, links, pages


def is_generated(aim: Path, root: Path) -> bool:
    return os.path.relpath(aim, root) in GENERATED


def faults_of(page: Path, root: Path = ROOT) -> list[str]:
    """The links of a page that lead nowhere."""
    text = (root / page).read_text(encoding="utf-8")
    found = []
    for line, target in links(text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        aim = (root / page).parent / name if name else root / page
        if is_generated(aim, root) and page.parts[0] == "docs":
            continue
        if not aim.exists():
            found.append(f"{page}:{line}: there is no {target}")
        elif anchor and aim.suffix == ".md" and anchor not in anchors(aim.read_text(encoding="utf-8")):
            found.append(f"{page}:{line}: {name or page} has no heading for #{anchor}")
    return found


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert faults_of(page) == []


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    index = ROOT / "docs/README.md"
    listed = {(index.parent / target).resolve() for _, target in links(index.read_text(encoding="utf-8"))}

    missing = [page for page in pages() if page.parts[0] == "docs" and (ROOT / page).resolve() not in listed]

    assert missing == [Path("docs/README.md")]


def test_no_page_is_empty() -> None:
    short = [page for page in pages() if len((ROOT / page).read_text(encoding="utf-8").split()) < 40]

    assert short == []


def test_titles_of_how_to_pages_start_with_a_verb() -> None:
    titles = [page.read_text(encoding="utf-8").split("\n", 1)[0] for page in (ROOT / "docs/how-to").glob("*.md")]
    verbs = {
        "Carry",
        "Embed",
        "Move",
        "Preempt",
        "Reveal",
        "Add",
        "Follow",
        "Read",
        "Recover",
        "Run",
        "Serve",
        "Test",
        "Bring",
        "Checkpoint",
        "Compare",
        "Describe",
        "Drive",
        "Recompile",
        "Sweep",
    }
    verbs |= {"Change", "Complete", "Connect", "Drill", "Go", "Share", "Tune"}
    verbs |= {"Back", "Find", "Gate", "Keep", "Plan", "Receive", "Use", "Weight", "Write"}

    assert [title for title in titles if title.split()[1] not in verbs] == []


def test_a_broken_link_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A title, here\n")
    (tmp_path / "page.md").write_text(
        "[good](there.md#a-title-here)\n[bad](gone.md)\n`[code](gone.md)`\n[worse](there.md#no)\n"
    )

    assert faults_of(Path("page.md"), tmp_path) == [
        "page.md:2: there is no gone.md",
        "page.md:4: there.md has no heading for #no",
    ]
