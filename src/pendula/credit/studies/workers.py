"""Distributes runs of one scenario: a run depends only on its scenario, seed and settings.

Each worker receives the scenario once, as canonical JSON. Runs of one seed are consecutive and share their draws.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from pendula import __version__, spreading
from pendula.credit.commands import BehaviourName
from pendula.credit.engine import Run
from pendula.credit.outside.behaviours import find_behaviour
from pendula.credit.planning.planner import Draws
from pendula.credit.settings import Settings
from pendula.credit.studies.figures import Figures, figures_of
from pendula.credit.studies.variations import vary
from pendula.documents import Document, from_value
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.errors import WrongUsage
from pendula.spreading import Watch, Where


class Task(Struct, frozen=True):
    """One run; `about` describes its settings in messages. `changes` are variations of the scenario."""

    settings: Settings
    seed: int
    about: str
    changes: tuple[tuple[str, str], ...] = ()


class Job(Struct, frozen=True):
    """Everything that all runs share; the scenario as canonical JSON."""

    scenario: bytes
    ticks: int
    skip: int = 0
    intensity: int = 100
    lenient: bool = False
    trail: bool = False
    behaviour: BehaviourName | None = None

    def open(self) -> "_Bench":
        return _Bench(self)

    def words(self, task: Task) -> str:
        return f"the run with {task.about}, seed {task.seed}"

    def facts(self, task: Task) -> dict[str, Json]:
        return {"settings": task.about, "seed": task.seed}

    def order(self, tasks: Sequence[Task]) -> list[int]:
        """Runs of one seed are consecutive."""
        seeds = {seed: order for order, seed in enumerate(dict.fromkeys(task.seed for task in tasks))}
        return sorted(range(len(tasks)), key=lambda at: (seeds[tasks[at].seed], at))

    def signature(self) -> str:
        return _signature()


class _Bench:
    """The parsed scenario, and the draws of the last seed."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._document = from_value(decode(job.scenario), "scenario")
        self._draws, self._seed = Draws(), -1

    def run(self, task: Task, stop: Callable[[], bool] | None = None) -> Figures:
        if task.seed != self._seed:
            self._draws, self._seed = Draws(), task.seed
        job = self._job
        return figures_of(
            from_value(vary(decode(job.scenario), task.changes), "scenario") if task.changes else self._document,
            task.settings,
            task.seed,
            job.ticks,
            skip=job.skip,
            intensity=job.intensity,
            lenient=job.lenient,
            trail=job.trail,
            behaviour=job.behaviour,
            draws=self._draws,
            stop=stop,
        )


def job_of(
    document: Document,
    ticks: int,
    skip: int,
    intensity: int,
    lenient: bool,
    trail: bool = False,
    behaviour: str | None = None,
) -> Job:
    """The job of a document; raises `WrongUsage` if no tick is left to count, and `UnknownBehaviour`."""
    if not 0 <= skip < ticks:
        raise WrongUsage(f"{skip} of {ticks} ticks are skipped; at least one must be counted", ticks=ticks, skip=skip)
    if not 0 <= intensity <= 100:
        raise WrongUsage(f"The intensity is {intensity}; it must be 0 to 100 per cent", intensity=intensity)
    named = None if behaviour is None else BehaviourName(behaviour, find_behaviour(behaviour).version)
    return Job(encode(document.value), ticks, skip, intensity, lenient=lenient, trail=trail, behaviour=named)


def seeds_of(seeds: Iterable[int]) -> tuple[int, ...]:
    """Different seeds, none of them negative; raises `WrongUsage`."""
    distinct = tuple(seeds)
    if not distinct or len(set(distinct)) < len(distinct) or min(distinct) < 0:
        raise WrongUsage("The seeds must be distinct and not negative", seeds=list(distinct[:100]))
    return distinct


def spread(job: Job, tasks: Sequence[Task], where: Where, watch: Watch | None = None) -> list[Figures]:
    """The figures of each task, in order; calls `watch` with the number of finished tasks.

    From a script, more than one worker needs the script's own `if __name__ == "__main__":`, because each worker is a
    fresh interpreter that imports it. Raises `TaskFailed`, `WorkerLost`, `ClusterFailed`, `MissingExtra`.
    """
    if where.dask is None:
        _require_solver(tasks)
    return spreading.spread(job, tasks, where, watch)


def _require_solver(tasks: Sequence[Task]) -> None:
    """Raise for missing extras before anything runs."""
    if any(task.settings.needs_solver for task in tasks):
        from pendula.credit.outside.answers import OrTools

        OrTools()


def _signature() -> str:
    """Equal signatures guarantee equal runs."""
    return f"{__version__} (decisions {Run.decisions})"
