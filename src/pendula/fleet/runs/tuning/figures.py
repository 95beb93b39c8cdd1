"""Results of one trial: tasks done, the longest wait, reasons and places of waits, and the load of stations."""

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from pendula.fleet.contracts.traffic import Phase
from pendula.fleet.scenarios import Run
from pendula.fleet.tick import TickOutputs
from pendula.fleet.views.reasons import code_of, resource_id
from pendula.spreading import Stopped

HOUR_MS = 3_600_000
_WORKING = frozenset({Phase.LOADING, Phase.UNLOADING})


class TrialFigures(Struct, frozen=True):
    """Results of one run. `waits`: total wait of all trucks by reason and resource; `busy`: time of loading and
    unloading by node. `refused`: why the fleet cannot run on the map."""

    simulated_ms: int = 0
    tasks: int = 0
    longest_wait_ms: int = 0
    waits: tuple[tuple[str, str, int], ...] = ()
    busy: tuple[tuple[str, int], ...] = ()
    violations: int = 0
    refused: str | None = None

    @property
    def tasks_per_hour(self) -> int:
        return self.tasks * HOUR_MS // max(self.simulated_ms, 1)


class FigureCounter:
    """Counts waits and busy nodes tick by tick."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._period_ms = run.scenario.traffic.tick_period_ms
        self.waits: Counter[tuple[str, str]] = Counter()
        self.busy: Counter[str] = Counter()

    def note(self, outputs: TickOutputs) -> None:
        site = self._run.site
        for record in outputs.scene.records:
            waiting, code = record.waiting, code_of(record)
            if waiting is not None and code is not None and waiting.resource is not None:
                self.waits[resource_id(site, waiting.resource), code] += self._period_ms
        nodes = {driver.node for driver in self._run.dispatch.drivers if driver.phase in _WORKING}
        for node in sorted(nodes):
            self.busy[site.network.nodes[node].id] += self._period_ms


def figures_of(run: Run, duration_ms: int, stop: Callable[[], bool] | None = None) -> TrialFigures:
    """Run to the end of the duration; raises `Stopped` when `stop` returns true."""
    counter = FigureCounter(run)
    while run.now_ms < duration_ms:
        if stop is not None and stop():
            raise Stopped
        counter.note(run.step())
    form = run.result().form
    return TrialFigures(
        simulated_ms=run.now_ms,
        tasks=form["tasks"]["done"],
        longest_wait_ms=form["metrics"]["longestWaitMs"],
        waits=tuple((name, code, ms) for (name, code), ms in sorted(counter.waits.items())),
        busy=tuple(sorted(counter.busy.items())),
        violations=sum(invariant["violations"] for invariant in form["invariants"].values()),
    )
