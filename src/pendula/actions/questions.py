"""The question to user code at an admission: named factors on the duration.

The journal stores the answers; a replay does not ask again.
"""

from collections.abc import Mapping
from decimal import Decimal

from pendula.actions.configuration import Setting
from pendula.actions.model import Instance
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside


class NoAnswers:
    """The outside of a world without user code: no modifiers, no follow-ups."""

    def ask(self, name: str, question: Json) -> Json:  # noqa: ARG002 - the protocol's signature
        return None


NO_FACTOR = Decimal("NaN")
NONE: Mapping[str, Decimal] = {}


def asked_modifiers(outside: Outside, setting: Setting, instance: Instance, minute: int) -> Mapping[str, Decimal]:
    """Named factors for one submission. A factor that is not a number rejects the instance."""
    if not setting.options.ask_modifiers:
        return NONE
    question: dict[str, Json] = {
        "action_id": instance.id,
        "actor": instance.actor,
        "verb": instance.verb,
        "t": minute,
        "params": instance.params,
    }
    answer = outside.ask("modifiers", question)
    if not isinstance(answer, Mapping):
        return NONE
    return {name: _factor(value) for name, value in sorted(answer.items())}


def _factor(value: Json) -> Decimal:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    return NO_FACTOR
