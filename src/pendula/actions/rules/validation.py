"""Reads instances and definitions, with the code of the first failed check; the limits of the scheduler."""

from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import (
    DIGITS_MOST,
    ActionDef,
    Code,
    Effort,
    Instance,
    OnShortage,
    Reveal,
    Visibility,
    Wait,
    is_amount,
)
from pendula.actions.rules.resources import plain
from pendula.actions.sentences import LIMITS, reason_sentence
from pendula.kernel.canonical import Json, encode
from pendula.kernel.errors import NotCanonical
from pendula.kernel.limits import Limit
from pendula.kernel.wording import found_fact, validation_facts

INSTANCES = Limit("actions_instances", 1_000_000, "instances", "LimitExceeded", LIMITS["actions_instances"])
LOCKS = Limit("actions_locks", 65_536, "locks", "LimitExceeded", LIMITS["actions_locks"])
LOCKS_EACH = Limit("actions_locks_each", 64, "locks", "LimitExceeded", LIMITS["actions_locks_each"])
RESOURCES_EACH = Limit("actions_resources_each", 32, "resources", "LimitExceeded", LIMITS["actions_resources_each"])
FOLLOW_UPS = Limit("actions_follow_ups", 1000, "follow-ups", "LimitExceeded", LIMITS["actions_follow_ups"])

FIELDS = frozenset(Instance.__struct_fields__)
DECIDING = FIELDS - {"params"}


class Fault(Struct, frozen=True):
    """Why an input is rejected: a code, and a reason with its facts."""

    code: Code
    reason: str
    facts: dict[str, Json] = {}

    @property
    def message(self) -> str:
        return reason_sentence(self.reason, self.facts)


def malformed(
    code: Code,
    complaint: msgspec.ValidationError | str,
    value: object,
    kind: Any,
    reason: str = "malformed",
    **facts: Json,
) -> Fault:
    """The fault of a value that msgspec cannot convert."""
    return Fault(code, reason, {**facts, "fault": validation_facts(f"{complaint}", value, kind)})


class Verb(Struct, frozen=True):
    """A checked definition, with sorted locks and a skill."""

    name: str
    definition: ActionDef
    locks: tuple[str, ...]
    skill: str

    @property
    def waits_for_resources(self) -> bool:
        """Whether instances wait for short resources; with `wait: fail` they do not."""
        return self.definition.on_shortage is OnShortage.WAIT and self.definition.wait is Wait.QUEUE


def read_instance(raw: object, needs_time: bool = True) -> tuple[Instance, dict[str, Any] | None] | Fault:
    """The instance and its unknown fields, or its fault. Unknown fields in `knowledge` or `visibility` are faults."""
    try:
        raw = as_journal_value(raw)
        # msgspec does not validate a struct that it is given.
        given = raw.members() if isinstance(raw, Instance) else raw
        instance = msgspec.convert(given, Instance)
    except NotCanonical as fault:
        return Fault(
            Code.INVALID_ACTION,
            "not_canonical",
            {"path": fault.path, "found": "nested" if fault.path == "$" else _not_canonical(raw)},
        )
    except msgspec.ValidationError as fault:
        return malformed(Code.INVALID_ACTION, fault, raw, Instance)
    if needs_time and instance.submitted_at is None and instance.t is None:
        return malformed(Code.INVALID_ACTION, "Object missing required field `submitted_at`", raw, Instance)
    if not isinstance(raw, dict):
        return instance, None
    unknown = _unknown_inside(raw)
    if unknown is not None:
        return unknown
    if FIELDS.issuperset(raw):
        return instance, None
    return instance, {name: value for name, value in raw.items() if name not in FIELDS}


def _unknown_inside(raw: dict[str, Any]) -> Fault | None:
    """The fault of an unknown field inside `knowledge` or `visibility`."""
    parts: list[tuple[str, Any, type[Struct]]] = [
        (f"knowledge[{place}]", reveal, Reveal) for place, reveal in enumerate(raw.get("knowledge") or ())
    ]
    parts.append(("visibility", raw.get("visibility"), Visibility))
    for where, part, kind in parts:
        for name in part if isinstance(part, dict) else ():
            if name not in kind.__struct_fields__:
                facts: dict[str, Json] = {"field": name, "inside": where, "known": list(kind.__struct_fields__)}
                return Fault(Code.INVALID_ACTION, "unknown_field", facts)
    return None


def as_journal_value(raw: object) -> object:
    """An instance in the form of a journal: floats in params and unknown fields become exact decimals.

    Raises `NotCanonical` for values without a canonical form, such as a float as a minute.
    """
    try:
        encode(raw)
    except NotCanonical as fault:
        try:
            raw = _with_exact_data(raw)
        except RecursionError:
            raise fault from None
        encode(raw)
    return raw


def _not_canonical(value: Any) -> Json:
    """The first part that has no canonical form, as a fact. The value must not contain itself."""
    match value:
        case float():
            return {"float": repr(value)}
        case dict():
            parts = [value[name] for name in sorted(value, key=str)]
        case list() | tuple():
            parts = list(value)
        case Instance():
            parts = list(value.members().values())
        case _:
            return found_fact(value) if not isinstance(value, str) else {"type": "str"}
    for part in parts:
        try:
            encode(part)
        except NotCanonical:
            return _not_canonical(part)
    return {"type": type(value).__name__}


def _with_exact_data(raw: object) -> object:
    """The instance with exact numbers in its params and unknown fields, which no decision uses."""
    if isinstance(raw, Instance):
        return msgspec.structs.replace(raw, params=exact(raw.params))
    if isinstance(raw, dict):
        return {name: value if name in DECIDING else exact(value) for name, value in raw.items()}
    return raw


def exact(value: Any) -> Any:
    """The value with finite floats replaced by the decimals of their shortest text."""
    match value:
        case float() if isfinite(value):
            return plain(Decimal(repr(float(value))))
        case dict():
            return {name: exact(member) for name, member in value.items()}
        case list() | tuple():
            return [exact(element) for element in value]
    return value


def text_field(raw: object, name: str) -> str | None:
    """A text member of a possible instance; None if it is missing or cannot be encoded."""
    value = raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
    return value if isinstance(value, str) and is_text(value) else None


def id_of(raw: object) -> str | None:
    return text_field(raw, "id")


def is_text(value: str) -> bool:
    """Whether a string can be encoded: lone surrogates cannot."""
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def read_verb(name: str, raw: object) -> Verb | Fault:
    """The definition of a verb, or the fault that rejects every instance of it."""
    try:
        definition = msgspec.convert(raw, ActionDef)
    except msgspec.ValidationError as fault:
        return malformed(_code_of_definition(raw), fault, raw, ActionDef, "malformed_definition", verb=name)
    if definition.base_duration_min <= 0:
        minutes = definition.base_duration_min
        return Fault(Code.INVALID_DURATION, "duration_of_verb", {"verb": name, "minutes": minutes})
    if not all(is_amount(need.amount) for need in definition.resources):
        return Fault(Code.INVALID_ACTION, "amount_of_verb", {"verb": name, "digits": DIGITS_MOST})
    needs = tuple(msgspec.structs.replace(need, amount=plain(need.amount)) for need in definition.resources)
    definition = msgspec.structs.replace(definition, resources=needs)
    return Verb(name, definition, tuple(sorted(set(definition.locks))), definition.skill or name)


def _code_of_definition(raw: object) -> Code:
    if not isinstance(raw, dict):
        return Code.INVALID_ACTION
    minutes = raw.get("base_duration_min")
    if not isinstance(minutes, int) or isinstance(minutes, bool) or minutes <= 0:
        return Code.INVALID_DURATION
    if raw.get("effort") not in tuple(Effort):
        return Code.INVALID_EFFORT
    return Code.INVALID_ACTION
