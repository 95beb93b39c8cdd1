"""The benchmark protocol, how results are judged, and how benchmarks are found.

Benchmarks are in the checkout, `bench/<scheduler>.py`, and implement `Bench`: they measure Pendula and a peer in one
run, with the same work and durability, and return `Row`s. Parts of a benchmark are modules
`bench/<scheduler>_<part>.py`; a scheduler with several benchmarks has no module of its bare name, and `fleet-map` is
`bench/fleet_map.py`. A ratio is Pendula's value divided by the peer's; a target is a bound for it. A comparison that is
unfair on this machine (a disk in memory, a missing peer) is not judged.
"""

import os
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from msgspec import Struct

import pendula
from pendula.kernel.errors import MissingExtra, WorldBroken, WrongUsage

Progress = Callable[[str], None]

RATIO_STEP = Decimal("0.01")


class Verdict(StrEnum):
    MET = "met"
    MISSED = "missed"
    NOT_JUDGED = "not judged"


class Target(Struct, frozen=True):
    """The bound for a ratio."""

    relation: Literal["<=", ">="]
    bound: Decimal

    def __str__(self) -> str:
        return f"{self.relation} {self.bound}"

    def holds(self, ratio: Decimal) -> bool:
        return ratio <= self.bound if self.relation == "<=" else ratio >= self.bound


class Row(Struct, frozen=True):
    """One row: the same work by Pendula and the yardstick, in `unit`."""

    name: str
    ours: Decimal
    unit: str
    against: str = ""
    yardstick: Decimal | None = None
    ratio: Decimal | None = None
    target: str | None = None
    verdict: Verdict = Verdict.NOT_JUDGED
    sentence: str = ""
    fairness: str = ""


class Bench(Protocol):
    """The interface of a module `bench/<scheduler>.py`; `PEERS` are the modules of other projects that it imports."""

    PEERS: Sequence[str]

    def run(self, quick: bool, progress: Progress) -> Sequence[Row]:
        """Measure; `quick` runs fewer rounds for the same rows, `progress` receives what is being measured."""
        ...


class NoBenchmarks(WorldBroken):
    """The package does not run from a checkout."""

    code = "no_benchmarks"


class UnknownBench(WrongUsage):
    """Facts: `scheduler` and the `known` ones."""

    code = "unknown_bench"


def measured(name: str, ours: float | Decimal, unit: str, *, sentence: str = "", fairness: str = "") -> Row:
    """A measured value without a yardstick; it is not judged."""
    return Row(name, _shown(ours), unit, sentence=sentence, fairness=fairness)


def compared(
    name: str,
    ours: float | Decimal,
    yardstick: float | Decimal,
    unit: str,
    *,
    against: str,
    ratio: float | Decimal | None = None,
    target: Target | None = None,
    unfair: str | None = None,
    fairness: str = "",
) -> Row:
    """A value compared to its yardstick, judged by `target` unless `unfair` explains why not.

    `ratio` overrides the quotient, for example with the median of the ratios of all rounds.
    """
    exact = Decimal(ours) / Decimal(yardstick) if ratio is None else Decimal(ratio)
    verdict, sentence = _judge(exact, target, unfair)
    return Row(
        name=name,
        ours=_shown(ours),
        unit=unit,
        against=against,
        yardstick=_shown(yardstick),
        ratio=_rounded(exact),
        target=str(target) if target else None,
        verdict=verdict,
        sentence=sentence,
        fairness=fairness,
    )


def checkout() -> Path:
    """The directory of the checkout this package runs from; raises `NoBenchmarks`."""
    root = Path(pendula.__file__).resolve().parents[2]
    if not (root / "bench").is_dir() or not (root / "pyproject.toml").is_file():
        raise NoBenchmarks("Benchmarks come with the repository, not with the package; run this from a checkout")
    return root


def schedulers_with_benchmarks(root: Path) -> list[str]:
    """The names of benchmarks, with hyphens for underscores; a module whose name extends another's is a part of it."""
    stems = sorted(path.stem for path in (root / "bench").glob("*.py"))
    parts = {stem for stem in stems for other in stems if stem.startswith(f"{other}_")}
    return [stem.replace("_", "-") for stem in stems if stem not in parts]


def load(root: Path, scheduler: str) -> Bench:
    """The benchmark of a scheduler; raises `UnknownBench`, or `MissingExtra` when its peers are not installed."""
    known = schedulers_with_benchmarks(root)
    if scheduler not in known:
        raise UnknownBench(
            f"Unknown benchmark {scheduler!r}; known are {', '.join(known)}", scheduler=scheduler, known=known
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    bench = cast(Bench, import_module(f"bench.{scheduler.replace('-', '_')}"))
    absent = [peer for peer in bench.PEERS if find_spec(peer) is None]
    if absent:
        install = shlex.join([sys.executable, "-m", "pip", "install", "-r", str(root / "requirements-bench.lock")])
        raise MissingExtra(
            f"The benchmark {scheduler!r} runs beside {', '.join(absent)}; install with: {install}", modules=absent
        )
    return bench


def machine() -> dict[str, Any]:
    """The machine of the measurements."""
    return {
        "cpus": os.cpu_count(),
        "implementation": platform.python_implementation(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "version": pendula.__version__,
    }


def _judge(ratio: Decimal, target: Target | None, unfair: str | None) -> tuple[Verdict, str]:
    if unfair is not None:
        return Verdict.NOT_JUDGED, unfair
    if target is None:
        return Verdict.NOT_JUDGED, ""
    if target.holds(ratio):
        return Verdict.MET, ""
    return Verdict.MISSED, f"{_rounded(ratio)} is not {target}"


def _shown(value: float | Decimal) -> Decimal:
    """Four significant digits; whole numbers stay whole."""
    number = Decimal(value)
    digits = max(0, 3 - number.adjusted()) if number else 0
    return number.quantize(Decimal(1).scaleb(-digits))


def _rounded(ratio: Decimal) -> Decimal:
    return ratio.quantize(RATIO_STEP)
