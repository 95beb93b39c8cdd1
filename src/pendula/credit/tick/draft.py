"""What one tick has come to so far, handed from phase to phase."""

from pendula.credit.events import Event, Note
from pendula.credit.state.run_state import RunState
from pendula.credit.tick.actions import Attempt, DueClearing
from pendula.credit.tick.metrics import Tally
from pendula.kernel.canonical import Json


class Draft:
    """What one tick has come to so far; `first` are the actions that the scenario dates."""

    def __init__(self, run: RunState) -> None:
        self.tick = run.tick
        self.at_ms = run.sim_time_ms
        self.events: list[Event] = []
        self.tallies = {code: Tally() for code in run.network.desks}
        self.first: list[Attempt | DueClearing] = []
        self.plan: list[Attempt] = []
        self.budget = 0
        self.tried = 0
        self.committed = 0
        self.rejected = 0
        self.errors = 0
        self.timeouts = 0
        self.dropped = 0
        self.in_flight = 0  # the most calls that were under way at once
        self.cost_ms = 0
        self.work = 0
        self.calls = 0
        self.over = False  # a guardrail has ended the run

    def note(self, facts: dict[str, Json]) -> None:
        self.events.append(Note(self.tick, self.at_ms, facts))

    @property
    def payments(self) -> list[Attempt]:
        """All payments of the plan of this tick, those that are dated first."""
        return [*(one for one in self.first if isinstance(one, Attempt)), *self.plan]
