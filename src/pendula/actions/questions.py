"""Ask user code at an admission for named factors on the duration.

The journal stores the answers; a replay does not ask again.
"""

from collections.abc import Mapping
from decimal import Decimal

from pendula.actions.configuration import Setting
from pendula.actions.model import Instance
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside


class NoAnswers:
    """Answers for a world without user code: no modifiers, no follow-ups."""

    def ask(self, name: str, question: Json) -> Json:  # noqa: ARG002 - the protocol's signature
        return None


NO_FACTOR = Decimal("NaN")
NO_MODIFIERS: Mapping[str, Decimal] = {}


def ask_modifiers(outside: Outside, setting: Setting, instance: Instance, minute: int) -> Mapping[str, Decimal]:
    """Named factors for one submission. A factor that is not a number becomes NaN, which rejects the instance."""
    if not setting.options.ask_modifiers:
        return NO_MODIFIERS
    question: dict[str, Json] = {
        "action_id": instance.id,
        "actor": instance.actor,
        "verb": instance.verb,
        "t": minute,
        "params": instance.params,
    }
    answer = outside.ask("modifiers", question)
    if not isinstance(answer, Mapping):
        return NO_MODIFIERS
    return {name: _factor(value) for name, value in sorted(answer.items())}


def _factor(value: Json) -> Decimal:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    return NO_FACTOR
