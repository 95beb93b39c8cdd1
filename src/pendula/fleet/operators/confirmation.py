"""What has to be said twice: whoever frees the place of a truck says that it was removed or secured, and says it again.

The second word names the first, asks for the very same, and comes within a minute.
"""

from msgspec import UNSET, Struct

from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.health.orders import No
from pendula.fleet.operators.actions import ActionType

WITHIN_MS = 60_000
# So many first words wait for their second; they are in every snapshot of the fleet.
MOST_DRAFTS = 100
CONFIRMATION_NEEDED = "CONFIRMATION_NEEDED"
TWICE = frozenset({ActionType.FORCE_RELEASE, ActionType.REMOVE_ROBOT})


class Draft(Struct, frozen=True, array_like=True):
    """What was said first, and when."""

    action_id: str
    at_ms: int
    about: tuple[str, str, tuple[str, ...]]


def about(action: OperatorAction) -> tuple[str, str, tuple[str, ...]]:
    """What both words have to agree on."""
    robot = "" if action.robotId is UNSET else action.robotId
    return action.type, robot, () if action.resources is UNSET else tuple(sorted(action.resources))


def unconfirmed(action: OperatorAction, drafts: dict[str, Draft], now_ms: int) -> No | None:
    """Why an action that has to be said twice is not taken yet; the first word is kept until the second took effect."""
    if action.physicallySecured is not True:
        return No("NOT_SECURED", f"{action.type} needs physicallySecured: say that the truck was removed or secured")
    if action.confirmationOf is UNSET:
        drafts[action.actionId] = Draft(action.actionId, now_ms, about(action))
        if len(drafts) > MOST_DRAFTS:
            del drafts[next(iter(drafts))]
        return No(CONFIRMATION_NEEDED, f"Say it again within 60 s, with confirmationOf {action.actionId!r}")
    draft = drafts.get(action.confirmationOf)
    if draft is None:
        return No("CONFIRMATION_UNKNOWN", f"Nothing waits to be confirmed as {action.confirmationOf!r}: say it anew")
    if is_late(draft, now_ms):
        return No("CONFIRMATION_LATE", f"{draft.action_id!r} was said more than 60 s ago: say it anew")
    if draft.about != about(action):
        return No("CONFIRMATION_DIFFERS", f"{draft.action_id!r} asked for something else")
    return None


def is_late(draft: Draft, now_ms: int) -> bool:
    return now_ms - draft.at_ms > WITHIN_MS
