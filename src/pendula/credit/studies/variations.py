"""Variations of a scenario: limits, rates or any other values, set or multiplied at the places of a path.

    trustlines[*].limit*            every limit, times the value
    trustlines[from=ann].limit      the limits of Ann's lines, set to the value
    participants.*.limit*           the limits of the lines that participants give, times the value
    behaviorProfiles.retail.props.tx_rate*

A path begins with a member of the document; `.name` goes to a member, or to what has that id in a list, `.*` and `[*]`
to all, `[member=value,…]` to those in a list that have these values. A `*` at the end multiplies; without it the value
is set. Arithmetic is exact.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_DOWN, Decimal, InvalidOperation
from re import compile as regex
from typing import Any

from msgspec import Struct

from pendula.credit.reading import read_scenario
from pendula.documents import Document, from_value
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.errors import InputRefused

ROOTS = ("participants", "trustlines", "behaviorProfiles", "groups", "events", "settings", "equivalents")
_STEP = regex(r"\.([A-Za-z0-9_:-]+|\*)|\[([^\]]*)\]")
_START = regex(r"[A-Za-z]+")
_FINEST = Decimal(1).scaleb(-8)


class InvalidVariation(InputRefused):
    """The place of a variation does not exist, or its value cannot be changed like this. Facts: `path`."""

    code = "invalid_variation"


class Variation(Struct, frozen=True):
    """A path in a scenario, and whether its values are multiplied."""

    path: str
    steps: tuple[str, ...]
    times: bool


def names_a_place(text: str) -> bool:
    """Whether a text is a path in a scenario, not the name of a setting."""
    root = _START.match(text)
    return root is not None and root.group() in ROOTS and text[root.end() : root.end() + 1] in (".", "[")


def split(text: str) -> tuple[str, str]:
    """Path and value of `PATH=VALUE` or `PATH*VALUE`; raises `InvalidVariation`."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if depth == 0 and sign == "=":
            return text[:at].strip(), text[at + 1 :].strip()
    path, star, factor = text.rpartition("*")
    if star and factor.strip() and not path.endswith((".", "[")):
        return f"{path.strip()}*", factor.strip()
    raise InvalidVariation(f"{text!r} is neither PATH=VALUE nor PATH*FACTOR", path=text)


def variation(path: str) -> Variation:
    """Parse a path; raises `InvalidVariation`."""
    times = path.endswith("*") and not path.endswith((".*", "[*"))
    plain = path.removesuffix("*") if times else path
    start = _START.match(plain)
    if start is None or not names_a_place(plain):
        raise InvalidVariation(f"{path!r} does not start with a member of a scenario", path=path)
    steps, at = [start.group()], start.end()
    while at < len(plain):
        step = _STEP.match(plain, at)
        if step is None:
            raise InvalidVariation(f"{path!r} is not a path: cannot parse {plain[at:]!r}", path=path)
        steps.append(step.group())
        at = step.end()
    if not steps[-1].startswith(".") or steps[-1] == ".*":
        raise InvalidVariation(f"{path!r} does not end with the name of a member", path=path)
    return Variation(path, tuple(steps), times)


def changed_document(document: Document, changes: Sequence[tuple[str, str]], *, lenient: bool = False) -> Document:
    """The scenario with these changes; the same document without changes.

    Raises `InvalidVariation`, and `DocumentRefused` for faults of the original file.
    """
    if not changes:
        return document
    read_scenario(document, lenient=lenient)
    return from_value(vary(decode(encode(document.value)), changes), "scenario")


def vary(scenario: Json, changes: Iterable[tuple[str, str]]) -> Json:
    """Change the scenario in place; paths and values as text. Raises `InvalidVariation`."""
    for path, value in changes:
        _change(scenario, variation(path), value)
    return scenario


def _change(scenario: Any, change: Variation, value: str) -> None:
    field = change.steps[-1].removeprefix(".")
    places: list[Any] = [scenario.get(change.steps[0])]
    for step in change.steps[1:-1]:
        places = [inner for place in places for inner in _selected(place, step)]
    if change.steps[0] == "participants" and field == "limit":
        givers = {place.get("id") for place in places if isinstance(place, dict)}
        places = [line for line in scenario.get("trustlines", ()) if line.get("from") in givers]
    holders = [place for place in places if isinstance(place, dict) and (not change.times or field in place)]
    if not holders:
        raise InvalidVariation(f"The scenario has nothing at {change.path!r}", path=change.path)
    for holder in holders:
        holder[field] = _product(change, holder[field], value) if change.times else _read(value)


def _selected(place: Any, step: str) -> Iterator[Any]:
    selector = step.removeprefix(".") if step.startswith(".") else step[1:-1]
    match place:
        case dict() if step.startswith(".") and selector != "*":
            if selector in place:
                yield place[selector]
        case dict():
            yield from place.values()
        case list():
            yield from (item for item in place if _fits(item, selector, step.startswith(".")))
        case _:
            pass


def _fits(item: Any, selector: str, by_id: bool) -> bool:
    if selector == "*":
        return True
    if not isinstance(item, dict):
        return False
    if by_id:
        return bool(item.get("id") == selector)
    pairs = (pair.partition("=") for pair in selector.split(","))
    return all(str(item.get(name.strip())) == value.strip() for name, _, value in pairs)


def _product(change: Variation, known: Any, factor: str) -> Json:
    """The value times the factor, rounded down to eight digits; text stays text."""
    try:
        product = (Decimal(str(known)) * Decimal(factor)).quantize(_FINEST, ROUND_DOWN)
    except InvalidOperation:
        message = f"{known!r} at {change.path!r} cannot be multiplied by {factor!r}"
        raise InvalidVariation(message, path=change.path) from None
    return format(product, "f") if isinstance(known, str) else product.normalize() + 0


def _read(value: str) -> Json:
    words: dict[str, Json] = {"true": True, "false": False, "null": None}
    if value in words:
        return words[value]
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    if not number.is_finite():
        return value
    return int(number) if number == number.to_integral_value() else number
