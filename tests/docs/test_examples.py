"""Every block of code in the documentation runs, and prints what the page says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import Block, blocks, pages
from tests.docs.running import ExampleFailed, Page, blocks_of, fault_of_form, page_in, with_examples


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    yield from page_in(tmp_path, monkeypatch)


@pytest.mark.parametrize("path", with_examples(None), ids=str)
def test_the_examples_of_a_page_do_what_it_says(path: Path, page: Page) -> None:
    page.run(blocks_of(path))


@pytest.mark.parametrize("path", pages(), ids=str)
def test_every_block_is_run_or_says_why_not(path: Path) -> None:
    assert [fault for fault in map(fault_of_form, blocks_of(path)) if fault] == []


def written(text: str) -> list[Block]:
    return blocks(Path("page.md"), text)


def test_output_that_differs_from_the_page_is_told_with_its_place(page: Page) -> None:
    with pytest.raises(ExampleFailed, match=r"page\.md:2"):
        page.run(written("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"))


def test_a_text_block_behind_prose_is_no_expected_output(page: Page) -> None:
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
def test_a_command_that_ends_otherwise_than_the_page_says_is_told(page: Page, command: str) -> None:
    with pytest.raises(ExampleFailed, match="exits with"):
        page.run(written(f"```console\n$ {command}\n```\n"))


def test_what_a_command_prints_is_compared_and_dots_stand_for_anything(page: Page) -> None:
    page.run(written("```console\n$ pendula --version\npendula …\n```\n"))

    with pytest.raises(ExampleFailed, match="the page says"):
        page.run(written("```console\n$ pendula --version\npendula 9…\n```\n"))


@pytest.mark.parametrize("language", ["yaml", "json", "toml"])
def test_a_document_that_cannot_be_read_is_told(page: Page, language: str) -> None:
    with pytest.raises(Exception, match=r"(?i)page\.md|toml|expected|invalid"):
        page.run(written(f"```{language}\n{{a: [\n```\n"))


@pytest.mark.parametrize(
    "head", ["sh", "", "python no-run:", "python no-run: x", "console file=x", "python background", "sh file=a.sh"]
)
def test_a_block_that_is_not_run_needs_a_reason(head: str) -> None:
    (block,) = written(f"```{head}\nx\n```\n")

    assert fault_of_form(block) is not None


def test_a_block_with_a_reason_is_left_alone(page: Page) -> None:
    (block,) = written("```sh no-run: needs a second machine\nexit 1\n```\n")

    assert fault_of_form(block) is None
    page.run([block])
