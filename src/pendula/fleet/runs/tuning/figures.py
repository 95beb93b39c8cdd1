"""What one trial comes to: tasks done, the longest wait, for what trucks waited, and how busy the stations were."""

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


class Figures(Struct, frozen=True):
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


class Watching:
    """Counts tick by tick."""

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
        nodes = {one.node for one in self._run.dispatch.drivers if one.phase in _WORKING}
        for node in sorted(nodes):
            self.busy[site.network.nodes[node].id] += self._period_ms


def figures_of(run: Run, duration_ms: int, stop: Callable[[], bool] | None = None) -> Figures:
    """Raises `Stopped` when `stop` says so."""
    watching = Watching(run)
    while run.now_ms < duration_ms:
        if stop is not None and stop():
            raise Stopped
        watching.note(run.step())
    form = run.result().form
    return Figures(
        simulated_ms=run.now_ms,
        tasks=form["tasks"]["done"],
        longest_wait_ms=form["metrics"]["longestWaitMs"],
        waits=tuple((name, code, ms) for (name, code), ms in sorted(watching.waits.items())),
        busy=tuple(sorted(watching.busy.items())),
        violations=sum(one["violations"] for one in form["invariants"].values()),
    )
