"""Skill levels from 0 to 3, given directly or derived from a behaviour matrix. Levels are never stored."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import Code
from pendula.actions.rules.validation import Fault, malformed
from pendula.kernel.wording import found_fact

LEVELS = range(4)
ORDINARY = 1  # of an actor or skill that is not listed


class SkillRule(Struct, frozen=True):
    """How a skill derives from behaviour: a base and a weight for each dimension."""

    base: Decimal = Decimal(0)
    weights: dict[str, Decimal] = {}


class Matrix(Struct, frozen=True):
    """The behaviour of an actor, each dimension from -1 to 1, and overridden levels."""

    matrix: dict[str, Decimal] = {}
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
