"""Faults are printed alike everywhere, in the order of their places, and not without end."""

import pickle
from decimal import Decimal

import pytest
from msgspec import UNSET

from pendula.documents import CODES, DocumentLimits, DocumentRefused, Fault, read_bytes, render
from pendula.documents.faults import presentable
from pendula.kernel import canonical
from pendula.kernel.wording import shown
from tests.documents.seen import YAML

FAULT = Fault("invalid_enum", "$.a", 12, 9, "hihg", "'hihg' is not an effort", ("low", "high"))


def test_a_fault_is_one_line() -> None:
    assert FAULT.text("town.yaml") == "town.yaml:12:9: $.a: 'hihg' is not an effort; allowed: low, high"


def test_a_fault_without_text_has_no_line() -> None:
    assert Fault("x", "$", 0, 0, UNSET, "it is wrong").text("body") == "body: $: it is wrong"


def test_the_json_form_has_the_same_facts() -> None:
    assert FAULT.as_json() == {
        "code": "invalid_enum",
        "path": "$.a",
        "line": 12,
        "column": 9,
        "value": "hihg",
        "message": "'hihg' is not an effort",
        "allowed": ["low", "high"],
    }
    assert "value" not in Fault("x", "$", 0, 0, UNSET, "it is wrong").as_json()
    assert Fault("x", "$", 0, 0, None, "it is wrong").as_json()["value"] is None


def test_faults_are_sorted_by_place() -> None:
    late, early = FAULT, Fault("x", "$.b", 2, 30, None, "wrong")

    refused = DocumentRefused([late, early], "town.yaml")

    assert refused.faults == (early, late)
    assert refused.render().splitlines() == [early.text("town.yaml"), late.text("town.yaml")]
    assert refused.details["faults"] == [early.as_json(), late.as_json()]
    assert str(refused) == "town.yaml:2:30: $.b: wrong (and 1 more fault)"


def test_a_hundred_faults_are_listed_and_the_rest_counted() -> None:
    faults = [Fault("x", f"$[{i}]", i + 1, 1, None, "wrong") for i in range(103)]

    lines = render(faults, "f.json", more=4).splitlines()

    assert len(lines) == 101
    assert lines[-1] == "f.json: and 7 more faults"
    assert len(render(faults[:100], "f.json").splitlines()) == 100


def test_the_limit_of_faults_can_be_set() -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_bytes(b"a: 1\na: 2\na: 3\na: 4\n", YAML, "t.yaml", DocumentLimits(faults=2))

    assert [fault.line for fault in refused.value.faults] == [2, 3]
    assert refused.value.more == 1
    assert refused.value.details["more"] == 1
    assert refused.value.render().splitlines()[-1] == "t.yaml: and 1 more fault"


def test_a_refusal_survives_pickling() -> None:
    refused = DocumentRefused([FAULT], "town.yaml", 3)

    again = pickle.loads(pickle.dumps(refused))

    assert (again.faults, again.source_name, again.more) == (refused.faults, "town.yaml", 3)
    assert again.details == refused.details


def test_the_details_have_canonical_bytes() -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_bytes(b'{"a": 1, "a": "\\ud800", "b": 1e99999}')

    assert b'"line":1' in canonical.encode(refused.value.details)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (Decimal("1.50"), "1.50"),
        ("a\n\x1b[31m", "'a\\n\\x1b[31m'"),
        ([1, 2], "a list of 2"),
        ({"a": 1}, "an object of 1 member"),
        ({}, "an object of 0 members"),
        (1.5, "a value of type float"),
    ],
)
def test_values_are_shown_in_words(value: object, text: str) -> None:
    assert shown(value) == text


def test_long_values_are_cut() -> None:
    assert len(str(presentable("x" * 1000))) == 80
    assert len(str(presentable(10**4000))) == 80
    assert len(str(presentable(10**5000))) == 80
    assert presentable(10**50) == 10**50
    assert presentable([1]) is UNSET
    assert presentable(1.5) is UNSET
    assert len(shown("x" * 1000)) == 82


def test_every_code_has_its_sentence() -> None:
    assert all(code.replace("_", "").isalnum() and code.islower() for code in CODES if code != "invalid_utf8")
    assert all(sentence[0].isupper() and not sentence.endswith(".") for sentence in CODES.values())
