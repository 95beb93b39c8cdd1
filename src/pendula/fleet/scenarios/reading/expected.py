"""Reader of the expectations of a scenario: a list of objects with one member each."""

from collections.abc import Callable, Mapping

from pendula.documents import Cursor
from pendula.fleet.driving.stops import Stop
from pendula.fleet.reading.values import length, name
from pendula.fleet.scenarios.model import (
    AlertComes,
    AllAtRest,
    Arrives,
    Calm,
    DirectionFlips,
    Expectation,
    GivesBack,
    GoHoldChanges,
    LongestWait,
    NeverBeyond,
    NeverTogether,
    NoAlert,
    NoTruckWaits,
    Place,
    RouteRefused,
    SomeTruckWaits,
    Stands,
    TasksDone,
)
from pendula.fleet.tick.alarms import ALERTS
from pendula.fleet.views.reasons import WAITS


def expectation(at: Cursor) -> Expectation:
    members = at.object(optional=tuple(KINDS))
    given = [kind for kind in KINDS if kind in members]
    if len(given) != 1:
        at.refuse("an expectation has one member, which names its kind", allowed=tuple(KINDS))
        return AllAtRest()
    return KINDS[given[0]](members[given[0]])


def _tasks_done(at: Cursor) -> Expectation:
    if at.is_text:
        if at.text() != "all":
            at.refuse("tasks done are a number, or all", allowed=("all",))
        return TasksDone(None)
    return TasksDone(at.integer(min=0))


def _true(kind: type[Expectation]) -> Callable[[Cursor], Expectation]:
    def read(at: Cursor) -> Expectation:
        if not at.boolean():
            at.refuse("write true, or leave the expectation out", allowed=("true",))
        return kind()

    return read


def _arrives(at: Cursor) -> Expectation:
    members = at.object(required=("robotId", "nodeId", "byMs"))
    return Arrives(name(members["robotId"]), name(members["nodeId"]), members["byMs"].integer(min=0))


def _never_beyond(at: Cursor) -> Expectation:
    members = at.object(required=("robotId", "edgeKey", "sM"), optional=("while",))
    meanwhile = place(members["while"]) if "while" in members else None
    return NeverBeyond(name(members["robotId"]), members["edgeKey"].text(min=1), length(members["sM"]), meanwhile)


def place(at: Cursor) -> Place:
    """A truck on an edge, optionally between two positions."""
    members = at.object(required=("robotId", "edgeKey"), optional=("fromM", "toM"))
    low = length(members["fromM"]) if "fromM" in members else 0
    return Place(
        name(members["robotId"]),
        members["edgeKey"].text(min=1),
        low,
        length(members["toM"]) if "toM" in members else None,
    )


def _together(at: Cursor) -> Expectation:
    return NeverTogether(at.list_of(place, min=2))


def _longest_wait(at: Cursor) -> Expectation:
    members = at.object(required=("atMostMs",), optional=("robotId", "reasonCode"))
    reason = _reason(members["reasonCode"]) if "reasonCode" in members else None
    return LongestWait(members["atMostMs"].integer(min=0), members["robotId"].text(default=None), reason)


def _some_truck_waits(at: Cursor) -> Expectation:
    members = at.object(required=("reasonCode",), optional=("robotId",))
    return SomeTruckWaits(_reason(members["reasonCode"]), members["robotId"].text(default=None))


def _alert(at: Cursor) -> Expectation:
    members = at.object(required=("code", "byMs"), optional=("withinMs",))
    within = members["withinMs"].integer(min=0, default=None)
    return AlertComes(_alert_code(members["code"]), members["byMs"].integer(min=0), within)


def _stands(at: Cursor) -> Expectation:
    members = at.object(required=("robotId", "reasonCode", "byMs"), optional=("untilMs",))
    code = _one_of(tuple(Stop), "reason to stop", members["reasonCode"])
    until = members["untilMs"].integer(min=0, default=None)
    return Stands(name(members["robotId"]), code, members["byMs"].integer(min=0), until)


def _no_alert(at: Cursor) -> Expectation:
    return NoAlert(_alert_code(at))


def _alert_code(at: Cursor) -> str:
    return _one_of(ALERTS, "alert", at)


def _reason(at: Cursor) -> str:
    return _one_of(WAITS, "reason to wait", at)


def _one_of(codes: tuple[str, ...], what: str, at: Cursor) -> str:
    """A code; unknown codes are rejected, as such an expectation would mean nothing."""
    code = at.text(min=1)
    if code and code not in codes:
        at.refuse(f"there is no {what} {code!r}", allowed=codes)
    return code


def _refused(at: Cursor) -> Expectation:
    members = at.object(optional=("robotId",))
    return RouteRefused(members["robotId"].text(default=None))


def _gives_back(at: Cursor) -> Expectation:
    members = at.object(required=("robotId", "atLeastMs"))
    return GivesBack(name(members["robotId"]), members["atLeastMs"].integer(min=0))


def _changes(at: Cursor) -> Expectation:
    members = at.object(required=("atMost",), optional=("robotId",))
    return GoHoldChanges(members["atMost"].integer(min=0), members["robotId"].text(default=None))


def _flips(at: Cursor) -> Expectation:
    members = at.object(required=("edgeGroupKey", "atMost"))
    return DirectionFlips(members["edgeGroupKey"].text(min=1), members["atMost"].integer(min=0))


def _calm(at: Cursor) -> Expectation:
    members = at.object(optional=("goHoldChanges", "holdBackM", "targetBackM", "directionFlips", "replans"))
    usual = Calm()
    return Calm(
        members["goHoldChanges"].integer(min=0, default=usual.go_hold_changes),
        length(members["holdBackM"]) if "holdBackM" in members else usual.hold_back_um,
        length(members["targetBackM"]) if "targetBackM" in members else usual.target_back_um,
        members["directionFlips"].integer(min=0, default=usual.direction_flips),
        members["replans"].integer(min=0, default=usual.replans),
    )


KINDS: Mapping[str, Callable[[Cursor], Expectation]] = {
    "tasksDone": _tasks_done,
    "allAtRest": _true(AllAtRest),
    "arrives": _arrives,
    "neverBeyond": _never_beyond,
    "neverTogether": _together,
    "longestWait": _longest_wait,
    "noTruckWaits": _true(NoTruckWaits),
    "someTruckWaits": _some_truck_waits,
    "alert": _alert,
    "noAlert": _no_alert,
    "stands": _stands,
    "routeRefused": _refused,
    "givesBack": _gives_back,
    "goHoldChanges": _changes,
    "directionFlips": _flips,
    "calm": _calm,
}
