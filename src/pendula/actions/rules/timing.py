"""Duration of an instance in a world: verb, skill of the actor, modifiers, noise."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from msgspec import Struct

from pendula.actions.model import MINUTES_MOST, Code, Fact, Instance, Modifier, Options
from pendula.actions.rules.conditions import is_met
from pendula.actions.rules.duration import effective_minutes, is_factor, noise, product
from pendula.actions.rules.skills import Level, Skills
from pendula.actions.rules.validation import Fault, Verb
from pendula.kernel.canonical import Json

ONE = Decimal(1)
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
        return self._timing(verb, actor, [], ONE)

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
        noise_factor = ONE if seed is None else noise(seed, epoch, instance.id)
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
        if noise_factor is not ONE:
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
