"""A run: one credit network, tick by tick. The state machine of the scheduler: commands in, events out.

Time is the number of the next tick. The ledger of the run decides payments and clearing; with the engine "external"
another system decides each payment, and the ledger mirrors its answers. A run that has ended refuses changes; a change
of state that does not apply leaves the state unchanged.

The state itself is `state.run_state`; this module dispatches commands and exposes the run.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Self, assert_never

import msgspec
from msgspec import UNSET

from pendula.credit import demonstration, explain, manual, saving
from pendula.credit.commands import (
    Abandon,
    Clear,
    CloseLine,
    Commands,
    Config,
    Configure,
    Freeze,
    OpenLine,
    Pause,
    Pay,
    Restart,
    Resume,
    SetIntensity,
    SetLimit,
    Stop,
    Tick,
)
from pendula.credit.events import Event, LastError, RunStatus
from pendula.credit.model import Code, Scenario
from pendula.credit.reading import read_scenario
from pendula.credit.sentences import sentence_of
from pendula.credit.settings import InvalidSetting, Settings, change_settings
from pendula.credit.state.counters import Counters, Demand
from pendula.credit.state.network import Network
from pendula.credit.state.run_state import RunState
from pendula.credit.tick import phases
from pendula.documents import from_value
from pendula.kernel.canonical import Json, encode
from pendula.kernel.engine import Outcome, Outside, Reason, Refusal
from pendula.kernel.errors import InputRefused, WorldBroken

ABANDONED = LastError(Code.INTERNAL_ERROR.value, {"kind": "SERVER_RESTARTED"})


def ticks(run: RunState, command: Tick) -> Outcome[Event]:
    """Run ticks; fewer if a guardrail ends the run."""
    if run.state_word != "running":
        return Outcome(refusal=Refusal("run_conflict", {"kind": "run_not_running", "state": run.state_word}))
    run.callers_queue = command.queue_depth
    events: list[Event] = []
    with saving.undone_if_it_fails(run):
        for _ in range(command.count):
            run.in_flight = command.in_flight
            events += demonstration.tick(run) if run.config.mode == "fixtures" else phases.process(run)
            if run.state_word != "running":
                break
    return Outcome(tuple(events), {"tick_index": run.tick, "state": run.state_word, **run.digests()})


def set_intensity(run: RunState, percent: int) -> Outcome[Event]:
    if not run.active:
        return _ended(run)
    run.intensity = percent
    return run.status_outcome()


def configure(run: RunState, values: dict[str, str]) -> Outcome[Event]:
    """Change settings, given as text; the length of a tick is fixed."""
    if not run.active:
        return _ended(run)
    try:
        settings = change_settings(run.settings, values)
    except InvalidSetting as refused:
        return Outcome(refusal=Refusal(refused.code, refused.facts))
    if settings.tick_ms_base != run.settings.tick_ms_base:
        facts: dict[str, Json] = {"kind": "fixed_tick_length", "variable": "SIMULATOR_TICK_MS_BASE"}
        return Outcome(refusal=Refusal("invalid_setting", facts))
    run.use(settings)
    return run.status_outcome()


def _ended(run: RunState) -> Outcome[Event]:
    return Outcome(refusal=Refusal("run_conflict", {"kind": "run_ended", "state": run.state_word}))


def change_state(run: RunState, command: Pause | Resume | Stop | Restart | Abandon) -> Outcome[Event]:
    match command, run.state_word:
        case Pause(), "running":
            run.state_word = "paused"
        case Resume(), "paused":
            run.state_word = "running"
        case Stop(source, reason), "running" | "paused":
            run.state_word, run.stop_source, run.stop_reason = "stopped", source, reason
        case Abandon(), "running" | "paused":
            run.fail(ABANDONED)
        case Restart(), _:
            run.state_word = "running"
            run.begin()
    return run.status_outcome()


class InvalidRun(InputRefused):
    """The input is not a configuration or a state of a run. Facts: `broken` if invariants do not hold."""

    code = "invalid_run"


class Run:
    """Implements `pendula.kernel.engine.Engine`. Everything it exposes is read-only; only commands change a run."""

    scheduler: ClassVar[str] = "credit"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "tick"
    commands: ClassVar[object] = Commands
    events: ClassVar[object] = Event

    def __init__(self, config: Config, scenario: Scenario | None = None) -> None:
        """`scenario` is the parsed scenario of the configuration, if the caller has it already."""
        if scenario is None:
            scenario = read_scenario(from_value(config.scenario, "scenario"), lenient=config.lenient)
        self._run = RunState(config, scenario)
        self._in_command = False
        if config.checkpoint is not UNSET:
            saving.load(self._run, encode(config.checkpoint))

    @classmethod
    def create(cls, config: Json) -> Self:
        try:
            read = msgspec.convert(config, Config)
        except msgspec.ValidationError as trouble:
            raise InvalidRun(f"This is not a configuration of a run: {trouble}") from None
        return cls(read)

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        run = cls.create(config)
        saving.load(run._run, state)
        if broken := list(run.broken()):
            raise InvalidRun(f"This is not a state of a run: {', '.join(broken)}", broken=broken)
        return run

    def state(self) -> bytes:
        self._refuse_in_a_command()
        return saving.save(self._run)

    def apply(self, command: Commands) -> Outcome[Event]:
        """Raises `WorldBroken` within a command, and after a command that Ctrl+C or an exit interrupted."""
        self._refuse_in_a_command()
        self._in_command = True
        try:
            outcome = self._carried_out(command)
        except manual.Rejected as rejected:
            outcome = Outcome(refusal=rejected.refusal)
        except Exception:
            self._in_command = False  # an external answer failed: the run is as it was before
            raise
        self._in_command = False
        return outcome

    def _refuse_in_a_command(self) -> None:
        if self._in_command:
            raise WorldBroken(
                "This run is in the middle of a command; if the command was interrupted, create the run again "
                "or recover it from its journal"
            )

    def _carried_out(self, command: Commands) -> Outcome[Event]:
        run = self._run
        match command:
            case Tick():
                return ticks(run, command)
            case SetIntensity(percent):
                return set_intensity(run, percent)
            case Pay():
                return manual.pay(run, command)
            case Clear():
                return manual.clear(run, command)
            case OpenLine():
                return manual.open_line(run, command)
            case SetLimit():
                return manual.set_limit(run, command)
            case CloseLine():
                return manual.close_line(run, command)
            case Freeze():
                return manual.freeze(run, command)
            case Configure(values):
                return configure(run, values)
            case Pause() | Resume() | Stop() | Restart() | Abandon():
                return change_state(run, command)
            case _:
                assert_never(command)

    def use(self, settings: Settings) -> None:
        """Change the settings without a command, from the next tick on: for a fork, which has no journal."""
        self._run.use(settings)

    def now(self) -> int:
        return self._run.tick

    def next_due(self) -> int | None:
        return self._run.tick + 1 if self._run.state_word == "running" else None

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        return sentence_of(code, facts)

    def why(self, question: Json) -> Reason:
        """`{"from", "to", "equivalent", "amount"}`, `{"line": {...}}`, `{"clearing": code}` or `{"run": true}`."""
        return explain.why(self._run, question)

    def broken(self) -> Iterable[str]:
        return self._run.network.broken()

    def status(self) -> RunStatus:
        return self._run.status()

    def digests(self) -> dict[str, str]:
        """Of the plans and of the ledgers of all ticks so far."""
        return self._run.digests()

    @property
    def outside(self) -> Outside:
        """Answers questions of the run: a payment service, a behaviour, a solver."""
        return self._run.outside

    @outside.setter
    def outside(self, outside: Outside) -> None:
        self._run.outside = outside

    @property
    def config(self) -> Config:
        return self._run.config

    @property
    def scenario(self) -> Scenario:
        return self._run.scenario

    @property
    def seed(self) -> int:
        return self._run.seed

    @property
    def settings(self) -> Settings:
        return self._run.settings

    @property
    def tick(self) -> int:
        """The number of the next tick."""
        return self._run.tick

    @property
    def intensity(self) -> int:
        return self._run.intensity

    @property
    def sim_time_ms(self) -> int:
        return self._run.sim_time_ms

    @property
    def state_word(self) -> str:
        """`running`, `paused`, `stopped` or `error`."""
        return self._run.state_word

    @property
    def last_error(self) -> LastError | None:
        return self._run.last_error

    @property
    def network(self) -> Network:
        """Participants and books; read-only."""
        return self._run.network

    @property
    def clearing_active(self) -> bool:
        """Whether the adaptive policy is active in any equivalent."""
        return any(policy.active for policy in self._run.policies.values())

    @property
    def queue_depth(self) -> int:
        """Payments that were planned and not tried yet."""
        return self._run.queue_depth

    @property
    def counters(self) -> Counters:
        return self._run.counters

    @property
    def measured(self) -> dict[str, dict[str, str | None]]:
        """The metrics of the last tick by equivalent."""
        return self._run.measured

    @property
    def demand(self) -> Mapping[str, Demand]:
        """Planned and paid amounts of the whole run, by equivalent."""
        return self._run.demand

    @property
    def last_clearing(self) -> Mapping[str, Json]:
        """The last clearing call, by equivalent."""
        return self._run.last_clearing
