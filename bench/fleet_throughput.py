"""Throughput of fleets, map by map, compared with the same trucks without interaction and with three other rules.

Tasks an hour of virtual time, the same streams and options for all; with each its longest wait, and that divided by the
median of all trucks. The figures depend on the map too. Without interaction the same tours are driven again, each truck
alone: their share of the time is the part not spent on other trucks. It is also printed for the shortest ways, as a
detour is a cost. The other rules, and very large fleets, are measured with one seed.
"""

import os
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from decimal import Decimal
from multiprocessing import get_context
from statistics import fmean
from time import monotonic
from typing import TYPE_CHECKING

from bench.measuring.progress import bar, left
from pendula.cli.benchmarks import Progress, Row, Target, compared, measured

if TYPE_CHECKING:
    from bench.fleet_throughput_loads import Beside, Errand, Figures

    Found = dict[Errand, tuple[Figures, Beside | None]]

# The scheduler's own libraries.
PEERS: tuple[str, ...] = ("numpy", "shapely")

# The target share of the throughput without interaction, in hundredths; None if it is only printed.
WANTED = {
    "reference_hall, opposed streams, 3 trucks": 85,
    "reference_hall, opposed streams, 4 trucks": None,
    "reference_hall, one stream, 3 trucks": 85,
    "12 m grid with spurs, 20 trucks": 80,
    "one-way warehouse, 20 trucks": 75,
    "one-way warehouse, 30 trucks": 75,
    "two-way warehouse, 10 trucks": 90,
    "two-way warehouse, 20 trucks": 55,
}
PRINTED = ("one-way warehouse, 100 trucks", "one-way warehouse, 200 trucks")
# Maps limited by their stations: tasks an hour that they allow, and the target share.
STATIONS = {"reference_hall, opposed streams, 4 trucks": (92, Decimal("0.85"))}
# The target ratio to another rule.
MORE = {
    "reference_hall, opposed streams, 3 trucks": Decimal("1.25"),
    "one-way warehouse, 20 trucks": Decimal("1.25"),
}
# An hour in all with three seeds; the other rules beside the first of them.
SECONDS, LARGE_SECONDS, SEEDS = 1_200, 600, (0, 1, 2)
QUICK_SECONDS, QUICK_LARGE_SECONDS, QUICK_SEEDS = 300, 20, (0,)


def run(quick: bool, progress: Progress) -> list[Row]:
    # Imported only now: the program names missing libraries before it imports the scheduler.
    from bench.fleet_throughput_loads import Errand, Kind

    long_ms, large_ms = (QUICK_SECONDS, QUICK_LARGE_SECONDS) if quick else (SECONDS, LARGE_SECONDS)
    seeds = QUICK_SEEDS if quick else SEEDS
    ours = {name: [Errand(name, Kind.OURS, long_ms * 1000, seed, alone=True) for seed in seeds] for name in WANTED}
    others = {
        name: [Errand(name, kind, long_ms * 1000, seeds[0]) for kind in (Kind.BANKER, Kind.ACYCLIC, Kind.WHOLE_PATHS)]
        for name in WANTED
    }
    large = [Errand(name, Kind.OURS, large_ms * 1000, seeds[0]) for name in PRINTED]
    found = _carried_out(
        [*large, *(errand for every in (ours, others) for each in every.values() for errand in each)], progress
    )
    rows = [row for name in WANTED for row in _rows(name, ours[name], others[name], found)]
    return [*rows, *(_printed(errand.name, found[errand][0]) for errand in large)]


def _carried_out(errands: "list[Errand]", progress: Progress) -> "Found":
    """All runs, on all cores, the largest first so that none runs alone at the end."""
    from bench.fleet_throughput_loads import drive

    ordered = sorted(errands, key=_size, reverse=True)
    whole, done, began = sum(map(_size, ordered)), 0, monotonic()
    found: Found = {}
    progress(f"{bar(0)} 0 of {len(ordered)} runs")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn")) as pool:
        waiting: dict[Future[tuple[Figures, Beside | None]], Errand] = {
            pool.submit(drive, errand): errand for errand in ordered
        }
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                errand = waiting.pop(future)
                found[errand] = future.result()
                done += _size(errand)
                soon = left(done / whole, monotonic() - began)
                progress(f"{bar(done / whole)} {len(found)} of {len(ordered)} runs{soon}")
    return found


def _size(errand: "Errand") -> int:
    """The approximate cost of a run; it grows more than linearly with the trucks that wait for each other."""
    trucks = int(errand.name.split()[-2])
    return errand.duration_ms * (trucks + trucks * trucks // 40 + 4) * (2 if errand.alone else 1)


def _rows(name: str, ours: "list[Errand]", others: "list[Errand]", found: "Found") -> list[Row]:
    """All figures printed for a map."""
    figures = [found[errand][0] for errand in ours]
    alone = [beside for errand in ours if (beside := found[errand][1]) is not None]
    mean, target = _mean(figures), WANTED[name]
    part = None if target is None else Decimal(target) / 100
    rows = [
        _alone(name, mean, fmean(beside.free for beside in alone), "no interaction", part),
        _alone(name, mean, fmean(beside.shortest for beside in alone), "no interaction, shortest ways", None),
    ]
    if name in STATIONS:
        allowed, least = STATIONS[name]
        rows.append(_beside(name, mean, float(allowed), "what its stations allow", least, _waited(mean)))
    first = figures[0]
    for errand in others:
        other = found[errand][0]
        waited = f"{_waited(first)}; beside it {_waited(other)}"
        rows.append(_beside(name, first, other.tasks_an_hour, errand.kind.value, MORE.get(name, Decimal(1)), waited))
    return rows


def _mean(found: "list[Figures]") -> "Figures":
    """The mean of all seeds, and the longest wait of any."""
    from bench.fleet_throughput_loads import Figures

    worst = max(found, key=lambda figures: figures.longest_s)
    return Figures(fmean(figures.tasks_an_hour for figures in found), worst.longest_s, worst.longest_over_median)


def _alone(name: str, ours: "Figures", share: float, against: str, least: Decimal | None) -> Row:
    waited = f"{_waited(ours)}; the same tours alone took {100 * share:.0f} % of the time"
    return _beside(name, ours, ours.tasks_an_hour / share, against, least, waited)


def _beside(name: str, ours: "Figures", other: float, against: str, least: Decimal | None, waited: str) -> Row:
    return compared(
        f"tasks an hour, {name}",
        ours.tasks_an_hour,
        max(other, 0.1),
        "tasks",
        against=against,
        target=None if least is None else Target(">=", least),
        fairness=waited,
    )


def _printed(name: str, ours: "Figures") -> Row:
    return measured(f"tasks an hour, {name}", ours.tasks_an_hour, "tasks", fairness=_waited(ours))


def _waited(figures: "Figures") -> str:
    return f"longest wait {figures.longest_s:.0f} s, {figures.longest_over_median:.1f} times the median"
