"""A run: one credit network, tick by tick. Commands in, events out; the one state machine of the room.

Time is the number of the next tick. Payments and clearing are decided here, by the ledger of the run; with the engine
"external" another system is asked for each payment, and the ledger follows what it answers.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Self, assert_never

import msgspec

from pendula.credit import demonstration, explain, manual, saving
from pendula.credit.commands import (
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
from pendula.credit.model import Scenario
from pendula.credit.money import text
from pendula.credit.reading.scenario import read_scenario
from pendula.credit.settings import ClearingMode, Settings, changed, checked
from pendula.credit.state.clearing_policy import AdaptivePolicy
from pendula.credit.state.counters import Counters
from pendula.credit.state.digests import running_digest
from pendula.credit.state.network import Network
from pendula.credit.tick import phases
from pendula.documents import from_value
from pendula.kernel.bodies import Nobody
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome, Outside, Reason, Refusal
from pendula.kernel.errors import InputRefused

ACTIVE = ("running", "paused")


class InvalidRun(InputRefused):
    """What was handed in is no configuration or no state of a run. Facts: `broken` where laws do not hold."""

    code = "invalid_run"


class Run:
    """Satisfies `pendula.kernel.engine.Engine`."""

    room: ClassVar[str] = "credit"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "tick"
    commands: ClassVar[object] = Commands
    events: ClassVar[object] = Event

    def __init__(self, config: Config, scenario: Scenario | None = None) -> None:
        """`scenario` is that of the configuration, for those who have read it already."""
        self.outside: Outside = Nobody()
        self.config = config
        self.seed = config.seed
        read = from_value(config.scenario, "scenario")
        self.scenario = read_scenario(read, lenient=config.lenient) if scenario is None else scenario
        self.settings: Settings = checked(config.settings)
        self.intensity = config.intensity_percent
        self.state_word = "running"
        self.in_flight = self.queue_depth = 0
        self._begin()

    def _begin(self) -> None:
        """Tick 0 with the ledger of the scenario."""
        self.network = Network(self.scenario, self.settings)
        self.tick = self.fired = self.failed_ticks = self.all_rejected = self.by_hand = 0
        self.counters = Counters()
        self.last_error: LastError | None = None
        self.policies = {code: AdaptivePolicy(self.settings) for code in self.network.desks}
        self.plan_digest, self.ledger_digest = running_digest(), running_digest()
        self.measured: dict[str, dict[str, str | None]] = {}
        self.keys: dict[str, tuple[str, Json]] = {}
        self.calls: dict[str, int] = {}
        self.stop_source: str | None = None
        self.stop_reason: str | None = None
        self.last_clearing: dict[str, Json] = {}
        self.demonstration = demonstration.Demonstration()

    @classmethod
    def create(cls, config: Json) -> Self:
        try:
            read = msgspec.convert(config, Config)
        except msgspec.ValidationError as trouble:
            raise InvalidRun(f"This is no configuration of a run: {trouble}") from None
        return cls(read)

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        run = cls.create(config)
        saving.load(run, state)
        if broken := list(run.broken()):
            raise InvalidRun(f"This is no state of a run: {', '.join(broken)}", broken=broken)
        return run

    def state(self) -> bytes:
        return saving.save(self)

    def now(self) -> int:
        return self.tick

    def next_due(self) -> int | None:
        return self.tick + 1 if self.state_word == "running" else None

    def why(self, question: Json) -> Reason:
        """`{"from", "to", "equivalent", "amount"}`, `{"line": {...}}`, `{"clearing": code}` or `{"run": true}`."""
        return explain.why(self, question)

    def broken(self) -> Iterable[str]:
        return self.network.broken()

    @property
    def sim_time_ms(self) -> int:
        return self.tick * self.settings.tick_ms_base

    def apply(self, command: Commands) -> Outcome[Event]:
        match command:
            case Tick():
                return self._ticks(command)
            case SetIntensity(percent):
                return self._intensity(percent)
            case Pay():
                return manual.pay(self, command)
            case Clear():
                return manual.clear(self, command)
            case OpenLine():
                return manual.open_line(self, command)
            case SetLimit():
                return manual.set_limit(self, command)
            case CloseLine():
                return manual.close_line(self, command)
            case Freeze():
                return manual.freeze(self, command)
            case Configure(values):
                return self._configure(values)
            case Pause() | Resume() | Stop() | Restart():
                return self._steer(command)
            case _:
                assert_never(command)

    def _ticks(self, command: Tick) -> Outcome[Event]:
        if self.state_word != "running":
            message = f"The run is {self.state_word}; only a running run has ticks"
            return Outcome(refusal=Refusal("run_conflict", message, {"state": self.state_word}))
        self.in_flight, self.queue_depth = command.in_flight, command.queue_depth
        before = self.mark()
        events: list[Event] = []
        try:
            for _ in range(command.count):
                events += demonstration.tick(self) if self.config.mode == "fixtures" else phases.process(self)
                if self.state_word != "running":
                    break
        except Exception:
            # Code that is not ours has failed: the run stays where it was before the command.
            if before is not None:
                self.undo(before)
            raise
        return Outcome(tuple(events), {"tick_index": self.tick, "state": self.state_word, **self.digests()})

    def _intensity(self, percent: int) -> Outcome[Event]:
        if self.state_word not in ACTIVE:
            return self._ended()
        self.intensity = percent
        return self.told()

    def _configure(self, values: dict[str, str]) -> Outcome[Event]:
        if self.state_word not in ACTIVE:
            return self._ended()
        try:
            settings = changed(self.settings, values)
        except InputRefused as refused:
            return Outcome(refusal=Refusal(refused.code, refused.message, dict(refused.details)))
        if settings.tick_ms_base != self.settings.tick_ms_base:
            message = "The length of a tick cannot change within a run"
            return Outcome(refusal=Refusal("invalid_setting", message, {"variable": "SIMULATOR_TICK_MS_BASE"}))
        self.use(settings)
        return self.told()

    def use(self, settings: Settings) -> None:
        """Other settings from the next tick on; what the adaptive policy remembers stays, as far as its window goes."""
        self.settings = settings
        self.network.use(settings)
        self.policies = {code: AdaptivePolicy(settings, policy.memory()) for code, policy in self.policies.items()}

    def _ended(self) -> Outcome[Event]:
        message = f"The run is {self.state_word}; only a run that is running or paused can be changed"
        return Outcome(refusal=Refusal("run_conflict", message, {"state": self.state_word}))

    def _steer(self, command: Pause | Resume | Stop | Restart) -> Outcome[Event]:
        """A command that does not apply leaves the state as it is."""
        match command, self.state_word:
            case Pause(), "running":
                self.state_word = "paused"
            case Resume(), "paused":
                self.state_word = "running"
            case Stop(source, reason), "running" | "paused":
                self.state_word, self.stop_source, self.stop_reason = "stopped", source, reason
            case Restart(), _:
                self.state_word = "running"
                self._begin()
        return self.told()

    def told(self) -> Outcome[Event]:
        status = self.status()
        return Outcome((status,), msgspec.to_builtins(status))

    def status(self) -> RunStatus:
        counters = self.counters
        return RunStatus(
            self.config.run_id,
            self.scenario.id,
            self.state_word,
            self.tick,
            self.sim_time_ms,
            self.intensity,
            counters.attempts_total,
            counters.committed_total,
            counters.rejected_total,
            counters.errors_total,
            counters.timeouts_total,
            counters.dropped_total,
            self.all_rejected,
            self.last_error,
        )

    def fail(self, error: LastError) -> RunStatus:
        """A guardrail ends the run."""
        self.state_word, self.last_error = "error", error
        self.settle()
        return self.status()

    def digests(self) -> dict[str, str]:
        return {"plan": self.plan_digest.hexdigest(), "ledger": self.ledger_digest.hexdigest()}

    def settle(self) -> None:
        """Bring up to date what follows from the books."""
        for desk in self.network.desks.values():
            desk.settle()

    def mark(self) -> bytes | None:
        """What a command can be taken back to; only where others are asked while it is carried out."""
        settings = self.settings
        solver = settings.clearing_mode is ClearingMode.OPTIMAL or settings.clearing_yardstick
        others = self.config.engine == "external" or self.config.behaviour is not None
        return self.state() if others or solver else None

    def undo(self, mark: bytes) -> None:
        saving.load(self, mark)

    def silenced(self) -> Iterator[dict[str, Json]]:
        """Profiles in use whose smallest amount is above the cap."""
        cap = self.settings.amount_cap
        if cap is None:
            return
        for name, behaviour in sorted(self.network.planner.by_profile.items(), key=lambda one: one[0] or ""):
            for code, model in sorted(behaviour.models.items()):
                if model.min is not None and model.min > cap and code in self.network.desks:
                    facts: dict[str, Json] = {"kind": "profile_silenced", "profile": name, "equivalent": code}
                    yield {**facts, "min": text(model.min), "cap": text(cap)}
