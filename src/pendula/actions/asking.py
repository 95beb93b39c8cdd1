"""What user code is asked while a world goes on: modifiers at admission, what follows at the end of an action.

Answers are kept in the journal; a replay never asks.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from pendula.actions.model import Instance, Options
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside

NO_FACTOR = Decimal("NaN")
NONE: Mapping[str, Decimal] = {}


def asked_modifiers(outside: Outside, options: Options, instance: Instance, minute: int) -> Mapping[str, Decimal]:
    """`modifiers`: named factors for one submission, as an object; what is no number rejects the instance."""
    if not options.ask_modifiers:
        return NONE
    question: Json = {"action_id": instance.id, "actor": instance.actor, "verb": instance.verb, "t": minute}
    answer = outside.ask("modifiers", question)
    if not isinstance(answer, Mapping):
        return NONE
    return {name: _factor(value) for name, value in sorted(answer.items())}


def asked_follow_ups(outside: Outside, instance: Instance, outcome: Json) -> Sequence[Json]:
    """`follow_up`: a list of further instances; anything else is taken as none."""
    question: Json = {
        "action_id": instance.id,
        "actor": instance.actor,
        "verb": instance.verb,
        "process": instance.process,
        "outcome": outcome,
    }
    answer = outside.ask("follow_up", question)
    return answer if isinstance(answer, list) else ()


def _factor(value: Json) -> Decimal:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    return NO_FACTOR
