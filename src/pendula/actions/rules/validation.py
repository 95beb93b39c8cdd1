"""Whether an instance may take part: every check on one instance, with the code of the first that fails."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import MINUTES_MOST, ActionDef, Code, Effort, Instance, Modifier, Options
from pendula.actions.rules.duration import effective_minutes, is_factor, noise, product
from pendula.actions.rules.resources import AMOUNT_RULE, is_amount, plain
from pendula.actions.rules.skills import BadSkill, Level, Skills
from pendula.kernel.canonical import encode
from pendula.kernel.errors import NotCanonical
from pendula.kernel.limits import Limit

INSTANCES = Limit("actions_instances", 1_000_000, "instances", "LimitExceeded", "The epoch has too many instances")
LOCKS = Limit("actions_locks", 65_536, "locks", "LimitExceeded", "The world has too many locks")
LOCKS_EACH = Limit("actions_locks_each", 64, "locks", "LimitExceeded", "The instance has too many locks")
RESOURCES_EACH = Limit("actions_resources_each", 32, "resources", "LimitExceeded", "Too many resources for an instance")
FOLLOW_UPS = Limit("actions_follow_ups", 1000, "follow-ups", "LimitExceeded", "One minute has too many follow-ups")

FIELDS = frozenset(Instance.__struct_fields__)


ONE = Decimal(1)


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


class Timing(Struct, frozen=True):
    """How long an instance takes, and what that rests on, for the first start."""

    minutes: int
    meta: dict[str, Any] | None = None


class Durations:
    """Durations of instances in one world."""

    def __init__(self, skills: Skills, modifiers: tuple[Modifier, ...], options: Options) -> None:
        self._skills = skills
        self._modifiers = modifiers
        self._options = options
        # Where this holds a duration depends on verb and actor alone, and may be remembered.
        self.is_plain = not modifiers and options.noise_seed is None and not options.ask_modifiers

        self.skilled = skills.actors

    def plain(self, verb: Verb, actor: str | None) -> Timing | Fault:
        """The duration where nothing but the verb and the skill of the actor matters."""
        return self._timing(verb, actor, [], ONE)

    def timing(
        self, verb: Verb, instance: Instance, minute: int, epoch: int, asked: Mapping[str, Decimal]
    ) -> Timing | Fault:
        """Base, effort, skill and the modifiers that apply to a submission of this minute."""
        applied = [(one.name, one.factor) for one in self._modifiers if _applies(one, instance, minute)]
        seed = self._options.noise_seed
        wobble = ONE if seed is None else noise(seed, epoch, instance.id)
        return self._timing(verb, instance.actor, [*applied, *asked.items()], wobble)

    def _timing(
        self, verb: Verb, actor: str | None, applied: list[tuple[str, Decimal]], wobble: Decimal
    ) -> Timing | Fault:
        for name, value in applied:
            if not is_factor(value):
                return Fault(Code.INVALID_DURATION, f"The modifier {name} is {value}; allowed is above 0 up to 10")
        level = self._skills.level(actor, verb.skill)
        if isinstance(level, BadSkill):
            return Fault(level.code, level.message)
        factor = product(value for _, value in applied)
        meta = _meta(level, applied, factor)
        if wobble is not ONE:
            factor = product((factor, wobble))
            meta["noise"] = wobble
        definition = verb.definition
        minutes = effective_minutes(definition.base_duration_min, definition.effort, level.level, Fraction(factor))
        if minutes > MINUTES_MOST:
            return Fault(Code.INVALID_DURATION, f"{verb.name} would take {minutes} minutes; allowed is {MINUTES_MOST}")
        return Timing(minutes, meta or None)


def _meta(level: Level, applied: list[tuple[str, Decimal]], factor: Decimal) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if level.overridden:
        meta["skill_override"] = level.level
    if applied:
        meta["modifiers"] = {"names": sorted(name for name, _ in applied), "f_mod": factor}
    return meta


def _applies(modifier: Modifier, instance: Instance, minute: int) -> bool:
    """`since` and `until` are minutes of the run here; the loader turned ISO times into them."""
    return (
        (modifier.since is None or _minute(modifier.since) <= minute)
        and (modifier.until is None or minute < _minute(modifier.until))
        and (modifier.verbs is None or instance.verb in modifier.verbs)
        and (modifier.actors is None or instance.actor in modifier.actors)
    )


def _minute(value: int | str) -> int:
    assert isinstance(value, int), "times of modifiers are minutes once a world is made"
    return value
