"""The actions of the contract: what each needs to be told, who may take it, and what traffic has to do about it.

Nothing is decided here about trucks: traffic knows them, and says what came of an order.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, UnsetType

from pendula.fleet.contracts.traffic import OperatorAction
from pendula.fleet.health.orders import No, Order, OrderKind
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


class Role(StrEnum):
    """Who acts; each may do what the one before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Action(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a person does, in whole numbers; `role` is what whoever let them in says that they may."""

    action_id: str
    ts: int
    operator_id: str
    type: str
    reason: str
    robot_id: str | None = None
    task_id: str | None = None
    edge_key: str | None = None
    s_um: int = 0
    resources: tuple[str, ...] = ()
    physically_secured: bool = False
    confirmation_of: str | None = None
    role: Role = Role.OPERATOR


def action_of(told: OperatorAction, role: Role = Role.OPERATOR) -> Action:
    """An action of the contract."""
    anchor = None if isinstance(told.anchor, UnsetType) else told.anchor
    return Action(
        action_id=told.actionId,
        ts=told.ts,
        operator_id=told.operatorId,
        type=told.type,
        reason=told.reason,
        robot_id=told.robotId or None,
        task_id=told.taskId or None,
        edge_key=None if anchor is None else anchor.edgeKey,
        s_um=0 if anchor is None else micro(anchor.sM),
        resources=told.resources or (),
        physically_secured=told.physicallySecured is True,
        confirmation_of=told.confirmationOf or None,
        role=role,
    )


# What traffic does about an action; a task is cancelled elsewhere.
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
# What an action has to name beside who and why.
_OF_ROBOT = ("robotId",)
NEEDS: Mapping[ActionType, tuple[str, ...]] = {
    ActionType.PAUSE_FLEET: (),
    ActionType.RESUME_FLEET: (),
    ActionType.RELOCATE: ("robotId", "anchor"),
    ActionType.FORCE_RELEASE: ("robotId", "resources"),
    ActionType.CANCEL_TASK: ("taskId",),
}


def refused(action: Action, site: CompiledMap) -> No | None:
    """Why an action cannot be taken as it stands."""
    if action.type not in set(ActionType):
        return No("UNKNOWN_ACTION", f"There is no action {action.type!r}; there are {', '.join(ActionType)}")
    if action.role is Role.VIEWER:
        return No("ROLE_TOO_LOW", f"{action.operator_id} may look, not act")
    if not action.operator_id.strip() or not action.reason.strip():
        return No("WHO_AND_WHY", "An action needs an operator and a reason")
    kind = ActionType(action.type)
    missing = [name for name in NEEDS.get(kind, _OF_ROBOT) if not _given(action)[name]]
    if missing:
        return No("ACTION_INCOMPLETE", f"{kind} needs {' and '.join(missing)}")
    if action.edge_key is not None and action.edge_key not in site.edge_number:
        return No("UNKNOWN_PLACE", f"There is no edge {action.edge_key!r} on the map")
    return None


def _given(action: Action) -> dict[str, object]:
    return {
        "robotId": action.robot_id,
        "taskId": action.task_id,
        "anchor": action.edge_key,
        "resources": action.resources,
    }


def order_of(action: Action, site: CompiledMap) -> Order:
    """What traffic has to do. The action has passed `refused`, and is none about a task."""
    return Order(
        order_id=action.action_id,
        kind=ORDERS[ActionType(action.type)],
        robot_id=action.robot_id,
        at_ms=action.ts,
        edge=None if action.edge_key is None else site.edge_number[action.edge_key],
        s_um=action.s_um,
        resources=action.resources,
    )
