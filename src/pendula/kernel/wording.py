"""Explains why a value is invalid: what and where, what is allowed, what was probably meant.

Documents are read with msgspec, whose errors look like `Expected `int`, got `str` - at `$.t``. They become facts, and
the facts a sentence about the value: `t is 'soon'; it must be a whole number`.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from re import compile as regex
from types import EllipsisType
from typing import Any, TypeAlias

import msgspec
from msgspec import inspect

from pendula.kernel.canonical import Json

LONGEST_SHOWN = 80

Step: TypeAlias = str | int | EllipsisType  # an ellipsis is a member of a dictionary, which msgspec does not name

# The place that msgspec appends: field names of our types and indices, never text of the value.
_PLACE_OPENING = " - at `"
_PLACE = regex(r" - at `(?:key` in `)?\$((?:\.[^.\[\]`\s]+|\[\d{1,9}\]|\[\.\.\.\])*)`")
_STEP = regex(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")
_UNKNOWN = "Object contains unknown field `"
LONGEST_PLACE = 2000
_EXPECTED = regex(r"Expected `([^`]+)`(?:, got `([^`]+)`| (.+))?")
_BOUND = regex(r"(of length )?([<>]=?|==) (\S+)")
_FIELD = regex(r"(?s)Object (missing required|contains unknown) field `(.+)`")

_OTHERS = {"Integer value out of range": "out_of_range"}
_CUT = LONGEST_SHOWN + 1  # one more than is shown, so that a cut text is seen to be longer

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
    """Turn a msgspec error about `value`, expected to be of type `kind`, into a sentence; other messages are kept."""
    return validation_sentence(validation_facts(message, value, kind))


def validation_facts(message: str, value: object, kind: Any) -> dict[str, Json]:
    """A msgspec error as facts: what is wrong, where, the value found, what is allowed."""
    what, steps = split_place(message, value)
    path, found, wanted = _followed(steps, value, kind)
    at: list[Json] = [step if isinstance(step, int) else step[:_CUT] for step in path]
    if field := _FIELD.fullmatch(what):
        if field[1] == "contains unknown":
            known = [member.encode_name for member in wanted.fields] if isinstance(wanted, inspect.StructType) else []
            return {"fault": "unknown_field", "at": at, "field": field[2][:_CUT], "allowed": sorted(known)}
        return {"fault": "missing_field", "at": at, "field": field[2][:_CUT], "allowed": list(_tags(wanted, field[2]))}
    facts: dict[str, Json] = {"fault": "choice", "at": at, "found": found_fact(found)}
    if what.startswith("Invalid enum value"):
        return {**facts, "allowed": list(_choices(wanted))}
    if path and (tags := _tags(_followed(path[:-1], value, kind)[2], str(path[-1]))):
        # The tag of a union; msgspec does not list the allowed tags.
        return {**facts, "allowed": list(tags)}
    if what == "Invalid decimal string":
        return {**facts, "fault": "type", "types": ["decimal"]}
    if expected := _EXPECTED.fullmatch(what):
        types: list[Json] = [name.strip() for name in expected[1].split("|")]
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
    """A value as a fact: texts cut to the length shown, containers as their size."""
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
    """The sentence part for a `found_fact`, as `shown` renders the value itself."""
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
    """Split a msgspec error about `value` into the message and the steps to the place at its end.

    The message may quote text of the caller that looks like a place: only the end of the message counts, and not even
    that if it belongs to the name of an unknown field.
    """
    begin = message.rfind(_PLACE_OPENING, max(0, len(message) - LONGEST_PLACE))
    match = _PLACE.fullmatch(message, begin) if begin >= 0 else None
    if match is None:
        return message, ()
    what = message[:begin]
    if (unknown := message.find(_UNKNOWN)) >= 0:
        # msgspec appends no place for a field of the outermost object: then everything is the field's name.
        name = message[unknown + len(_UNKNOWN) : -1]
        if not what.endswith("`") or (isinstance(value, Mapping) and name in value):
            return message, ()
    return what, tuple(step[1] or (int(step[2]) if step[2] else ...) for step in _STEP.finditer(match[1]))


def unknown_name(word: str, known: Sequence[str], what: str) -> str:
    """`'preempt' is not a field of a definition (did you mean preempts?); allowed are …`."""
    return f"{shown(word)} is not {what}{suggestion(word, known)}{_allowed(sorted(known))}"


def shown(value: object) -> str:
    """The value for display in a sentence; long ones are cut, control characters escaped."""
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
    """A number with its noun: 1 item, 2 items."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def suggestion(word: str, allowed: Sequence[str]) -> str:
    """` (did you mean high?)` if an allowed word is close, else an empty string."""
    close = nearest(word, allowed)
    return "" if close is None else f" (did you mean {close}?)"


def nearest(word: str, allowed: Sequence[str]) -> str | None:
    """The allowed word that is close to a word, if any."""
    from difflib import get_close_matches  # only errors need it

    if len(word) > LONGEST_SHOWN:
        return None
    close = get_close_matches(word, allowed, n=1)
    if not close:
        # Ignoring case; of names that differ only in case, the first.
        folded = {name.casefold(): name for name in reversed(allowed)}
        close = [folded[name] for name in get_close_matches(word.casefold(), folded, n=1)]
    return close[0] if close else None


def _followed(steps: Sequence[Step], value: Any, kind: Any) -> tuple[tuple[str | int, ...], Any, Any]:
    """The path, the value at it and the expected type there, as far as they can be determined."""
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
    """The member of a union that the value's tag selects; the type itself otherwise."""
    wanted = _bare(wanted)
    if not isinstance(wanted, inspect.UnionType) or not isinstance(value, Mapping):
        return wanted
    structs = (option for option in wanted.types if isinstance(option, inspect.StructType))
    return next(
        (struct for struct in structs if struct.tag_field and value.get(struct.tag_field) == struct.tag), wanted
    )


def _member_at_fault(value: Any, wanted: Any) -> str | None:
    """The first key of a dictionary whose value cannot be converted; msgspec does not name it."""
    inner = _option(wanted, inspect.DictType)
    if not isinstance(value, Mapping) or inner is None:
        return None
    for name, member in value.items():
        try:
            msgspec.convert(member, _type_of(inner.value_type))
        except msgspec.ValidationError:
            return str(name)
    return None


def _bare(info: Any) -> Any:
    """A type without what only its JSON Schema says."""
    return info.type if isinstance(info, inspect.Metadata) else info


def _type_of(info: Any) -> Any:
    match bare := _bare(info):
        case inspect.StructType() | inspect.EnumType():
            return bare.cls
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
        sequence = _option(wanted, inspect.ListType) or _option(wanted, inspect.VarTupleType)
        return sequence.item_type if sequence is not None else None
    if (struct := _option(wanted, inspect.StructType)) is not None:
        return next((field.type for field in struct.fields if field.encode_name == step), None)
    free = _option(wanted, inspect.DictType)
    return free.value_type if free is not None else None


def _option(wanted: Any, kind: Any) -> Any:
    wanted = _bare(wanted)
    options = map(_bare, wanted.types) if isinstance(wanted, inspect.UnionType) else (wanted,)
    return next((option for option in options if isinstance(option, kind)), None)


def _choices(wanted: Any) -> list[str]:
    options = wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,)
    choices: list[str] = []
    for option in map(_bare, options):
        if isinstance(option, inspect.EnumType):
            choices += [str(member.value) for member in option.cls if isinstance(member, Enum)]
        elif isinstance(option, inspect.LiteralType):
            choices += [str(value) for value in option.values]
    return choices


def _tags(wanted: Any, field: str) -> list[str]:
    """The allowed tags if `field` is the tag field of a union."""
    options = wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,)
    structs = (option for option in options if isinstance(option, inspect.StructType))
    return [str(struct.tag) for struct in structs if struct.tag_field == field]


def _expected(facts: Mapping[str, Any]) -> str:
    if choices := facts.get("allowed"):
        return f"one of {', '.join(choices)}"
    types = " or ".join(_WORDS.get(name, name) for name in facts["types"])
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
    # Decimal also prints integers beyond the interpreter's digit limit.
    return str(value) if isinstance(value, Decimal) else format(Decimal(value), "f")


def cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
