"""JSON5: what people write by hand, with the values of JSON and the places of its faults."""

from decimal import Decimal
from pathlib import Path

import pytest

from pendula.documents import DocumentLimits, Format, read_bytes, read_file
from tests.documents.seen import faults, places, value

JSON5 = Format.JSON5


@pytest.mark.req("FLT-API-2")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{ robotId: "R1", v: 0.40, // m/s\n }', {"robotId": "R1", "v": Decimal("0.40")}),
        ("/* a */ [1, /* b */ 2, // c\n]", [1, 2]),
        ("{$a_1: null, 'b c': 'it\\'s', \"d\": \"e\",}", {"$a_1": None, "b c": "it's", "d": "e"}),
        ("[+1, -.5, 5., .25e1, 0x1F, -0xa, 1e3]", [1, Decimal("-0.5"), 5, Decimal("2.5"), 31, -10, Decimal("1E+3")]),
        ("['a\\\nb', 'tab\there', '\\x41\\v\\0', \"'\"]", ["ab", "tab\there", "A\v\0", "'"]),
        ("{ü: true}", {"ü": True}),
        ("12/* no space before */", 12),
        ('{"plain": [0.1]}', {"plain": [Decimal("0.1")]}),
        ("\u00a0{}\u2028", {}),
    ],
)
def test_json5_gives_the_equivalent_json_value(text: str, expected: object) -> None:
    assert value(text, JSON5) == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{a: NaN}", ("not_finite", "$.a", 1, 5)),
        ("{a: 1,\n a: 2}", ("repeated_member", "$.a", 2, 2)),
        ("{a: 1 b: 2}", ("json_syntax", "$", 1, 7)),
        ("[1,,2]", ("json_syntax", "$[1]", 1, 4)),
        ("{a: zwei}", ("json_syntax", "$.a", 1, 5)),
        ("{a: 08}", ("json_syntax", "$.a", 1, 5)),
        ("{a: 0x11223344556677889}", ("json_syntax", "$.a", 1, 5)),
        ("{a: .}", ("json_syntax", "$.a", 1, 5)),
        ("[1 /* for ever", ("json_syntax", "$[1]", 1, 4)),
        ("{a: 1} # no", ("json_syntax", "$", 1, 8)),
        ("['a\nb']", ("json_syntax", "$[0]", 1, 4)),
        ("['\\u12']", ("json_syntax", "$[0]", 1, 3)),
    ],
)
def test_faults_have_places(text: str, found: tuple[str, str, int, int]) -> None:
    assert places(text, JSON5)[0] == found


def test_json_itself_stays_strict() -> None:
    assert faults("{a: 1}")
    assert faults("[1,]")
    assert faults('{"a": 1 // b\n}')


def test_long_texts_take_no_quadratic_time() -> None:
    many = 20_000
    limits = DocumentLimits(nodes=10 * many, faults=5)

    assert len(value("[" + "1,//\n" * many + "]", JSON5, limits)) == many  # type: ignore[arg-type]
    assert faults("[" + "/*" * many, JSON5)


def test_the_suffix_gives_the_format(tmp_path: Path) -> None:
    file = tmp_path / "a.json5"
    file.write_text("{a: [1, 2],\n b: 'x'}")
    document = read_file(file)

    assert document.value == {"a": [1, 2], "b": "x"}
    place = document.place(("b",))
    assert (place.line, place.column) == (2, 5)
    assert read_bytes(b"{a: 1}", JSON5).value == {"a": 1}
