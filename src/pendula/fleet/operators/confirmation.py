"""Confirmations: an action that frees the place of a truck must be sent twice, stating that the truck is secured.

The second action names the first, is otherwise equal, and comes within a minute.
"""

from msgspec import UNSET, Struct

from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.operators.actions import ActionType
from pendula.kernel.engine import Refusal

WITHIN_MS = 60_000
# Unconfirmed actions; they are in every snapshot of the fleet.
MOST_DRAFTS = 100
CONFIRMATION_NEEDED = "CONFIRMATION_NEEDED"
TWICE = frozenset({ActionType.FORCE_RELEASE, ActionType.REMOVE_ROBOT})


class Draft(Struct, frozen=True, array_like=True):
    """An unconfirmed action."""

    action_id: str
    at_ms: int
    about: tuple[str, str, tuple[str, ...]]


def about(action: OperatorAction) -> tuple[str, str, tuple[str, ...]]:
    """What both actions must have in common."""
    robot = "" if action.robotId is UNSET else action.robotId
    return action.type, robot, () if action.resources is UNSET else tuple(sorted(action.resources))


def unconfirmed(action: OperatorAction, drafts: dict[str, Draft], now_ms: int) -> Refusal | None:
    """The refusal of an unconfirmed action; its draft is kept until the second one takes effect."""
    if action.physicallySecured is not True:
        return Refusal("NOT_SECURED", {"type": action.type})
    if action.confirmationOf is UNSET:
        drafts[action.actionId] = Draft(action.actionId, now_ms, about(action))
        if len(drafts) > MOST_DRAFTS:
            del drafts[next(iter(drafts))]
        return Refusal(CONFIRMATION_NEEDED, {"actionId": action.actionId, "withinS": WITHIN_MS // 1_000})
    draft = drafts.get(action.confirmationOf)
    if draft is None:
        return Refusal("CONFIRMATION_UNKNOWN", {"actionId": action.confirmationOf})
    if is_late(draft, now_ms):
        return Refusal("CONFIRMATION_LATE", {"actionId": draft.action_id, "withinS": WITHIN_MS // 1_000})
    if draft.about != about(action):
        return Refusal("CONFIRMATION_DIFFERS", {"actionId": draft.action_id})
    return None


def is_late(draft: Draft, now_ms: int) -> bool:
    return now_ms - draft.at_ms > WITHIN_MS
