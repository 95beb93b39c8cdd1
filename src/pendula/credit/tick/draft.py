"""What one tick has come to so far, handed from phase to phase."""

from pendula.credit.events import Event, Note
from pendula.credit.model import Code
from pendula.credit.planning.planner import Planned
from pendula.credit.state.run_state import RunState
from pendula.credit.tick.metrics import Tally
from pendula.credit.tick.questions import Wish
from pendula.kernel.canonical import Json


class Draft:
    """What one tick has come to so far."""

    def __init__(self, run: RunState) -> None:
        self.tick = run.tick
        self.at_ms = run.sim_time_ms
        self.events: list[Event] = []
        self.tallies = {code: Tally() for code in run.network.desks}
        self.plan: list[Planned | Failed] = []
        self.budget = 0
        self.dropped = 0
        self.work = 0
        self.calls = 0
        self.over = False  # a guardrail has ended the run

    def note(self, facts: dict[str, Json]) -> None:
        self.events.append(Note(self.tick, self.at_ms, facts))


class Failed(tuple[int, Wish, Code]):
    """A wish that cannot even be tried."""
