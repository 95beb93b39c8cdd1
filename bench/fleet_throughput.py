"""Throughput of fleets, map by map: beside the same trucks without interaction, and beside three other rules.

Tasks an hour of virtual time, the same tasks and options for all; with each its longest wait, and that by the median of
all trucks. The figure is of the map as well. What free trucks do on the shortest ways is printed: a detour is a cost.
"""

from decimal import Decimal
from statistics import fmean
from typing import TYPE_CHECKING

from pendula.cli.benchmarks import Progress, Row, Target, compared, measured

if TYPE_CHECKING:
    from bench.fleet_throughput_loads import Figures, Kind, Load, Places

# The room's own libraries.
PEERS: tuple[str, ...] = ("numpy", "shapely")

# What part of the throughput without interaction is wanted, in hundredths; nothing where it is printed only.
WANTED = {
    "reference_hall, opposed streams, 3 trucks": 85,
    "reference_hall, opposed streams, 4 trucks": 85,
    "reference_hall, one stream, 3 trucks": 85,
    "12 m grid with spurs, 20 trucks": 80,
    "one-way warehouse, 20 trucks": 75,
    "one-way warehouse, 30 trucks": 75,
    "two-way warehouse, 10 trucks": 90,
    "two-way warehouse, 20 trucks": 55,
    "one-way warehouse, 100 trucks": None,
    "one-way warehouse, 200 trucks": None,
}
# How many times what another rule does.
MORE = {
    "reference_hall, opposed streams, 3 trucks": Decimal("1.25"),
    "one-way warehouse, 20 trucks": Decimal("1.25"),
}
SECONDS, QUICK_SECONDS, LARGE_SECONDS = 3_600, 120, 600
SEEDS, QUICK_SEEDS = (0, 1, 2), (0,)


def run(quick: bool, progress: Progress) -> list[Row]:
    # Looked for only now: the program names missing libraries before anything of the room is read.
    from bench.fleet_throughput_loads import Kind, Load, Places

    places, rows = Places(), []
    for name, wanted in WANTED.items():
        seconds = QUICK_SECONDS if quick else LARGE_SECONDS if wanted is None else SECONDS
        seeds = QUICK_SEEDS if quick or wanted is None else SEEDS
        load = Load(name, seconds * 1000, seeds)
        ours = _mean(places, load, Kind.OURS, progress)
        if wanted is None:
            rows.append(measured(f"tasks an hour, {name}", ours.tasks_an_hour, "tasks", fairness=_waited(ours)))
            continue
        for kind, least in _yardsticks(name, Decimal(wanted) / 100).items():
            rows.append(_beside(name, ours, _mean(places, load, kind, progress), kind.value, least))
    return rows


def _yardsticks(name: str, part: Decimal) -> dict["Kind", Decimal | None]:
    from bench.fleet_throughput_loads import Kind

    more = MORE.get(name, Decimal(1))
    others = dict.fromkeys((Kind.BANKER, Kind.ACYCLIC, Kind.WHOLE_PATHS), more)
    return {Kind.FREE: part, Kind.SHORTEST: None, **others}


def _mean(places: "Places", load: "Load", kind: "Kind", progress: Progress) -> "Figures":
    """The mean of all seeds, and the longest wait of any."""
    from bench.fleet_throughput_loads import Figures

    progress(f"{load.name}: {kind.value}, {len(load.seeds)} x {load.duration_ms // 1000} s")
    found = [places.drive(load.name, kind, load.duration_ms, seed) for seed in load.seeds]
    worst = max(found, key=lambda one: one.longest_s)
    return Figures(fmean(one.tasks_an_hour for one in found), worst.longest_s, worst.longest_over_median)


def _beside(name: str, ours: "Figures", other: "Figures", against: str, least: Decimal | None) -> Row:
    return compared(
        f"tasks an hour, {name}",
        ours.tasks_an_hour,
        max(other.tasks_an_hour, 0.1),
        "tasks",
        against=against,
        target=None if least is None else Target(">=", least),
        fairness=f"{_waited(ours)}; beside it {_waited(other)}",
    )


def _waited(one: "Figures") -> str:
    return f"longest wait {one.longest_s:.0f} s, {one.longest_over_median:.1f} times the median"
