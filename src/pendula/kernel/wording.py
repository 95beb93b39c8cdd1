"""What is wrong with a value, said so that it helps: what and where, what is allowed, what was probably meant.

Readers are made of msgspec types, and msgspec says `Expected `int`, got `str` - at `$.t``. Here such a complaint is
turned into a sentence about the value: `t is 'soon'; it must be a whole number`.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from re import compile as regex
from types import EllipsisType
from typing import Any, TypeAlias

import msgspec
from msgspec import inspect

from pendula.kernel.canonical import Json

LONGEST_SHOWN = 80

Step: TypeAlias = str | int | EllipsisType  # an ellipsis is a member of a free object, which msgspec does not name

# What msgspec appends: field names of our own types and indices, never a word of the value.
_PLACE_OPENING = " - at `"
_PLACE = regex(r" - at `(?:key` in `)?\$((?:\.[^.\[\]`\s]+|\[\d{1,9}\]|\[\.\.\.\])*)`")
_STEP = regex(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")
_UNKNOWN = "Object contains unknown field `"
LONGEST_PLACE = 2000
_EXPECTED = regex(r"Expected `([^`]+)`(?:, got `([^`]+)`| (.+))?")
_BOUND = regex(r"(of length )?([<>]=?|==) (\S+)")
_FIELD = regex(r"(?s)Object (missing required|contains unknown) field `(.+)`")

_OTHERS = {"Integer value out of range": "out_of_range"}
_CUT = LONGEST_SHOWN + 1  # of a longer text nothing more is ever shown

_WORDS = {
    "object": "an object",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "decimal": "an exact number",
    "null": "null",
}


def explain_validation_error(message: str, value: object, kind: Any) -> str:
    """A complaint of msgspec about a value that was to be of a kind, as a sentence; others are left as they are."""
    return validation_sentence(validation_facts(message, value, kind))


def validation_facts(message: str, value: object, kind: Any) -> dict[str, Json]:
    """The complaint as facts for a journal: what is wrong, where, what was found, what is allowed. No sentence."""
    what, steps = split_place(message, value)
    path, found, wanted = _followed(steps, value, kind)
    at: list[Json] = [step if isinstance(step, int) else step[:_CUT] for step in path]
    if field := _FIELD.fullmatch(what):
        if field[1] == "contains unknown":
            known = [one.encode_name for one in wanted.fields] if isinstance(wanted, inspect.StructType) else []
            return {"fault": "unknown_field", "at": at, "field": field[2][:_CUT], "allowed": sorted(known)}
        return {"fault": "missing_field", "at": at, "field": field[2][:_CUT], "allowed": list(_tags(wanted, field[2]))}
    facts: dict[str, Json] = {"fault": "choice", "at": at, "found": found_fact(found)}
    if what.startswith("Invalid enum value"):
        return {**facts, "allowed": list(_choices(wanted))}
    if path and (tags := _tags(_followed(path[:-1], value, kind)[2], str(path[-1]))):
        # The member that says which of several objects it is; msgspec does not say which there are.
        return {**facts, "allowed": list(tags)}
    if what == "Invalid decimal string":
        return {**facts, "fault": "type", "types": ["decimal"]}
    if expected := _EXPECTED.fullmatch(what):
        types: list[Json] = [one.strip() for one in expected[1].split("|")]
        choices = _choices(wanted) if expected[1] == "str" else []
        bound = _BOUND.fullmatch(expected[3] or "")
        of: dict[str, Json] = {"types": types}
        if choices:
            of["allowed"] = list(choices)
        elif bound is not None:
            of["bound"] = [bound[1] or "", bound[2], bound[3]]
        elif expected[3]:
            of["bound"] = expected[3]
        return {**facts, "fault": "type", **of}
    return {"fault": "other", "at": at, "complaint": _OTHERS.get(what, what)}


def validation_sentence(facts: Mapping[str, Any]) -> str:
    """The sentence of `validation_facts`."""
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{cut(step)}" for step in facts["at"])
    where = where.removeprefix(".")
    name = where or "it"
    allowed: Sequence[str] = facts.get("allowed", ())
    match facts["fault"]:
        case "missing_field":
            return f"{shown(facts['field'])} is missing{f' in {where}' if where else ''}{_allowed(allowed)}"
        case "unknown_field":
            return unknown_name(facts["field"], allowed, f"a field{f' in {where}' if where else ' here'}")
        case "choice":
            found = facts["found"]
            near = suggestion(found, allowed) if isinstance(found, str) else ""
            return f"{name} is {shown_fact(found)}{_allowed(allowed)}{near}"
        case "type":
            return f"{name} is {shown_fact(facts['found'])}; it must be {_expected(facts)}"
    what = next((words for words, code in _OTHERS.items() if code == facts["complaint"]), facts["complaint"])
    return f"{name}: {what}" if where else str(what)


def found_fact(value: object) -> Json:
    """A value as a fact: short texts as they are, everything else as what a sentence says of it."""
    match value:
        case None | bool():
            return value
        case str():
            return value[:_CUT]
        case int() | Decimal():
            return {"number": cut(number_text(value))}
        case list() | tuple():
            return {"list": len(value)}
        case Mapping():
            return {"object": len(value)}
        case _:
            return {"type": type(value).__name__}


def shown_fact(fact: Json) -> str:
    """The value of `found_fact` as `shown` gives it."""
    match fact:
        case {"number": text}:
            return str(text)
        case {"list": count}:
            return f"a list of {count}"
        case {"object": int(count)}:
            return f"an object of {counted(count, 'member')}"
        case {"type": name}:
            return f"a value of type {name}"
    return shown(fact)


def split_place(message: str, value: object) -> tuple[str, tuple[Step, ...]]:
    """A complaint of msgspec about `value` without the place at its end, and the steps to that place.

    The message may quote the caller, who may write what looks like a place: only the end of the message counts, and not
    even that where it belongs to the name of an unknown field.
    """
    begin = message.rfind(_PLACE_OPENING, max(0, len(message) - LONGEST_PLACE))
    match = _PLACE.fullmatch(message, begin) if begin >= 0 else None
    if match is None:
        return message, ()
    what = message[:begin]
    if (unknown := message.find(_UNKNOWN)) >= 0:
        # msgspec names no place for a member of the outermost object: then all of this is the member's name.
        name = message[unknown + len(_UNKNOWN) : -1]
        if not what.endswith("`") or (isinstance(value, Mapping) and name in value):
            return message, ()
    return what, tuple(step[1] or (int(step[2]) if step[2] else ...) for step in _STEP.finditer(match[1]))


def path_to(steps: Sequence[Step], value: object, kind: Any) -> tuple[str | int, ...]:
    """The steps with the members that msgspec does not name, as far as they can be found out."""
    return _followed(steps, value, kind)[0]


def unknown_name(word: str, known: Sequence[str], what: str) -> str:
    """`'preempt' is not a field of a definition (did you mean preempts?); allowed are …`."""
    return f"{shown(word)} is not {what}{suggestion(word, known)}{_allowed(sorted(known))}"


def shown(value: object) -> str:
    """The value as a sentence speaks of it; long ones are cut, control characters escaped."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(cut(value))
        case int() | Decimal():
            return cut(number_text(value))
        case list() | tuple():
            return f"a list of {len(value)}"
        case Mapping():
            return "an object of 1 member" if len(value) == 1 else f"an object of {len(value)} members"
        case _:
            return f"a value of type {type(value).__name__}"


def counted(count: int, noun: str) -> str:
    """A number and its noun: 1 item, 2 items."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def suggestion(word: str, allowed: Sequence[str]) -> str:
    """` (did you mean high?)` when one of the allowed words is close, else nothing."""
    if len(word) > LONGEST_SHOWN:
        return ""
    close = get_close_matches(word, allowed, n=1)
    if not close:
        # Whatever is written in capitals, here or there; of names that differ by that alone, the first.
        folded = {one.casefold(): one for one in reversed(allowed)}
        close = [folded[one] for one in get_close_matches(word.casefold(), folded, n=1)]
    return f" (did you mean {close[0]}?)" if close else ""


def _followed(steps: Sequence[Step], value: Any, kind: Any) -> tuple[tuple[str | int, ...], Any, Any]:
    """The path, the value there and the type wanted there, as far as they can be found out."""
    path: list[str | int] = []
    wanted = _meant(inspect.type_info(kind), value)
    for step in steps:
        name = _member_at_fault(value, wanted) if isinstance(step, EllipsisType) else step
        if name is None:
            break
        path.append(name)
        try:
            value = getattr(value, str(name)) if isinstance(value, msgspec.Struct) else value[name]
        except (KeyError, IndexError, TypeError, AttributeError):
            value = None
        wanted = _meant(_inside(wanted, name), value)
    return tuple(path), value, wanted


def _meant(wanted: Any, value: Any) -> Any:
    """Of several objects that were possible the one that the value says it is; the type itself where it says none."""
    if not isinstance(wanted, inspect.UnionType) or not isinstance(value, Mapping):
        return wanted
    structs = (one for one in wanted.types if isinstance(one, inspect.StructType))
    tagged = (one for one in structs if one.tag_field is not None and value.get(one.tag_field) == one.tag)
    return next(tagged, wanted)


def _member_at_fault(value: Any, wanted: Any) -> str | None:
    """msgspec does not tell which member of a free object is wrong: the first that cannot be read alone."""
    inner = _one_of(wanted, inspect.DictType)
    if not isinstance(value, Mapping) or inner is None:
        return None
    for name, member in value.items():
        try:
            msgspec.convert(member, _type_of(inner.value_type))
        except msgspec.ValidationError:
            return str(name)
    return None


def _type_of(info: Any) -> Any:
    match info:
        case inspect.StructType() | inspect.EnumType():
            return info.cls
        case inspect.DecimalType():
            return Decimal
        case inspect.IntType():
            return int
        case inspect.StrType():
            return str
        case _:
            return Any


def _inside(wanted: Any, step: str | int) -> Any:
    if isinstance(step, int):
        found = _one_of(wanted, inspect.ListType) or _one_of(wanted, inspect.VarTupleType)
        return found.item_type if found is not None else None
    if (struct := _one_of(wanted, inspect.StructType)) is not None:
        return next((field.type for field in struct.fields if field.encode_name == step), None)
    free = _one_of(wanted, inspect.DictType)
    return free.value_type if free is not None else None


def _one_of(wanted: Any, kind: Any) -> Any:
    options = wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,)
    return next((one for one in options if isinstance(one, kind)), None)


def _choices(wanted: Any) -> list[str]:
    options = wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,)
    found: list[str] = []
    for one in options:
        if isinstance(one, inspect.EnumType):
            found += [str(member.value) for member in one.cls if isinstance(member, Enum)]
        elif isinstance(one, inspect.LiteralType):
            found += [str(value) for value in one.values]
    return found


def _tags(wanted: Any, field: str) -> list[str]:
    """What `field` may be where it says which of several objects this is."""
    options = wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,)
    return [str(one.tag) for one in options if isinstance(one, inspect.StructType) and one.tag_field == field]


def _expected(facts: Mapping[str, Any]) -> str:
    if choices := facts.get("allowed"):
        return f"one of {', '.join(choices)}"
    types = " or ".join(_WORDS.get(one, one) for one in facts["types"])
    match facts.get("bound"):
        case [what, sign, limit]:
            length = {">=": "of at least length", "<=": "of at most length"}.get(sign, f"of length {sign}")
            return f"{types} {length} {limit}" if what else f"{types} {sign} {limit}"
        case str(words):
            return f"{types} {words}"
    return types


def _allowed(names: Sequence[str]) -> str:
    return f"; allowed are {', '.join(names)}" if names else ""


def number_text(value: int | Decimal) -> str:
    # Decimal prints integers beyond the interpreter's limit of digits, too.
    return str(value) if isinstance(value, Decimal) else format(Decimal(value), "f")


def cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
