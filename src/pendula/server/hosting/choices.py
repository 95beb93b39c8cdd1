"""Questions that an engine answers, and its commands as forms with examples.

Examples fit the present state of the engine: sent unchanged, they are accepted. The fields of a form are derived from
the type of its command.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.inspect import BoolType, Field, IntType, NoneType, StrType, StructType, Type, UnionType, type_info

from pendula.kernel.canonical import Json

KINDS: Mapping[type[Type], str] = {IntType: "integer", StrType: "text", BoolType: "yes_no"}


class FieldView(Struct, frozen=True):
    """One field of a command; `kind` is integer, text, yes_no, or json for anything else. `choices` are suggestions."""

    name: str
    kind: str
    required: bool
    example: Any = None
    choices: list[str] = []


class FormView(Struct, frozen=True):
    """A command: its `type` with the field values, or with one object of them in the list `inside`."""

    title: str
    type: str
    fields: list[FieldView]
    inside: str | None = None


class QuestionView(Struct, frozen=True):
    title: str
    question: Any


class ChoicesView(Struct, frozen=True):
    """Questions for `why` and commands to send, the most useful first."""

    questions: list[QuestionView] = []
    commands: list[FormView] = []


def form(
    title: str,
    command: type[Struct],
    examples: Mapping[str, Json] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
    only: Sequence[str] | None = None,
) -> FormView:
    """The form of a command. Optional fields without an example stay empty; `only` selects the shown fields."""
    return FormView(title, str(command.__struct_config__.tag), _fields(command, examples, choices, only))


def form_inside(title: str, command: type[Struct], inside: str, fields: Sequence[FieldView]) -> FormView:
    """The form of one element of a list in a command."""
    return FormView(title, str(command.__struct_config__.tag), list(fields), inside)


def fields_of(
    kind: type[Struct],
    examples: Mapping[str, Json],
    choices: Mapping[str, Sequence[str]] | None = None,
) -> list[FieldView]:
    """The fields of a struct that have an example, in the order of the examples."""
    found = {field.name: field for field in _fields(kind, examples, choices, tuple(examples))}
    return [found[name] for name in examples]


def _fields(
    kind: type[Struct],
    examples: Mapping[str, Json] | None,
    choices: Mapping[str, Sequence[str]] | None,
    only: Sequence[str] | None,
) -> list[FieldView]:
    info = type_info(kind)
    assert isinstance(info, StructType)
    return [
        _field(one, (examples or {}).get(one.name), (choices or {}).get(one.name, ()))
        for one in info.fields
        if only is None or one.name in only
    ]


def _field(field: Field, example: Json, choices: Sequence[str]) -> FieldView:
    return FieldView(field.encode_name, _kind(field.type), field.required, msgspec.to_builtins(example), list(choices))


def _kind(type: Type) -> str:
    if isinstance(type, UnionType):
        given = [one for one in type.types if not isinstance(one, NoneType)]
        return _kind(given[0]) if len(given) == 1 else "json"
    return next((name for kind, name in KINDS.items() if isinstance(type, kind)), "json")
