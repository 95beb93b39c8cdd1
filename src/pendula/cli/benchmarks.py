"""What a benchmark is, how it is judged, and where benchmarks are found.

Benchmarks live in the checkout, `bench/<scheduler>.py`, and follow `Bench`: they measure Pendula and a yardstick in one
run, doing the same work with the same durability, and give `Row`s. Parts of a scheduler's benchmark lie beside it as
`bench/<scheduler>_<part>.py`; a scheduler with several benchmarks has no module of its bare name, and `fleet-map` is
`bench/fleet_map.py`. A ratio is always ours divided by the yardstick's; a target says which side of a number it should
be on. What cannot be measured fairly here (a disk that is memory, a peer that is missing) is not judged.
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
    """Where the ratio should lie."""

    relation: Literal["<=", ">="]
    bound: Decimal

    def __str__(self) -> str:
        return f"{self.relation} {self.bound}"

    def holds(self, ratio: Decimal) -> bool:
        return ratio <= self.bound if self.relation == "<=" else ratio >= self.bound


class Row(Struct, frozen=True):
    """One line of the table: the same work, ours and the yardstick's, in `unit`."""

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
    """What a module `bench/<scheduler>.py` offers; `PEERS` are the modules of other projects that it imports."""

    PEERS: Sequence[str]

    def run(self, quick: bool, progress: Progress) -> Sequence[Row]:
        """Measure; `quick` gives fewer rounds and the same rows, `progress` is told what is being measured."""
        ...


class NoBenchmarks(WorldBroken):
    """This is not a checkout."""

    code = "no_benchmarks"


class UnknownBench(WrongUsage):
    """Facts: `scheduler` and the `known` ones."""

    code = "unknown_bench"


def measured(name: str, ours: float | Decimal, unit: str, *, sentence: str = "", fairness: str = "") -> Row:
    """A number that stands for itself: nothing beside it, nothing to judge."""
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
    """A number beside its yardstick, judged by `target` unless `unfair` says why that would make no sense here.

    `ratio` is for those who know it better than by dividing: the median over rounds is not that of the medians.
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
    """Names one can ask for, dashes for underscores; a module whose name goes on from another's is a part of it."""
    stems = sorted(path.stem for path in (root / "bench").glob("*.py"))
    parts = {stem for stem in stems for other in stems if stem.startswith(f"{other}_")}
    return [stem.replace("_", "-") for stem in stems if stem not in parts]


def load(root: Path, scheduler: str) -> Bench:
    """The benchmark of a scheduler; raises `UnknownBench`, or `MissingExtra` when its peers are not installed."""
    known = schedulers_with_benchmarks(root)
    if scheduler not in known:
        raise UnknownBench(
            f"There is no benchmark {scheduler!r}; there are {', '.join(known)}", scheduler=scheduler, known=known
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
    """What the numbers were measured on, as far as it can be told."""
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
    """Four significant digits, whole numbers whole: more would be noise."""
    number = Decimal(value)
    digits = max(0, 3 - number.adjusted()) if number else 0
    return number.quantize(Decimal(1).scaleb(-digits))


def _rounded(ratio: Decimal) -> Decimal:
    return ratio.quantize(RATIO_STEP)
