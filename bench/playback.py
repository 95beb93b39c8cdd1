"""Playback compared with a loop in Python, numpy and a loop in C, with 64 channels, in one run.

Before the measurement all sides give the same picks. Whole items are compared with the naive pick, too: it only selects
a channel, while ours also reads a record, avoids repeats, draws new artwork, and keeps what `why` and `prev` need.
"""

import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from msgspec import Struct

from bench import playback_figures as figures
from bench import playback_loads as loads
from bench import playback_peers as peers
from bench.measuring.cpu_time import Rounds, Work
from bench.playback_loads import Listener
from pendula.cli.benchmarks import Progress, Row, Target, compared, measured
from pendula.playback.choosing.swrr import RoundRobin

# numpy and a C compiler are compared only if they are installed.
PEERS: tuple[str, ...] = ()

ROUNDS, QUICK_ROUNDS = 9, 3
NAIVE = "naive Python"


def at_least(bound: str) -> Target:
    return Target(">=", Decimal(bound))


class Side(Struct, frozen=True):
    """Work, and the number of picks or items that it makes."""

    count: int
    work: Work


class Sides:
    """Sides measured in alternation; rows that compare them, in picks or items a second."""

    def __init__(self, sides: Mapping[str, Side], rounds: int) -> None:
        self._counts = {name: side.count for name, side in sides.items()}
        self._rounds = Rounds({name: side.work for name, side in sides.items()}, rounds)

    def rate(self, side: str) -> float:
        return self._counts[side] / self._rounds.seconds(side)

    def row(
        self,
        name: str,
        ours: str,
        theirs: str = NAIVE,
        unit: str = "items/s",
        target: Target | None = None,
        fairness: str = "",
    ) -> Row:
        return compared(
            name,
            self.rate(ours),
            self.rate(theirs),
            unit,
            against=theirs,
            ratio=self._rounds.times_faster(ours, theirs) * self._counts[ours] / self._counts[theirs],
            target=target,
            fairness=fairness,
        )


def run(quick: bool, progress: Progress) -> list[Row]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    share = 4 if quick else 1
    with tempfile.TemporaryDirectory(prefix="pendula-bench-") as place:
        progress("round robin")
        found = round_robin(Path(place), rounds, share)
        progress("64 channels of 1024 records, in memory and in cache files")
        loads.write_caches(Path(place))
        progress("items")
        found += items(Path(place), rounds, share)
        return found + figures.rows(Path(place), quick, progress)


def round_robin(place: Path, rounds: int, share: int) -> list[Row]:
    weights = loads.weights()
    others: dict[str, peers.Picks | None] = {
        NAIVE: peers.naive(weights),
        "numpy": peers.with_numpy(weights),
        "C, as nginx": peers.in_c(weights, place),
    }
    assert_agreement(weights, {name: side for name, side in others.items() if side is not None})
    steps = 20_000 // share
    sides = {name: Side(steps, _steps(side, steps)) for name, side in others.items() if side is not None}
    known = RoundRobin(weights)
    known.table += loads.period()
    sides["first period"] = Side(steps, lambda: _one_by_one(RoundRobin(weights), steps))
    sides["second period"] = Side(10 * steps, lambda: _one_by_one(known, 10 * steps))
    sides["in bulk"] = Side(1000 * steps, lambda: _in_bulk(known, 1000 * steps))
    measured_sides = Sides(sides, rounds)
    return [*_beside_naive(measured_sides), *_beside_numpy(measured_sides, sides), *_beside_c(measured_sides, sides)]


def assert_agreement(weights: list[int], others: Mapping[str, peers.Picks], steps: int = 5000) -> None:
    """Check that all sides pick the same channels from the first step; the peers keep the state after it."""
    expected = list(RoundRobin(weights).ahead(steps))
    for name, picks in others.items():
        assert list(picks(steps)) == expected, f"{name} picks other channels"


def _steps(picks: peers.Picks, steps: int) -> Work:
    return lambda: picks(steps)


def _one_by_one(sequence: RoundRobin, steps: int) -> list[int]:
    return [sequence.next() for _ in range(steps)]


def _in_bulk(sequence: RoundRobin, steps: int) -> None:
    for _ in range(steps // loads.TAKEN):
        sequence.ahead(loads.TAKEN)
        sequence.taken += loads.TAKEN


def _beside_naive(sides: Sides) -> list[Row]:
    return [
        sides.row(
            "a pick, from the second period on",
            "second period",
            unit="picks/s",
            target=at_least("20"),
            fairness="one call a pick on both sides; ours reads a table of 64 KiB that the first period wrote, the "
            "peer keeps nothing but credits; weights that are all equal repeat after 64 steps, here it takes 65536",
        ),
        sides.row(
            "a pick, in the first period",
            "first period",
            unit="picks/s",
            target=at_least("0.8"),
            fairness="the same loop on both sides; ours also writes the pick down",
        ),
        sides.row(
            "a pick, in bulk, from the second period on",
            "in bulk",
            unit="picks/s",
            fairness=f"ours copies {loads.TAKEN} bytes of the table at a time; the peer has no bulk form",
        ),
    ]


def _beside_numpy(sides: Sides, there: Mapping[str, Side]) -> list[Row]:
    names = {
        "second period": "a pick, from the second period on, beside numpy",
        "first period": "a pick, in the first period, beside numpy",
    }
    if "numpy" not in there:
        sentence = "numpy is not installed: nothing to compare with"
        return [measured(name, sides.rate(ours), "picks/s", sentence=sentence) for ours, name in names.items()]
    fairness = "three calls of numpy a pick, which for 64 channels cost more than the arithmetic"
    return [sides.row(name, ours, "numpy", "picks/s", fairness=fairness) for ours, name in names.items()]


def _beside_c(sides: Sides, there: Mapping[str, Side]) -> list[Row]:
    name, ours = "a pick, in bulk, beside C", "in bulk"
    if "C, as nginx" not in there:
        return [measured(name, sides.rate(ours), "picks/s", sentence="no compiler: nothing to compare with")]
    fairness = "the loop over the picks is in C as well, and nothing of Python is in it; the peer has no table"
    one = "one pick a call of Python on our side, none on the other"
    return [
        sides.row(name, ours, "C, as nginx", "picks/s", fairness=fairness),
        sides.row(
            "a pick, from the second period on, beside C", "second period", "C, as nginx", "picks/s", fairness=one
        ),
    ]


def items(place: Path, rounds: int, share: int) -> list[Row]:
    pick = peers.naive(loads.weights())
    channels = loads.in_memory()
    by_name = {
        "memory": Listener(channels),
        "pool": Listener(channels),
        "disk": Listener(loads.on_disk(place)),
        "random": Listener(channels, loads.RANDOM),
    }
    by_name["pool"].fills_the_pool()
    many, some = 80_000 // share, 16_000 // share
    sides = Sides(
        {
            NAIVE: Side(20_000 // share, _steps(pick, 20_000 // share)),
            "memory": Side(many, lambda: by_name["memory"].takes(many)),
            "pool": Side(some, lambda: by_name["pool"].takes_beside_a_pool(some)),
            "disk": Side(many, lambda: by_name["disk"].takes(many)),
            "random": Side(some, lambda: by_name["random"].takes(some)),
            "next": Side(some, lambda: by_name["memory"].nexts(some)),
        },
        rounds,
    )
    once = "one new artwork every 1000 items"
    bytes_given = "new artworks are handed in as 80 bytes"
    return [
        sides.row(
            f"take(1000), in memory, {once}",
            "memory",
            target=at_least("5"),
            fairness=f"whole items beside bare picks; the table is written; {bytes_given}",
        ),
        sides.row(
            "take(32), in memory, a pool that is never empty",
            "pool",
            target=at_least("2"),
            fairness="three new artworks before every 32 items, inserting them counted in: nearly half of the items "
            f"are new artworks, and every item draws a number; {bytes_given}",
        ),
        sides.row(
            f"take(1000), cache files, {once}",
            "disk",
            target=at_least("1.5"),
            fairness="the files are in the memory of the operating system; two blocks a channel are kept, so every "
            "block is read and its checksums are verified in every pass",
        ),
        sides.row(f"take(1000), in memory, random picks, {once}", "random", fairness="every item draws a place"),
        sides.row(f"next(), in memory, {once}", "next", fairness="every thirty-second call makes 32 items"),
    ]
