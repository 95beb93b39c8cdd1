"""YAML: the values JSON would have, nothing guessed, every trap refused with its place."""

from decimal import Decimal

import pytest
import yaml

from pendula.documents import DocumentLimits, DocumentRefused, read_bytes, yaml_text
from pendula.documents.faults import MOST_COUNTED
from pendula.kernel.limits import DOCUMENT_BYTES, DOCUMENT_NODES
from tests.documents.seen import YAML, faults, places, value


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both parsers of PyYAML: a build without libyaml must read the same."""
    monkeypatch.setattr(yaml_text, "LOADER", getattr(yaml, request.param))
    return str(request.param)


WORDS = """yes no on off y n True NULL 12:30 012 0x1f 0o17 0b1 ~ .inf -.inf .nan 1_000 +5 .5 5. -x = 1e 2025-07-01
2025-07-01T08:05:00 2025-07-01T08:05:00+02:00"""


@pytest.mark.req("ACT-FILE-3")
@pytest.mark.parametrize("word", [*WORDS.split(), "2025-07-01 08:05:00"])
def test_words_that_other_readers_convert_stay_text(word: str, parser: str) -> None:
    assert value(f"a: {word}\n", YAML) == {"a": word}
    assert value(f"a: {{b: {word}}}\n", YAML) == {"a": {"b": word}}


@pytest.mark.req("ACT-FILE-3")
@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("", None),
        ("0", 0),
        ("-7", -7),
        ("0.1", Decimal("0.1")),
        ("1.50", Decimal("1.50")),
        ("1e3", Decimal("1e3")),
        ('"5"', "5"),
        ("'true'", "true"),
        ('""', ""),
    ],
)
def test_only_plain_json_scalars_are_not_text(word: str, read: object, parser: str) -> None:
    document = value(f"a: {word}\n", YAML)

    assert isinstance(document, dict)
    assert (document["a"], type(document["a"])) == (read, type(read))
    assert str(document["a"]) == str(read)


def test_names_of_members_keep_their_text(parser: str) -> None:
    assert value("1: a\nyes: b\nnull: c\n1.0: d\n2025-07-01: e\n'<<': f\n", YAML) == {
        "1": "a",
        "yes": "b",
        "null": "c",
        "1.0": "d",
        "2025-07-01": "e",
        "<<": "f",
    }


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "--- null\n"])
def test_an_empty_document_is_null(text: str, parser: str) -> None:
    assert value(text, YAML) is None


def test_all_faults_up_to_a_break_of_the_syntax_come_at_once(parser: str) -> None:
    text = """a: &x [1, *x]
b: *nope
c: !!str 1
d: !!python/object/apply:os.system [ls]
<<: {k: 1}
? [p, {q: r}]
: 1
*x : 2
a: 2
e: 1e999999999
f: {g: 1, "g": 2}
"""
    assert places(text, YAML) == [
        ("recursive_alias", "$.a[1]", 1, 11),
        ("unknown_alias", "$.b", 2, 4),
        ("explicit_tag", "$.c", 3, 4),
        ("explicit_tag", "$.d", 4, 4),
        ("merge_key", '$["<<"]', 5, 1),
        ("key_not_text", "$", 6, 3),
        ("key_not_text", "$", 8, 1),
        ("repeated_member", "$.a", 9, 1),
        ("number_too_long", "$.e", 10, 4),
        ("repeated_member", "$.f.g", 11, 11),
    ]


def test_faults_before_a_break_of_the_syntax_are_kept(parser: str) -> None:
    assert places("a: 1\na: 2\nb: c: d\n", YAML) == [
        ("repeated_member", "$.a", 2, 1),
        ("yaml_syntax", "$", 3, 5),
    ]


def test_several_documents_are_refused(parser: str) -> None:
    assert places("--- 1\n--- 2\n", YAML) == [("several_documents", "$", 2, 1)]
    assert value("--- 1\n...\n", YAML) == 1


def test_aliases_are_read_and_counted_as_often_as_they_are_used(parser: str) -> None:
    text = "a: &x [1, 2]\nb: [*x, *x]\n"

    assert value(text, YAML) == {"a": [1, 2], "b": [[1, 2], [1, 2]]}
    assert value(text, YAML, DocumentLimits(nodes=11)) is not None
    assert places(text, YAML, DocumentLimits(nodes=10)) == [(DOCUMENT_NODES.code, "$.b[1]", 2, 9)]


def test_an_alias_counts_for_the_depth_too(parser: str) -> None:
    text = "a: &x [[1]]\nb: [*x]\n"

    assert value(text, YAML, DocumentLimits(depth=4)) == {"a": [[1]], "b": [[[1]]]}
    assert places(text, YAML, DocumentLimits(depth=3)) == [("document_too_deep", "$.b[0]", 2, 5)]


def test_exponential_aliases_are_refused(parser: str) -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 40)]

    [fault] = faults("\n".join(lines), YAML)

    assert fault.code == DOCUMENT_NODES.code


HALF = "x" * 50


@pytest.mark.parametrize(
    ("anchored", "length"),
    [
        (HALF, 50),
        (f"'{HALF}'", 50),
        (f"[{HALF}, {HALF}]", 100),
        (f"{{{HALF}: 1}}", 51),
        (f"[&y {HALF}, *y]", 100),
        (f"{{&y {HALF}: *y}}", 100),
        ("é" * 30, 60),
    ],
)
def test_the_text_behind_an_alias_counts_as_often_as_it_is_used(anchored: str, length: int, parser: str) -> None:
    text = f"a: &x {anchored}\nb: [*x, *x,\n *x]\n"
    written_out = len("ab") + 4 * length

    assert value(text, YAML, DocumentLimits(size=written_out)) is not None
    assert places(text, YAML, DocumentLimits(size=written_out - 1)) == [(DOCUMENT_BYTES.code, "$.b[2]", 3, 2)]


def test_a_long_text_with_many_aliases_is_refused(parser: str) -> None:
    text = f"a: &x {'x' * 1_000_000}\nb: [{', '.join(['*x'] * 300)}]\n"

    [fault] = faults(text, YAML)

    # The text itself and 67 aliases are more than 64 MiB.
    assert (fault.code, fault.path) == (DOCUMENT_BYTES.code, "$.b[66]")


@pytest.mark.parametrize("before", ["", "\n", "# why\n \t\n\r\n", "--- 1\n...\n# why\n", "--- 1\n... # end\n\n"])
@pytest.mark.parametrize("directive", ["%TAG !x! tag:x,2025:", "%YAML 1.1", "%YAML 9.9", "%ODD", "%"])
def test_directives_are_refused_before_the_parser_sees_them(before: str, directive: str, parser: str) -> None:
    lines = before.count("\n")

    assert places(f"{before}{directive}\n--- 1\n", YAML) == [("yaml_directive", "$", lines + 1, 1)]


@pytest.mark.parametrize("text", ["a\n%b", "'a\n%b'", "'a %b'"])
def test_a_percent_sign_inside_a_text_is_not_a_directive(text: str, parser: str) -> None:
    assert value(text, YAML) == "a %b"


def test_directives_right_behind_a_document_are_refused_too(parser: str) -> None:
    [fault] = faults("--- '1'\n%TAG !x! tag:x:\n--- 2\n", YAML)

    assert (fault.code, fault.line, fault.column) == ("yaml_directive", 2, 1)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "a: {"])
def test_a_hundred_thousand_levels_are_refused(opening: str, parser: str) -> None:
    assert {fault.code for fault in faults(opening * 100_000, YAML)} <= {
        "document_too_deep",
        "key_not_text",
        "yaml_syntax",
    }


def test_deep_nesting_has_the_place_of_the_first_level_too_many(parser: str) -> None:
    assert faults("[" * 100_000, YAML)[0].column == 65
    assert places("? " + "[" * 100_000, YAML)[-1][0] == "key_not_text"
    assert value("[" * 64 + "]" * 64, YAML) is not None


@pytest.mark.parametrize("escape", ["\\ud800", "\\uDC00", "\\ud83d\\ude00"])
def test_escaped_surrogates_are_refused(escape: str, parser: str) -> None:
    assert faults(f'a: "{escape}"', YAML)[0].code == "lone_surrogate"
    assert faults(f'"{escape}": 1', YAML)[0].code == "lone_surrogate"
    assert value('a: "\\U0001f600 😀"', YAML) == {"a": "😀 😀"}


def test_escapes_beyond_unicode_are_refused(parser: str) -> None:
    assert faults('a: "\\Uffffffff"', YAML)[0].code == "yaml_syntax"


def test_control_characters_are_all_refused_with_their_places(parser: str) -> None:
    assert places(b"a: \x00\nb: x\x07\x7f\n", YAML) == [
        ("control_character", "$", 1, 4),
        ("control_character", "$", 2, 5),
        ("control_character", "$", 2, 6),
    ]


def test_endless_control_characters_are_not_counted(parser: str) -> None:
    with pytest.raises(DocumentRefused, match="and at least 10000 more faults") as refused:
        read_bytes(b"a: " + b"\x01" * 20_000, YAML)

    assert len(refused.value.faults) == 100


def test_a_syntax_error_can_be_the_fault_over_the_limit(parser: str) -> None:
    text = "[" + "*x, " * (100 + MOST_COUNTED - 1) + "}"

    with pytest.raises(DocumentRefused, match="and at least 10000 more faults"):
        read_bytes(text.encode(), YAML)


def test_invalid_utf8_and_byte_order_marks_are_refused(parser: str) -> None:
    assert places(b"\xef\xbb\xbfa: 1\nb: \xff\n", YAML)[:2] == [
        ("byte_order_mark", "$", 1, 1),
        ("invalid_utf8", "$", 2, 4),
    ]
    assert faults("a: 1\n".encode("utf-16"), YAML)[0].code == "invalid_utf8"


def test_columns_count_characters_in_yaml_too(parser: str) -> None:
    assert places("é😀: {b: 1, b: 2}\r\nc: 1\r\nc: 2", YAML) == [
        ("repeated_member", '$["\\u00e9\\ud83d\\ude00"].b', 1, 12),
        ("repeated_member", "$.c", 3, 1),
    ]


@pytest.mark.parametrize("text", ["a:\n\tb: 1\n", "a: 1\n\tb: 1\n", "a:\n  \tb: 1\n  c: 2\n", "- \t- b\n- c\n"])
def test_a_tab_that_indents_is_called_a_tab(text: str) -> None:
    with pytest.raises(DocumentRefused, match="this line is indented with a tab; YAML requires spaces"):
        read_bytes(text.encode(), YAML, "x.yaml")
