"""What goes wrong in a scenario, as its file says it: a kind, a truck, when, for how long, and what the kind needs."""

from collections.abc import Mapping

from pendula.documents import Cursor, Members
from pendula.fleet.reading.values import length, name
from pendula.fleet.scenarios.model import ScenarioEvent
from pendula.fleet.simulator.faults import FaultKind
from pendula.fleet.units import micro

# What a fault needs to be told beside its time; every other one has a duration alone.
NEEDS: Mapping[FaultKind, tuple[str, ...]] = {
    FaultKind.POSE_JUMP: ("forMs", "dxM", "dyM"),
    FaultKind.NOISE: ("forMs", "byM"),
    FaultKind.LATE_ACKS: ("forMs", "byMs"),
    FaultKind.OVERRUN: ("forMs", "byM"),
}
_FARTHEST_M = 1000
_DURATION = ("forMs",)
_MEMBERS = ("forMs", "dxM", "dyM", "byM", "byMs")


def event(at: Cursor) -> ScenarioEvent:
    it = at.object(required=("atMs", "type", "robotId"), optional=_MEMBERS)
    kind = it["type"].choice(FaultKind)
    needs = NEEDS.get(kind, _DURATION)
    for member in _MEMBERS:
        if member in needs and member not in it:
            at.refuse(f"{kind.value} needs {member}", allowed=needs)
        elif member in it and member not in needs:
            it[member].refuse(f"{kind.value} has no {member}", allowed=needs)
    return ScenarioEvent(
        at_ms=it["atMs"].integer(min=0),
        type=kind,
        robot_id=name(it["robotId"]),
        for_ms=it["forMs"].integer(min=1, default=1),
        x_um=_off(it, "dxM"),
        y_um=_off(it, "dyM"),
        by_um=length(it["byM"]) if "byM" in it else 0,
        by_ms=it["byMs"].integer(min=1, default=0),
    )


def _off(it: Members, member: str) -> int:
    return micro(it[member].decimal(min=-_FARTHEST_M, max=_FARTHEST_M)) if member in it else 0
