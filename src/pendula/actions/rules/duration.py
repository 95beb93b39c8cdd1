"""Duration of an instance: verb, skill of the actor, modifiers, noise.

Exact integers: binary floats get 167 of the 17 280 ordinary cases wrong. Skill levels from 0 to 3 are given directly or
derived from a behaviour matrix; they are never stored.
"""

from collections.abc import Iterable, Mapping
from decimal import Context, Decimal, Inexact, Rounded
from fractions import Fraction
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import FACTOR_MOST, MINUTES_MOST, Code, Effort, Exact, Fact, Instance, Modifier, Options
from pendula.actions.rules.conditions import is_met
from pendula.actions.rules.validation import Fault, Verb, malformed
from pendula.kernel.canonical import Json
from pendula.kernel.wording import found_fact

EFFORT_TENTHS = {Effort.LOW: 9, Effort.MEDIUM: 10, Effort.HIGH: 11}
SKILL_HUNDREDTHS = (125, 100, 85, 70)
NOISE_PERCENT = 10
ONE = Fraction(1)

# The context raises instead of rounding.
EXACT = Context(prec=2000, traps=[Inexact, Rounded])


def effective_minutes(base: int, effort: Effort, skill: int, modifier: Fraction = ONE) -> int:
    """Whole minutes, at least 1, rounded up."""
    numerator = base * EFFORT_TENTHS[effort] * SKILL_HUNDREDTHS[skill] * modifier.numerator
    # Ceiling division in integers: a Fraction costs ten times as much.
    return max(1, -(-numerator // (1000 * modifier.denominator)))


def product(factors: Iterable[Decimal]) -> Decimal:
    """The exact product of modifiers."""
    result = Decimal(1)
    for factor in factors:
        result = EXACT.multiply(result, factor)
    return result


def is_factor(value: Decimal) -> bool:
    """Whether a modifier is in (0, 10]."""
    return value.is_finite() and 0 < value <= FACTOR_MOST


def noise(seed: int, epoch: int, action_id: str) -> Decimal:
    """A deterministic factor within ±10 %, in steps of a thousandth."""
    text = f"{seed}|{epoch}|{action_id}".encode()
    steps = 20 * NOISE_PERCENT + 1
    draw = int.from_bytes(sha256(text).digest()[:8], "big") % steps
    return Decimal(1000 - 10 * NOISE_PERCENT + draw).scaleb(-3)


LEVELS = range(4)
ORDINARY = 1  # of an actor or skill that is not listed


class SkillRule(Struct, frozen=True, forbid_unknown_fields=True):
    """How a skill derives from behaviour: a base and a weight for each dimension."""

    base: Exact = Decimal(0)
    weights: dict[str, Exact] = {}


class Matrix(Struct, frozen=True, forbid_unknown_fields=True):
    """The behaviour of an actor, each dimension from -1 to 1, and overridden levels."""

    matrix: dict[str, Exact] = {}
    override: dict[str, int] = {}


class Level(Struct, frozen=True):
    level: int
    overridden: bool = False


def derived(rule: SkillRule, matrix: dict[str, Decimal]) -> int:
    """Base plus weighted behaviour, rounded half up, clamped to 0..3. Missing dimensions count 0."""
    raw = Fraction(rule.base)
    for dimension, weight in rule.weights.items():
        raw += Fraction(weight) * Fraction(matrix.get(dimension, Decimal(0)))
    return max(0, min(3, (2 * raw + 1).__floor__() // 2))


class Skills:
    """The skills of all actors."""

    def __init__(self, actors: dict[str, Any], rules: dict[str, Any]) -> None:
        self.actors = actors
        self._rules = rules

    def level(self, actor: str | None, skill: str) -> Level | Fault:
        """The level of an actor, or the fault of its skills."""
        given = None if actor is None else self.actors.get(actor)
        if actor is None or given is None:
            return Level(ORDINARY)
        if isinstance(given, dict) and not {"matrix", "override"}.isdisjoint(given):
            return self._from_matrix(actor, skill, given)
        if not isinstance(given, dict):
            return Fault(Code.INVALID_SKILL_LEVEL, "skills_of_actor", {"actor": actor})
        return _checked(given.get(skill, ORDINARY), actor, skill)

    def _from_matrix(self, actor: str, skill: str, given: dict[str, Any]) -> Level | Fault:
        try:
            behaviour = msgspec.convert(given, Matrix)
        except msgspec.ValidationError as fault:
            return malformed(Code.INVALID_MATRIX, fault, given, Matrix, "malformed_matrix", actor=actor)
        for dimension, value in sorted(behaviour.matrix.items()):
            if not value.is_finite() or not -1 <= value <= 1:
                return Fault(
                    Code.INVALID_MATRIX,
                    "matrix_out_of_range",
                    {"dimension": dimension, "actor": actor, "found": found_fact(value)},
                )
        if skill in behaviour.override:
            checked = _checked(behaviour.override[skill], actor, skill)
            return Level(checked.level, overridden=True) if isinstance(checked, Level) else checked
        if skill not in self._rules:
            return Level(ORDINARY)
        try:
            rule = msgspec.convert(self._rules[skill], SkillRule)
        except msgspec.ValidationError as fault:
            return malformed(
                Code.INVALID_MATRIX, fault, self._rules[skill], SkillRule, "malformed_weights", skill=skill
            )
        if not all(weight.is_finite() for weight in (rule.base, *rule.weights.values())):
            return Fault(Code.INVALID_MATRIX, "weights_not_finite", {"skill": skill})
        return Level(derived(rule, behaviour.matrix))


def _checked(value: Any, actor: str, skill: str) -> Level | Fault:
    if isinstance(value, int) and not isinstance(value, bool) and value in LEVELS:
        return Level(value)
    return Fault(Code.INVALID_SKILL_LEVEL, "skill_level", {"skill": skill, "actor": actor, "found": found_fact(value)})


NEUTRAL = Decimal(1)
DAY = 1440


class Timing(Struct, frozen=True):
    """The duration of an instance, and the modifiers and overrides behind it for `meta` of the first start."""

    minutes: int
    meta: dict[str, Any] | None = None


class Durations:
    """Durations of instances in one world."""

    def __init__(
        self,
        skills: Skills,
        modifiers: tuple[Modifier, ...],
        options: Options,
        *,
        facts: Mapping[str, Fact] | None = None,
        first_minute_of_day: int = 0,
    ) -> None:
        self._skills = skills
        self._modifiers = modifiers
        self._facts = facts or {}
        self._first_minute_of_day = first_minute_of_day
        self._options = options
        # If true, a duration depends on verb and actor alone and can be cached.
        self.is_plain = not modifiers and options.noise_seed is None and not options.ask_modifiers
        self.skilled = skills.actors

    def plain(self, verb: Verb, actor: str | None) -> Timing | Fault:
        """The duration from the verb and the skill of the actor alone."""
        return self._timing(verb, actor, [], NEUTRAL)

    def timing(
        self, verb: Verb, instance: Instance, minute: int, epoch: int, user_factors: Mapping[str, Decimal]
    ) -> Timing | Fault:
        """The duration with the modifiers of a submission in this minute; `user_factors` come from user code."""
        applied = [
            (modifier.name, modifier.factor)
            for modifier in self._modifiers
            if self._applies(modifier, instance, minute)
        ]
        seed = self._options.noise_seed
        noise_factor = NEUTRAL if seed is None else noise(seed, epoch, instance.id)
        return self._timing(verb, instance.actor, [*applied, *user_factors.items()], noise_factor)

    def _applies(self, modifier: Modifier, instance: Instance, minute: int) -> bool:
        """`since` and `until` are minutes here, of the run or of the day: `Setting` converted the texts."""
        time = (self._first_minute_of_day + minute) % DAY if modifier.daily else minute
        return (
            _is_within(modifier, time)
            and (modifier.verbs is None or instance.verb in modifier.verbs)
            and (modifier.actors is None or instance.actor in modifier.actors)
            and is_met(modifier.when, self._facts, instance.params)
        )

    def _timing(
        self, verb: Verb, actor: str | None, applied: list[tuple[str, Decimal]], noise_factor: Decimal
    ) -> Timing | Fault:
        for name, value in applied:
            if not is_factor(value):
                if not value.is_finite():
                    return Fault(Code.INVALID_DURATION, "modifier_not_a_number", {"name": name})
                return Fault(Code.INVALID_DURATION, "modifier_out_of_range", {"name": name, "value": value})
        level = self._skills.level(actor, verb.skill)
        if isinstance(level, Fault):
            return level
        factor = product(value for _, value in applied)
        meta = _meta(level, applied, factor)
        if noise_factor is not NEUTRAL:
            factor = product((factor, noise_factor))
            meta["noise"] = noise_factor
        definition = verb.definition
        minutes = effective_minutes(definition.base_duration_min, definition.effort, level.level, Fraction(factor))
        if minutes > MINUTES_MOST:
            facts: dict[str, Json] = {"verb": verb.name, "minutes": minutes, "allowed": MINUTES_MOST}
            return Fault(Code.INVALID_DURATION, "takes_too_long", facts)
        return Timing(minutes, meta or None)


def _meta(level: Level, applied: list[tuple[str, Decimal]], factor: Decimal) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if level.overridden:
        meta["skill_override"] = level.level
    if applied:
        meta["modifiers"] = {"names": sorted(name for name, _ in applied), "f_mod": factor}
    return meta


def _is_within(modifier: Modifier, minute: int) -> bool:
    """Whether a minute is in the span of a modifier; a daily span may pass midnight."""
    since = None if modifier.since is None else _minute(modifier.since)
    until = None if modifier.until is None else _minute(modifier.until)
    has_begun, is_over = since is None or since <= minute, until is not None and until <= minute
    if modifier.daily and since is not None and until is not None and until < since:
        return has_begun or not is_over
    return has_begun and not is_over


def _minute(value: int | str) -> int:
    assert isinstance(value, int), "times of modifiers are minutes in a Setting"
    return value
