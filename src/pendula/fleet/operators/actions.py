"""The actions of the contract: what each needs to be told, who may take it, and what traffic has to do about it.

Nothing is decided here about trucks: traffic knows them, and says what came of an order.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import UNSET

from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.health.orders import No, Order, OrderKind
from pendula.fleet.operators.measure import off_every_edge
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import micro


class ActionType(StrEnum):
    PAUSE_ROBOT = "PAUSE_ROBOT"
    RESUME_ROBOT = "RESUME_ROBOT"
    PAUSE_FLEET = "PAUSE_FLEET"
    RESUME_FLEET = "RESUME_FLEET"
    CLEAR_FAULT = "CLEAR_FAULT"
    RELOCATE = "RELOCATE"
    DECLARE_ABSENT = "DECLARE_ABSENT"
    FORCE_RELEASE = "FORCE_RELEASE"
    REMOVE_ROBOT = "REMOVE_ROBOT"
    CANCEL_TASK = "CANCEL_TASK"
    WITHDRAW_TASK = "WITHDRAW_TASK"
    HOLD_TASK = "HOLD_TASK"
    RESUME_TASK = "RESUME_TASK"


class Role(StrEnum):
    """Who acts; each may do what the one before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


# What is done about a task, of which traffic knows nothing.
ABOUT_TASKS = frozenset(
    {ActionType.CANCEL_TASK, ActionType.WITHDRAW_TASK, ActionType.HOLD_TASK, ActionType.RESUME_TASK}
)
# What traffic does about every other action.
ORDERS: Mapping[ActionType, OrderKind] = {
    ActionType.PAUSE_ROBOT: OrderKind.PAUSE,
    ActionType.RESUME_ROBOT: OrderKind.RESUME,
    ActionType.PAUSE_FLEET: OrderKind.PAUSE,
    ActionType.RESUME_FLEET: OrderKind.RESUME,
    ActionType.CLEAR_FAULT: OrderKind.CLEAR,
    ActionType.RELOCATE: OrderKind.RELOCATE,
    ActionType.DECLARE_ABSENT: OrderKind.ABSENT,
    ActionType.FORCE_RELEASE: OrderKind.FORCE_RELEASE,
    ActionType.REMOVE_ROBOT: OrderKind.REMOVE,
}
OF_FLEET = frozenset({ActionType.PAUSE_FLEET, ActionType.RESUME_FLEET})
# What an action has to name beside who and why.
_OF_ROBOT = ("robotId",)
NEEDS: Mapping[ActionType, tuple[str, ...]] = {
    **dict.fromkeys(sorted(OF_FLEET), ()),
    ActionType.RELOCATE: ("robotId", "anchor"),
    ActionType.FORCE_RELEASE: ("robotId", "resources"),
    **dict.fromkeys(sorted(ABOUT_TASKS), ("taskId",)),
}


def refused(action: OperatorAction, site: CompiledMap) -> No | None:
    """Why an action cannot be taken as it stands."""
    if action.type not in set(ActionType):
        return No("UNKNOWN_ACTION", f"There is no action {action.type!r}; there are {', '.join(ActionType)}")
    if action.role not in (UNSET, Role.OPERATOR, Role.ADMIN):
        return No("ROLE_TOO_LOW", f"{action.operatorId} may look, not act")
    if not action.operatorId.strip() or not action.reason.strip():
        return No("WHO_AND_WHY", "An action needs an operator and a reason")
    kind = ActionType(action.type)
    missing = [one for one in NEEDS.get(kind, _OF_ROBOT) if getattr(action, one) in (UNSET, "", ())]
    if missing:
        return No("ACTION_INCOMPLETE", f"{kind} needs {' and '.join(missing)}")
    if kind in OF_FLEET and action.robotId is not UNSET:
        one = kind.replace("_FLEET", "_ROBOT")
        return No("ACTION_CONTRADICTS", f"{kind} is about every truck: leave robotId out, or say {one}")
    if action.resources is not UNSET and "resources" not in NEEDS.get(kind, _OF_ROBOT):
        return No("ACTION_CONTRADICTS", f"{kind} has no resources: leave them out, or say {ActionType.FORCE_RELEASE}")
    if action.anchor is not UNSET and action.anchor.edgeKey not in site.edge_number:
        return No("UNKNOWN_PLACE", f"There is no edge {action.anchor.edgeKey!r} on the map")
    nowhere = None if action.anchor is UNSET else off_every_edge(action.anchor)
    return None if nowhere is None else No("UNKNOWN_PLACE", nowhere)


def order_of(action: OperatorAction, site: CompiledMap) -> Order:
    """What traffic has to do. The action has passed `refused`, and is none about a task."""
    anchor = action.anchor
    return Order(
        order_id=action.actionId,
        kind=ORDERS[ActionType(action.type)],
        robot_id=None if action.robotId is UNSET else action.robotId,
        at_ms=action.ts,
        edge=None if anchor is UNSET else site.edge_number[anchor.edgeKey],
        s_um=0 if anchor is UNSET else micro(anchor.sM),
        resources=() if action.resources is UNSET else action.resources,
    )
