"""Run a test over many seeds; a failure prints the command that repeats it.

over_seeds(law, range(200))

python -m pendula.testing tests/kernel/test_driver.py:a_law 17
"""

import importlib
import inspect
import runpy
from collections.abc import Callable, Iterable
from pathlib import Path


class HistoryFailed(AssertionError):
    """A test failed for a seed; the message ends with the command that repeats it."""


def over_seeds(law: Callable[[int], None], seeds: Iterable[int]) -> int:
    """Call `law(seed)` for every seed; returns the number of seeds. Raises `HistoryFailed` at the first failure."""
    held = 0
    for seed in seeds:
        try:
            law(seed)
        except Exception as failure:
            raise HistoryFailed(
                f"{law.__qualname__} fails for seed {seed}: {type(failure).__name__}: {failure}\n"
                f"repeat with: {repeat_line(law, seed)}"
            ) from failure
        held += 1
    return held


def repeat_line(law: Callable[[int], None], seed: int) -> str:
    """The command that repeats one law with one seed; the law must be at the top level of a module."""
    source = inspect.getsourcefile(law)
    place = _relative(source) if source else law.__module__
    return f"python -m pendula.testing {place}:{law.__qualname__} {seed}"


def _relative(source: str) -> str:
    try:
        return str(Path(source).relative_to(Path.cwd()))
    except ValueError:
        return source


def main(arguments: list[str]) -> None:
    if len(arguments) != 2 or ":" not in arguments[0]:
        raise SystemExit("usage: python -m pendula.testing FILE_OR_MODULE:LAW SEED")
    place, _, name = arguments[0].rpartition(":")
    names = runpy.run_path(place) if place.endswith(".py") else vars(importlib.import_module(place))
    names[name](int(arguments[1]))
