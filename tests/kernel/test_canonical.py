"""Canonical bytes: golden forms, refusals with their path, and the laws of encoding, digests and differences."""

import json
import os
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct, UnsetType

from pendula.kernel.canonical import (
    Json,
    chain,
    decode,
    digest,
    digest_bytes,
    encode,
    encode_carefully,
    first_difference,
)
from pendula.kernel.errors import InputRefused, NotCanonical


class Effort(StrEnum):
    LOW = "low"
    HIGH = "high"


class Level(IntEnum):
    ONE = 1


class Colour(Enum):
    RED = "red"


class Start(Struct, frozen=True, tag="start"):
    t: int
    effort: Effort
    meta: dict[str, Any] = {}


class Stop(Struct, frozen=True, tag_field="kind", tag=7, rename="camel"):
    action_id: str
    last_error: str | UnsetType | None = UNSET
    inner: Start | None = None


class Point(Struct, frozen=True, array_like=True, tag="point"):
    x: Any
    y: Any


class Bare(Struct, frozen=True, array_like=True):
    x: Any


class Sparse(Struct, omit_defaults=True):
    a: int = 1


class Name(str):
    __slots__ = ()


class Count(int):
    pass


GOLDEN: list[tuple[Any, bytes]] = [
    (None, b"null"),
    (True, b"true"),
    (False, b"false"),
    (0, b"0"),
    (-7, b"-7"),
    (2**64, b"18446744073709551616"),
    (-(10**40), b"-1" + b"0" * 40),
    ("", b'""'),
    ('a"b\\c/d', b'"a\\"b\\\\c/d"'),
    ("\b\f\n\r\t", b'"\\b\\f\\n\\r\\t"'),
    ("\x00\x1f\x7f", b'"\\u0000\\u001f\x7f"'),
    ("\u2028é漢😀", '"\u2028é漢😀"'.encode()),
    (Decimal("1.50"), b"1.5"),
    (Decimal("1.5"), b"1.5"),
    (Decimal("100"), b"100"),
    (Decimal("5.00"), b"5"),
    (Decimal("1E+5"), b"100000"),
    (Decimal("-1.20E-9"), b"-0.0000000012"),
    (Decimal("-0"), b"0"),
    (Decimal("0.000"), b"0"),
    (Decimal("-0E+9"), b"0"),
    (Decimal("12345678901234567890123456789012345.6"), b"12345678901234567890123456789012345.6"),
    ([], b"[]"),
    ({}, b"{}"),
    ((), b"[]"),
    ([1, (2, [3])], b"[1,[2,[3]]]"),
    ({"b": 1, "a": {"d": None, "c": []}}, b'{"a":{"c":[],"d":null},"b":1}'),
    ({"ä": 1, "z": 2, "Z": 3, "": 4}, '{"":4,"Z":3,"z":2,"ä":1}'.encode()),
    (OrderedDict(b=1, a=Decimal("2.0")), b'{"a":2,"b":1}'),
    (Effort.LOW, b'"low"'),
    ({Effort.LOW: Effort.HIGH}, b'{"low":"high"}'),
    ({Name("n"): 1}, b'{"n":1}'),
    (Start(5, Effort.HIGH, {"z": 1, "a": (2,)}), b'{"effort":"high","meta":{"a":[2],"z":1},"t":5,"type":"start"}'),
    (Stop("a"), b'{"actionId":"a","inner":null,"kind":7}'),
    (
        Stop("a", "x", Start(1, Effort.LOW)),
        b'{"actionId":"a","inner":{"effort":"low","meta":{},"t":1,"type":"start"},"kind":7,"lastError":"x"}',
    ),
    (Point(1, Decimal("0.50")), b'["point",1,0.5]'),
    (Bare("x"), b'["x"]'),
]


@pytest.mark.parametrize(("value", "golden"), GOLDEN, ids=[repr(golden)[:40] for _, golden in GOLDEN])
def test_both_encoders_give_the_golden_bytes(value: Any, golden: bytes) -> None:
    assert encode(value) == golden
    assert encode_carefully(value) == golden


def test_members_are_sorted_by_code_point_also_beyond_the_basic_plane() -> None:
    # In UTF-16 U+10000 (D800 DC00) would come before U+FFFF; by code point it comes after.
    keys = ["\U00010000", "\uffff", "\ue000", "\ud7ff", "z", "\U0010ffff"]

    encoded = encode(dict.fromkeys(keys))

    assert list(json.loads(encoded)) == ["z", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
    assert encode_carefully(dict.fromkeys(keys)) == encoded


REFUSED: list[tuple[Any, str]] = [
    (1.0, "$"),
    (float("nan"), "$"),
    ({"a": [1, {"b c": 0.5}]}, '$.a[1]["b c"]'),
    ([Decimal("NaN")], "$[0]"),
    ([1, Decimal("-Infinity")], "$[1]"),
    ({"x": Decimal("sNaN12")}, "$.x"),
    ({"big": Decimal("1E+999999999")}, "$.big"),
    ({"small": Decimal("1E-999999999")}, "$.small"),
    ({"a": {1: "x"}}, "$.a"),
    ({None: 1}, "$"),
    ({"s": "ab\ud800"}, "$.s"),
    ({"k\udfff": 1}, '$["k\\udfff"]'),
    ({"a": {1, 2}}, "$.a"),
    ([b"x"], "$[0]"),
    ([bytearray(b"x")], "$[0]"),
    ([Raw(b"1")], "$[0]"),
    ([UNSET], "$[0]"),
    ({"a": UNSET}, "$.a"),
    (Bare(UNSET), "$[0]"),
    ([object()], "$[0]"),
    ([Level.ONE], "$[0]"),
    ([Colour.RED], "$[0]"),
    ([Name("n")], "$[0]"),
    ([Count(1)], "$[0]"),
    ({"at": range(3)}, "$.at"),
    (Start(1, Effort.LOW, {"x": 1.5}), "$.meta.x"),
    (Point(1, 0.5), "$[2]"),
    (Stop("a", inner=Start(1, Effort.LOW, {"x": {1: 2}})), "$.inner.meta.x"),
    ([Sparse()], "$[0]"),
]


@pytest.mark.parametrize(
    ("value", "path"),
    REFUSED,
    ids=range(len(REFUSED)),
)
def test_values_without_canonical_form_are_refused_with_their_path(value: Any, path: str) -> None:
    for road in (encode, encode_carefully):
        with pytest.raises(NotCanonical) as refused:
            road(value)

        assert refused.value.details["path"] == path
        assert refused.value.code == "not_canonical"
        assert isinstance(refused.value, InputRefused)


def test_a_float_in_a_field_declared_int_is_refused_too() -> None:
    lying: Any = 1.0

    with pytest.raises(NotCanonical, match=r"1\.0 is a binary float.*write Decimal.*, at \$\.t"):
        encode(Start(lying, Effort.LOW))


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(NotCanonical, match="contains itself"):
        encode(loop)


def test_integers_beyond_the_interpreters_limit_of_digits_survive() -> None:
    huge = -(10**5000) + 1

    encoded = encode({"n": huge})

    assert encoded == b'{"n":-' + b"9" * 5000 + b"}"
    assert decode(encoded) == {"n": huge}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nul",
        b"NaN",
        b"[1,]",
        b'{"a":1} x',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b"[" * 100_000,
        b"[ " + b"9" * 5000 + b"]",
    ],
    ids=lambda data: repr(data[:12]),
)
def test_invalid_json_is_refused(data: bytes) -> None:
    with pytest.raises(NotCanonical):
        decode(data)


def test_decoding_gives_integers_and_exact_decimals_and_never_floats() -> None:
    value = decode(b'{"a":1,"b":0.1,"c":123456789012345678901234567890.5,"d":-98765432109876543210}')

    assert value == {
        "a": 1,
        "b": Decimal("0.1"),
        "c": Decimal("123456789012345678901234567890.5"),
        "d": -98765432109876543210,
    }
    assert isinstance(value, dict)
    assert [type(member) for member in value.values()] == [int, Decimal, Decimal, int]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
decimals = st.decimals(allow_nan=False, allow_infinity=False).filter(lambda d: abs(d.adjusted()) < 100)
scalars = st.none() | st.booleans() | st.integers() | texts
numbers_and_scalars = scalars | decimals


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


values = nested(numbers_and_scalars)


@given(values)
def test_decoding_what_was_encoded_gives_the_value_back(value: Json) -> None:
    assert decode(encode(value)) == value


@given(values)
def test_encoding_what_was_decoded_gives_the_bytes_back(value: Json) -> None:
    encoded = encode(value)

    assert encode(decode(encoded)) == encoded


@given(values)
def test_both_encoders_give_the_same_bytes(value: Json) -> None:
    assert encode(value) == encode_carefully(value)


@given(nested(scalars))
def test_without_decimals_the_bytes_are_those_of_the_standard_library(value: Any) -> None:
    oracle = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    assert encode(value) == oracle.encode()


@given(st.dictionaries(texts, st.dictionaries(texts, numbers_and_scalars, max_size=4), max_size=4), st.data())
def test_the_order_of_insertion_does_not_matter(value: dict[str, dict[str, Any]], data: st.DataObject) -> None:
    items = [(key, dict(reversed(member.items()))) for key, member in value.items()]
    shuffled = data.draw(st.permutations(items))

    assert encode(dict(shuffled)) == encode(value)
    assert encode_carefully(dict(shuffled)) == encode(value)


@given(decimals, st.integers(0, 12))
def test_the_same_number_gives_the_same_bytes_however_it_is_written(number: Decimal, zeros: int) -> None:
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    longer = Decimal((sign, digits + (0,) * zeros, exponent - zeros))

    encoded = encode(number)

    assert encode(longer) == encoded
    assert b"E" not in encoded
    assert Decimal(encoded.decode()) == number


any_struct = st.one_of(
    st.builds(Start, t=st.integers(), effort=st.sampled_from(Effort), meta=st.dictionaries(texts, values, max_size=3)),
    st.builds(Stop, action_id=texts, last_error=st.just(UNSET) | st.none() | texts),
    st.builds(Point, x=values, y=values),
    st.builds(Bare, x=values),
)


@given(st.lists(any_struct, max_size=3))
def test_both_encoders_give_the_same_bytes_for_structs(structs: list[Struct]) -> None:
    assert encode(structs) == encode_carefully(structs)


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from pendula.kernel.canonical import digest; "
        "print(digest({k: {'x' + k: [k], 'y': 2**70} for k in {'a', 'b', 'ä', '\\U00010000', 'zz'}}))"
    )

    def digest_with(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
        ).stdout

    assert len({digest_with(seed) for seed in ("0", "1", "4242")}) == 1


def test_digests_are_sha256_of_the_canonical_bytes() -> None:
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert digest({"b": 1, "a": 2}) == digest_bytes(b'{"a":2,"b":1}')


def test_a_chain_link_covers_everything_before_it() -> None:
    first = chain(bytes(32), b"one")
    second = chain(first, b"two")

    assert first == sha256(bytes(32) + b"one").digest()
    assert second == sha256(first + b"two").digest()
    assert chain(chain(bytes(32), b"One"), b"two") != second


@pytest.mark.parametrize(
    ("a", "b", "path"),
    [
        (1, 1, None),
        (1, Decimal("1.0"), None),
        ([1, 2], (1, 2), None),
        (1, True, "$"),
        (None, 0, "$"),
        ({"events": [{"t": 1}, {"t": 2}, {"t": 3}]}, {"events": [{"t": 1}, {"t": 2}, {"t": 4}]}, "$.events[2].t"),
        ({"b": 1, "a": 2}, {"b": 2, "a": 3}, "$.a"),
        ({"b": 1}, {"a": 1, "b": 2}, "$.a"),
        ([1, 2], [1], "$[1]"),
        ([], [[]], "$[0]"),
        ({"a": []}, {"a": {}}, "$.a"),
        ({"a b": {"ü": 1}}, {"a b": {"ü": 2}}, '$["a b"]["\\u00fc"]'),
    ],
)
def test_the_first_difference_is_a_path(a: Any, b: Any, path: str | None) -> None:
    assert first_difference(a, b) == path
    assert first_difference(b, a) == path


@given(values, values)
def test_there_is_a_difference_exactly_when_the_bytes_differ(a: Json, b: Json) -> None:
    assert (first_difference(a, b) is None) == (encode(a) == encode(b))


@given(values, st.lists(st.integers(0, 3), max_size=5), st.integers())
def test_the_path_leads_to_the_place_that_was_changed(value: Json, steps: list[int], new: int) -> None:
    changed, path = _with_change(value, steps, new)

    found = first_difference(value, changed)

    assert found == (path if encode(value) != encode(changed) else None)


def _with_change(value: Any, steps: list[int], new: int) -> tuple[Any, str]:
    """A copy of `value` with one leaf replaced, and the path of it, found without the code under test."""
    follow: Callable[[Any], tuple[Any, str]] = lambda inner: _with_change(inner, steps[1:], new)  # noqa: E731
    if steps and isinstance(value, list) and value:
        index = steps[0] % len(value)
        inner, rest = follow(value[index])
        return [*value[:index], inner, *value[index + 1 :]], f"$[{index}]{rest[1:]}"
    if steps and isinstance(value, dict) and value:
        key = sorted(value)[steps[0] % len(value)]
        inner, rest = follow(value[key])
        plain = key.isascii() and key.isidentifier()
        return {**value, key: inner}, f"${'.' + key if plain else '[' + json.dumps(key) + ']'}{rest[1:]}"
    return new, "$"


@pytest.mark.parametrize("odd", [1.5, Raw(b"1e3"), b"bytes", Level.ONE, Colour.RED, {1}])
def test_one_odd_member_in_a_table_of_structs_is_refused_with_its_place(odd: object) -> None:
    rows = tuple(Bare(number) for number in range(20))

    with pytest.raises(NotCanonical) as refused:
        encode({"rows": (*rows, Bare(odd), *rows)})

    assert refused.value.details["path"] == "$.rows[20][0]"


@pytest.mark.parametrize(
    "row",
    [Start(1, Effort.HIGH), Stop("b"), Point(1, "x"), Point(Decimal("1.50"), 1 << 70), Point(1, (Bare(1),)), 7, None],
)
def test_a_table_of_structs_has_the_bytes_of_its_rows(row: object) -> None:
    rows = (*(Point(number, "ü") for number in range(10)), row)

    assert encode(rows) == encode_carefully(rows) == b"[" + b",".join(map(encode, rows)) + b"]"


def test_a_table_of_structs_that_leave_out_defaults_is_refused() -> None:
    with pytest.raises(NotCanonical, match="omit_defaults"):
        encode((Sparse(),) * 20)
