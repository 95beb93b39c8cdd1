"""Broken scenarios: values, types and structure changed at random places, by seed."""

import copy
import json
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from re import sub
from typing import Any

# A text between these marks stands for a number of a file that a float cannot hold.
RAW = "@@"

NUMBERS = (
    0, 1, -1, 2, 7, 0.5, 1.5, -0.25, 3.0, 0.1 + 0.2, 2**31, 2**63, 2**64, 10**12, 10**12 - 1, 10**30, -(10**30),
    "@@1e400@@", "@@-1e400@@", "@@1e-400@@", "@@1E2@@", "@@5e-9@@", "@@999999999999.99999999@@", "@@1e99999@@",
    "@@1e999999999999999999999@@", "@@-0@@", "@@-0.0@@", "@@NaN@@", "@@Infinity@@", "@@" + "9" * 400 + "@@",
)  # fmt: skip

TEXTS = (
    "", " ", "ann", "9", "stranger", "UAH", " uah ", "eur", "U-H", "ß", "ǆ", "x" * 201, "x" * 17, "5", "-5", "1e3",
    "+0.00", "1e400", "1e-400", "1e9999999999999999999999", "1e-9999999999999999999999", "NaN", "Infinity", "-inf",
    "0x10", "1_0", "٣", "1.123456789", "123456789012345678901234567890", "true", "off", " No ", "null", "day_3",
    "a b", "é", "💰", "\u0000", "a\nb", "active", "hub", "inject", "stress", "payment", "add_participant",
    "inject_debt", "group:retail", "$.x",
)  # fmt: skip

SHAPES: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [{}],
    {"": {}},
    [None],
    [1, "a", None],
    {"id": "ann"},
    [["a", "b"]],
)
NAMES = ("id", "ID", "limit", "from", "creditor", "status", "metadata", "props", "extends", "effects", "", "x", "op")
PLACES = ("group", "settings", "events", "extra", "time", "equivalent")

# Values that only a program can pass: numbers outside any file format, and values that are not plain.
STRANGE: tuple[Any, ...] = (
    Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("1e400"), Decimal("1e-400"),
    Decimal("1e-5000"), Decimal("1e5000"), Decimal("-0"), 10**5000, -(10**5000), 1.5, float("nan"), float("inf"),
    "\ud800", (), ("a", "b"),
)  # fmt: skip


def mutated(scenario: dict[str, Any], luck: Random, strange: bool = False) -> Any:
    """A copy with one to four changes; `strange` adds values that only a program can pass."""
    tree: Any = {"": copy.deepcopy(scenario)}
    for _ in range(luck.choice((1, 1, 1, 2, 4))):
        holder, key = luck.choice(list(_places(tree)))
        luck.choice((_replace, _replace, _replace, _drop, _add, _repeat, _rename, _swap))(tree, holder, key, luck)
        tree.setdefault("", None)
        if strange and luck.random() < 0.7:
            holder, key = luck.choice(list(_places(tree)))
            holder[key] = luck.choice(STRANGE)
    return tree[""]


def as_text(value: Any) -> bytes:
    """The value as a JSON file holds it."""
    return sub(f'"{RAW}(.*?){RAW}"', r"\1", json.dumps(value)).encode()


def plain(value: Any) -> Any:
    """The value as a file reader returns it: exact numbers instead of floats."""
    match value:
        case float():
            return Decimal(repr(value))
        case dict():
            return {name: plain(member) for name, member in value.items()}
        case list():
            return [plain(member) for member in value]
        case str() if value.startswith(RAW) and len(value) < 25:
            return Decimal(value.strip(RAW))
        case _:
            return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of the tree as its container and key."""
    keys: Any = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _odd(luck: Random) -> Any:
    return copy.deepcopy(luck.choice(luck.choice((NUMBERS, TEXTS, SHAPES))))


def _replace(tree: Any, holder: Any, key: Any, luck: Random) -> None:
    old = holder[key]
    kinds: dict[type, tuple[Any, ...]] = {int: NUMBERS, float: NUMBERS, str: TEXTS}
    pool = kinds.get(type(old)) if luck.random() < 0.5 else None
    holder[key] = luck.choice(pool) if pool else _odd(luck)


def _drop(tree: Any, holder: Any, key: Any, luck: Random) -> None:
    del holder[key]


def _add(tree: Any, holder: Any, key: Any, luck: Random) -> None:
    inner = holder[key]
    if isinstance(inner, dict):
        inner[luck.choice((*NAMES, *PLACES))] = _odd(luck)
    elif isinstance(inner, list):
        inner.insert(luck.randint(0, len(inner)), _odd(luck))
    else:
        holder[key] = [inner]


def _repeat(tree: Any, holder: Any, key: Any, luck: Random) -> None:
    if isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    else:
        holder[luck.choice(NAMES)] = copy.deepcopy(holder[key])


def _rename(tree: Any, holder: Any, key: Any, luck: Random) -> None:
    if isinstance(holder, dict):
        holder[luck.choice((key + "s", key.upper(), key[:-1], luck.choice(NAMES)))] = holder.pop(key)


def _swap(tree: Any, holder: Any, key: Any, luck: Random) -> None:
    """Two values change places, unless one holds the other."""
    other, there = luck.choice(list(_places(tree)))
    one, two = holder[key], other[there]
    holder[key], other[there] = copy.deepcopy(two), copy.deepcopy(one)
