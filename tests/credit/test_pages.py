"""Every example on the pages of this room runs, and prints what the page says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.running import Page, blocks_of, page_in, with_examples


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    yield from page_in(tmp_path, monkeypatch)


@pytest.mark.parametrize("path", with_examples("credit"), ids=str)
def test_the_examples_of_a_page_do_what_it_says(path: Path, page: Page) -> None:
    page.run(blocks_of(path))
