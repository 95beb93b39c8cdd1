"""What if: forks the current state of a run, with its own and with other settings, and compares the branches.

Both are copies in memory; the served run, its journal and its metrics do not change.
"""

from copy import copy

from msgspec import Struct

from pendula.credit.commands import Resume
from pendula.credit.engine import Run
from pendula.credit.outside.answers import SolverWhenAsked
from pendula.credit.runs.forking import Branch, ForkRefused, compare_runs, fork
from pendula.credit.settings import change_settings
from pendula.credit.state.counters import Counters
from pendula.kernel.cancellation import check
from pendula.kernel.canonical import decode, encode
from pendula.server.schedulers.credit.shapes import WhatIf, WhatIfBranch, WhatIfView


class SerializedRun(Struct, frozen=True):
    """A serialized run, from which copies are made outside of the engine's thread."""

    kind: type[Run]
    config: bytes
    state: bytes

    def copy(self) -> Run:
        return self.kind.from_state(decode(self.config), self.state)


class _TickCounts:
    """Payments tried and made in each tick since the fork."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before = (run.counters.attempts_total, run.counters.committed_total)
        self.tried: list[int] = []
        self.made: list[int] = []

    def add_tick(self) -> None:
        now = (self._run.counters.attempts_total, self._run.counters.committed_total)
        self.tried.append(now[0] - self._before[0])
        self.made.append(now[1] - self._before[1])
        self._before = now


def serialize_run(run: Run) -> SerializedRun:
    """Called on the engine's thread."""
    return SerializedRun(type(run), encode(run.config), run.state())


def serialize_active_run(run: Run) -> SerializedRun:
    """Called on the engine's thread; raises `ForkRefused` for an ended run or one with an external engine."""
    if run.state_word not in ("running", "paused"):
        raise ForkRefused(
            f"The run is {run.state_word}; only a run that is running or paused can be forked",
            tick=run.tick,
            state=run.state_word,
        )
    if run.config.engine == "external":
        raise ForkRefused(
            "An external service makes the payments of this run; its decisions cannot be simulated",
            tick=run.tick,
            state=run.state_word,
        )
    return serialize_run(run)


def what_if(run_id: str, serialized: SerializedRun, request: WhatIf) -> WhatIfView:
    """Run both branches; raises `InvalidSetting`."""
    original = serialized.copy()
    if original.state_word == "paused":
        original.apply(Resume())
    other = fork(original, change_settings(original.settings, request.settings))
    branches = (original, other)
    for run in branches:
        run.outside = SolverWhenAsked()
    before, counts = copy(original.counters), [_TickCounts(run) for run in branches]

    def watch(_: int) -> None:
        check()
        for branch_counts in counts:
            branch_counts.add_tick()

    result = compare_runs(original, other, request.ticks, watch)
    return WhatIfView(
        run_id=run_id,
        tick_index=result.tick,
        ticks=result.ticks,
        settings={name: list(values) for name, values in result.settings.items()},
        first_difference=result.first_difference["ledger"],
        original=_branch_view(result.original, before, counts[0]),
        fork=_branch_view(result.fork, before, counts[1]),
    )


def _branch_view(branch: Branch, before: Counters, counts: _TickCounts) -> WhatIfBranch:
    return WhatIfBranch(
        attempts=branch.counters.attempts_total - before.attempts_total,
        committed=branch.counters.committed_total - before.committed_total,
        rejected=branch.counters.rejected_total - before.rejected_total,
        metrics=branch.metrics,
        clearings=branch.cleared.calls,
        debt_reduction=branch.cleared.debt_reduction,
        tried_by_tick=counts.tried,
        made_by_tick=counts.made,
    )
