"""What if: a run as it stands goes on twice, as it is and with other settings, and what comes of each is told.

Both are copies in memory: the run that is served, its journal and its numbers know nothing of them.
"""

from copy import copy

from msgspec import Struct

from pendula.credit.commands import Resume
from pendula.credit.engine import Run
from pendula.credit.outside.solver import SolverWhenAsked
from pendula.credit.runs.forking import Branch, ForkRefused, compared, fork
from pendula.credit.settings import changed
from pendula.credit.state.counters import Counters
from pendula.kernel.cancellation import check
from pendula.kernel.canonical import decode, encode
from pendula.server.schedulers.credit.shapes import WhatIf, WhatIfBranch, WhatIfView


class Standing(Struct, frozen=True):
    """A run as bytes: what two copies are made of, away from the thread of its engine."""

    kind: type[Run]
    config: bytes
    state: bytes

    def copy(self) -> Run:
        return self.kind.from_state(decode(self.config), self.state)


class _Trail:
    """What a run tried and made, tick by tick, from where it stands."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before = (run.counters.attempts_total, run.counters.committed_total)
        self.tried: list[int] = []
        self.made: list[int] = []

    def note(self) -> None:
        now = (self._run.counters.attempts_total, self._run.counters.committed_total)
        self.tried.append(now[0] - self._before[0])
        self.made.append(now[1] - self._before[1])
        self._before = now


def as_bytes(run: Run) -> Standing:
    """A run as it stands, read on the engine's thread."""
    return Standing(type(run), encode(run.config), run.state())


def standing(run: Run) -> Standing:
    """On the engine's thread; raises `ForkRefused` for a run that has ended."""
    if run.state_word not in ("running", "paused"):
        raise ForkRefused(
            f"The run is {run.state_word}; only one that is running or paused can be asked what would be",
            tick=run.tick,
            state=run.state_word,
        )
    if run.config.engine == "external":
        raise ForkRefused(
            "Another system makes the payments of this run; what it would do is not known here",
            tick=run.tick,
            state=run.state_word,
        )
    return as_bytes(run)


def what_if(run_id: str, found: Standing, wish: WhatIf) -> WhatIfView:
    """Let both go on; raises `InvalidSetting`."""
    original = found.copy()
    if original.state_word == "paused":
        original.apply(Resume())
    other = fork(original, changed(original.settings, wish.settings))
    both = (original, other)
    for one in both:
        one.outside = SolverWhenAsked()
    before, trails = copy(original.counters), [_Trail(one) for one in both]

    def watch(_: int) -> None:
        check()
        for trail in trails:
            trail.note()

    result = compared(original, other, wish.ticks, watch)
    return WhatIfView(
        run_id=run_id,
        tick_index=result.tick,
        ticks=result.ticks,
        settings={name: list(values) for name, values in result.settings.items()},
        first_difference=result.first_difference["ledger"],
        original=_told(result.original, before, trails[0]),
        fork=_told(result.fork, before, trails[1]),
    )


def _told(branch: Branch, before: Counters, trail: _Trail) -> WhatIfBranch:
    return WhatIfBranch(
        attempts=branch.counters.attempts_total - before.attempts_total,
        committed=branch.counters.committed_total - before.committed_total,
        rejected=branch.counters.rejected_total - before.rejected_total,
        metrics=branch.metrics,
        clearings=branch.cleared.calls,
        debt_reduction=branch.cleared.debt_reduction,
        tried_by_tick=trail.tried,
        made_by_tick=trail.made,
    )
