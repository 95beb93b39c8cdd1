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
    it = at.object(required=("atMs", "type"), optional=(*_MEMBERS, *_ACTION_MEMBERS, *_ROUTE_MEMBERS, "robotId"))
    kind = it["type"].text(min=1)
    if kind == ROUTE:
        return _route(at, it)
    for member in _ROUTE_MEMBERS:
        if member in it:
            it[member].refuse(f"{kind} has no {member}; only {ROUTE} has")
    if kind in set(ActionType):
        return _action(it, ActionType(kind))
    if kind and kind not in set(FaultKind):
        every = (*FaultKind, *ActionType, ROUTE)
        it["type"].refuse(f"there is no event {kind!r}{suggestion(kind, every)}", allowed=every)
        kind = FaultKind.STAND
    for member in _ACTION_MEMBERS:
        if member in it:
            it[member].refuse(f"{kind} has no {member}; only operator actions have")
    if "robotId" not in it:
        at.refuse(f"{kind} needs robotId")
    fault = _fault(at, it, FaultKind(kind or FaultKind.STAND))
    robot = name(it["robotId"]) if "robotId" in it else ""
    return ScenarioEvent.of(it["atMs"].integer(min=0), robot, fault)


def _route(at: Cursor, it: Members) -> ScenarioRoute:
    """A route of an external planner for a truck without a task."""
    for member in (*_MEMBERS, *_ACTION_MEMBERS):
        if member in it:
            it[member].refuse(f"{ROUTE} has no {member}", allowed=("robotId", *_ROUTE_MEMBERS))
    for member in ("robotId", "toNodeId"):
        if member not in it:
            at.refuse(f"{ROUTE} needs {member}")
    return ScenarioRoute(
        at_ms=it["atMs"].integer(min=0),
        robot_id=name(it["robotId"]) if "robotId" in it else "",
        node_id=name(it["toNodeId"]) if "toNodeId" in it else "",
        leaves_at=name(it["leavesAtNodeId"]) if "leavesAtNodeId" in it else None,
    )


def _action(it: Members, kind: ActionType) -> OperatorAction:
    """An operator action; missing ids, operators and reasons are generated."""
    for member in _MEMBERS:
        if member in it:
            it[member].refuse(f"{kind} is an operator action: it has no {member}")
    anchor = it["anchor"].object(required=("edgeKey", "sM")) if "anchor" in it else None
    at_ms = it["atMs"].integer(min=0)
    return OperatorAction(
        contractVersion=CONTRACT_VERSION,
        actionId=it["actionId"].text(min=1, max=NAME_MOST, default=_generated_id(kind, at_ms)),
        ts=at_ms,
        operatorId=it["operatorId"].text(min=1, max=NAME_MOST, default="scenario"),
        type=kind,
        reason=it["reason"].text(min=1, max=MOST_REASON, default="as the scenario says"),
        robotId=name(it["robotId"]) if "robotId" in it else UNSET,
        taskId=name(it["taskId"]) if "taskId" in it else UNSET,
        anchor=UNSET if anchor is None else _place(anchor),
        resources=_resources(it["resources"]) if "resources" in it else UNSET,
        physicallySecured=it["physicallySecured"].boolean() if "physicallySecured" in it else UNSET,
        confirmationOf=it["confirmationOf"].text(min=1, max=NAME_MOST) if "confirmationOf" in it else UNSET,
        force=it["force"].boolean() if "force" in it else UNSET,
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
    it = at.object(required=("type", "perHour"), optional=_MEMBERS)
    return FaultRate(_checked_fault(at, it), it["perHour"].integer(min=1, max=_MOST_AN_HOUR, default=1))


def read_drill(document: Document) -> tuple[str, Fault]:
    """A truck and its immediate fault, with the members of an event. Raises `DocumentRefused`."""
    return document.read(_drill)


def _drill(root: Cursor) -> tuple[str, Fault]:
    it = root.object(required=("robotId", "type"), optional=_MEMBERS)
    return name(it["robotId"]), _checked_fault(root, it)


def _checked_fault(at: Cursor, it: Members) -> Fault:
    kind = it["type"].text(min=1)
    if kind and kind not in set(FaultKind):
        it["type"].refuse(f"there is no fault {kind!r}{suggestion(kind, tuple(FaultKind))}", allowed=tuple(FaultKind))
        return Fault(FaultKind.STAND, 1)
    return _fault(at, it, FaultKind(kind or FaultKind.STAND))


def _fault(at: Cursor, it: Members, kind: FaultKind) -> Fault:
    needs = NEEDS.get(kind, _DURATION)
    for member in _MEMBERS:
        if member in needs and member not in it:
            at.refuse(f"{kind.value} needs {member}", allowed=needs)
        elif member in it and member not in needs:
            once = "happens once: it " if member in _DURATION else ""
            it[member].refuse(f"{kind.value} {once}has no {member}", allowed=needs)
    return Fault(
        kind,
        for_ms=it["forMs"].integer(min=1, max=LONGEST_MS, default=1),
        x_um=_offset(it, "dxM"),
        y_um=_offset(it, "dyM"),
        by_um=length(it["byM"], Decimal(FARTHEST_M)) if "byM" in it else 0,
        by_ms=it["byMs"].integer(min=1, max=LONGEST_MS, default=0),
    )


def _offset(it: Members, member: str) -> int:
    return micro(it[member].decimal(min=-FARTHEST_M, max=FARTHEST_M)) if member in it else 0
