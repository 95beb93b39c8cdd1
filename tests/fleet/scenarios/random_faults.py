"""Random faults of trucks on random LIVE maps, drawn one after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random

from msgspec import structs

from pendula.fleet.contracts import AnchorPlace, OperatorAction
from pendula.fleet.scenarios import Run
from pendula.fleet.scenarios.model import ScenarioEvent
from pendula.fleet.simulator import FaultKind
from pendula.fleet.tick.records import Record, Stop
from pendula.fleet.units import MILLION
from tests.fleet.scenarios.random_runs import Case, drawn, sample
from tests.fleet.scenarios.watching import FirstMoves, false_blockers, orphaned_grants, unknown_routes

# A wait for the same truck is reported by then, plus a tick.
_TOLD_MS = 90_200
# The quiet end of a run: longer than the longest faults, and two seconds to check.
_QUIET_TICKS = 100
# A recovered truck may have to wait until others have passed it: a drive through the map.
_LET_IN_MS = 90_000
# Longer than a truck needs to recover by itself.
_OPERATOR_DELAY_MS = 3_000
# Faults from which a truck recovers by itself.
PASSING = (
    FaultKind.STAND,
    FaultKind.POSE_JUMP,
    FaultKind.NOISE,
    FaultKind.SILENCE,
    FaultKind.DEAFNESS,
    FaultKind.OFFLINE,
    FaultKind.LATE_ACKS,
    FaultKind.BAD_TELEMETRY,
    FaultKind.FAULT,
)


def faulty(seed: int, most_trucks: int, duration_ms: int, kinds: tuple[FaultKind, ...] = PASSING) -> Case:
    """A run with a fault about every ten seconds; none in its last half minute."""
    case = drawn(seed, most_trucks, duration_ms)
    random = Random(10_000 + seed)
    trucks = [sample(case.map_seed, case.parks).fleet.trucks[number].robot_id for number in case.trucks]
    events = []
    at_ms = random.randrange(3_000, 9_000)
    while at_ms < duration_ms - 30_000:
        events.append(_fault(random, at_ms, random.choice(kinds), random.choice(trucks)))
        at_ms += random.randrange(4_000, 16_000)
    return replace(case, stands=tuple(events))


def _fault(random: Random, at_ms: int, kind: FaultKind, robot_id: str) -> ScenarioEvent:
    for_ms = random.randrange(300, 7_000)
    event = ScenarioEvent(at_ms, kind, robot_id, for_ms)
    match kind:
        case FaultKind.POSE_JUMP:
            off = [random.choice((-1, 1)) * random.randrange(0, 3_000_000) for _ in range(2)]
            return _with(event, x_um=off[0], y_um=off[1])
        case FaultKind.NOISE:
            return _with(event, by_um=random.randrange(10_000, 60_000))
        case FaultKind.LATE_ACKS:
            return _with(event, by_ms=random.randrange(500, 4_000))
        case FaultKind.OVERRUN:
            return _with(event, by_um=random.randrange(100_000, 400_000))
        case _:
            return event


def _with(event: ScenarioEvent, **members: int) -> ScenarioEvent:
    return structs.replace(event, **members)


class Operator:
    """An operator who relocates trucks that stand because a wrong position of theirs was accepted.

    A small jump along the way of a truck is a position to which it can have driven: after two steady seconds it is
    accepted (FLT-FAIL-7). After the jump the true position is the one that the truck cannot have driven to, and
    contradicting data never make a truck move (FLT-FAIL-1): an operator decides (FLT-FAIL-11). A truck without a wrong
    accepted position has to recover by itself."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._believed: set[int] = set()
        self.relocated: list[str] = []

    def look(self, records: Sequence[Record]) -> None:
        for record in records:
            jumped, until_ms = self._last_jump(record.number)
            if record.doubt is None and jumped < record.report_ms <= until_ms:
                self._believed.add(record.number)
            well_ms = self._run.now_ms - until_ms
            if record.doubt is None and well_ms > _OPERATOR_DELAY_MS:
                # It continues: that accepted jump does not count for the next one.
                self._believed.discard(record.number)
            doubt = record.doubt
            if doubt is None or doubt.steady_ms is None or doubt.confirmed or record.number not in self._believed:
                continue
            if min(self._run.now_ms - doubt.steady_ms, well_ms) > _OPERATOR_DELAY_MS:
                self._relocate(record)

    def _last_jump(self, number: int) -> tuple[int, int]:
        """The interval in which a truck reports that it is elsewhere."""
        faults = self._run.world.faults[number]
        if FaultKind.POSE_JUMP not in faults.latest:
            return 0, 0
        until_ms = faults.until_ms[FaultKind.POSE_JUMP]
        return until_ms - faults.latest[FaultKind.POSE_JUMP].for_ms, until_ms

    def _relocate(self, record: Record) -> None:
        run, truck = self._run, self._run.world.trucks[record.number]
        place = AnchorPlace(run.site.network.edges[truck.edge].key, Decimal(truck.on_um) / MILLION)
        name, robot = f"operator-{run.now_ms}", record.robot_id
        run.act(OperatorAction("1.0.0", name, run.now_ms, "anna", "RELOCATE", "I see it", robotId=robot, anchor=place))
        self.relocated.append(robot)


def watched(run: Run) -> Iterator[str]:
    """Run, and yield a sentence for every grant that disappeared without a cause, every unreported wait, and every
    truck that did not recover from its faults."""
    operator, first = Operator(run), FirstMoves(run)
    before = {record.robot_id: (set(record.keeps), record.doubt) for record in run.traffic.records}
    while run.now_ms < run.scenario.duration_ms and not run.is_over:
        outputs = run.step()
        operator.look(outputs.scene.records)
        for record in outputs.scene.records:
            kept, doubt = before[record.robot_id]
            if record.doubt is not None and doubt is not None and not set(record.keeps) >= kept:
                yield f"{record.robot_id} lost something it held while its place was in doubt, at {outputs.now_ms} ms"
            if record.blocked_by is not None and outputs.now_ms - record.blocked_ms > _TOLD_MS and record.escalated < 3:
                yield f"{record.robot_id} waits for too long without an alert, at {outputs.now_ms} ms"
            before[record.robot_id] = set(record.keeps), record.doubt
        yield from first.passed_over(outputs)
        yield from false_blockers(outputs)
        yield from orphaned_grants(run)
        yield from unknown_routes(run)
    for _ in range(_QUIET_TICKS):
        run.step()
    over_ms = run.now_ms + _LET_IN_MS
    while run.now_ms < over_ms and any(record.stop_code == Stop.SAFE_STATE for record in run.traffic.records):
        run.step()
    for record in run.traffic.records:
        if record.stop_code is not None:
            yield f"{record.robot_id} did not get over its faults: {record.stop_code}"
