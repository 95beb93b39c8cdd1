"""Why a truck stands or a task waits: a sentence, facts, and the reasons behind it, down to the truck at the root."""

from collections.abc import Mapping, Sequence

from pendula.fleet.contracts import HoldReason, Phase
from pendula.fleet.sentences import not_done_sentence
from pendula.fleet.tasks.dispatch import Dispatch
from pendula.fleet.tasks.model import OVER
from pendula.fleet.tick import reasons
from pendula.fleet.tick.observing import LastDropped
from pendula.fleet.tick.records import Stop
from pendula.fleet.tick.traffic import Traffic
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Reason, Refusal
from pendula.kernel.wording import suggestion

QUESTIONS = 'A fleet answers {"robot": id} and {"task": id}.'
_SENTENCES = {
    "WAIT_EDGE_DIRECTION": "{robot} waits for {requested}: {blocker} drives {resource} the other way",
    "WAIT_SPACING": "{robot} waits for the gap to {blocker}, which is ahead of it on {resource}",
    "WAIT_CONFLICT": "{robot} waits for {requested}: {blocker} holds {resource}, which comes too close to it",
    "WAIT_NODE": "{robot} waits for {requested}: {blocker} holds {resource}",
    "WAIT_CRITICAL_SECTION": "{robot} waits for {requested}: {blocker} holds {resource}",
    "WAIT_EXIT_ROOM": "{robot} waits for space behind a section: {blocker} is at {resource}",
    "WAIT_QUEUE_ORDER": "{robot} waits: {blocker} queued first for {requested}, and still holds {resource}",
    "WAIT_ACK": "{robot} waits until {blocker} has acknowledged that it gives {resource} back",
    "WAIT_SAFE_STATE": "{robot} waits: moving now could deadlock",
    "WAIT_CLOSED": "{robot} waits: {closed} is closed",
    "STOP_STALE_TELEMETRY": "{robot} stops: its last report is too old",
    "STOP_OFFLINE": "{robot} stops: it does not report",
    "STOP_NO_COMMS": "{robot} stops: it does not acknowledge its commands",
    "STOP_POSE_JUMP": "{robot} stops: its position jumped; its old and its new position both stay reserved for it",
    "STOP_OFF_ROUTE": "{robot} stops: it is not on its route",
    "STOP_OVERRUN": "{robot} stops: it passed its stop line",
    "STOP_FOREIGN_OCCUPANCY": "{robot} stops: {blocker} may be on its way",
    "STOP_OCCUPANCY_CONFLICT": "{robot} stops: since the start it and {blocker} are closer together than two trucks "
    "may be; drive one of them away by hand, or take it out (REMOVE_ROBOT)",
    "STOP_ROBOT_FAULT": "{robot} stops: it reports a fault",
    "STOP_STUCK": "{robot} stops: it got a command to drive and does not move",
    "STOP_OPERATOR": "{robot} stops: an operator paused it",
    "STOP_INVARIANT": "{robot} stops: it was too fast to stop before its stop line",
    "NO_ROUTE": "{robot} stands: there is no route to its goal",
    "IDLE_NO_TASK": "{robot} has nothing to do",
    "GOING_TO_PARK": "{robot} drives to its parking place",
}
# Sentences for a truck that has not reported at all.
_UNHEARD = {
    reasons.Unheard.EVER: "{robot} stops: it has not reported yet",
    reasons.Unheard.THE_RESTART: "{robot} stops: it has not reported since the restart",
}
# A truck cut off by another one; `_STATES` describes the other one, by the code with which it stands.
_CUT_OFF = (
    "{robot} waits: {blocker}, which {state}, blocks its only route to its parking place; it continues when {root} is "
    "back or removed"
)
_STATES: dict[str, str] = {
    Stop.OFFLINE: "is offline",
    Stop.ROBOT_FAULT: "has a fault",
    Stop.STUCK: "is stuck",
    Stop.OVERRUN: "passed its stop line",
    Stop.OCCUPANCY_CONFLICT: "is too close to another truck",
    Stop.POSE_JUMP: "may be in two places",
    Stop.OFF_ROUTE: "is not on its route",
    Stop.OPERATOR: "an operator paused or set aside",
    Stop.SAFE_STATE: "cannot go on either",
}
# Kinds of resources, as operators call them.
_KINDS = {"EDGE_GROUP": "lane", "EDGE": "edge", "NODE": "node", "CS": "section"}
_NOT_DONE = "{robot} stops: it {not_done}; it continues when its fault is cleared"
_REMOVED = (
    "{robot} is set aside: an operator removed it or freed its place; when it reports again, set its position "
    "(RELOCATE)"
)
_REPORTS_AGAIN = (
    "{robot} is set aside: an operator removed it or freed its place; it reports again: set its position (RELOCATE)"
)
_COVERS = (
    "; the place it reported since then stays closed until then, or until it is off and removed again (REMOVE_ROBOT)"
)
_STOPS = frozenset(str(one) for one in Stop if one is not Stop.SAFE_STATE)
# Codes of a truck that does not report.
_SILENT = frozenset({Stop.OFFLINE, Stop.STALE_TELEMETRY})
# Codes of a truck that stands only because its position is in doubt.
_IN_DOUBT = frozenset({Stop.POSE_JUMP, Stop.OFF_ROUTE, Stop.OPERATOR})
_PLACED = (
    "{robot} stands where an operator relocated it, and continues once its poses are steady, no other truck may drive "
    "there, and no deadlock can follow; if that takes long, move it or the truck in its way"
)
_REJOINS = "{robot} drives back to its line, slowly, where no other truck may drive"
_CLEARED = "; its fault is cleared, and it continues when a route from its position leaves the others theirs"
_NOT_TURNING = "{robot} stops: it got a command to turn and does not"
_CANNOT_TURN = "{robot} stops: it has to turn here and cannot turn on the spot; turn it by hand and clear its fault"
UNDER_WAY = "UNDER_WAY"
# Smaller clock offsets are shown in milliseconds.
_SHORT_MS = 10_000
_NOTHING_DROPPED: Mapping[str, LastDropped] = {}
_WORKING = {Phase.LOADING: "{robot} is loading", Phase.UNLOADING: "{robot} is unloading"}


def why(
    traffic: Traffic, dispatch: Dispatch, question: Json, dropped: Mapping[str, LastDropped] = _NOTHING_DROPPED
) -> Reason:
    """`dropped`: the last dropped report of each truck."""
    match question:
        case {"robot": str(name)} if name in traffic.robot_ids:
            return truck(traffic, dispatch, name, dropped=dropped)
        case {"robot": str(name)}:
            near = suggestion(name, tuple(traffic.robot_ids))
            return Reason("unknown_robot", f"There is no truck {name!r}{near}.", {"robot": name} | _drop(dropped, name))
        case {"task": str(name)}:
            return task(traffic, dispatch, name, dropped)
    return Reason("unknown_question", QUESTIONS, {"asked": question})


def task(
    traffic: Traffic, dispatch: Dispatch, task_id: str, dropped: Mapping[str, LastDropped] = _NOTHING_DROPPED
) -> Reason:
    """What a task waits for; behind it the reason of its truck, if it has one."""
    reason = dispatch.why(task_id)
    if isinstance(reason, Refusal):
        return Reason("unknown_task", f"There is no open task {task_id!r}.", {"task": task_id})
    facts: dict[str, Json] = {"taskId": task_id, "state": reason.state.value, "cause": reason.code}
    facts |= {"sinceMs": reason.since_ms, "robotId": reason.robot_id}
    because: tuple[Reason, ...] = ()
    if reason.robot_id is not None and reason.state not in OVER:
        because = (truck(traffic, dispatch, reason.robot_id, dropped=dropped),)
    return Reason(reason.code, f"{reason.message[0].upper()}{reason.message[1:]}.", facts, because)


def truck(
    traffic: Traffic,
    dispatch: Dispatch,
    robot_id: str,
    seen: tuple[str, ...] = (),
    dropped: Mapping[str, LastDropped] = _NOTHING_DROPPED,
) -> Reason:
    """The reason of a truck and of the trucks in its way, up to the root or the first that repeats."""
    reason = traffic.why(robot_id)
    blocker, seen = reason.blocker, (*seen, robot_id)
    because = () if blocker is None or blocker in seen else (truck(traffic, dispatch, blocker, seen, dropped),)
    text = with_dropped(sentence_of(reason, dispatch), reason, dropped.get(robot_id))
    return Reason(reason.code or UNDER_WAY, text, facts(reason) | _drop(dropped, robot_id), because)


def _drop(dropped: Mapping[str, LastDropped], robot_id: str) -> dict[str, Json]:
    return {"lastDropped": dropped[robot_id].form()} if robot_id in dropped else {}


def with_dropped(text: str, reason: reasons.Reason, dropped: LastDropped | None) -> str:
    """The sentence of a truck; for a silent one, also the dropped report."""
    if dropped is None or reason.code not in _SILENT:
        return text
    return f"{text.removesuffix('.')}; {of_dropped(dropped)}."


def of_dropped(dropped: LastDropped) -> str:
    """Such as `its last report was dropped: REPORT_FROM_THE_FUTURE, its time is 2 h 18 min ahead of the fleet`."""
    text, ahead_ms = f"its last report was dropped: {dropped.code}", dropped.ahead_ms
    if not ahead_ms:
        return text
    off_ms = abs(ahead_ms)
    off = f"{off_ms} ms" if off_ms < _SHORT_MS else lasting(off_ms)
    return f"{text}, its time is {off} {'ahead of' if ahead_ms > 0 else 'behind'} the fleet"


def sentence_of(reason: reasons.Reason, dispatch: Dispatch) -> str:
    """The sentence of a truck, with its failed operation and its phase."""
    driver = dispatch.driver(reason.robot_id)
    return sentence(reason, dispatch.not_done(reason.robot_id), None if driver is None else driver.shown_phase)


def sentence(reason: reasons.Reason, not_done: Mapping[str, Json] | None = None, phase: Phase | None = None) -> str:
    """The sentence, with the wait so far and the deadlock that it avoids. `not_done`: the operation that the truck
    failed at, which it may not have reported itself; `phase` tells loading and unloading from driving."""
    on_its_way = "{robot} is on its way" if phase is None else _WORKING.get(phase, "{robot} is on its way")
    pattern = _SENTENCES.get(reason.code or "", on_its_way)
    if reason.code == Stop.STALE_TELEMETRY and reason.unheard is not None:
        pattern = _UNHEARD[reason.unheard]
    if reason.code == Stop.STUCK and reason.turning:
        pattern = _NOT_TURNING if reason.turns else _CANNOT_TURN
    if reason.code == Stop.ROBOT_FAULT and not_done is not None:
        pattern = _NOT_DONE
    if reason.removed:
        pattern = _REMOVED if reason.code in _SILENT else _REPORTS_AGAIN
    if reason.placed and reason.code in _IN_DOUBT:
        pattern = _PLACED
    if reason.rejoins:
        pattern = _REJOINS
    if reason.cut_off_by in _STATES:
        pattern = _CUT_OFF
    text = pattern.format(
        not_done="" if not_done is None else not_done_sentence(not_done),
        robot=reason.robot_id,
        blocker=reason.blocker or "another truck",
        resource=_named(reason.resource),
        requested=_named(reason.requested),
        closed=_named(reason.requested if reason.closing is None else reason.closing.resource),
        state=_STATES.get(reason.cut_off_by or ""),
        root=reason.chain[-1],
    )
    if reason.closing is not None:
        text += f", by {reason.closing.operator} ({reason.closing.reason})"
    if reason.must_move is not None:
        text += f": {reason.must_move}"
    if reason.cleared:
        text += _CLEARED
    if pattern in (_REMOVED, _REPORTS_AGAIN) and reason.covers:
        text += _COVERS
    if reason.defiant:
        text += "; it drives on despite a command to stop"
    if reason.cycle:
        text += f" {_deadlock(reason.cycle)}"
    if reason.wait_ms and reason.hold_reason is HoldReason.TRAFFIC_HOLD:
        text += f"; for {lasting(reason.wait_ms)} now"
    return text + "."


def _deadlock(cycle: Sequence[str]) -> str:
    none = "neither" if len(cycle) == 2 else "none"
    return f"{' and '.join(cycle)}: {none} could reach its parking place"


def lasting(ms: int) -> str:
    """A duration in its two largest units: `45 s`, `13 min 26 s`, `2 h 18 min`."""
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (seconds, "s"))
    first = next((place for place, (count, _) in enumerate(parts) if count), 2)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"


def was_stopped(code: str, robot_id: str) -> str | None:
    """That a truck was stopped, from its code alone; None for a code that stops no truck."""
    pattern = _SENTENCES.get(code)
    if pattern is None or code not in _STOPS:
        return None
    text = pattern.format(robot=robot_id, blocker="another truck", resource=_named(None), requested=_named(None))
    return text.replace(" stops: ", " was stopped: ", 1)


def _named(resource: str | None) -> str:
    """A resource as operators call it; its id is in the facts."""
    if resource is None:
        return "its route"
    kind, _, name = resource.partition(":")
    return f"the {_KINDS[kind]} {name}" if kind in _KINDS else resource


def facts(reason: reasons.Reason) -> dict[str, Json]:
    """The answer of FLT-OBS-7 in the names of the contract."""
    return {
        "robotId": reason.robot_id,
        "holdReason": reason.hold_reason.value,
        "reasonCode": reason.code,
        "blockerRobotId": reason.blocker,
        "blockerResourceId": reason.resource,
        "requestedResourceId": reason.requested,
        "queuePosition": reason.queue_position,
        "waitMs": reason.wait_ms,
        "chain": list(reason.chain),
        "cycle": list(reason.cycle),
    }
