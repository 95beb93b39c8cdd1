"""Read the journal of a fleet: the fleet after any tick, and its ticks replayed and compared.

with reading(Path("hall-journal")) as journal:
    fleet_at(journal, 600).why({"robot": "R2"})
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs, to_builtins

from pendula.fleet import contracts
from pendula.fleet.commands import Commands, Config, Tick
from pendula.fleet.contracts import CommandMode, LockResult, RobotState, TaskState, TickSnapshot
from pendula.fleet.engine import FleetEngine, read_config
from pendula.fleet.events import (
    AlertRaised,
    FleetEvent,
    Granted,
    Incident,
    RouteAccepted,
    RouteRefused,
    TaskMoved,
    Ticked,
)
from pendula.fleet.map.trucks import hash_of
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.runs.recording import find_map, require_fleet
from pendula.fleet.saving import with_params
from pendula.fleet.tick.params import TrafficParams, contract_name, contract_value
from pendula.fleet.tick.reasons import code_of, stands_for
from pendula.fleet.tick.records import Record
from pendula.fleet.tick.snapshot import robot_state
from pendula.kernel.canonical import Json, Reader, digest, encode
from pendula.kernel.driver import ReplayDiffers
from pendula.kernel.engine import CommandReader
from pendula.kernel.errors import InputRefused
from pendula.kernel.frames import outcome_bytes, read_input, read_outcome
from pendula.kernel.journal import FileJournal, Journal, missing_of, opened
from pendula.kernel.replay import NotReplayable, check_decisions, engine_from_snapshot, first_engine

_read_events: Reader[tuple[FleetEvent, ...]] = Reader(tuple[FleetEvent, ...])


class UnknownTick(InputRefused):
    """The journal has no such tick. Facts: `tick`, the `last` one, and the `first` where that is known."""

    code = "unknown_tick"


class Moment(Struct, frozen=True):
    """One tick of a journal: its input, its recorded events, and its replayed events."""

    n: int
    command: Tick
    recorded: tuple[FleetEvent, ...] | None
    computed: tuple[FleetEvent, ...]

    @property
    def ticked(self) -> Ticked:
        first = self.computed[0]
        assert isinstance(first, Ticked)
        return first


@contextmanager
def reading(directory: Path) -> Iterator[FileJournal]:
    """The journal of a fleet; raises `JournalMissing`, or `NoFleetJournal` for that of another scheduler."""
    with closing(opened(directory)) as journal:
        require_fleet(journal.header)
        check_decisions(journal.header, FleetEngine)
        find_map(journal.disk)
        yield journal


def moments(journal: Journal, tick: int | None = None) -> Iterator[tuple[FleetEngine, Moment]]:
    """The ticks of a journal from `tick` on, or all, each with the fleet after it; raises `UnknownTick`."""
    begin = _Index.of(journal)
    if tick is not None:
        begin.require(tick, missing_of(journal.header))
    engine, start = begin.engine_before(journal, tick)
    for moment in _followed(engine, journal, start):
        if tick is None or moment.ticked.tick >= tick:
            yield engine, moment


def fleet_at(journal: Journal, tick: int) -> FleetEngine:
    """The fleet after this tick."""
    engine, _ = next(moments(journal, tick))
    return engine


def record_of_tick(journal: Journal, tick: int, last: int) -> int:
    """The number of the record of a tick; `last` is the newest tick. The search starts at the expected record, at two
    records per tick, and narrows from there. Raises `UnknownTick`."""
    low, high = journal.first_n, journal.next_n - 1
    at = high - 2 * (last - tick)
    while low <= high:
        at = min(max(at, low), high)
        n, nearest = _next_tick(journal, at)
        if nearest == tick:
            return n
        if nearest is None or nearest > tick:
            high, at = at - 1, at - (2 * (nearest - tick) if nearest is not None else 1)
        else:
            low, at = n + 1, n + 2 * (tick - nearest)
    raise UnknownTick(f"The journal has no tick {tick}; the newest is {last}", tick=tick, last=last)


def _next_tick(journal: Journal, start: int) -> tuple[int, int | None]:
    """The first record from `start` on with a tick, and the tick; None if there is none."""
    for record in journal.read(start):
        tick = _tick_in(bytes(record.body)) if record.kind == "outcome" else None
        if tick is not None:
            return record.n, tick
    return start, None


def last_tick(journal: Journal) -> int:
    return _Index.of(journal).last


def _followed(engine: FleetEngine, journal: Journal, start: int) -> Iterator[Moment]:
    read_command: CommandReader[Commands] = CommandReader(FleetEngine)
    waiting: Moment | None = None
    for record in journal.read(start):
        if record.kind == "input":
            if waiting is not None:
                yield waiting
            waiting = _again(engine, record.n, read_command(read_input(record.body).command))
        elif record.kind == "outcome" and waiting is not None:
            body = read_outcome(record.body)
            recorded = _read_events(body.events) if bytes(body.events) else None
            yield Moment(waiting.n, waiting.command, recorded, waiting.computed)
            waiting = None
    if waiting is not None:
        yield waiting


def _again(engine: FleetEngine, n: int, command: Commands) -> Moment | None:
    """Replay one tick; None for a rejected command, or one that is not a tick."""
    try:
        outcome = engine.apply(command)
    except Exception as defect:
        raise ReplayDiffers(f"Record {n} cannot be applied again: {defect!r}", n=n) from defect
    if outcome.refusal is not None or not isinstance(command, Tick):
        return None
    # Decoded like recorded events, so that both can be compared.
    computed = _read_events(b"[" + b",".join(outcome_bytes(outcome).events) + b"]")
    return Moment(n, command, None, computed)


class _Index(Struct, frozen=True):
    """The first and the last tick of a journal, and the last tick before each of its checkpoints."""

    first: int
    last: int
    checkpoints: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, journal: Journal) -> "_Index":
        checkpoints: list[tuple[int, int]] = []
        first, last = None, 0
        usable = journal.first_n == 0
        for record in journal.read():
            if record.kind == "outcome":
                tick = _tick_in(bytes(record.body))
                last = last if tick is None else tick
                first = last if first is None and usable and tick is not None else first
            elif record.kind == "snapshot":
                usable = True
                checkpoints.append((last, record.n))
        return cls(last + 1 if first is None else first, last, tuple(checkpoints))

    def require(self, tick: int, missing: str | None) -> None:
        if not self.first <= tick <= self.last:
            lost = "" if missing is None else f". It is missing {missing}"
            raise UnknownTick(
                f"The journal has no tick {tick}; it shows ticks {self.first} to {self.last}{lost}",
                tick=tick,
                first=self.first,
                last=self.last,
            )

    def engine_before(self, journal: Journal, tick: int | None) -> tuple[FleetEngine, int]:
        """The nearest stored fleet before a tick, and the record from which to replay."""
        earlier = [n for last, n in self.checkpoints if tick is not None and last < tick]
        engine, start = (
            engine_from_snapshot(journal, FleetEngine, earlier[-1]) if earlier else first_engine(journal, FleetEngine)
        )
        assert isinstance(engine, FleetEngine)
        return engine, start


_TICKED = b'"tick":'


def _tick_in(body: bytes) -> int | None:
    """The tick of an outcome, read from the bytes because a journal has many records."""
    at = body.find(b'"type":"ticked"')
    if at < 0:
        return None
    begin = body.rfind(_TICKED, 0, at) + len(_TICKED)
    return int(body[begin : body.index(b",", begin)])


# Replay the ticks of a journal and compare them; the first deviation is named by tick, truck and field.


class Deviation(Struct, frozen=True, rename="camel"):
    """The first difference between a journal and its replay; `robot_id` is None if it is not about one truck."""

    tick: int
    robot_id: str | None
    field: str
    recorded: Json
    computed: Json


def verify_ticks(
    journal: Journal,
    tick: int | None = None,
    upto: int | None = None,
    watch: Callable[[Moment], None] = lambda _: None,
) -> dict[str, Any]:
    """Replay a range of ticks up to the first difference; `watch` is called for every tick."""
    first_tick = last_tick = ticks = 0
    robots: list[str] = []
    incidents: list[Incident] = []
    deviation: Deviation | None = None
    for engine, moment in moments(journal, tick):
        if upto is not None and moment.ticked.tick > upto:
            break
        first_tick = first_tick or moment.ticked.tick
        last_tick, ticks = moment.ticked.tick, ticks + 1
        robots = robots or sorted(engine.traffic.robot_ids)
        incidents += (event for event in moment.computed if isinstance(event, Incident))
        watch(moment)
        deviation = deviation_of(moment)
        if deviation is not None:
            break
    return {
        "firstTick": first_tick,
        "lastTick": last_tick,
        "ticks": ticks,
        "robots": robots,
        "incidents": [to_builtins(incident) for incident in incidents],
        # Bytes of an incomplete last write; its tick is not counted.
        "cutTailBytes": getattr(journal, "cut_tail_bytes", 0),
        "tail": getattr(journal, "tail_note", None),
        "missing": missing_of(journal.header),
        "firstDifference": None if deviation is None else to_builtins(deviation),
    }


def require_same(moment: Moment) -> None:
    """Raises `ReplayDiffers` if a tick differs from its record."""
    if moment.recorded is not None and moment.recorded != moment.computed:
        raise ReplayDiffers(f"Tick {moment.ticked.tick} differs from its record", n=moment.n)


def deviation_of(moment: Moment) -> Deviation | None:
    """The first deviation of a tick; a truck takes precedence over a digest of all trucks."""
    if moment.recorded is None or moment.recorded == moment.computed:
        return None
    pairs = [(a, b) for a, b in zip_longest(moment.recorded, moment.computed) if a != b]
    named = [(a, b) for a, b in pairs if _robot(a or b) is not None]
    recorded, computed = (named or pairs)[0]
    before, after = _members(recorded), _members(computed)
    field = next(name for name in sorted({*before, *after}) if before.get(name) != after.get(name))
    robot = _robot(recorded or computed)
    return Deviation(moment.ticked.tick, robot, field, before.get(field), after.get(field))


def _robot(event: FleetEvent | None) -> str | None:
    return getattr(event, "robot_id", None)


def _members(event: FleetEvent | None) -> dict[str, Json]:
    return {} if event is None else to_builtins(event)


# A journal as JSON Lines: one `TickRecord` of the contract for each tick, members in canonical order.
# The journal holds inputs and digests; locks, requests, results and commands are replayed and compared with the
# record. Tick durations and distances of envelopes are in no journal, so they are null.


def lines(journal: Journal, tick: int | None = None, upto: int | None = None) -> Iterator[bytes]:
    """The ticks of a range, or all; raises `ReplayDiffers` if a tick differs from its record."""
    for engine, moment in moments(journal, tick):
        if upto is not None and moment.ticked.tick > upto:
            return
        require_same(moment)
        yield encode(tick_record(engine, moment))


def tick_record(engine: FleetEngine, moment: Moment) -> Json:
    """One tick in the form of the contract."""
    outputs, records = engine.last, engine.traffic.records
    assert outputs is not None
    robots = [robot_state(truck, outputs.now_ms, *tasks_of(engine, truck.number)) for truck in records]
    requests = [engine.traffic.request(truck.robot_id) for truck in records]
    routes = {(route.route_id, route.revision): route.form() for route in engine.orders_out.routes}
    record = contracts.TickRecord(
        contractVersion=CONTRACT_VERSION,
        tick=outputs.tick,
        nowMs=outputs.now_ms,
        hashes=contracts.TickHashes(
            compiledMapHash=engine.site.compiled_hash,
            robotProfileHash=hash_of(engine.config.profiles),
            paramsHash=engine.config.traffic.digest(),
        ),
        inputs=contracts.TickInputsForm(
            robotStates=tuple(_plain(robot) for robot in robots if robot is not None),
            routePlans=tuple(routes[key] for key in sorted(routes)),
            taskEvents=tuple(map(_plain, moment.command.task_events)),
            operatorActions=tuple(map(_plain, moment.command.operator_actions)),
        ),
        decisions=contracts.TickDecisions(
            assignments=tuple(_plain(event) for event in moment.computed if _is_assignment(event)),
            replans=tuple(_plain(event) for event in moment.computed if isinstance(event, RouteAccepted)),
            requests=tuple(_plain(request) for request in requests if request is not None),
            lockResults=tuple(map(_plain, outputs.results)),
            snapshotDigest="sha256:" + digest(_plain(outputs.snapshot())),
        ),
        outputs=contracts.TickOutputsForm(commands=tuple(map(_plain, engine.orders_out.commands))),
        metrics=contracts.TickMetrics(tickUs=None, minEnvelopeDistanceM=None),
        alerts=tuple(event.alert for event in moment.computed if isinstance(event, AlertRaised)),
    )
    form: Json = _plain(record)
    return form


def tasks_of(engine: FleetEngine, number: int) -> tuple[str | None, str | None]:
    """The current task of a truck, and the one that it starts at a later node (FLT-TASK-10)."""
    task = engine.dispatch.task_of(number)
    if task is None:
        return None, None
    return (None, task.task_id) if task.state is TaskState.PENDING_PREEMPT else (task.task_id, None)


def _is_assignment(event: FleetEvent) -> bool:
    return isinstance(event, TaskMoved) and event.state in (TaskState.ASSIGNED, TaskState.PENDING_PREEMPT)


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, builtin_types=(Decimal,))


# The state of a fleet after a tick in the forms of the contract: trucks, grants, locks.
# Commands to trucks are part of a snapshot computed from a journal; the stored state does not have them.


def robots_of(engine: FleetEngine) -> tuple[RobotState, ...]:
    """Every truck that has reported, by id."""
    now = engine.traffic.now_ms
    states = [robot_state(record, now, *tasks_of(engine, record.number)) for record in engine.traffic.records]
    return tuple([state for state in states if state is not None])


def results_of(engine: FleetEngine) -> tuple[LockResult, ...]:
    """Lock results of every truck, by id."""
    return engine.traffic.results()


def tick_snapshot(engine: FleetEngine) -> TickSnapshot:
    """The complete snapshot of the last tick of an engine."""
    return TickSnapshot(
        contractVersion=CONTRACT_VERSION,
        tick=engine.traffic.tick_number,
        nowMs=engine.traffic.now_ms,
        robots=robots_of(engine),
        lockResults=results_of(engine),
        locks=engine.traffic.snapshot(),
        commands=tuple(engine.orders_out.commands),
    )


def snapshots(journal: Journal, tick: int | None = None, upto: int | None = None) -> Iterator[TickSnapshot]:
    """The snapshots of a range of ticks, or of all; raises `UnknownTick`, and `ReplayDiffers` if a tick differs from
    its record."""
    for engine, moment in moments(journal, tick):
        if upto is not None and moment.ticked.tick > upto:
            return
        require_same(moment)
        yield tick_snapshot(engine)


def snapshot_lines(journal: Journal, tick: int | None = None, upto: int | None = None) -> Iterator[bytes]:
    """Snapshots as canonical JSON, one per line."""
    return map(encode, snapshots(journal, tick, upto))


def snapshot_at(journal: Journal, tick: int) -> TickSnapshot:
    """The snapshot of one tick; raises as `snapshots` does."""
    return next(snapshots(journal, tick, tick))


# Compare two sets of parameters on one journal: differences of grants, hold points and holds, and totals.
# Both fleets get the same reports, from trucks that followed the commands of the first. So the result shows what the
# other set would have decided in each tick, not its consequences; for those, run a scenario twice.

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
