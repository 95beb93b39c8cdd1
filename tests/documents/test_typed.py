"""Structs read from documents: every fault with its place, value and what is allowed."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct, field

from pendula.documents import Cursor, DocumentRefused, Fault, Format, Members, from_value, path_text, read_bytes, typed
from pendula.documents.schema import schema_of
from pendula.documents.typed import (
    CLOSED,
    MERGED,
    NO_NULL,
    NULL_IS_ABSENT,
    Parse,
    Read,
    Unique,
    limits,
    note_unknown_members,
    read,
    read_at,
    reader_of,
    unknown_members,
    written,
)
from pendula.kernel.errors import InputRefused


class Kind(StrEnum):
    FORKLIFT = "forklift"
    TUGGER = "tugger"


def millimetres(at: Cursor) -> int:
    return int(at.decimal(min=0, max=10) * 1000)


def upper(text: str) -> str:
    if not text.isalpha():
        raise InputRefused("only letters", path="$")
    return text.upper()


Name = Annotated[str, Meta(min_length=1, max_length=8, pattern="^[a-z]+$", extra={"form": "letters a to z"})]
Ratio = Annotated[Decimal, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
Length = Annotated[int, Read(millimetres, 0), written(type="number", minimum=0, maximum=10)]


class Truck(Struct, frozen=True, forbid_unknown_fields=True):
    id: Name
    length_mm: Length = field(name="length")
    kind: Kind = Kind.FORKLIFT
    charge: Ratio = Decimal("0.5")
    doors: Annotated[int, Meta(ge=0, le=3)] | None = None
    side: Literal["left", "right"] = "left"
    owner: Annotated[str, Parse(upper), written(type="string", pattern="^[A-Za-z]+$")] = ""

    def check(self, at: Members) -> None:
        if at.sound("kind", "length") and self.kind is Kind.TUGGER and self.length_mm > 5000:
            at["length"].refuse("a tugger is at most 5 m long")


class Depot(Struct, frozen=True):
    trucks: Annotated[tuple[Truck, ...], Unique("id", noun="truck"), Meta(min_length=1)]
    corner: tuple[int, int] = (0, 0)
    spare: Annotated[Truck | None, NULL_IS_ABSENT] = None
    labels: dict[Name, bool] = {}
    more: Any = None
    sizes: frozenset[int] = frozenset()
    note: Annotated[Name | None, NO_NULL] = None


def faults_of(text: str, form: type = Depot, kind: Format = Format.YAML, **options: Any) -> list[Fault]:
    with pytest.raises(DocumentRefused) as refused:
        read(read_bytes(text.encode(), kind), form, **options)
    return list(refused.value.faults)


def test_document_becomes_the_struct() -> None:
    text = (
        "trucks: [{id: a, length: 1.5}, {id: b, length: 2, kind: tugger, charge: 0.25, doors: 2, owner: me}]\n"
        "corner: [1, -2]\nlabels: {x: true}\nmore: [1, {}]\nignored: 1\nsizes: [2, 1, 2]\n"
    )

    depot = read(read_bytes(text.encode(), Format.YAML), Depot)

    assert depot == Depot(
        trucks=(Truck("a", 1500), Truck("b", 2000, Kind.TUGGER, Decimal("0.25"), 2, "left", "ME")),
        corner=(1, -2),
        labels={"x": True},
        more=[1, {}],
        sizes=frozenset({1, 2}),
    )


def test_every_fault_has_its_place_its_value_and_what_is_allowed() -> None:
    text = (
        "trucks:\n"
        "- {id: A1, length: 11, kind: forklfit, charge: 2, doors: 4, side: up, owner: '1', colour: red}\n"
        "- {length: 1}\n"
        "corner: [1]\n"
        "labels: {X: 1}\n"
    )

    faults = faults_of(text)

    assert [(fault.path, fault.line, fault.column, fault.code) for fault in faults] == [
        ("$.trucks[0].id", 2, 8, "invalid_field"),
        ("$.trucks[0].length", 2, 20, "invalid_field"),
        ("$.trucks[0].kind", 2, 30, "invalid_enum"),
        ("$.trucks[0].charge", 2, 48, "invalid_field"),
        ("$.trucks[0].doors", 2, 58, "invalid_field"),
        ("$.trucks[0].side", 2, 67, "invalid_enum"),
        ("$.trucks[0].owner", 2, 78, "input_refused"),
        ("$.trucks[0].colour", 2, 83, "unknown_field"),
        ("$.trucks[1].id", 3, 3, "missing_field"),
        ("$.corner", 4, 9, "invalid_field"),
        ("$.labels.X", 5, 10, "invalid_field"),
        ("$.labels.X", 5, 13, "invalid_field"),
    ]
    assert faults[0].allowed == ("letters a to z",)
    assert "did you mean" in faults[2].message
    assert faults[3].allowed == ("from 0 to 1",)
    assert faults[5].allowed == ("left", "right")
    assert [fault.value for fault in faults[:3]] == ["A1", 11, "forklfit"]


def test_repeated_element_is_a_fault_at_its_second_place() -> None:
    faults = faults_of("trucks: [{id: a, length: 1}, {id: b, length: 1}, {id: a, length: 1}]")

    assert [(fault.path, fault.code, fault.message) for fault in faults] == [
        ("$.trucks[2].id", "not_unique", "the truck 'a' appears twice, first at [0]")
    ]


def test_check_of_a_struct_sees_which_members_are_sound() -> None:
    (fault,) = faults_of("trucks: [{id: a, length: 6, kind: tugger}]")
    (other,) = faults_of("trucks: [{id: a, length: 60, kind: tugger}]")

    assert (fault.path, fault.message) == ("$.trucks[0].length", "a tugger is at most 5 m long")
    assert other.allowed == ("from 0 to 10",)


def test_null_is_a_fault_unless_the_type_allows_it_or_it_counts_as_absent() -> None:
    text = "trucks: [{id: a, length: 1, doors: null, charge: null}]\nspare: null\nnote: null"

    faults = faults_of(text)

    assert [(fault.path, fault.value) for fault in faults] == [("$.trucks[0].charge", None), ("$.note", None)]


def test_members_that_are_not_given_keep_the_present_values() -> None:
    present = Truck("a", 1000, Kind.TUGGER, Decimal(1), 3, "right", "ME")

    changed = read(read_bytes(b'{"length": 2, "doors": null}'), Truck, present=present)

    assert changed == Truck("a", 2000, Kind.TUGGER, Decimal(1), None, "right", "ME")


class Tree(Struct, frozen=True):
    children: tuple["Tree", ...] = ()


def test_struct_may_contain_itself() -> None:
    assert read(read_bytes(b'{"children": [{}, {"children": [{}]}]}'), Tree) == Tree((Tree(), Tree((Tree(),))))


class Pay(Struct, frozen=True, tag="pay", tag_field="type", forbid_unknown_fields=True):
    amount: int


class Clear(Struct, frozen=True, tag="clear", tag_field="type", forbid_unknown_fields=True):
    pass


class Plan(Struct, frozen=True):
    steps: tuple[Pay | Clear, ...]
    place: tuple[int, int] | Name | Clear = "a"
    flag: bool | int = True


def test_union_is_read_by_its_tag_or_by_the_kind_of_its_value() -> None:
    text = b'{"steps": [{"type": "pay", "amount": 3}, {"type": "clear"}], "place": [1, 2], "flag": 7}'

    plan = read(read_bytes(text), Plan)
    faults = faults_of(
        '{"steps": [{"type": "pya"}, {}, {"type": "clear", "amount": 1}, {"type": "pay"}, 4], "place": 1}',
        Plan,
        Format.JSON,
    )

    assert plan == Plan((Pay(3), Clear()), (1, 2), 7)
    assert [(fault.path, fault.code) for fault in faults] == [
        ("$.steps[0].type", "invalid_enum"),
        ("$.steps[1].type", "missing_field"),
        ("$.steps[2].amount", "unknown_field"),
        ("$.steps[3].amount", "missing_field"),
        ("$.steps[4]", "invalid_field"),
        ("$.place", "invalid_field"),
    ]


class Step(Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    note: str = ""
    many: Any = 1


class Walk(Step, frozen=True, tag="walk"):
    many: Annotated[int, Meta(ge=1)] = 1


class Rest(Step, frozen=True, tag="rest"):
    many: Literal["long", "short"] = "short"


class Day(Struct, frozen=True, forbid_unknown_fields=True):
    steps: tuple[Walk | Rest, ...]


def test_object_with_a_wrong_tag_is_read_as_the_common_base_of_the_union() -> None:
    text = '{"steps": [{"kind": "wlak", "note": 1, "many": [], "no": 1}, {"note": 2}, {"kind": "rest", "many": 1}]}'

    assert [(fault.path, fault.code) for fault in faults_of(text, Day, Format.JSON)] == [
        ("$.steps[0].kind", "invalid_enum"),
        ("$.steps[0].note", "invalid_field"),
        ("$.steps[0].no", "unknown_field"),
        ("$.steps[1].kind", "missing_field"),
        ("$.steps[1].note", "invalid_field"),
        ("$.steps[2].many", "invalid_enum"),
    ]


def test_unknown_members_are_handed_to_ignore() -> None:
    ignored: list[tuple[str, str]] = []
    text = b'{"steps": [{"kind": "walk", "no": 1}, {"kind": "rest", "yes": 2}], "more": 3}'

    day = typed.read(read_bytes(text), Day, ignore=lambda at, name: ignored.append((path_text(at.path), name)))

    assert day == Day((Walk(), Rest()))
    assert ignored == [("$", "more"), ("$.steps[0]", "no"), ("$.steps[1]", "yes")]


class Worded(Struct, frozen=True):
    word: Annotated[str, Read(lambda at: at.one_of(at.context), "")]


def test_reader_may_depend_on_what_the_caller_knows() -> None:
    (fault,) = faults_of("word: mend", Worded, context=("mind", "melt"))

    assert read(read_bytes(b'{"word": "melt"}'), Worded, context=("mind", "melt")) == Worded("melt")
    assert (fault.allowed, fault.code) == (("mind", "melt"), "invalid_enum")


def test_type_that_no_document_holds_is_an_error_of_the_programmer() -> None:
    with pytest.raises(TypeError, match="float"):
        reader_of(float)


def test_pattern_without_anchors_is_an_error_of_the_programmer() -> None:
    with pytest.raises(TypeError, match="not anchored"):
        reader_of(Annotated[str, Meta(pattern="a")])
    for pattern in ("^a$", r"\Aa\Z"):
        reader_of(Annotated[str, Meta(pattern=pattern)])


def test_schema_comes_from_the_same_struct() -> None:
    schema = schema_of(Depot, title="A depot")

    truck = schema["$defs"]["Truck"]
    assert schema["title"] == "A depot"
    assert truck["properties"]["length"] == {"type": "number", "minimum": 0, "maximum": 10}
    assert truck["properties"]["charge"] == {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5}
    assert truck["properties"]["kind"]["allOf" if "allOf" in truck["properties"]["kind"] else "$ref"]
    assert (truck["required"], truck["additionalProperties"]) == (["id", "length"], False)
    assert schema["$defs"]["Depot"]["properties"]["trucks"]["items"] == {"$ref": "#/$defs/Truck"}


class Shelf(Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1, max_length=3)]
    level: Annotated[int, Meta(ge=0, le=9)] = 0
    kind: Kind | None = None
    side: Literal["left", "right"] = "left"
    steps: tuple[Pay | Clear, ...] = ()
    place: tuple[int, bool] = (0, False)
    more: dict[str, Any] = {}
    tags: Annotated[list[str], Meta(max_length=2)] = field(name="tag_s", default_factory=list)


WHOLE = {
    "id": "a",
    "level": 3,
    "kind": "tugger",
    "side": "right",
    "steps": [{"type": "pay", "amount": 1}, {"type": "clear"}],
    "place": [1, True],
    "more": {"x": [None]},
    "tag_s": ["b"],
}
ODD = [None, True, 0, -1, 10, 1 << 70, 2.5, Decimal("1.0"), "", "a", "abcd", "left", [], ["a", "b", "c"], {}, {"x": 1}]


def test_fast_way_reads_what_the_slow_way_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    variants: list[Any] = [WHOLE, *ODD, {**WHOLE, "x": 1}]
    variants += [{key: value for key, value in WHOLE.items() if key != left_out} for left_out in WHOLE]
    variants += [{**WHOLE, key: odd} for key in WHOLE for odd in ODD]
    variants += [{**WHOLE, "steps": [odd]} for odd in ODD]
    variants += [{**WHOLE, "steps": [{"type": "pay", "amount": odd}]} for odd in ODD]
    variants += [{**WHOLE, "place": [odd, odd]} for odd in ODD]

    def outcome(value: Any) -> Any:
        try:
            return read(from_value(value), Shelf)
        except DocumentRefused as refused:
            return refused.faults

    assert typed._is_native(Shelf)
    fast = [outcome(value) for value in variants]
    monkeypatch.setattr(typed, "_is_native", lambda form: False)
    slow = [outcome(value) for value in variants]

    assert [(str(value), a, b) for value, a, b in zip(variants, fast, slow, strict=True) if a != b] == []
    assert sum(isinstance(result, Shelf) for result in fast) == 20


def test_what_only_the_slow_way_checks_is_not_read_the_fast_way() -> None:
    assert not any(map(typed._is_native, (Truck, Depot, Tree, Worded, Name, Ratio, float)))


class Rack(Struct, frozen=True):
    weights: Annotated[dict[str, Ratio], MERGED] = {}
    labels: dict[str, bool] = {}
    rows: Annotated[tuple[Annotated[int, limits(minimum=0, maximum=2**64 - 1)], ...], limits(maxItems=2)] = ()


def test_map_that_is_merged_keeps_the_present_members_in_a_change() -> None:
    present = Rack({"a": Decimal(1), "b": Decimal(0)}, {"x": True})

    changed = read(read_bytes(b'{"weights": {"b": 1}, "labels": {"y": false}}'), Rack, present=present)

    assert changed == Rack({"a": Decimal(1), "b": Decimal(1)}, {"y": False})
    assert read(read_bytes(b'{"weights": {"b": 1}}'), Rack) == Rack({"b": Decimal(1)})


def test_limits_are_for_documents_and_not_for_msgspec() -> None:
    faults = faults_of('{"rows": [1, -1, 2]}', Rack) + faults_of('{"rows": [18446744073709551616]}', Rack)
    schema = schema_of(Rack)["$defs"]["Rack"]["properties"]["rows"]

    assert [(fault.path, fault.allowed) for fault in faults] == [
        ("$.rows", ("at most 2 elements",)),
        ("$.rows[0]", ("from 0 to 18446744073709551615",)),
    ]
    assert msgspec.convert({"rows": [1, -1, 2]}, Rack).rows == (1, -1, 2)
    assert schema["items"] == {"type": "integer", "minimum": 0, "maximum": 18446744073709551615}


class Boxes(Struct, frozen=True):
    boxes: Annotated[tuple[Pay, ...], Unique("amount")]
    corner: Rack = Rack({"a": Decimal(1)})
    place: Annotated[int, written(type="number"), Meta(description="In metres.")] = 0


def test_faulty_value_is_not_a_repetition() -> None:
    faults = faults_of('{"boxes": [{"type": "pay", "amount": 0}, {"type": "pay", "amount": false}]}', Boxes)

    assert [(fault.path, fault.code) for fault in faults] == [("$.boxes[1].amount", "invalid_field")]


def test_schema_keeps_descriptions_and_leaves_the_default_of_an_object_to_its_members() -> None:
    members = schema_of(Boxes)["$defs"]["Boxes"]["properties"]

    assert members["corner"] == {"$ref": "#/$defs/Rack"}
    assert members["place"] == {"description": "In metres.", "type": "number"}


class Stop(Struct, frozen=True):
    """Null is a fault, unlike a missing member."""

    place: Annotated[str | None, NO_NULL] = None
    at: Truck | None = None


def test_none_may_stand_for_a_missing_member_only() -> None:
    assert read(from_value({}), Stop) == Stop()
    assert [fault.path for fault in faults_of("place: null", Stop)] == ["$.place"]


def test_unknown_members_are_found_where_structs_ignore_them() -> None:
    document = from_value({"trucks": [{"id": "a", "length": 1, "colour": 1}], "x": 2, "spare": None, "more": {"y": 1}})

    faults = unknown_members(document, lambda root: read_at(root, Depot))

    assert [(fault.path, fault.code) for fault in faults] == [
        ("$.trucks[0].colour", "unknown_field"),
        ("$.x", "unknown_field"),
    ]
    assert unknown_members(from_value({"place": "a"}), lambda root: read_at(root, Stop)) == ()


class Ladder(Struct, frozen=True):
    """Limits in `extra` are in no schema, and checked also where msgspec could read the struct."""

    levels: Annotated[int, Meta(extra={"ge": 1, "le": 9})]


def test_limits_that_are_not_in_the_schema_are_checked() -> None:
    assert [fault.allowed for fault in faults_of("levels: 10", Ladder)] == [("from 1 to 9",)]
    assert schema_of(Ladder)["$defs"]["Ladder"]["properties"] == {"levels": {"type": "integer"}}


class Guest(Struct, frozen=True):
    name: str
    bag: Rack = Rack()


class Hall(Struct, frozen=True, forbid_unknown_fields=True):
    first: Annotated[Guest | None, CLOSED] = None
    others: tuple[Guest, ...] = ()
    doors: dict[str, Truck] = {}


def test_closed_struct_has_no_unknown_members_in_documents() -> None:
    text = '{"first": {"name": "a", "x": 1}, "others": [{"name": "b", "x": 1}]}'

    assert [(fault.path, fault.code) for fault in faults_of(text, Hall)] == [("$.first.x", "unknown_field")]


def test_unknown_members_alone_can_be_noted() -> None:
    text = b'{"first": 5, "other": [], "doors": {"a": {"id": 7, "colour": 1}, "b": 1}}'

    with pytest.raises(DocumentRefused) as refused:
        read_bytes(text).read(lambda root: note_unknown_members(root, Hall))

    assert [fault.path for fault in refused.value.faults] == ["$.other", "$.doors.a.colour"]
