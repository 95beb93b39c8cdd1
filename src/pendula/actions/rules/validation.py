"""Whether an instance or a definition is as it should be, with the code of the first check that fails; the limits."""

from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import ActionDef, Code, Effort, Instance
from pendula.actions.rules.resources import AMOUNT_RULE, is_amount, plain
from pendula.kernel.canonical import encode
from pendula.kernel.errors import NotCanonical
from pendula.kernel.limits import Limit

INSTANCES = Limit("actions_instances", 1_000_000, "instances", "LimitExceeded", "The epoch has too many instances")
LOCKS = Limit("actions_locks", 65_536, "locks", "LimitExceeded", "The world has too many locks")
LOCKS_EACH = Limit("actions_locks_each", 64, "locks", "LimitExceeded", "The instance has too many locks")
RESOURCES_EACH = Limit("actions_resources_each", 32, "resources", "LimitExceeded", "Too many resources for an instance")
FOLLOW_UPS = Limit("actions_follow_ups", 1000, "follow-ups", "LimitExceeded", "One minute has too many follow-ups")

FIELDS = frozenset(Instance.__struct_fields__)


class Fault(Struct, frozen=True):
    """Why something is not accepted."""

    code: Code
    message: str


class Verb(Struct, frozen=True):
    """A definition, ready for use: its locks sorted, its skill named."""

    name: str
    definition: ActionDef
    locks: tuple[str, ...]
    skill: str


def read_instance(raw: object, needs_time: bool = True) -> tuple[Instance, dict[str, Any] | None] | Fault:
    """The instance and the fields nobody knows, or what is wrong with it."""
    try:
        encode(raw)  # what has no canonical form could not be journalled
        instance = msgspec.convert(raw, Instance)
    except NotCanonical as fault:
        return Fault(Code.INVALID_ACTION, fault.message)
    except msgspec.ValidationError as fault:
        return Fault(Code.INVALID_ACTION, f"{fault}")
    if needs_time and instance.submitted_at is None and instance.t is None:
        return Fault(Code.INVALID_ACTION, "Object missing required field `submitted_at`")
    if not isinstance(raw, dict) or FIELDS.issuperset(raw):
        return instance, None
    return instance, {name: value for name, value in raw.items() if name not in FIELDS}


def field_of(raw: object, name: str) -> str | None:
    """A text member of what may be an instance, if it has one that can be written down."""
    found = raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
    return found if isinstance(found, str) and is_text(found) else None


def id_of(raw: object) -> str | None:
    return field_of(raw, "id")


def is_text(value: str) -> bool:
    """Whether a string can be written down: lone surrogates cannot."""
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def read_verb(name: str, raw: object) -> Verb | Fault:
    """The definition of a verb, or the fault that every instance of it is rejected with."""
    try:
        definition = msgspec.convert(raw, ActionDef)
    except msgspec.ValidationError as fault:
        return Fault(_code_of_definition(raw), f"The definition of {name}: {fault}")
    if definition.base_duration_min <= 0:
        minutes = definition.base_duration_min
        return Fault(Code.INVALID_DURATION, f"base_duration_min of {name} is {minutes}; allowed is 1 or more")
    if not all(is_amount(need.amount) for need in definition.resources):
        return Fault(Code.INVALID_ACTION, f"The definition of {name}: an amount of a resource is {AMOUNT_RULE}")
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
