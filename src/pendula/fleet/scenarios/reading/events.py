"""Reader of the events of a scenario: faults, operator actions and external routes."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from msgspec import UNSET
from msgspec.structs import replace

from pendula.documents import Cursor, Document, Members
from pendula.fleet.contracts.traffic import AnchorPlace, OperatorAction
from pendula.fleet.model import CONTRACT_VERSION, NAME_MOST
from pendula.fleet.operators import ActionType
from pendula.fleet.operators.measure import LONGEST_EDGE_M, MOST_REASON, MOST_RESOURCES, too_many
from pendula.fleet.reading.values import length, name
from pendula.fleet.scenarios.model import ScenarioEvent, ScenarioRoute
from pendula.fleet.simulator.faults import FARTHEST_M, LONGEST_MS, Fault, FaultKind
from pendula.fleet.simulator.settings import FaultRate
from pendula.fleet.units import micro
from pendula.kernel.wording import suggestion

# Members of faults beside their time; all other kinds have only a duration. Faults that happen once have none.
NEEDS: Mapping[FaultKind, tuple[str, ...]] = {
    FaultKind.POSE_JUMP: ("forMs", "dxM", "dyM"),
    FaultKind.NOISE: ("forMs", "byM"),
    FaultKind.LATE_ACKS: ("forMs", "byMs"),
    FaultKind.OVERRUN: ("byM",),
    FaultKind.CARRIED: ("dxM", "dyM"),
    FaultKind.PUSHED: ("dxM", "dyM"),
}
_ACTION_MEMBERS = (
    *(
        "actionId",
        "operatorId",
        "reason",
        "taskId",
        "anchor",
        "resources",
        "physicallySecured",
        "confirmationOf",
        "force",
    ),
)
ROUTE = "ROUTE"
_ROUTE_MEMBERS = ("toNodeId", "leavesAtNodeId")
_MOST_AN_HOUR = 3600
_DURATION = ("forMs",)
_MEMBERS = ("forMs", "dxM", "dyM", "byM", "byMs")


def event(at: Cursor) -> ScenarioEvent | OperatorAction | ScenarioRoute:
    members = at.object(required=("atMs", "type"), optional=(*_MEMBERS, *_ACTION_MEMBERS, *_ROUTE_MEMBERS, "robotId"))
    kind = members["type"].text(min=1)
    if kind == ROUTE:
        return _route(at, members)
    for member in _ROUTE_MEMBERS:
        if member in members:
            members[member].refuse(f"{kind} has no {member}; only {ROUTE} has")
    if kind in set(ActionType):
        return _action(members, ActionType(kind))
    if kind and kind not in set(FaultKind):
        every = (*FaultKind, *ActionType, ROUTE)
        members["type"].refuse(f"there is no event {kind!r}{suggestion(kind, every)}", allowed=every)
        kind = FaultKind.STAND
    for member in _ACTION_MEMBERS:
        if member in members:
            members[member].refuse(f"{kind} has no {member}; only operator actions have")
    if "robotId" not in members:
        at.refuse(f"{kind} needs robotId")
    fault = _fault(at, members, FaultKind(kind or FaultKind.STAND))
    robot = name(members["robotId"]) if "robotId" in members else ""
    return ScenarioEvent.of(members["atMs"].integer(min=0), robot, fault)


def _route(at: Cursor, members: Members) -> ScenarioRoute:
    """A route of an external planner for a truck without a task."""
    for member in (*_MEMBERS, *_ACTION_MEMBERS):
        if member in members:
            members[member].refuse(f"{ROUTE} has no {member}", allowed=("robotId", *_ROUTE_MEMBERS))
    for member in ("robotId", "toNodeId"):
        if member not in members:
            at.refuse(f"{ROUTE} needs {member}")
    return ScenarioRoute(
        at_ms=members["atMs"].integer(min=0),
        robot_id=name(members["robotId"]) if "robotId" in members else "",
        node_id=name(members["toNodeId"]) if "toNodeId" in members else "",
        leaves_at=name(members["leavesAtNodeId"]) if "leavesAtNodeId" in members else None,
    )


def _action(members: Members, kind: ActionType) -> OperatorAction:
    """An operator action; missing ids, operators and reasons are generated."""
    for member in _MEMBERS:
        if member in members:
            members[member].refuse(f"{kind} is an operator action: it has no {member}")
    anchor = members["anchor"].object(required=("edgeKey", "sM")) if "anchor" in members else None
    at_ms = members["atMs"].integer(min=0)
    return OperatorAction(
        contractVersion=CONTRACT_VERSION,
        actionId=members["actionId"].text(min=1, max=NAME_MOST, default=_generated_id(kind, at_ms)),
        ts=at_ms,
        operatorId=members["operatorId"].text(min=1, max=NAME_MOST, default="scenario"),
        type=kind,
        reason=members["reason"].text(min=1, max=MOST_REASON, default="as the scenario says"),
        robotId=name(members["robotId"]) if "robotId" in members else UNSET,
        taskId=name(members["taskId"]) if "taskId" in members else UNSET,
        anchor=UNSET if anchor is None else _place(anchor),
        resources=_resources(members["resources"]) if "resources" in members else UNSET,
        physicallySecured=members["physicallySecured"].boolean() if "physicallySecured" in members else UNSET,
        confirmationOf=members["confirmationOf"].text(min=1, max=NAME_MOST) if "confirmationOf" in members else UNSET,
        force=members["force"].boolean() if "force" in members else UNSET,
    )


def _resources(at: Cursor) -> tuple[str, ...]:
    resources = at.list_of(lambda item: item.text(min=1), min=1, max=MOST_RESOURCES)
    excess = too_many(resources)
    if excess is not None:
        at.refuse(excess)
    return resources


def _place(anchor: Members) -> AnchorPlace:
    return AnchorPlace(anchor["edgeKey"].text(min=1), anchor["sM"].decimal(min=0, max=LONGEST_EDGE_M))


def with_unique_ids(actions: Sequence[OperatorAction]) -> tuple[OperatorAction, ...]:
    """Actions in their order; a generated id that is already used gets the truck or the task as a suffix."""
    known: set[str] = set()
    unique = []
    for action in actions:
        if action.actionId in known and action.actionId == _generated_id(action.type, action.ts):
            subjects = [name for name in (action.robotId, action.taskId) if name is not UNSET]
            action = replace(action, actionId="-".join([action.actionId, *subjects]))
        known.add(action.actionId)
        unique.append(action)
    return tuple(unique)


def _generated_id(kind: str, at_ms: int) -> str:
    return f"{kind}-{at_ms}"


def chance(at: Cursor) -> FaultRate:
    """A random fault of every truck, with its rate per hour."""
    members = at.object(required=("type", "perHour"), optional=_MEMBERS)
    return FaultRate(_checked_fault(at, members), members["perHour"].integer(min=1, max=_MOST_AN_HOUR, default=1))


def read_drill(document: Document) -> tuple[str, Fault]:
    """A truck and its immediate fault, with the members of an event. Raises `DocumentRefused`."""
    return document.read(_drill)


def _drill(root: Cursor) -> tuple[str, Fault]:
    members = root.object(required=("robotId", "type"), optional=_MEMBERS)
    return name(members["robotId"]), _checked_fault(root, members)


def _checked_fault(at: Cursor, members: Members) -> Fault:
    kind = members["type"].text(min=1)
    if kind and kind not in set(FaultKind):
        members["type"].refuse(
            f"there is no fault {kind!r}{suggestion(kind, tuple(FaultKind))}", allowed=tuple(FaultKind)
        )
        return Fault(FaultKind.STAND, 1)
    return _fault(at, members, FaultKind(kind or FaultKind.STAND))


def _fault(at: Cursor, members: Members, kind: FaultKind) -> Fault:
    needs = NEEDS.get(kind, _DURATION)
    for member in _MEMBERS:
        if member in needs and member not in members:
            at.refuse(f"{kind.value} needs {member}", allowed=needs)
        elif member in members and member not in needs:
            once = "happens once: it " if member in _DURATION else ""
            members[member].refuse(f"{kind.value} {once}has no {member}", allowed=needs)
    return Fault(
        kind,
        for_ms=members["forMs"].integer(min=1, max=LONGEST_MS, default=1),
        x_um=_offset(members, "dxM"),
        y_um=_offset(members, "dyM"),
        by_um=length(members["byM"], Decimal(FARTHEST_M)) if "byM" in members else 0,
        by_ms=members["byMs"].integer(min=1, max=LONGEST_MS, default=0),
    )


def _offset(members: Members, member: str) -> int:
    return micro(members[member].decimal(min=-FARTHEST_M, max=FARTHEST_M)) if member in members else 0
