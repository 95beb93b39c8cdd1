"""Compare two sets of parameters on one journal: differences of grants, hold points and holds, and totals.

Both fleets get the same reports, from trucks that followed the commands of the first. So the result shows what the
other set would have decided in each tick, not its consequences; for those, run a scenario twice.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs, to_builtins

from pendula.fleet.commands import Config
from pendula.fleet.contracts import CommandMode, TaskState
from pendula.fleet.engine import FleetEngine, read_config
from pendula.fleet.events import AlertRaised, FleetEvent, Granted, RouteRefused, TaskMoved
from pendula.fleet.runs.reading import moments
from pendula.fleet.saving import with_params
from pendula.fleet.tick.params import TrafficParams, contract_name, contract_value
from pendula.fleet.tick.reasons import code_of, stands_for
from pendula.fleet.tick.records import Record
from pendula.kernel.canonical import Json
from pendula.kernel.journal import Journal
from pendula.kernel.replay import NotReplayable

FIELDS = ("grant", "holdPoint", "reasonCode")


class Difference(Struct, frozen=True, rename="camel"):
    """A difference between two fleets in one tick."""

    tick: int
    now_ms: int
    robot_id: str
    field: str
    a: Json
    b: Json


class Totals(Struct):
    """Totals of one set of parameters."""

    stood_ms: Counter[str]
    grants: int = 0
    stops: int = 0
    refused_routes: int = 0
    alerts: int = 0
    tasks_done: int = 0

    def note(self, engine: FleetEngine, events: Sequence[FleetEvent]) -> None:
        period = engine.config.traffic.tick_period_ms
        for record in engine.traffic.records:
            code = stands_for(record)
            if code is not None:
                self.stood_ms[code] += period
        self.stops += sum(command.mode is CommandMode.STOP for command in engine.orders_out.commands)
        for event in events:
            match event:
                case Granted():
                    self.grants += 1
                case RouteRefused():
                    self.refused_routes += 1
                case AlertRaised():
                    self.alerts += 1
                case TaskMoved(state=TaskState.DONE):
                    self.tasks_done += 1
                case _:
                    pass

    def form(self) -> dict[str, Any]:
        return {
            "waitMsByReason": dict(sorted(self.stood_ms.items())),
            "grants": self.grants,
            "stops": self.stops,
            "refusedRoutes": self.refused_routes,
            "alerts": self.alerts,
            "tasksDone": self.tasks_done,
        }


def compare_params(journal: Journal, params: TrafficParams) -> dict[str, Any]:
    """Compare the journal's own parameters (a) with others (b); raises `NotReplayable` for a pruned journal, and
    `TrafficRefused` if the fleet cannot run with the others."""
    if journal.first_n > 0:
        raise NotReplayable("The beginning of the journal was pruned, so other parameters cannot be compared")
    config = read_config(journal.header.config)
    other = FleetEngine.create(to_builtins(structs.replace(config, traffic=params, state=_state(config, params))))
    totals = Totals(Counter()), Totals(Counter())
    counts: Counter[str] = Counter()
    robots: dict[str, Counter[str]] = {}
    first: Difference | None = None
    ticks = differing = 0
    for engine, moment in moments(journal):
        outcome = other.apply(moment.command)
        totals[0].note(engine, moment.computed)
        totals[1].note(other, outcome.events)
        differences = _differences(moment.ticked.tick, engine, other)
        ticks += 1
        differing += bool(differences)
        first = first or next(iter(differences), None)
        for difference in differences:
            counts[difference.field] += 1
            robots.setdefault(difference.robot_id, Counter())[difference.field] += 1
    return {
        "ticks": ticks,
        "ticksThatDiffer": differing,
        "first": None if first is None else to_builtins(first),
        "differences": {name: counts[name] for name in FIELDS},
        "robots": {name: dict(sorted(robots[name].items())) for name in sorted(robots)},
        "changed": _changed(config.traffic, params),
        "a": {"paramsHash": config.traffic.digest(), **totals[0].form()},
        "b": {"paramsHash": params.digest(), **totals[1].form()},
    }


def _state(config: Config, params: TrafficParams) -> Json | UnsetType:
    """The start state of a bundle, from which both sets continue."""
    return UNSET if config.state is UNSET else with_params(config.state, params.digest())


def _differences(tick: int, a: FleetEngine, b: FleetEngine) -> list[Difference]:
    return [
        Difference(tick, a.now(), left.robot_id, name, mine, theirs)
        for left, right in zip(a.traffic.records, b.traffic.records, strict=True)
        for name, mine, theirs in zip(FIELDS, _decision(left), _decision(right), strict=True)
        if mine != theirs
    ]


def _decision(record: Record) -> tuple[Json, Json, Json]:
    plan = None if record.track is None else record.track.plan
    grant: Json = None if plan is None else {"routeId": plan.route_id, "endUm": record.grant_um}
    return grant, None if plan is None else record.hold_um, code_of(record)


def _changed(a: TrafficParams, b: TrafficParams) -> dict[str, Json]:
    """The changed parameters, in the names and units of files."""
    mine, theirs = to_builtins(a), to_builtins(b)
    return {
        contract_name(name): [contract_value(name, params[name]) for params in (mine, theirs)]
        for name in mine
        if mine[name] != theirs[name]
    }
