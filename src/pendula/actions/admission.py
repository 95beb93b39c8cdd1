"""Whether an instance may take part: every check on one instance, with the code of the first that fails."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.duration import effective_minutes, is_factor, noise, product
from pendula.actions.model import MINUTES_MOST, ActionDef, Code, Effort, Instance, Modifier, Options
from pendula.actions.skills import BadSkill, Level, Skills
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


def read_instance(raw: object) -> tuple[Instance, dict[str, Any] | None] | Fault:
    """The instance and the fields nobody knows, or what is wrong with it."""
    if type(raw) is Instance:
        return raw, None
    try:
        instance = msgspec.convert(raw, Instance)
    except msgspec.ValidationError as fault:
        return Fault(Code.INVALID_ACTION, f"{fault}")
    if instance.submitted_at is None and instance.t is None:
        return Fault(Code.INVALID_ACTION, "Object missing required field `submitted_at`")
    if not isinstance(raw, dict) or FIELDS.issuperset(raw):
        return instance, None
    return instance, {name: value for name, value in raw.items() if name not in FIELDS}


def read_verb(name: str, raw: object) -> Verb | Fault:
    """The definition of a verb, or the fault that every instance of it is rejected with."""
    try:
        definition = msgspec.convert(raw, ActionDef)
    except msgspec.ValidationError as fault:
        return Fault(_code_of_definition(raw), f"The definition of {name}: {fault}")
    if definition.base_duration_min <= 0:
        minutes = definition.base_duration_min
        return Fault(Code.INVALID_DURATION, f"base_duration_min of {name} is {minutes}; allowed is 1 or more")
    if any(not need.amount.is_finite() or need.amount < 0 for need in definition.resources):
        return Fault(Code.INVALID_ACTION, f"The definition of {name}: an amount of a resource is below 0")
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
    """Durations of instances in one world; those that depend on verb and actor alone are computed once."""

    def __init__(self, skills: Skills, modifiers: tuple[Modifier, ...], options: Options) -> None:
        self._skills = skills
        self._modifiers = modifiers
        self._options = options
        self._plain: dict[tuple[str, str], Timing | Fault] = {}

    def timing(
        self, verb: Verb, instance: Instance, minute: int, epoch: int, asked: Mapping[str, Decimal]
    ) -> Timing | Fault:
        """Base, effort, skill and the modifiers that apply to a submission of this minute."""
        if not self._modifiers and not asked and self._options.noise_seed is None:
            key = (verb.name, instance.actor)
            found = self._plain.get(key)
            if found is None:
                found = self._plain[key] = self._timing(verb, instance, {}, None)
            return found
        applied = {one.name: one.factor for one in self._modifiers if _applies(one, instance, minute)}
        return self._timing(verb, instance, {**applied, **asked}, epoch)

    def _timing(
        self, verb: Verb, instance: Instance, applied: Mapping[str, Decimal], epoch: int | None
    ) -> Timing | Fault:
        level = self._skills.level(instance.actor, verb.skill)
        if isinstance(level, BadSkill):
            return Fault(level.code, level.message)
        for name, value in applied.items():
            if not is_factor(value):
                return Fault(Code.INVALID_DURATION, f"The modifier {name} is {value}; allowed is above 0 up to 10")
        factor = product(applied.values())
        meta = _meta(level, applied, factor)
        if self._options.noise_seed is not None and epoch is not None:
            wobble = noise(self._options.noise_seed, epoch, instance.id)
            factor = product((factor, wobble))
            meta["noise"] = wobble
        definition = verb.definition
        minutes = effective_minutes(definition.base_duration_min, definition.effort, level.level, Fraction(factor))
        if minutes > MINUTES_MOST:
            return Fault(Code.INVALID_DURATION, f"{verb.name} would take {minutes} minutes; allowed is {MINUTES_MOST}")
        return Timing(minutes, meta or None)


def _meta(level: Level, applied: Mapping[str, Decimal], factor: Decimal) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if level.overridden:
        meta["skill_override"] = level.level
    if applied:
        meta["modifiers"] = {"names": sorted(applied), "f_mod": factor}
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
