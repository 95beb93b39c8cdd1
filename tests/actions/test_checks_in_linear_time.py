"""A file with many definitions is checked in time that grows with the file."""

from typing import Any

import pytest

from pendula.actions.checks import check
from pendula.documents import Cursor, DocumentRefused, from_value


def test_a_check_of_a_definition_does_not_read_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    members = 0
    read = Cursor.object

    def counted(at: Cursor, **options: Any) -> Any:
        nonlocal members
        value = at.any()
        members += len(value) if isinstance(value, dict) else 1
        return read(at, **options)

    monkeypatch.setattr(Cursor, "object", counted)
    definitions = {f"k{number}": 0 for number in range(1000)}

    with pytest.raises(DocumentRefused):
        check(from_value({"action_defs": definitions, "actions_submitted": []}))

    assert 1000 <= members < 20_000
