"""Every block of code in the documentation runs, and prints what the page says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, Block, blocks, pages
from tests.docs.running import ExampleFailed, Page, blocks_of, examples_of, fault_of_form, page_in


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    yield from page_in(tmp_path, monkeypatch)


test_the_examples_of_a_page_do_what_it_says = examples_of(None)


@pytest.mark.parametrize("path", pages(), ids=str)
def test_every_block_is_run_or_has_a_reason(path: Path) -> None:
    assert [fault for fault in map(fault_of_form, blocks_of(path)) if fault] == []


TUTORIALS = [page for page in pages() if page.parent == Path("docs/tutorials")]


@pytest.mark.parametrize("path", TUTORIALS, ids=str)
def test_a_tutorial_names_where_to_type_and_the_files_to_save(path: Path) -> None:
    found = blocks_of(path)
    before = (ROOT / path).read_text(encoding="utf-8").split("\n")
    saved = {block.line: block.option.removeprefix("file=") for block in found if block.option.startswith("file=")}
    pasted = any(block.language == "python" and not block.option for block in found)

    assert "*Where to type:* lines that begin with `$` go into a terminal" in "\n".join(before)
    assert ("type `python` in a second terminal" in "\n".join(before)) is pasted
    assert [name for line, name in saved.items() if f"as `{name}`" not in " ".join(before[line - 8 : line])] == []


@pytest.fixture
def pasting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    yield from page_in(tmp_path, monkeypatch, pasted=True)


def test_pasted_blocks_share_names_and_are_compared(pasting: Page) -> None:
    pasting.run(written("```python\nfor n in (1, 2):\n    print(n)\n```\n\n```text\n1\n2\n```\n"))
    pasting.run(written("```python\nprint(n + 1)\n```\n\n```text\n3\n```\n"))


@pytest.mark.parametrize(
    ("pasted", "why"),
    [
        ("for n in (1, 2):\n    m = n\nprint(m)", "SyntaxError"),
        ("def f():\n    x = 1\n\n    return x", "IndentationError"),
        ("1 / 0", "ZeroDivisionError"),
        ("len('four')", "the page says"),
    ],
    ids=["no empty line after a loop", "an empty line in a function", "an error", "a value that is echoed"],
)
def test_a_block_that_cannot_be_pasted_is_reported_with_its_place(pasting: Page, pasted: str, why: str) -> None:
    with pytest.raises(ExampleFailed, match=rf"(?s)page\.md:2.*{why}"):
        pasting.run(written(f"```python\n{pasted}\n```\n\n```text\n```\n"))


def written(text: str) -> list[Block]:
    return blocks(Path("page.md"), text)


def test_output_that_differs_from_the_page_is_reported_with_its_place(page: Page) -> None:
    with pytest.raises(ExampleFailed, match=r"page\.md:2"):
        page.run(written("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"))


def test_a_text_block_after_prose_is_not_expected_output(page: Page) -> None:
    page.run(written("```python\nprint(1)\n```\n\nA drawing:\n\n```text\n<->\n```\n"))


def test_blocks_share_names_and_files(page: Page) -> None:
    page.run(
        written(
            "```python file=two.py\nTWO = 2\n```\n```python\nfrom two import TWO\n```\n"
            "```python\nprint(TWO)\n```\n```text\n2\n```\n"
        )
    )


@pytest.mark.parametrize(
    "command", ["pendula nonsense", "pendula --version  # exit 1"], ids=["fails", "was meant to fail"]
)
def test_a_command_with_another_exit_code_than_on_the_page_fails(page: Page, command: str) -> None:
    with pytest.raises(ExampleFailed, match="exits with"):
        page.run(written(f"```console\n$ {command}\n```\n"))


def test_output_of_commands_is_compared_and_dots_match_anything(page: Page) -> None:
    page.run(written("```console\n$ pendula --version\npendula …\n```\n"))

    with pytest.raises(ExampleFailed, match="the page says"):
        page.run(written("```console\n$ pendula --version\npendula 9…\n```\n"))


@pytest.mark.parametrize("language", ["yaml", "json", "json5", "toml"])
def test_an_unreadable_document_fails(page: Page, language: str) -> None:
    with pytest.raises(Exception, match=r"(?i)page\.md|toml|expected|invalid"):
        page.run(written(f"```{language}\n{{a: [\n```\n"))


@pytest.mark.parametrize(
    "head", ["sh", "", "python no-run:", "python no-run: x", "console file=x", "python background", "sh file=a.sh"]
)
def test_a_block_that_is_not_run_needs_a_reason(head: str) -> None:
    (block,) = written(f"```{head}\nx\n```\n")

    assert fault_of_form(block) is not None


def test_a_block_with_a_reason_is_not_run(page: Page) -> None:
    (block,) = written("```sh no-run: needs a second machine\nexit 1\n```\n")

    assert fault_of_form(block) is None
    page.run([block])
