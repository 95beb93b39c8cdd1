"""Sentences of codes and facts, rendered where they are shown; no journal, state or digest contains one."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pendula.fleet.model import Code, Finding, pick_is_drop, severity_of
from pendula.fleet.units import ceil_div, half_up, plain
from pendula.kernel.canonical import Json

Facts: TypeAlias = Mapping[str, Any]
Sentence: TypeAlias = Callable[[Facts], str]
DISK_NEARLY_FULL = "DISK_NEARLY_FULL"


def _names(names: Any) -> str:
    return ", ".join(names)


def _subject(facts: Facts) -> str:
    """The task or the stream that a rejection is about."""
    if "taskId" in facts:
        return f"task {facts['taskId']!r}: "
    return f"stream {facts['streamId']!r}: " if "streamId" in facts else ""


def _no_route(facts: Facts) -> str:
    if "goal" not in facts:
        return f"{facts['robotId']} has no route from there: move it elsewhere"
    without = f" without {_names(facts['blocked'])}" if facts["blocked"] else ""
    return f"there is no route to {facts['goal']}{without}"


def _unknown_place(facts: Facts) -> str:
    if "sM" in facts:
        return f"sM is {facts['sM']}; it must be a number of metres from 0 to {facts['allowedM']}"
    if "edgeKey" in facts:
        return f"There is no edge {facts['edgeKey']!r} on the map"
    near = "" if facts["near"] is None else f" (did you mean {facts['near']}?)"
    return (
        f"There is no {facts['name']!r} to close or open: name EDGE_GROUP:<lane>, EDGE:<edge of one direction> or "
        f"NODE:<node>{near}"
    )


def _contradicts(facts: Facts) -> str:
    instead = facts.get("instead")
    match facts["member"]:
        case "robotId" if instead is not None:
            return f"{facts['type']} is about every truck: leave robotId out, or use {instead}"
        case "robotId":
            return f"{facts['type']} is about the map: leave robotId out"
        case "force":
            return f"{facts['type']} is never forced: leave force out"
        case _:
            return f"{facts['type']} has no resources: leave them out, or use {instead}"


def _not_stopped(facts: Facts) -> str:
    if "speedUmS" in facts:
        return f"{facts['robotId']} reports v = {plain(facts['speedUmS'])} m/s"
    return f"{facts['robotId']} is neither offline nor faulty nor paused"


def _nothing_to_clear(facts: Facts) -> str:
    text = f"{facts['robotId']} has no fault that an operator can clear"
    return f"{text}; {beside_line_sentence(facts)}" if "asideUm" in facts else text


def _pose_disagrees(facts: Facts) -> str:
    if "asideUm" in facts:
        return beside_line_sentence(facts)
    if "lengthUm" in facts:
        return f"{facts['edgeKey']} ends after {plain(facts['lengthUm'])} m"
    if "awayUm" in facts:
        return f"{facts['robotId']} reports a position {plain(facts['awayUm'])} m away from there"
    return (
        f"{facts['robotId']} reports that it is more than {plain(facts['besideUm'])} m beside {facts['edgeKey']}, or "
        "not aligned with it: put it onto the lane first, or name the edge that it is on"
    )


def _place_held(facts: Facts) -> str:
    if "asideUm" in facts:
        return beside_line_sentence(facts)
    return (
        f"{facts['robotId']} needs {facts['resource']} there, which conflicts with {facts['held']} of "
        f"{facts['blocker']}: move one of the two trucks away"
    )


def _no_such_node(facts: Facts) -> str:
    if "nodeId" not in facts:
        return f"stream {facts['streamId']!r} has no picks, or no drops"
    return f"{_subject(facts)}there is no node {facts['nodeId']!r}"


def _not_under_way(facts: Facts) -> str:
    now, operation = facts["underWay"], facts["operationId"]
    text = f"{facts['robotId']} neither loads nor unloads" if now is None else f"{facts['robotId']} is doing {now!r}"
    return f"{text}, not {operation!r}" if operation else text


REFUSALS: Mapping[str, Sentence] = {
    "ACTION_CONTRADICTS": _contradicts,
    "ACTION_ID_TAKEN": lambda facts: (
        f"{facts['actionId']!r} came twice in one tick"
        if facts["sameTick"]
        else f"{facts['actionId']!r} is the id of an earlier action"
    ),
    "ACTION_INCOMPLETE": lambda facts: f"{facts['type']} needs {' and '.join(facts['missing'])}",
    "CONFIRMATION_DIFFERS": lambda facts: f"{facts['actionId']!r} was a different request",
    "CONFIRMATION_LATE": lambda facts: (
        f"{facts['actionId']!r} was sent more than {facts['withinS']} s ago: send the action again"
    ),
    "CONFIRMATION_NEEDED": lambda facts: (
        f"Confirm within {facts['withinS']} s: send the action again with confirmationOf {facts['actionId']!r}"
    ),
    "CONFIRMATION_UNKNOWN": lambda facts: (
        f"no action {facts['actionId']!r} waits for a confirmation: send the action again"
    ),
    "COUNT_NEGATIVE": lambda facts: f"the count of {facts['nodeId']!r} is {facts['count']}; it must be 0 or more",
    "CUTS_OFF": lambda facts: (
        f"{_names(facts['robotIds'])} could no longer reach a rest node: close it when they have passed, or set force "
        "to let them wait before it until it opens"
    ),
    "MISSING_PICK_DROP_NODE": _no_such_node,
    "UNREACHABLE": lambda facts: (
        f"{facts['streamId']!r}: no truck can go over {facts['pickNodeId']!r} and {facts['dropNodeId']!r} and come "
        "back to rest"
    ),
    "NOTHING_HELD": lambda facts: f"{facts['robotId']} holds nothing of {_names(facts['resources'])}",
    "NOTHING_TO_CLEAR": _nothing_to_clear,
    "NOT_SECURED": lambda facts: (
        f"{facts['type']} needs physicallySecured: state that the truck was removed or secured"
    ),
    "NO_ROUTE": _no_route,
    "OPERATION_NOT_UNDER_WAY": _not_under_way,
    "OPERATION_TOO_LONG": lambda facts: (
        f"{_subject(facts)}an operation must be shorter than its timeout of {facts['timeoutMs']} ms"
    ),
    "PICK_IS_DROP": lambda facts: pick_is_drop(_subject(facts).removesuffix(": "), facts["nodeId"]),
    "PLACE_HELD": _place_held,
    "POSE_DISAGREES": _pose_disagrees,
    "ROBOT_FAULT": lambda facts: f"clear the fault of {facts['robotId']} first",
    "ROBOT_NOT_LOST": lambda facts: f"{facts['robotId']} is not lost: its position is known",
    "ROBOT_NOT_STOPPED": _not_stopped,
    "ROBOT_REPORTS": lambda facts: f"{facts['robotId']} is reporting and cannot be declared absent",
    "ROBOT_SILENT": lambda facts: f"{facts['robotId']} does not report where it is",
    "ROBOT_STILL_THERE": lambda facts: (
        f"{facts['robotId']} occupies {_names(facts['resources'])} as far as is known: no other truck may be sent "
        "there. Name other resources, or take the truck away and use REMOVE_ROBOT, or RELOCATE once it reports from "
        "elsewhere"
    ),
    "ROLE_TOO_LOW": lambda facts: f"{facts['operatorId']} has read-only access",
    "STREAM_UNKNOWN": lambda facts: (
        f"task {facts['taskId']!r}: there is no stream {facts['streamId']!r}"
        if "taskId" in facts
        else f"there is no stream {facts['streamId']!r}"
    ),
    "TASK_HELD": lambda facts: (
        f"task {facts['taskId']!r} is held already: {cause_sentence(facts['cause'], facts['by'])}"
    ),
    "TASK_KNOWN": lambda facts: f"there is a task {facts['taskId']!r} already",
    "TASK_LOADED": lambda facts: (
        f"the goods of task {facts['taskId']!r} are on {facts['robotId']}, or about to be: it stays with the truck"
    ),
    "TASK_NOT_ASSIGNED": lambda facts: f"no truck has task {facts['taskId']!r}",
    "TASK_NOT_HELD": lambda facts: f"task {facts['taskId']!r} is {facts['state']}",
    "TASK_UNKNOWN": lambda facts: f"there is no open task {facts['taskId']!r}",
    "TICK_FAILED": lambda _: "The tick failed: nothing was changed",
    "TOO_MANY_STREAMS": lambda facts: f"there are {facts['streams']} streams; at most {facts['allowed']}",
    "TOO_MANY_TASKS": lambda facts: f"{facts['open']} tasks are open; at most {facts['allowed']}",
    "UNKNOWN_ACTION": lambda facts: f"There is no action {facts['type']!r}; there are {_names(facts['allowed'])}",
    "UNKNOWN_PLACE": _unknown_place,
    "UNKNOWN_ROBOT": lambda facts: (
        f"{_subject(facts)}there is no truck {facts['robotId']!r}"
        if _subject(facts)
        else f"There is no truck {facts['robotId']!r}"
    ),
    "OPERATOR_AND_REASON_NEEDED": lambda _: "An action needs an operator and a reason",
    "route_off_the_map": lambda facts: (
        f"Route {facts['routeId']!r} of {facts['robotId']!r} {_ROUTE_FAULTS[facts['fault']]}"
    ),
    "time_went_back": lambda facts: (
        f"The clock went back from {facts['lastMs']} to {facts['nowMs']}; trucks get no command"
    ),
}
# What is wrong with a route that is not one of the map.
_ROUTE_FAULTS: Mapping[str, str] = {
    "NOT_ON_THE_MAP": "has an edge or a node that is not on the map",
    "STOP_NOT_ON_THE_WAY": "has a stop that is not on the way",
    "EDGES_APART": "has edges that do not follow each other",
}
# What an operator action did.
DONE: Mapping[str, str] = {
    "PAUSE_ROBOT": "{robotId} is paused",
    "RESUME_ROBOT": "{robotId} is resumed",
    "PAUSE_FLEET": "Every truck is paused",
    "RESUME_FLEET": "Every truck is resumed",
    "CLEAR_FAULT": "The fault of {robotId} is cleared",
    "RELOCATE": "{robotId} continues from there once its poses are steady",
    "DECLARE_ABSENT": "{robotId} is marked absent",
    "FORCE_RELEASE": "Released from {robotId}",
    "REMOVE_ROBOT": "{robotId} is removed and its resources are released",
    "CLOSE_RESOURCE": "Closed: {places}",
    "OPEN_RESOURCE": "Open: {places}",
    "CANCEL_TASK": "Task {taskId} is cancelled",
    "WITHDRAW_TASK": "Task {taskId} is withdrawn from its truck; another truck may take it",
    "HOLD_TASK": "Task {taskId} is held until it is resumed",
    "RESUME_TASK": "Task {taskId} is resumed",
}


def _dead_end_without_token(facts: Facts) -> str:
    if "mouth" in facts:
        return f"the dead end to {facts['nodeId']!r} has neither a section nor room to wait outside"
    return f"trucks load or unload in the dead end to {facts['nodeId']!r}, which has no section"


def _disconnected(facts: Facts) -> str:
    if facts["components"]:
        return f"{facts['components']} components"
    return "the graph has no edges: there is nothing to drive on"


# Message and remedy of the warnings and notes that compiled maps store.
FINDINGS: Mapping[Code, tuple[Sentence, Sentence]] = {
    Code.CS_WITHOUT_EXIT_ROOM: (
        lambda facts: (
            f"out of section {facts['criticalSectionId']!r} through {facts['nodeId']!r} there is no room to clear it"
        ),
        lambda _: "leave room for a whole truck behind the section",
    ),
    Code.DEAD_END_HAS_ROOM: (
        lambda facts: (
            f"in the dead end to {facts['nodeIds'][0]!r} {facts['capacity']} trucks could stand apart from each other"
        ),
        lambda facts: f"draw a critical section with capacity {facts['capacity']} over it if so many may be in it",
    ),
    Code.DEAD_END_WITHOUT_TOKEN: (
        _dead_end_without_token,
        lambda facts: (
            "draw a critical section over it, or leave room before its mouth"
            if "mouth" in facts
            else "declare it under stations"
        ),
    ),
    Code.EDGES_CLOSE: (lambda _: "groups overlap when swept", lambda _: ""),
    Code.GRAPH_DISCONNECTED: (
        _disconnected,
        lambda facts: (
            "join them if trucks are to go from one to another; they may share a floor as they are"
            if facts["components"]
            else "see whether it was exported whole"
        ),
    ),
    Code.LANE_TOO_NARROW: (
        lambda facts: (
            f"edge {facts['edgeKey']} is {plain(facts['widthUm'])} m wide; a truck with its margins needs "
            f"{plain(facts['neededUm'])} m"
        ),
        lambda _: "widen the aisle",
    ),
    Code.MISSING_RETURN_EDGE: (
        lambda _: "one-way group",
        lambda _: "add the edge back if trucks may drive both ways",
    ),
    Code.NODE_ZONES_OVERLAP: (
        lambda _: "turning discs overlap",
        lambda facts: f"place nodes in which trucks turn more than {plain(facts['apartUm'])} m apart",
    ),
    Code.NO_SAFE_WAIT_POSITION: (
        lambda facts: (
            f"at {facts['nodeId']!r} there is no place to wait for {facts['corridorId']} that keeps its way out free"
        ),
        lambda _: "make an edge into the node longer",
    ),
    Code.PARKING_BLOCKS_TRAFFIC: (
        lambda facts: f"a truck that stands in {facts['nodeId']!r} is in the way on {_names(facts['groups'])}",
        lambda _: "make it a dead end, or its spur longer",
    ),
}


def map_finding(code: Code, /, **details: Json) -> Finding:
    """A warning or note of a compiled map."""
    message, remedy = FINDINGS[code]
    return Finding(code, severity_of(code), message(details), details, remedy(details))


def sentence_of(code: str, facts: Mapping[str, Json]) -> str:
    """The sentence for the code of a refusal."""
    return REFUSALS[code](facts)


def done_sentence(facts: Facts) -> str:
    """What an accepted action did; `facts` name its type and what it is about."""
    return DONE[facts["type"]].format_map({**facts, "places": _names(facts.get("resources", ()))})


def beside_line_sentence(facts: Facts) -> str:
    """What has to move, and where, before a truck beside its line can continue. `asideUm` is positive to the left."""
    robot, aside_um = facts["robotId"], facts["asideUm"]
    off = plain(half_up(abs(aside_um), 1_000) * 1_000)
    side, other_side = ("left", "right") if aside_um > 0 else ("right", "left")
    at = f"at {plain(half_up(facts['onUm'], 1_000) * 1_000)} m of {facts['edgeKey']}"
    text = f"{robot} is {off} m to the {side} of its line, {at}"
    push = f"push {robot} {off} m to its {other_side}"
    if not facts["blockers"]:
        return f"{text}, and has too little way granted to steer back: {push}"
    blockers = _names(f"{name} (it holds {resource})" for name, resource in facts["blockers"])
    return f"{text}, and cannot drive back beside {blockers}: move that away, or {push}"


def roll_back_sentence(facts: Facts) -> str:
    """What to do about a truck that has passed its stop line and stands in what another truck still needs."""
    robot = facts["robotId"]
    clear = f"clear the fault of {robot} (CLEAR_FAULT)" if facts["faulty"] else ""
    if facts["beyondUm"] is None:
        return clear
    where = f" in {facts['resource']}," if facts["resource"] is not None else ""
    far = plain(ceil_div(facts["beyondUm"], 10_000) * 10_000)
    push = f"push {robot} {far} m back along its way" + (f", then {clear}" if clear else "")
    return f"{robot} stands{where} where {facts['other']} has yet to pass or turn: {push}"


def not_done_sentence(facts: Facts) -> str:
    """What a truck failed at in a node, as the end of a sentence."""
    doing = {"LOAD": "load", "UNLOAD": "unload"}.get(facts["operation"], "finish its operation")
    late = facts["timeoutMs"]
    return f"could not {doing}" if late is None else f"did not {doing} within {late} ms"


def cause_sentence(cause: str, by: str | None) -> str:
    """Why a task is in its state: a code, and the operator if one decided it."""
    return cause if by is None else f"{cause} by {by}"


def task_sentence(task_id: str, state: str, code: str, robot_id: str | None, facts: Facts) -> str:
    """Why a task is not done yet, or how it ended."""
    name = f"task {task_id!r}"
    match state:
        case "HELD":
            load = ", with its load on board" if facts["loaded"] else ""
            return f"{name} is held{load}: {_held_for(facts)}"
        case "IN_PROGRESS":
            doing = _UNDER_WAY[code].format(pick=facts["pickNodeId"], drop=facts["dropNodeId"])
            return f"{name} is under way: {robot_id} {doing}"
        case "WAITING" | "READY" | "ASSIGNED" | "PENDING_PREEMPT":
            return f"{name}{WAITING[code]({**facts, 'robotId': robot_id})}"
        case _:
            return f"{name} ended: {state}, {cause_sentence(code, facts.get('by'))}"


def _held_for(facts: Facts) -> str:
    if facts["notDone"] is None:
        return cause_sentence(facts["cause"], facts["by"])
    robot = facts["robotId"]
    return f"{robot} {not_done_sentence(facts['notDone'])}; it continues when the fault of {robot} is cleared"


def _no_free_truck(facts: Facts) -> str:
    if "failed" not in facts:
        return f" waits: none of {_names(facts['reaching'])} is free"
    others = f", and {_names(facts['others'])} cannot get there meanwhile" if facts["others"] else ""
    return f" waits until {_names(facts['failed'])} can drive again{others}"


def _way_closed(facts: Facts) -> str:
    closed = _names(f"{resource} is closed by {operator} ({reason})" for resource, operator, reason in facts["closed"])
    return f" waits: {closed}, and no truck has a route over its pick and drop to rest"


# Why a task has no truck yet, or its truck has not set out.
WAITING: Mapping[str, Sentence] = {
    "BARRED_BY_STARVATION": lambda facts: f" waits: {facts['starving']} has waited too long; no other truck sets out",
    "NEW": lambda facts: f" waits: no room reported in {facts['dropNodeId']!r} that no other task claims",
    "NEXT": lambda facts: f" is next: {_names(facts['free'])} may take it",
    "UNREACHABLE": lambda _: " waits: no truck that may serve it has a route over its pick and drop to rest",
    "NODE_LIMIT": lambda _: " waits: its pick or its drop has as many tasks under way as allowed",
    "NO_FREE_TRUCK": _no_free_truck,
    "NO_GOODS": lambda facts: f" waits: no goods reported in {facts['pickNodeId']!r} that no other task claims",
    "NO_ROOM": lambda facts: f" waits: no room reported in {facts['dropNodeId']!r} that no other task claims",
    "PENDING_PREEMPT": lambda facts: f": {facts['robotId']} drives on to the node where it leaves its way to rest",
    "ROUTE_NOT_ADMITTED": lambda facts: f" waits: traffic has not admitted the route of {facts['robotId']}",
    "STREAM_LIMIT": lambda _: " waits: its stream has as many tasks under way as allowed",
    "WAY_CLOSED": _way_closed,
}
# What a truck with a task does, by its phase.
_UNDER_WAY: Mapping[str, str] = {
    "TO_PICK": "is on its way to the pick {pick!r}",
    "LOADING": "loads in {pick!r}",
    "TO_DROP": "is on its way to the drop {drop!r}",
    "UNLOADING": "unloads in {drop!r}",
    "TO_PARK": "is on its way to rest",
    "IDLE": "is idle",
}


def alert_sentence(code: str, robot_id: str | None, facts: Facts) -> str | None:
    """An alert about an operation, the journal or the gateway; None for other alerts."""
    match code:
        case "ROBOT_FAULT" if "operation" in facts:
            reason = f": {facts['reason']}" if "reason" in facts else ""
            return f"{robot_id} {not_done_sentence(facts)}{reason}"
        case "LOGGING_DEGRADED":
            return f"the journal is not written: {trouble_sentence(facts['trouble'])}"
        case "LOGGING_RESTORED":
            lost = f"; {missing_sentence(facts['missing'])}" if "missing" in facts else ""
            return f"the journal is written again after {trouble_sentence(facts['trouble'])}{lost}"
        case "GATEWAY_FAILED":
            return f"the gateway of the trucks failed: {facts['problem']}"
        case _:
            return None


def trouble_sentence(trouble: str) -> str:
    """Why a journal is not written: a code, or the message of the operating system."""
    return "the disk is nearly full" if trouble == DISK_NEARLY_FULL else trouble


def missing_sentence(facts: Facts) -> str:
    """Which records are missing from the journal."""
    times = f"between {facts['afterMs']} and {facts['uptoMs']} ms"
    return f"records {facts['firstN']} to {facts['lastN']}, {times}, are missing from the journal"


def incident_sentence(code: str, robot_ids: tuple[str, ...], facts: Facts) -> str:
    """What happened; `facts` name the alert or the error behind it."""
    if "error" in facts:
        return str(facts["error"])
    if "alertId" in facts:
        return f"alert {facts['alertId']}: {code}"
    return f"{_names(robot_ids)} was stopped: {code}"
