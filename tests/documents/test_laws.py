"""Laws: both roads of JSON agree with independent parsers, and YAML with JSON."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pendula.documents import DocumentLimits, DocumentRefused, read_bytes
from pendula.documents.json_text import NotClean, read_clean
from pendula.kernel.canonical import Json
from tests.documents.seen import JSON, YAML, carefully

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)
decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=6)
MARKS = (
    """{ } [ ] , : "a" "b" "\\ud83d" "\\ude00" "\\\\ud83d\\ude00" 1 -0 01 1.5 1e5 1e99999 true True null NaN " \\ ' é"""
)
scraps = st.lists(st.sampled_from([*MARKS.split(), " ", "\n", "\t", "//x\n", "\ufeff", "\x00"]), max_size=14).map(
    "".join
)


def typed(value: Any) -> Any:
    """The value with its types spelled out: 1, True and Decimal(1) are equal in Python but not here."""
    if isinstance(value, dict):
        return [(key, typed(member)) for key, member in value.items()]
    if isinstance(value, list):
        return [typed(member) for member in value]
    return type(value).__name__, str(value)


@given(values, st.booleans(), st.sampled_from([None, 2]))
def test_json_dumps_output_reads_back_equal_with_both_parsers(
    value: Json, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    slow, faults = carefully(text)

    assert not faults
    assert typed(read_bytes(text.encode()).value) == typed(value)
    assert typed(slow) == typed(value)


@given(st.lists(decimals | st.integers()))
def test_numbers_agree_with_other_parsers_to_the_last_digit(numbers: list[Decimal | int]) -> None:
    text = "[" + ",".join(str(number) for number in numbers) + "]"
    slow, _ = carefully(text)

    assert typed(slow) == typed(json.loads(text, parse_float=Decimal))
    assert typed(read_bytes(text.encode()).value) == typed(msgspec.json.Decoder(float_hook=Decimal).decode(text))


@given(scraps)
def test_both_parsers_accept_the_same_texts_with_the_same_values(text: str) -> None:
    slow, faults = carefully(text)
    try:
        fast = read_clean(text, DocumentLimits())
    except NotClean:
        return
    assert not faults
    assert typed(fast) == typed(slow)


@given(scraps)
def test_acceptance_agrees_with_the_standard_library(text: str) -> None:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({name for name, _ in pairs}) == len(pairs)
        return dict(pairs)

    def exact(number: str) -> Decimal:
        assert abs(int(Decimal(number).adjusted())) < 4300
        return Decimal(number)

    def oracle() -> Any:
        value = json.loads(text, parse_float=exact, parse_constant=lambda _: 1 / 0, object_pairs_hook=members)
        json.dumps(value, ensure_ascii=False, default=str).encode()
        return value

    try:
        expected = oracle()
    except (ValueError, ZeroDivisionError, AssertionError):
        expected = None
        refused = True
    else:
        refused = False
    try:
        found = read_bytes(text.encode()).value
    except DocumentRefused:
        assert refused
    else:
        assert not refused
        assert typed(found) == typed(expected)


@given(values)
def test_the_same_data_as_yaml_and_as_json_is_the_same_value(value: Json) -> None:
    as_yaml = yaml.dump(_explicit(value), Dumper=Quoting, allow_unicode=True, sort_keys=False)

    assert typed(read_bytes(as_yaml.encode(), YAML).value) == typed(read_bytes(json.dumps(value).encode(), JSON).value)


@given(st.lists(st.lists(st.integers() | decimals | st.booleans() | st.none(), max_size=4), max_size=4))
def test_json_text_without_strings_is_yaml_of_the_same_value(value: list[Any]) -> None:
    text = json.dumps(value, default=float, indent=1)

    assert typed(read_bytes(text.encode(), YAML).value) == typed(read_bytes(text.encode(), JSON).value)


class Quoting(yaml.SafeDumper):
    """Writes every string in double quotes and never an alias."""

    def ignore_aliases(self, data: object) -> bool:
        return True


class Words(str):
    """A string to be written in double quotes."""


Quoting.add_representer(Words, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def _explicit(value: Any) -> Any:
    if isinstance(value, dict):
        return {Words(key): _explicit(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_explicit(member) for member in value]
    return Words(value) if isinstance(value, str) else value
