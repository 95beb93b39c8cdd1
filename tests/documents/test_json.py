"""JSON: exact values, and every fault of a text with its place."""

import json
from decimal import Decimal
from typing import NoReturn

import pytest

from pendula.documents import DocumentLimits, DocumentRefused, json_text, read_bytes
from pendula.documents.json_text import NotClean, read_clean
from pendula.kernel.limits import DOCUMENT_NODES
from tests.documents.seen import carefully, faults, places, value


def test_numbers_are_int_or_exact_decimal_and_never_float() -> None:
    read = value("[1, -0, 0.1, 1.50, 1e3, -2.5E-3, 123456789012345678901234567890, 9007199254740993.0]")

    expected = [1, 0, "0.1", "1.50", "1E+3", "-0.0025", 123456789012345678901234567890, "9007199254740993.0"]
    assert isinstance(read, list)
    assert [str(number) if isinstance(number, Decimal) else number for number in read] == expected
    assert not any(isinstance(number, float) for number in read)


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{"a" :1,"\\u0061":2}', '[{"b":{"a":[],"a":{}}}]'])
def test_repeated_members_are_refused_also_when_equal_or_escaped(text: str) -> None:
    assert {fault.code for fault in faults(text)} == {"repeated_member"}


def test_repeated_member_names_both_places() -> None:
    [fault] = faults('{"x": {"a": 1,\n  "b": 2,\n   "a": 3}}')

    assert (fault.path, fault.line, fault.column, fault.value) == ("$.x.a", 3, 4, "a")
    assert fault.message == "the member appears a second time; the first is at 1:8"


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_finite_are_refused(word: str) -> None:
    assert places(f'{{"a": [0, {word}]}}') == [("not_finite", "$.a[1]", 1, 11)]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('["\\ud800"]', 3),
        ('["x\\udc00"]', 4),
        ('["\\ud83d\\ud83d\\ude00"]', 3),
        ('["\\ude00\\ud83d"]', 3),
        ('["\\\\\\ud83d"]', 5),
        ('["\\\\ud83d\\ude00"]', 10),
    ],
)
def test_lone_surrogates_are_refused(text: str, column: int) -> None:
    assert places(text)[0] == ("lone_surrogate", "$[0]", 1, column)


@pytest.mark.parametrize(
    ("text", "read"),
    [('["\\ud83d\\ude00"]', "😀"), ('["\\\\ud800"]', "\\ud800"), ('["\\uD83D\\uDE00 \\u00e9"]', "😀 é")],
)
def test_paired_surrogates_and_escaped_backslashes_are_read(text: str, read: str) -> None:
    assert value(text) == [read]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_hundred_thousand_levels_are_refused_with_the_place_of_the_first_too_many(opening: str) -> None:
    [fault] = faults(opening * 100_000)

    assert fault.code == "document_too_deep"
    assert (fault.line, fault.column) == (1, 64 * len(opening) + 1)
    assert fault.allowed == ("64 levels",)


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert value("[" * 64 + "]" * 64) is not None
    assert places("[" * 65 + "]" * 65)[0][0] == "document_too_deep"
    assert places("[1,[2]]", limits=DocumentLimits(depth=1)) == [("document_too_deep", "$[1]", 1, 4)]


def test_too_many_values_are_refused_at_the_first_excess_value() -> None:
    limits = DocumentLimits(nodes=4)

    assert value("[1,2,3]", limits=limits) == [1, 2, 3]
    assert places("[1,2,\n3,4]", limits=limits) == [(DOCUMENT_NODES.code, "$[3]", 2, 3)]


def test_too_many_bytes_are_refused_unread() -> None:
    limits = DocumentLimits(size=5)

    assert value("[1,2]", limits=limits) == [1, 2]
    assert places("[1,22]", limits=limits) == [("document_too_large", "$", 0, 0)]


@pytest.mark.parametrize(
    "number", ["1" * 4301, "-" + "1" * 4301, "1e999999999", "1e-999999999", "0.5e4400", "1e" + "9" * 40]
)
def test_numbers_with_too_many_digits_are_refused(number: str) -> None:
    assert places(f"[1, {number}]") == [("number_too_long", "$[1]", 1, 5)]


def test_the_longest_allowed_numbers_are_read() -> None:
    assert value("-" + "9" * 4300) == -int("9" * 4300)
    assert value("1e4299") == Decimal("1e4299")
    assert value("1e-4299") == Decimal("1e-4299")
    assert places("[123, 1234, 1.5e3]", limits=DocumentLimits(digits=3)) == [
        ("number_too_long", "$[1]", 1, 7),
        ("number_too_long", "$[2]", 1, 13),
    ]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'{"a": "\xff"}', (1, 8)),
        ('{"é":\n "😀'.encode() + b"\xc3", (2, 4)),
        (b'"\xed\xa0\x80"', (1, 2)),
        (b"\xff\xfe1\x00", (1, 1)),
        (b"  \xff", (1, 3)),
    ],
)
def test_invalid_utf8_is_refused_with_its_place(data: bytes, place: tuple[int, int]) -> None:
    fault = faults(data)[0]

    assert fault.code == "invalid_utf8"
    assert (fault.line, fault.column) == place


def test_a_byte_order_mark_is_refused_and_the_rest_still_read() -> None:
    assert places(b'\xef\xbb\xbf{"a": 01}') == [("byte_order_mark", "$", 1, 1), ("json_syntax", "$.a", 1, 7)]


def test_a_byte_order_mark_takes_no_column() -> None:
    assert places(b'\xef\xbb\xbf["\xff"]') == [("byte_order_mark", "$", 1, 1), ("invalid_utf8", "$", 1, 3)]


def test_all_faults_of_one_text_come_at_once() -> None:
    text = """{"a": 1,
 "a": NaN, b: 2, 'c': 'x y',
 "d": [01, +5, .5, True, nil], // why
 "e": "\\q\t", "f": [1 2,],
 "g" 5,
}"""
    assert places(text) == [
        ("repeated_member", "$.a", 2, 2),
        ("not_finite", "$.a", 2, 7),
        ("json_syntax", "$", 2, 12),
        ("json_syntax", "$", 2, 18),
        ("json_syntax", "$.c", 2, 23),
        ("json_syntax", "$.d[0]", 3, 8),
        ("json_syntax", "$.d[1]", 3, 12),
        ("json_syntax", "$.d[2]", 3, 16),
        ("json_syntax", "$.d[3]", 3, 20),
        ("json_syntax", "$.d[4]", 3, 26),
        ("json_syntax", "$", 3, 32),
        ("json_syntax", "$.e", 4, 8),
        ("control_character", "$.e", 4, 10),
        ("json_syntax", "$.f[1]", 4, 22),
        ("json_syntax", "$.f", 4, 24),
        ("json_syntax", "$.g", 5, 6),
        ("json_syntax", "$", 6, 1),
    ]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "the document is empty", (1, 1)),
        (" \n ", "the document is empty", (2, 2)),
        ("{", "an object is not closed", (1, 2)),
        ('{"a"', "a colon is missing after the name of the member", (1, 5)),
        ('{"a":', "the text ends where a value is expected", (1, 6)),
        ("[1", "a list is not closed", (1, 3)),
        ("[1}", "a list continues with a comma or ends with ']', not with '}'", (1, 3)),
        ("1 2", "the document ends here, but more text follows", (1, 3)),
        ('["a\n", 1]', "a string is not closed on its line", (1, 4)),
        ("[,1]", "a value is missing before ','", (1, 2)),
        ("{,}", "a member is missing before ','", (1, 2)),
        ("]", "a value is expected here, not ']'", (1, 1)),
        ("{[]: 1}", "the name of a member is expected here, not '['", (1, 2)),
        ("[True]", "'True' is not a JSON value (did you mean true?); strings must be in double quotes", (1, 2)),
        ("[012]", "'012' is not a number in JSON", (1, 2)),
        ("/* x", "JSON has no comments", (1, 1)),
    ],
)
def test_broken_syntax_is_explained(text: str, message: str, place: tuple[int, int]) -> None:
    first = faults(text)[0]

    assert (first.message, (first.line, first.column)) == (message, place)


def test_lines_end_with_any_usual_line_end_and_columns_count_characters() -> None:
    assert places('["é😀", x,\r\n y,\r z,\n w]') == [
        ("json_syntax", "$[1]", 1, 8),
        ("json_syntax", "$[2]", 2, 2),
        ("json_syntax", "$[3]", 3, 2),
        ("json_syntax", "$[4]", 4, 2),
    ]


def test_a_clean_text_is_parsed_fast_and_a_suspect_one_is_not() -> None:
    limits = DocumentLimits()

    assert read_clean('{"a": [1, 2.5, "\\ud83d\\ude00"]}', limits) == {"a": [1, Decimal("2.5"), "😀"]}
    for suspect in ('{"a":1,"a":1}', "[NaN]", '"\\ud800"', "[" * 65 + "]" * 65, "1e999999", "", "[1,]", "\ufeff1"):
        with pytest.raises(NotClean):
            read_clean(suspect, limits)


@pytest.mark.parametrize(
    "text", ["[1,2,3,4]", "[[],[],[],[]]", "[{},{},{},{}]", '{"a":[{"b":1}],"c":0}', "[[[[[]]]]]", "[[ [ [[1]]]]]"]
)
def test_the_fast_parser_never_builds_too_many_values(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> NoReturn:
        raise AssertionError("the parser was started")

    monkeypatch.setattr(json_text, "_decoder", never)

    with pytest.raises(NotClean):
        read_clean(text, DocumentLimits(nodes=4))
    assert places(text, limits=DocumentLimits(nodes=4))[0][0] == DOCUMENT_NODES.code


@pytest.mark.parametrize("text", ["[1,2,3]", "[[],{},0]", '{"a":[{"b":1}]}', "[[[[]]]]", '["[]","{}",0]'])
def test_the_allowed_number_of_values_is_parsed_fast(text: str) -> None:
    assert read_clean(text, DocumentLimits(nodes=4)) == json.loads(text)


def test_commas_inside_strings_make_no_value() -> None:
    assert value('["a,b,c,[{"]', limits=DocumentLimits(nodes=2)) == ["a,b,c,[{"]


def test_undecided_texts_are_read_by_the_scanner() -> None:
    text = '["\\\\ \\ud83d\\ude00"]'
    with pytest.raises(NotClean):
        read_clean(text, DocumentLimits())

    assert value(text) == ["\\ 😀"]
    assert carefully(text)[0] == ["\\ 😀"]


def test_endless_faults_are_counted_not_kept() -> None:
    with pytest.raises(DocumentRefused, match="and 4999 more faults") as refused:
        read_bytes(b"[" + b"nul," * 5000 + b"1]")

    assert len(refused.value.faults) == 100
    assert refused.value.more == 4900


def test_counting_of_faults_ends_at_a_limit() -> None:
    with pytest.raises(DocumentRefused, match="and at least 10000 more faults"):
        read_bytes(b"[" + b"x " * 20_000)
