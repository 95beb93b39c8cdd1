"""The record of a served run, whether its engine is open or not: state, owner, seed; and the limits on active runs.

A record is small, however long its run was. A command that does not apply in a state is not an error and leaves it
unchanged; only capacity limits refuse.
"""

from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256

from msgspec import Struct

from pendula.credit.events import LastError, RunStatus
from pendula.credit.runs.artifacts import moment
from pendula.kernel.time import format_utc
from pendula.server.errors import HttpRefused


class RunState(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    ERROR = "error"


class Verb(StrEnum):
    """A transition of a run, by a client or by a guardrail (`fail`)."""

    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    STOPPED = "stopped"
    FAIL = "fail"
    RESTART = "restart"


ACTIVE = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.STOPPING})
ENDED = frozenset({RunState.STOPPED, RunState.ERROR})

TRANSITIONS = {
    (RunState.IDLE, Verb.START): RunState.RUNNING,
    (RunState.RUNNING, Verb.PAUSE): RunState.PAUSED,
    (RunState.PAUSED, Verb.RESUME): RunState.RUNNING,
    (RunState.RUNNING, Verb.STOP): RunState.STOPPING,
    (RunState.PAUSED, Verb.STOP): RunState.STOPPING,
    (RunState.STOPPING, Verb.STOPPED): RunState.STOPPED,
    (RunState.RUNNING, Verb.FAIL): RunState.ERROR,
    (RunState.PAUSED, Verb.FAIL): RunState.ERROR,
    # A run that fails while stopping has failed: its last writes may be missing.
    (RunState.STOPPING, Verb.FAIL): RunState.ERROR,
    **{
        (state, Verb.RESTART): RunState.RUNNING
        for state in (RunState.STOPPED, RunState.ERROR, RunState.RUNNING, RunState.PAUSED)
    },
}


def after(state: RunState, verb: Verb) -> RunState:
    """The next state; unchanged if the verb does not apply."""
    return TRANSITIONS.get((state, verb), state)


class Capacity(Struct, frozen=True):
    """Limits on active runs, in all and per owner; 0 and below is no limit."""

    runs: int = 1
    runs_per_owner: int = 1


class RunConflict(HttpRefused):
    """A run cannot begin, or a command does not apply. Facts: `conflict_kind` and the id of the `active_run`."""

    code = "RUN_CONFLICT"
    status = 409


def admit(owner: str, active: Iterable[tuple[str, str]], capacity: Capacity) -> None:
    """Raise `RunConflict` if one more run of `owner` is too many; `active` are (run, owner), demo runs left out."""
    active = list(active)
    own = [run for run, theirs in active if theirs == owner]
    if 0 < capacity.runs_per_owner <= len(own):
        raise RunConflict(
            f"The run {own[0]} is active already; stop it first",
            conflict_kind="owner_active_exists",
            active_run_id=own[0],
        )
    if 0 < capacity.runs <= len(active):
        raise RunConflict(
            f"The limit of active runs ({capacity.runs}) is reached; one of them is {active[0][0]}",
            conflict_kind="global_active_limit",
            active_run_id=active[0][0],
        )


DEMO_OWNER = "demo"


class Owner(Struct, frozen=True):
    """The owner of a run; `kind` is admin, participant, anon or demo."""

    id: str
    kind: str


class ErrorAt(Struct, frozen=True):
    """The error of a run and its time."""

    code: str
    message: str
    at: str


class Record(Struct):
    """One run, with the last status of its engine. Times are ISO-8601 texts of the wall clock."""

    run_id: str
    scenario_id: str
    owner: Owner
    mode: str
    seed: int
    seed_from: str
    deterministic: bool
    intensity_percent: int
    created_at: str
    equivalents: tuple[str, ...] = ()
    state: RunState = RunState.IDLE
    started_at: str | None = None
    stopped_at: str | None = None
    stop_requested_at: str | None = None
    stop_source: str | None = None
    stop_reason: str | None = None
    stop_client: str | None = None
    tick_index: int = 0
    sim_time_ms: int = 0
    attempts_total: int = 0
    committed_total: int = 0
    rejected_total: int = 0
    errors_total: int = 0
    timeouts_total: int = 0
    dropped_total: int = 0
    queue_depth: int = 0
    consec_all_rejected_ticks: int = 0
    last_error: ErrorAt | None = None
    last_error_details: dict[str, object] = {}
    last_event_type: str | None = None
    ops_sec: Decimal = Decimal(0)
    errors_last_1m: int = 0
    last_seq: int = 0
    plan_digest: str | None = None
    ledger_digest: str | None = None
    continued_from: str | None = None
    engine: str | None = None  # the name of the payment service; None is the embedded engine
    # Event numbers up to this one may be in use: after a crash they are not assigned again.
    seq_reserved: int = 0

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    def update(self, status: RunStatus, now_us: int) -> None:
        """Copy the status of the engine, except its state, which follows from commands."""
        for name in SAME_AS_STATUS:
            setattr(self, name, getattr(status, name))
        if status.last_error is None:
            self.last_error, self.last_error_details = None, {}
        elif self.last_error is None:
            self.mark_failed(status.last_error, now_us)

    def mark_failed(self, error: LastError, now_us: int) -> None:
        self.last_error = ErrorAt(error.code, error.message, moment(now_us))
        self.last_error_details = dict(error.details)

    def mark_started(self, now_us: int) -> None:
        """Mark the run as started, for the first time or again."""
        self.state, self.started_at = RunState.RUNNING, moment(now_us)
        self.stopped_at = self.stop_requested_at = None
        self.stop_source = self.stop_reason = self.stop_client = None
        self.last_error, self.last_error_details, self.last_event_type = None, {}, None

    def mark_ended(self, state: RunState, now_us: int) -> None:
        self.state, self.stopped_at, self.ops_sec = state, moment(now_us), Decimal(0)


# `last_error` has a time in the record.
SAME_AS_STATUS = tuple(
    name
    for name in RunStatus.__struct_fields__
    if name in Record.__struct_fields__ and name not in ("state", "last_error")
)


def run_name(now_us: int, entropy: bytes) -> str:
    """`run_YYYYMMDD_HHMMSS_<8 hex digits>`."""
    day, _, time = format_utc(now_us).partition("T")
    return f"run_{day.replace('-', '')}_{time[:8].replace(':', '')}_{entropy[:4].hex()}"


def seed_of_name(run_id: str) -> int:
    """The default seed of a run: the first four bytes of the digest of its name."""
    return int.from_bytes(sha256(run_id.encode()).digest()[:4], "big")


def chosen_seed(given: int | None, scenario: int | None, fixed: int | None, run_id: str) -> tuple[int, str]:
    """The seed of a served run and its source: request, scenario, setting or name."""
    for seed, source in ((given, "request"), (scenario, "scenario"), (fixed, "SIMULATOR_FIXED_SEED")):
        if seed is not None:
            return seed, source
    return seed_of_name(run_id), "run_id"
