"""Why a truck stands or a task waits: one sentence, the facts, and what it rests on, to the truck at the root."""

from collections.abc import Mapping

from pendula.fleet.contracts.traffic import HoldReason, Phase
from pendula.fleet.driving.stops import Stop
from pendula.fleet.sentences import not_done_sentence
from pendula.fleet.tasks.dispatch import Dispatch
from pendula.fleet.tasks.states import OVER
from pendula.fleet.tick.traffic import Traffic
from pendula.fleet.views import reasons
from pendula.fleet.views.dropped import LastDropped
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
    "WAIT_EXIT_ROOM": "{robot} waits for room behind a section: {blocker} is at {resource}",
    "WAIT_QUEUE_ORDER": "{robot} waits: {blocker} came first to {requested}, and still holds {resource}",
    "WAIT_ACK": "{robot} waits until {blocker} has acknowledged that it gives {resource} back",
    "WAIT_SAFE_STATE": "{robot} waits: if it went on now, not everybody would get to rest",
    "WAIT_CLOSED": "{robot} waits: {closed} is closed",
    "STOP_STALE_TELEMETRY": "{robot} stops: its last report is too old",
    "STOP_OFFLINE": "{robot} stops: nothing is heard of it",
    "STOP_NO_COMMS": "{robot} stops: it does not acknowledge its commands",
    "STOP_POSE_JUMP": "{robot} stops: its position jumped; where it was and where it says it is are both kept for it",
    "STOP_OFF_ROUTE": "{robot} stops: it is not on its route",
    "STOP_OVERRUN": "{robot} stops: it passed its stop line",
    "STOP_FOREIGN_OCCUPANCY": "{robot} stops: {blocker} may be on its way",
    "STOP_OCCUPANCY_CONFLICT": "{robot} stops: since the start it and {blocker} are closer together than two trucks "
    "may be; drive one of them away by hand, or take it out (REMOVE_ROBOT)",
    "STOP_ROBOT_FAULT": "{robot} stops: it reports a fault",
    "STOP_STUCK": "{robot} stops: it was told to go and does not move",
    "STOP_OPERATOR": "{robot} stops: an operator paused it",
    "STOP_INVARIANT": "{robot} stops: it was too fast to stop before its stop line",
    "NO_ROUTE": "{robot} stands: there is no way to where it has to go",
    "IDLE_NO_TASK": "{robot} has nothing to do",
    "GOING_TO_PARK": "{robot} is on its way to rest",
}
# What a truck without a fresh report is told of instead, where it has not reported at all.
_UNHEARD = {
    reasons.Unheard.EVER: "{robot} stops: it has not reported yet",
    reasons.Unheard.THE_RESTART: "{robot} stops: it has not reported since the restart",
}
# What is said of the truck that cuts another one off, by the code with which it stands.
_CUT_OFF = (
    "{robot} waits: {blocker}, which {state}, stands in its only way to rest; it goes on when {root} is back or removed"
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
# What people call the kinds of resources.
_KINDS = {"EDGE_GROUP": "lane", "EDGE": "edge", "NODE": "node", "CS": "section"}
_NOT_DONE = "{robot} stops: it {not_done}; it goes on when its fault is cleared"
_REMOVED = (
    "{robot} is set aside: an operator removed it or freed its place; when it reports again, somebody has to say where "
    "it is (RELOCATE)"
)
_REPORTS_AGAIN = (
    "{robot} is set aside: an operator removed it or freed its place; it reports again: say where it is (RELOCATE)"
)
_COVERS = (
    "; where it said it was since then stays closed until that, or until it is off and removed again (REMOVE_ROBOT)"
)
_STOPS = frozenset(str(one) for one in Stop if one is not Stop.SAFE_STATE)
# Codes of a truck of which nothing is heard.
_SILENT = frozenset({Stop.OFFLINE, Stop.STALE_TELEMETRY})
# Codes with which a truck stands whose place is in doubt, and nothing else.
_IN_DOUBT = frozenset({Stop.POSE_JUMP, Stop.OFF_ROUTE, Stop.OPERATOR})
_PLACED = (
    "{robot} stands where an operator says it is, and goes on once its poses have been steady, nobody else has a right "
    "to be there, and everybody gets to rest when it does; if that lasts, move it or whoever is in its way"
)
_REJOINS = "{robot} drives back to its line, slowly, where no other truck has a right to be"
_CLEARED = "; its fault is cleared, and it goes on when a way from where it stands leaves the others theirs"
_NOT_TURNING = "{robot} stops: it was told to turn and does not"
_CANNOT_TURN = (
    "{robot} stops: it has to turn here and cannot turn on the spot; somebody has to turn it and clear its fault"
)
UNDER_WAY = "UNDER_WAY"
# A clock that is off by less is told in milliseconds.
_SHORT_MS = 10_000
_NOTHING_DROPPED: Mapping[str, LastDropped] = {}
_WORKING = {Phase.LOADING: "{robot} is loading", Phase.UNLOADING: "{robot} is unloading"}


def why(
    traffic: Traffic, dispatch: Dispatch, question: Json, dropped: Mapping[str, LastDropped] = _NOTHING_DROPPED
) -> Reason:
    """`dropped`: the reports that were dropped last, by the truck they name."""
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
    """What a task waits for; where a truck is about it, the reason of that truck."""
    told = dispatch.why(task_id)
    if isinstance(told, Refusal):
        return Reason("unknown_task", f"There is no open task {task_id!r}.", {"task": task_id})
    facts: dict[str, Json] = {"taskId": task_id, "state": told.state.value, "cause": told.code}
    facts |= {"sinceMs": told.since_ms, "robotId": told.robot_id}
    about = told.robot_id is not None and told.state not in OVER
    because = (truck(traffic, dispatch, told.robot_id, dropped=dropped),) if about and told.robot_id is not None else ()
    return Reason(told.code, f"{told.message[0].upper()}{told.message[1:]}.", facts, because)


def truck(
    traffic: Traffic,
    dispatch: Dispatch,
    robot_id: str,
    seen: tuple[str, ...] = (),
    dropped: Mapping[str, LastDropped] = _NOTHING_DROPPED,
) -> Reason:
    """The reason of one truck, resting on that of the truck in its way, to the root or back to one named already."""
    told = traffic.why(robot_id)
    next_one, seen = told.blocker, (*seen, robot_id)
    because = () if next_one is None or next_one in seen else (truck(traffic, dispatch, next_one, seen, dropped),)
    said = with_dropped(sentence_of(told, dispatch), told, dropped.get(robot_id))
    return Reason(told.code or UNDER_WAY, said, facts(told) | _drop(dropped, robot_id), because)


def _drop(dropped: Mapping[str, LastDropped], robot_id: str) -> dict[str, Json]:
    return {"lastDropped": dropped[robot_id].form()} if robot_id in dropped else {}


def with_dropped(said: str, told: reasons.Reason, dropped: LastDropped | None) -> str:
    """The sentence of a truck; where nothing is heard of it, also what was dropped."""
    if dropped is None or told.code not in _SILENT:
        return said
    return f"{said.removesuffix('.')}; {of_dropped(dropped)}."


def of_dropped(dropped: LastDropped) -> str:
    """Such as `its last report was dropped: REPORT_FROM_THE_FUTURE, its time is 2 h 18 min ahead of the fleet`."""
    said, ahead_ms = f"its last report was dropped: {dropped.code}", dropped.ahead_ms
    if not ahead_ms:
        return said
    off_ms = abs(ahead_ms)
    off = f"{off_ms} ms" if off_ms < _SHORT_MS else lasting(off_ms)
    return f"{said}, its time is {off} {'ahead of' if ahead_ms > 0 else 'behind'} the fleet"


def sentence_of(told: reasons.Reason, dispatch: Dispatch) -> str:
    """The sentence of a truck, with what its tasks know of it."""
    driver = dispatch.driver(told.robot_id)
    return sentence(told, dispatch.not_done(told.robot_id), None if driver is None else driver.shown_phase)


def sentence(told: reasons.Reason, not_done: Mapping[str, Json] | None = None, phase: Phase | None = None) -> str:
    """One sentence, with how long the truck has waited and the cycle that it keeps from closing. `not_done`: what the
    truck failed at in a node, of which it may have said nothing itself; `phase`: one that stands for nobody may be at
    its work."""
    on_its_way = "{robot} is on its way" if phase is None else _WORKING.get(phase, "{robot} is on its way")
    pattern = _SENTENCES.get(told.code or "", on_its_way)
    if told.code == Stop.STALE_TELEMETRY and told.unheard is not None:
        pattern = _UNHEARD[told.unheard]
    if told.code == Stop.STUCK and told.turning:
        pattern = _NOT_TURNING if told.turns else _CANNOT_TURN
    if told.code == Stop.ROBOT_FAULT and not_done is not None:
        pattern = _NOT_DONE
    if told.removed:
        pattern = _REMOVED if told.code in _SILENT else _REPORTS_AGAIN
    if told.placed and told.code in _IN_DOUBT:
        pattern = _PLACED
    if told.rejoins:
        pattern = _REJOINS
    if told.cut_off_by in _STATES:
        pattern = _CUT_OFF
    text = pattern.format(
        not_done="" if not_done is None else not_done_sentence(not_done),
        robot=told.robot_id,
        blocker=told.blocker or "another truck",
        resource=_named(told.resource),
        requested=_named(told.requested),
        closed=_named(told.requested if told.closing is None else told.closing.resource),
        state=_STATES.get(told.cut_off_by or ""),
        root=told.chain[-1],
    )
    if told.closing is not None:
        text += f", by {told.closing.operator} ({told.closing.reason})"
    if told.must_move is not None:
        text += f": {told.must_move}"
    if told.cleared:
        text += _CLEARED
    if pattern in (_REMOVED, _REPORTS_AGAIN) and told.covers:
        text += _COVERS
    if told.defiant:
        text += "; it drives on though it was told to stop"
    if told.cycle:
        text += f"; {', '.join(told.cycle)} would wait for each other"
    if told.wait_ms and told.hold_reason is HoldReason.TRAFFIC_HOLD:
        text += f"; for {lasting(told.wait_ms)} now"
    return text + "."


def lasting(ms: int) -> str:
    """A length of time in its two largest units, as pages write it: `45 s`, `13 min 26 s`, `2 h 18 min`."""
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (seconds, "s"))
    first = next((place for place, (count, _) in enumerate(parts) if count), 2)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"


def was_stopped(code: str, robot_id: str) -> str | None:
    """That a truck was stopped with a code, when that is all that is known; None for a code that stops nobody."""
    pattern = _SENTENCES.get(code)
    if pattern is None or code not in _STOPS:
        return None
    told = pattern.format(robot=robot_id, blocker="another truck", resource=_named(None), requested=_named(None))
    return told.replace(" stops: ", " was stopped: ", 1)


def _named(resource: str | None) -> str:
    """A resource as people call it; the facts have its id."""
    if resource is None:
        return "its way"
    kind, _, name = resource.partition(":")
    return f"the {_KINDS[kind]} {name}" if kind in _KINDS else resource


def facts(told: reasons.Reason) -> dict[str, Json]:
    """The answer of FLT-OBS-7 in the names of the contract."""
    return {
        "robotId": told.robot_id,
        "holdReason": told.hold_reason.value,
        "reasonCode": told.code,
        "blockerRobotId": told.blocker,
        "blockerResourceId": told.resource,
        "requestedResourceId": told.requested,
        "queuePosition": told.queue_position,
        "waitMs": told.wait_ms,
        "chain": list(told.chain),
        "cycle": list(told.cycle),
    }
