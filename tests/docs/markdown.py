"""The Markdown of the project, as the tests see it: pages, fenced blocks, links and headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")

# Made when the site is built; the strict build of it checks the anchors in them.
GENERATED = frozenset(
    f"docs/reference/{name}.md"
    for name in (
        *("codes", "commands", "http", "limits", "settings", "specifications", "traceability"),
        *(
            f"python/{name}"
            for name in ("kernel", "actions", "jobs", "governance", "credit", "playback", "fleet", "testing")
        ),
    )
)

_FENCE = re.compile(r"(?P<marks>```+)(?P<info>.*)")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
_HEADING = re.compile(r"#{1,6} +(?P<title>.+)")


@dataclass(frozen=True)
class Block:
    """A fenced block: `line` is that of its first line of text, `follows` whether only blank lines lie before it."""

    page: Path
    line: int
    language: str
    option: str
    text: str
    follows: bool

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages(root: Path = ROOT) -> list[Path]:
    """Every page a reader may open, relative to the root."""
    found = [root / name for name in TOP if (root / name).is_file()]
    return [path.relative_to(root) for path in (*found, *sorted((root / "docs").rglob("*.md")))]


def blocks(page: Path, text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = text.split("\n")
    index, last_end = 0, -1
    while index < len(lines):
        opening = _FENCE.match(lines[index])
        if opening is None:
            index += 1
            continue
        start = index + 1
        end = lines.index(opening["marks"], start)
        language, _, option = opening["info"].strip().partition(" ")
        body = "".join(f"{line}\n" for line in lines[start:end])
        follows = bool(found) and not any(line.strip() for line in lines[last_end + 1 : index])
        found.append(Block(page, start + 1, language, option.strip(), body, follows))
        last_end, index = end, end + 1
    return found


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside of fenced and inline code, numbered."""
    marks: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        fence = _FENCE.match(line)
        if marks is not None:
            marks = None if line == marks else marks
        elif fence is not None:
            marks = fence["marks"]
        else:
            yield number, _CODE.sub("``", line)


def links(text: str) -> Iterator[tuple[int, str]]:
    """Every link with its line."""
    for number, line in prose(text):
        for match in _LINK.finditer(line):
            yield number, match["target"]


def anchors(text: str) -> set[str]:
    """The names under which the headings of a page can be reached."""
    names: set[str] = set()
    marks: str | None = None
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence is not None:
            marks = None if line == marks else marks or fence["marks"]
        heading = _HEADING.match(line)
        if marks is None and heading is not None:
            words = re.sub(r"[^\w\- ]", "", heading["title"].lower())
            names.add(words.strip().replace(" ", "-"))
    return names


# Pages of these schedulers are run with the tests of the scheduler: their examples take as long as those.
SCHEDULERS = ("credit", "fleet", "jobs", "actions", "playback")


def scheduler_of(page: Path, text: str) -> str | None:
    """The scheduler whose tests run the examples of a page; None for pages of the whole."""
    if page.parent == Path():
        return None
    return next(
        (scheduler for scheduler in SCHEDULERS if f"pendula {scheduler} " in text or f"pendula.{scheduler}" in text),
        None,
    )


def pages_of(scheduler: str | None) -> list[Path]:
    return [page for page in pages() if scheduler_of(page, (ROOT / page).read_text(encoding="utf-8")) == scheduler]
