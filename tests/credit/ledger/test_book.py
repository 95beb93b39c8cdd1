"""The wiring of the ledger of one equivalent."""

import pytest

from pendula.credit.ledger.book import Book
from tests.credit.conftest import headless, network


def test_a_hub_is_wired_once_for_all_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = Book._open_in

    def counted(self: Book, v: int) -> None:
        nonlocal calls
        calls += 1
        real(self, v)

    monkeypatch.setattr(Book, "_open_in", counted)
    lines = network(*(("hub", f"p{number}", 5) for number in range(300)))
    for line in lines["trustlines"]:  # type: ignore[union-attr]
        line["policy"] = {"can_be_intermediate": False}  # type: ignore[index]

    headless(lines)

    assert 0 < calls <= 301
