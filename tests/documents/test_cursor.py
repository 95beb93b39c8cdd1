"""Reading values into models: every fault at once, the same for files, bodies and plain values."""

from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from msgspec import Struct

from pendula.documents import Cursor, Document, DocumentRefused, Format, from_value, read_bytes
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from tests.documents.seen import JSON, YAML


class Effort(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ObjectType(StrEnum):
    MEMORY = "memory"


class Definition(Struct, frozen=True):
    minutes: int
    effort: Effort
    locks: tuple[str, ...] = ()
    priority: int = 0
    factor: Decimal | None = None


class NaiveTimestamp(InputRefused):
    code = "naive_timestamp"


NAMES = "effort, factor, locks, minutes, priority"


def name(at: Cursor) -> str:
    return at.text(min=1, max=8)


def definition(at: Cursor) -> Definition:
    it = at.object(required={"minutes", "effort"}, optional={"locks", "priority", "factor"})
    return Definition(
        minutes=it["minutes"].integer(min=1),
        effort=it["effort"].choice(Effort),
        locks=it["locks"].list_of(name, default=()),
        priority=it["priority"].integer(min=0, max=1000, default=0),
        factor=it["factor"].decimal(min=0, max=10, default=None),
    )


def town(root: Cursor) -> dict[str, Definition]:
    return root.object(required=["defs"])["defs"].map_of(definition)


def document(text: str, form: Format = JSON) -> Document:
    return read_bytes(text.encode(), form, "town")


def lines(found: Document, read: Any) -> list[str]:
    with pytest.raises(DocumentRefused) as refused:
        found.read(read)
    return refused.value.render().splitlines()


def one(value: Any, read: Any) -> str:
    """The message and allowed values of the only fault."""
    [line] = lines(from_value(value, "v"), read)
    return line.removeprefix("v: $: ")


def test_a_valid_document_becomes_a_model() -> None:
    found = document("defs:\n  repair: {minutes: 45, effort: high, locks: [shop], factor: 1.5}\n", YAML)

    assert found.read(town) == {"repair": Definition(45, Effort.HIGH, ("shop",), 0, Decimal("1.5"))}


@pytest.mark.req("ACT-DATA-7")
def test_all_faults_of_a_yaml_file_come_with_their_places() -> None:
    text = """defs:
  repair:
    minutes: 45.0
    effort: hihg
    lokcs: []
  radio:
    effort: low
    locks: [shop, "", 7]
    priority: 1001
  sleep: 8
"""
    assert lines(document(text, YAML), town) == [
        "town:3:14: $.defs.repair.minutes: 45.0 is not an integer; allowed: an integer at least 1",
        "town:4:13: $.defs.repair.effort: 'hihg' is not an effort (did you mean high?); allowed: low, medium, high",
        f"town:5:5: $.defs.repair.lokcs: the member 'lokcs' is not known here (did you mean locks?); allowed: {NAMES}",
        "town:7:5: $.defs.radio.minutes: the member 'minutes' is missing",
        "town:8:19: $.defs.radio.locks[1]: '' has 0 characters; allowed: from 1 to 8 characters",
        "town:8:23: $.defs.radio.locks[2]: 7 is not text; allowed: text from 1 to 8 characters",
        "town:9:15: $.defs.radio.priority: 1001 is out of range; allowed: from 0 to 1000",
        "town:10:10: $.defs.sleep: 8 is not an object; allowed: an object",
    ]


def test_the_same_faults_come_out_of_json_and_of_plain_values() -> None:
    text = '{"defs": {"repair":\n {"minutes": true, "effort": 3}}}'
    expected = [
        "$.defs.repair.minutes: true is not an integer; allowed: an integer at least 1",
        "$.defs.repair.effort: 3 is not an effort; allowed: low, medium, high",
    ]

    assert lines(document(text), town) == [f"town:2:14: {expected[0]}", f"town:2:30: {expected[1]}"]
    assert lines(from_value(document(text).value, "v"), town) == sorted(f"v: {line}" for line in expected)


@pytest.mark.req("JOB-ENQ-7")
def test_the_details_carry_code_path_and_allowed_for_an_http_answer() -> None:
    with pytest.raises(DocumentRefused) as refused:
        document('{"defs": {"a": {"effort": "x", "minutes": 1, "q": 1}}}').read(town)

    assert [(fault["code"], fault["path"]) for fault in refused.value.details["faults"]] == [
        ("invalid_enum", "$.defs.a.effort"),
        ("unknown_field", "$.defs.a.q"),
    ]
    assert refused.value.details["faults"][0]["allowed"] == ["low", "medium", "high"]


@pytest.mark.req("JOB-OBJ-9")
@pytest.mark.parametrize("value", [Decimal("3.0"), "3", True, None, 3.0, [3]])
def test_only_an_integer_is_an_integer(value: Any) -> None:
    assert one(value, lambda at: at.integer(min=1, max=100)).endswith(
        "is not an integer; allowed: an integer from 1 to 100"
    )


def test_integers_at_the_bounds_are_read() -> None:
    assert [from_value(n).read(lambda at: at.integer(min=1, max=100)) for n in (1, 100)] == [1, 100]
    assert one(0, lambda at: at.integer(min=1, max=100)) == "0 is out of range; allowed: from 1 to 100"
    assert one(101, lambda at: at.integer(max=100)) == "101 is out of range; allowed: at most 100"


def test_decimals_take_integers_but_no_text_and_nothing_that_is_not_finite() -> None:
    assert from_value(3).read(lambda at: at.decimal()) == Decimal(3)
    assert one("3", lambda at: at.decimal(min=0)) == "'3' is not a number; allowed: a number at least 0"
    assert one(True, lambda at: at.decimal()) == "true is not a number; allowed: a number"
    assert one(float("inf"), lambda at: at.decimal()) == "a value of type float is not a number; allowed: a number"
    assert one(Decimal("-0.1"), lambda at: at.decimal(min=0)) == "-0.1 is out of range; allowed: at least 0"


def test_booleans_are_true_and_false_alone() -> None:
    assert from_value(False).read(lambda at: at.boolean()) is False
    assert one(0, lambda at: at.boolean()) == "0 is not true or false; allowed: true or false"
    assert one("yes", lambda at: at.boolean()) == "'yes' is not true or false; allowed: true or false"


def test_text_matches_its_pattern_fully() -> None:
    assert from_value("a-1").read(lambda at: at.text(pattern="[a-z0-9-]{1,64}")) == "a-1"
    assert (
        one("a-1\n", lambda at: at.text(pattern="[a-z0-9-]+"))
        == "'a-1\\n' does not have the right form; allowed: [a-z0-9-]+"
    )
    assert one("A", lambda at: at.text(pattern="[a-z]", form="a small letter")).endswith("; allowed: a small letter")


def test_a_choice_is_exact_and_its_fault_names_the_enumeration() -> None:
    assert one("HIGH", lambda at: at.choice(Effort)) == (
        "'HIGH' is not an effort (did you mean high?); allowed: low, medium, high"
    )
    assert one("x", lambda at: at.choice(ObjectType)) == "'x' is not an object type; allowed: memory"


def test_lists_have_their_size() -> None:
    assert from_value(["a", "b"]).read(lambda at: at.list_of(name, min=1, max=2)) == ("a", "b")
    assert one([], lambda at: at.list_of(name, min=1)) == "a list of 0; allowed: at least 1 elements"
    assert one({"a": 1}, lambda at: at.list_of(name)) == "an object of 1 member is not a list; allowed: a list"


def test_the_names_of_a_map_can_be_checked_with_their_places() -> None:
    found = document('{"ok": 1,\n "Not ok": 2}')

    assert lines(found, lambda at: at.map_of(Cursor.any, key=lambda key: key.text(pattern="[a-z]+"))) == [
        "town:2:2: $[\"Not ok\"]: 'Not ok' does not have the right form; allowed: [a-z]+"
    ]


def test_absent_members_take_the_default_and_null_does_not() -> None:
    def read(root: Cursor) -> tuple[int | None, ...]:
        it = root.object(optional=("a", "b", "c"))
        return it["a"].integer(default=5), it["b"].unless_null().integer(default=6), it["c"].integer(default=None)

    assert from_value({"b": None}).read(read) == (5, 6, None)
    assert lines(from_value({"a": None}, "v"), read) == ["v: $.a: null is not an integer; allowed: an integer"]


def test_an_absent_member_without_default_is_missing_once() -> None:
    def read(root: Cursor) -> None:
        it = root.object(required={"r", "q"}, optional={"o"})
        it["r"].integer()
        it["r"].text()
        optional = it["o"]
        optional.integer()
        optional.text()

    assert lines(from_value({}, "v"), read) == [f"v: $.{name}: the member '{name}' is missing" for name in "oqr"]


def test_unknown_members_can_be_kept() -> None:
    def read(root: Cursor) -> tuple[str, Any, bool]:
        it = root.object(required={"id"}, optional={"x"}, unknown="keep")
        return it["id"].text(), it.extra, "x" in it

    assert from_value({"id": "A", "z": [1], "b": None}).read(read) == ("A", {"z": [1], "b": None}, False)


def test_a_parser_refusal_becomes_a_fault_with_its_code_and_message() -> None:
    def instant(text: str) -> int:
        if not text.endswith("Z"):
            raise NaiveTimestamp(f"{text} has no offset")
        return len(text)

    assert from_value("12Z").read(lambda at: at.parsed(instant, stand_in=0)) == 3
    with pytest.raises(DocumentRefused) as refused:
        from_value(["1", 5]).read(lambda at: at.list_of(lambda item: item.parsed(instant, stand_in=0)))
    assert [(fault.code, fault.message) for fault in refused.value.faults] == [
        ("naive_timestamp", "1 has no offset"),
        ("invalid_field", "5 is not text"),
    ]


def test_a_scheduler_can_add_its_own_faults() -> None:
    def read(root: Cursor) -> None:
        root.refuse("the epoch ends before it begins", code="invalid_epoch", allowed=("a later end",))

    assert lines(document("\n {}"), read) == ["town:2:2: $: the epoch ends before it begins; allowed: a later end"]


def test_faults_beyond_the_limit_are_counted() -> None:
    found = read_bytes(b"[" + b"1," * 249 + b"1]", JSON, "town")

    rendered = lines(found, lambda root: root.list_of(name))

    assert len(rendered) == 101
    assert rendered[-1] == "town: and 150 more faults"


def test_a_cursor_describes_its_value() -> None:
    members = from_value({"t": "x", "l": [], "o": {}, "n": None}).root().object(optional="tlonz")

    assert (members["t"].is_text, members["l"].is_list, members["o"].is_object) == (True, True, True)
    assert [members[name].given for name in "tloNz".lower()] == [True, True, True, True, False]
    assert members["o"].path == ("o",)
    assert members["z"].any() is None


def test_an_undeclared_member_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        from_value({"a": 1}).root().object(optional=["b"], unknown="keep")["a"]


def test_a_float_value_is_the_decimal_that_python_prints() -> None:
    given: Any = {"a": 0.1, "b": [1e-7, {"c": 12.30}], "d": (2.0,), "e": True, "f": 7}

    assert from_value(given).value == {
        "a": Decimal("0.1"),
        "b": [Decimal("1E-7"), {"c": Decimal("12.3")}],
        "d": [Decimal("2.0")],
        "e": True,
        "f": 7,
    }
    assert given["a"] == 0.1, "what was handed over stays as it is"
    whole: Json = {"a": [1, "b"]}
    assert from_value(whole).value is whole


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_are_refused(value: float) -> None:
    with pytest.raises(DocumentRefused):
        from_value(value).read(lambda at: at.decimal())  # type: ignore[arg-type]
