"""One fault of one truck in the hall, in a given phase, and the trucks that still stand afterwards."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

from msgspec import structs

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.contracts import Phase
from pendula.fleet.scenarios import Run, Scenario, shipped
from pendula.fleet.simulator import FaultKind
from pendula.fleet.simulator.truck import Fault
from pendula.fleet.tick.records import Record, Stop

# After these stops a truck waits for an operator (FLT-FAIL-10, FLT-FAIL-13); after all others it continues by itself.
NEEDS_OPERATOR = frozenset({Stop.STUCK, Stop.OVERRUN})
ABOUT = ("idle", "turning", "driving", "loading")
# CARRIED and PUSHED end only with a relocation or when the truck has driven back; OPERATION_HANGS is not noticed in so
# short a time.
KINDS = tuple(
    kind for kind in FaultKind if kind not in (FaultKind.CARRIED, FaultKind.PUSHED, FaultKind.OPERATION_HANGS)
)
# How long a fault may have effects after its end, and how long trucks that block each other may need.
_LOOK_MS = 4_000
_QUIET_MS = 60_000


@dataclass(frozen=True)
class Trouble:
    """A fault of a truck in a phase; `after_ms`: the earliest time after the start."""

    fault: Fault
    robot_id: str
    about: str
    after_ms: int = 0
    seed: int = 0


def drawn(seed: int) -> Trouble:
    random = Random(seed)
    kind = KINDS[seed % len(KINDS)]
    fault = Fault(
        kind,
        for_ms=random.choice((300, 1_500, 2_500, 6_000, 20_000)),
        x_um=random.randrange(-3_000_000, 3_000_000) if kind is FaultKind.POSE_JUMP else 0,
        y_um=random.randrange(-3_000_000, 3_000_000) if kind is FaultKind.POSE_JUMP else 0,
        by_um=random.randrange(60_000, 300_000) if kind in (FaultKind.NOISE, FaultKind.OVERRUN) else 0,
        by_ms=random.randrange(500, 4_000) if kind is FaultKind.LATE_ACKS else 0,
    )
    robot, about = random.choice(("R1", "R2", "R3", "R4")), random.choice(ABOUT)
    return Trouble(fault, robot, about, 0 if about == "idle" else random.randrange(0, 40_000), seed)


def left_standing(trouble: Trouble) -> Iterator[str]:
    """Run the fault; return the trucks that do not continue a minute after its end, and broken invariants."""
    run = Run(_hall(trouble.seed), site=_site())
    number = [robot.robot_id for robot in run.robots].index(trouble.robot_id)
    while run.now_ms < trouble.after_ms or not _is_about(run, run.traffic.records[number], trouble.about):
        run.step()
    run.world.start_fault(number, trouble.fault)
    over_ms = run.now_ms + trouble.fault.for_ms
    while run.now_ms < over_ms + _LOOK_MS or (run.now_ms < over_ms + _QUIET_MS and any(_standing(run))):
        run.step()
    yield from (f"{record.robot_id} stands: {record.stop_code}" for record in _standing(run))
    for name, found in run.result().form["invariants"].items():
        if found["violations"]:
            yield f"{name} was broken"


def _standing(run: Run) -> Iterator[Record]:
    """The trucks that do not continue and do not wait for an operator."""
    return (
        record
        for record in run.traffic.records
        if record.stop_code is not None and record.latched not in NEEDS_OPERATOR
    )


def _is_about(run: Run, record: Record, about: str) -> bool:
    phase = run.dispatch.phase(record.number)
    act = record.act
    turning = act is not None and not act.stop and record.v_um_s == 0 and record.at_um >= act.s_um - 100_000
    match about:
        case "idle":
            # Before its first task, or between two.
            return phase is Phase.IDLE
        case "turning":
            return turning and phase is not Phase.LOADING
        case "driving":
            return record.v_um_s > 100_000
        case _:
            return phase in (Phase.LOADING, Phase.UNLOADING)


def _hall(seed: int) -> Scenario:
    return structs.replace(shipped("hall"), seed=seed, duration_ms=10**9)


@cache
def _site() -> CompiledMap:
    hall = shipped("hall")
    return compile_map(hall.source, hall.profiles, hall.compile_params)
