"""The actions of the contract: required members, role, and the order for traffic.

Nothing about trucks is decided here: traffic applies the orders and reports their results.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import UNSET

from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.health.closures import check_closable
from pendula.fleet.health.orders import Order, OrderKind
from pendula.fleet.operators.measure import LONGEST_EDGE_M, anchor_problem
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.units import micro
from pendula.kernel.engine import Refusal
from pendula.kernel.wording import shown


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
    CLOSE_RESOURCE = "CLOSE_RESOURCE"
    OPEN_RESOURCE = "OPEN_RESOURCE"
    CANCEL_TASK = "CANCEL_TASK"
    WITHDRAW_TASK = "WITHDRAW_TASK"
    HOLD_TASK = "HOLD_TASK"
    RESUME_TASK = "RESUME_TASK"


class Role(StrEnum):
    """The roles of operators; each includes the one before."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


# Actions on tasks; traffic does not see them.
ABOUT_TASKS = frozenset(
    {ActionType.CANCEL_TASK, ActionType.WITHDRAW_TASK, ActionType.HOLD_TASK, ActionType.RESUME_TASK}
)
# The order for traffic of every other action.
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
    ActionType.CLOSE_RESOURCE: OrderKind.CLOSE,
    ActionType.OPEN_RESOURCE: OrderKind.OPEN,
}
OF_FLEET = frozenset({ActionType.PAUSE_FLEET, ActionType.RESUME_FLEET})
OF_MAP = frozenset({ActionType.CLOSE_RESOURCE, ActionType.OPEN_RESOURCE})
# Required members besides operator and reason.
_OF_ROBOT = ("robotId",)
NEEDS: Mapping[ActionType, tuple[str, ...]] = {
    **dict.fromkeys(sorted(OF_FLEET), ()),
    **dict.fromkeys(sorted(OF_MAP), ("resources",)),
    ActionType.RELOCATE: ("robotId", "anchor"),
    ActionType.FORCE_RELEASE: ("robotId", "resources"),
    **dict.fromkeys(sorted(ABOUT_TASKS), ("taskId",)),
}


def refused(action: OperatorAction, site: CompiledMap) -> Refusal | None:
    """The refusal of an invalid action."""
    if action.type not in set(ActionType):
        return Refusal("UNKNOWN_ACTION", {"type": action.type, "allowed": [*ActionType]})
    if action.role not in (UNSET, Role.OPERATOR, Role.ADMIN):
        return Refusal("ROLE_TOO_LOW", {"operatorId": action.operatorId})
    if not action.operatorId.strip() or not action.reason.strip():
        return Refusal("OPERATOR_AND_REASON_NEEDED")
    kind = ActionType(action.type)
    missing = [one for one in NEEDS.get(kind, _OF_ROBOT) if getattr(action, one) in (UNSET, "", ())]
    if missing:
        return Refusal("ACTION_INCOMPLETE", {"type": kind.value, "missing": [*missing]})
    if kind in OF_FLEET and action.robotId is not UNSET:
        return _contradicts(kind, "robotId", kind.replace("_FLEET", "_ROBOT"))
    if kind in OF_MAP and action.robotId is not UNSET:
        return _contradicts(kind, "robotId")
    if action.force is True and kind is not ActionType.CLOSE_RESOURCE:
        return _contradicts(kind, "force")
    if action.resources is not UNSET and "resources" not in NEEDS.get(kind, _OF_ROBOT):
        return _contradicts(kind, "resources", ActionType.FORCE_RELEASE.value)
    if kind in OF_MAP and action.resources is not UNSET:
        unknown = next((no for name in action.resources if (no := check_closable(site, name)) is not None), None)
        if unknown is not None:
            return unknown
    if action.anchor is UNSET:
        return None
    if action.anchor.edgeKey not in site.edge_number:
        return Refusal("UNKNOWN_PLACE", {"edgeKey": action.anchor.edgeKey})
    if anchor_problem(action.anchor) is not None:
        return Refusal("UNKNOWN_PLACE", {"sM": shown(action.anchor.sM), "allowedM": LONGEST_EDGE_M})
    return None


def _contradicts(kind: ActionType, member: str, instead: str | None = None) -> Refusal:
    return Refusal("ACTION_CONTRADICTS", {"type": kind.value, "member": member, "instead": instead})


def order_of(action: OperatorAction, site: CompiledMap) -> Order:
    """The order for traffic of a valid action that is not about a task."""
    anchor = action.anchor
    return Order(
        order_id=action.actionId,
        kind=ORDERS[ActionType(action.type)],
        robot_id=None if action.robotId is UNSET else action.robotId,
        at_ms=action.ts,
        edge=None if anchor is UNSET else site.edge_number[anchor.edgeKey],
        s_um=0 if anchor is UNSET else micro(anchor.sM),
        resources=() if action.resources is UNSET else action.resources,
        operator=action.operatorId,
        reason=action.reason,
        force=action.force is True,
    )
