"""Every value knows its line, its column and its path."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pendula.documents import (
    NOWHERE,
    DocumentLimits,
    Path,
    Place,
    from_value,
    json_text,
    path_text,
    read_bytes,
)
from pendula.documents.faults import FaultList, Lines, Spot, Wanted
from pendula.documents.tree import Tree
from tests.documents.seen import JSON, YAML

JSON_TEXT = b"""{
  "actions": [
    {"id": "A1", "effort": "high"},
    {"id": "A2",
     "effort": "low"}
  ],
  "odd name": null
}"""

YAML_TEXT = b"""# town
actions:
- {id: A1, effort: high}
- id: A2
  effort: low
odd name:
again: &x {deep: [1]}
alias: *x
"""


def test_places_of_json_values_and_names() -> None:
    document = read_bytes(JSON_TEXT, JSON)

    assert document.place(()) == Place(1, 1)
    assert document.place(("actions",)) == Place(2, 14)
    assert document.place(("actions", 1)) == Place(4, 5)
    assert document.place(("actions", 1, "effort")) == Place(5, 16)
    assert document.place(("actions", 1, "effort"), at_key=True) == Place(5, 6)
    assert document.place(("odd name",)) == Place(7, 15)


def test_places_of_yaml_values_and_names() -> None:
    document = read_bytes(YAML_TEXT, YAML)

    assert document.place(("actions",)) == Place(3, 1)
    assert document.place(("actions", 0, "effort")) == Place(3, 20)
    assert document.place(("actions", 1)) == Place(4, 3)
    assert document.place(("actions", 1, "effort")) == Place(5, 11)
    assert document.place(("actions", 1, "effort"), at_key=True) == Place(5, 3)
    assert document.place(("again", "deep", 0)) == Place(7, 19)


def test_a_value_without_text_has_the_place_of_its_container() -> None:
    document = read_bytes(YAML_TEXT, YAML)

    assert document.place(("alias", "deep", 0)) == Place(8, 8)
    assert document.place(("actions", 1, "missing")) == Place(4, 3)
    assert document.place(("nowhere", 3)) == Place(2, 1)


def test_places_are_found_below_the_depth_of_the_interpreters_stack() -> None:
    deep = DocumentLimits(depth=5000)
    document = read_bytes(b"[" * 3000 + b"7" + b"]" * 3000, JSON, limits=deep)

    assert document.place((0,) * 3000) == Place(1, 3001)


@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_both_ways_to_find_places_in_json_agree(value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    spots = [Spot(path, at_key) for path in _paths(value) for at_key in (False, True)]
    quick, careful = Wanted.of(spots), Wanted.of(spots)

    json_text.locate(text, quick)
    json_text.scan(text, Tree(DocumentLimits(), FaultList(0), Lines(text), careful))

    assert [quick.offset(spot) for spot in spots] == [careful.offset(spot) for spot in spots]


def _paths(value: Any, path: Path = ()) -> list[Path]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for step, member in members for inner in _paths(member, (*path, step)))]


def test_plain_values_have_no_place() -> None:
    assert from_value({"a": [1]}).place(("a", 0)) == NOWHERE


def test_paths_are_readable() -> None:
    assert path_text(()) == "$"
    assert path_text(("actions", 3, "effort")) == "$.actions[3].effort"
    assert path_text(("odd name", "a.b", "", "é", '"', "_x1")) == '$["odd name"]["a.b"][""]["\\u00e9"]["\\""]._x1'
