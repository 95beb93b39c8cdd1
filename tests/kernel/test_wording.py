"""Complaints of msgspec as sentences: which object of several was meant, and what is allowed."""

from typing import Any

import msgspec
import pytest

from pendula.kernel.wording import explain_validation_error


class Fill(msgspec.Struct, tag="fill", forbid_unknown_fields=True):
    amount: int


class Empty(msgspec.Struct, tag="empty", forbid_unknown_fields=True):
    at_once: bool = False


class Several(msgspec.Struct, tag="several", forbid_unknown_fields=True):
    steps: tuple[Fill | Empty, ...]


COMMAND = Fill | Empty | Several


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"type": "FILL"}, "type is 'FILL'; allowed are fill, empty, several (did you mean fill?)"),
        ({"type": "Empty"}, "type is 'Empty'; allowed are fill, empty, several (did you mean empty?)"),
        ({"type": "pour"}, "type is 'pour'; allowed are fill, empty, several"),
        ({"type": 3}, "type is 3; allowed are fill, empty, several"),
        ({}, "'type' is missing; allowed are fill, empty, several"),
        (
            {"type": "several", "steps": [{"type": "empty"}, {"type": "FILL"}]},
            "steps[1].type is 'FILL'; allowed are fill, empty (did you mean fill?)",
        ),
        ({"type": "fill"}, "'amount' is missing"),
        ({"type": "empty", "atonce": 1}, "'atonce' is not a field here (did you mean at_once?); allowed are at_once"),
        (
            {"type": "several", "steps": [{"type": "fill", "amount": "x"}]},
            "steps[0].amount is 'x'; it must be a whole number",
        ),
    ],
)
def test_the_sentence_is_about_the_union_member_that_the_tag_selects(value: Any, sentence: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, COMMAND)

    assert explain_validation_error(str(caught.value), value, COMMAND) == sentence
