"""The complete state of a run between two commands: status, counters, digests.

Only the engine and the modules it dispatches to change it; other code reads a `Run`.
"""

import msgspec
from msgspec import Struct

from pendula.credit.commands import Config
from pendula.credit.events import Event, LastError, RunStatus
from pendula.credit.model import Scenario
from pendula.credit.settings import Settings, check_settings
from pendula.credit.state.clearing_policy import AdaptivePolicy
from pendula.credit.state.counters import Counters, Demand
from pendula.credit.state.digests import running_digest
from pendula.credit.state.network import Network
from pendula.kernel.canonical import Json
from pendula.kernel.engine import NoOutside, Outcome, Outside


class Waiting(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A payment of the plan of `tick` that was not tried yet; `wanted` in cents."""

    tick: int
    seq: int
    sender: str
    receiver: str
    equivalent: str
    amount: str
    wanted: int


FIRST_CLEARING_MS = 25_000


class Demonstration(Struct, forbid_unknown_fields=True):
    """When the next events of the demonstration mode are due, in virtual milliseconds."""

    next_payment: int = 0
    next_clearing: int = FIRST_CLEARING_MS
    done_at: int | None = None
    shown: int = 0


class RunState:
    """The state of one run; `begin` resets it to tick 0. Raises `InvalidSetting` for settings out of range."""

    def __init__(self, config: Config, scenario: Scenario) -> None:
        self.outside: Outside = NoOutside()
        self.config = config
        self.seed = config.seed
        self.scenario = scenario
        self.settings: Settings = check_settings(config.settings)
        self.intensity = config.intensity_percent
        self.state_word = "running"
        self.in_flight = self.callers_queue = 0
        self.begin()

    def begin(self) -> None:
        """Tick 0 with the ledger of the scenario."""
        self.network = Network(self.scenario, self.settings)
        self.tick = self.fired = self.failed_ticks = self.all_rejected = self.by_hand = 0
        self.counters = Counters()
        self.demand = {code: Demand() for code in self.network.ledgers}
        self.last_error: LastError | None = None
        self.policies = {code: AdaptivePolicy(self.settings) for code in self.network.ledgers}
        self.plan_digest, self.ledger_digest = running_digest(), running_digest()
        self.measured: dict[str, dict[str, str | None]] = {}
        self.keys: dict[str, tuple[str, Json]] = {}
        self.calls: dict[str, int] = {}
        self.stop_source: str | None = None
        self.stop_reason: str | None = None
        self.last_clearing: dict[str, Json] = {}
        self.demonstration = Demonstration()
        self.queue: tuple[Waiting, ...] = ()

    @property
    def queue_depth(self) -> int:
        """Payments that were planned and not tried yet."""
        return len(self.queue)

    @property
    def sim_time_ms(self) -> int:
        return self.tick * self.settings.tick_ms_base

    @property
    def active(self) -> bool:
        """Whether the run has not ended."""
        return self.state_word in ("running", "paused")

    def use(self, settings: Settings) -> None:
        """Change settings from the next tick on; the adaptive policy keeps its memory, as far as its window goes."""
        self.settings = settings
        self.network.use(settings)
        self.policies = {code: AdaptivePolicy(settings, policy.memory()) for code, policy in self.policies.items()}

    def settle(self) -> None:
        """Update everything derived from the books."""
        for ledger in self.network.ledgers.values():
            ledger.settle()

    def fail(self, error: LastError) -> RunStatus:
        """End the run in error, by a guardrail."""
        self.state_word, self.last_error = "error", error
        self.settle()
        return self.status()

    def status_outcome(self) -> Outcome[Event]:
        """The outcome of a command that changed only the status."""
        status = self.status()
        return Outcome((status,), msgspec.to_builtins(status))

    def status(self) -> RunStatus:
        return RunStatus(
            run_id=self.config.run_id,
            scenario_id=self.scenario.id,
            state=self.state_word,
            tick_index=self.tick,
            sim_time_ms=self.sim_time_ms,
            intensity_percent=self.intensity,
            **msgspec.structs.asdict(self.counters),
            queue_depth=self.queue_depth,
            consec_all_rejected_ticks=self.all_rejected,
            last_error=self.last_error,
        )

    def digests(self) -> dict[str, str]:
        """Of the plans and of the ledgers of all ticks so far."""
        return {"plan": self.plan_digest.hexdigest(), "ledger": self.ledger_digest.hexdigest()}
