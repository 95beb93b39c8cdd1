"""The intermediate result of a tick, passed from phase to phase."""

from pendula.credit.events import Event, Note
from pendula.credit.state.run_state import RunState
from pendula.credit.tick.actions import Attempt, DueClearing
from pendula.credit.tick.metrics import Tally
from pendula.kernel.canonical import Json


class Draft:
    """The intermediate result of a tick; `first` are the actions scheduled by the scenario."""

    def __init__(self, run: RunState) -> None:
        self.tick = run.tick
        self.at_ms = run.sim_time_ms
        self.events: list[Event] = []
        self.tallies = {code: Tally() for code in run.network.ledgers}
        self.first: list[Attempt | DueClearing] = []
        self.plan: list[Attempt] = []
        self.budget = 0
        self.tried = 0
        self.committed = 0
        self.rejected = 0
        self.errors = 0
        self.timeouts = 0
        self.dropped = 0
        self.in_flight = 0  # the highest number of simultaneous calls
        self.cost_ms = 0
        self.work = 0
        self.calls = 0
        self.over = False  # a guardrail has ended the run

    def note(self, facts: dict[str, Json]) -> None:
        self.events.append(Note(self.tick, self.at_ms, facts))

    @property
    def payments(self) -> list[Attempt]:
        """All payments in the plan of this tick, scheduled ones first."""
        return [*(attempt for attempt in self.first if isinstance(attempt, Attempt)), *self.plan]
