"""No float takes part in a decision: none in the source of the decision modules, and none at run time."""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import pytest

from pendula.playback import explain, model, saving
from pendula.playback.choosing import generator, new_artwork, programme, records, swrr
from tests.playback.histories import Comparison, play
from tests.playback.test_explain import check_all

MODULES = (model, swrr, new_artwork, records, generator, programme, saving, explain)
FILES = {str(module.__file__): module.__name__ for module in MODULES}
INEXACT = ("float", "complex", "round")
EXACT_OF_MATH = ("gcd",)


def floats_written(source: str) -> list[str]:
    """The places in a source with a float or an operation that can create one."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=float() | complex()):
                found.append(f"line {node.lineno}: the literal {node.value!r}")
            case ast.BinOp(op=ast.Div()) | ast.AugAssign(op=ast.Div()):
                found.append(f"line {node.lineno}: a true division")
            case ast.BinOp(op=ast.Pow(), right=ast.UnaryOp(op=ast.USub())):
                found.append(f"line {node.lineno}: a negative power")
            case ast.Call(func=ast.Name(id=name)) if name in INEXACT:
                found.append(f"line {node.lineno}: a call of {name}")
            case ast.Import(names=names) if any(alias.name in ("math", "random", "time") for alias in names):
                found.append(f"line {node.lineno}: an import of more than is exact")
            case ast.ImportFrom(module="math", names=names) if any(a.name not in EXACT_OF_MATH for a in names):
                found.append(f"line {node.lineno}: an inexact function")
            case ast.Attribute(attr="truediv" | "__truediv__" | "total_seconds"):
                found.append(f"line {node.lineno}: {node.attr}")
    return found


@pytest.mark.req("PLAY-LOOK-7")
@pytest.mark.parametrize("file", FILES, ids=list(FILES.values()))
def test_decision_modules_contain_no_float(file: str) -> None:
    assert floats_written(Path(file).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "x = 0.5", "x = -1e3", "x = 2j", "x = a / b", "x /= 2", "x = float(y)", "x = round(y)", "from math import sqrt",
        "import math", "x = operator.truediv(a, b)", "x = 2 ** -n", "def f(x=1.0): ...", "lambda: [a / b for b in c]",
    ],
)  # fmt: skip
def test_a_float_in_the_source_would_be_detected(source: str) -> None:
    assert len(floats_written(source)) == 1


@pytest.mark.parametrize(
    "source",
    ["x = a // b", "x = isinstance(y, int | float)", "x = '1.5'", "from math import gcd", "x = Fraction(1, 2)"],
)
def test_exact_arithmetic_is_no_finding(source: str) -> None:
    assert floats_written(source) == []


class Floats:
    """Inspects every variable and every returned value of the traced files, line by line."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files
        self.found: list[str] = []
        self.lines: set[tuple[str, int]] = set()

    def watch(self, act: Callable[[], object]) -> None:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            act()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._look if frame.f_code.co_filename in self._files else None

    def _look(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.lines.add((self._files[frame.f_code.co_filename], frame.f_lineno))
        values = frame.f_locals if event != "return" else {**frame.f_locals, "returned": arg}
        for name, value in values.items():
            if any(isinstance(part, float | complex) for part in parts(value, 1)):
                self.found.append(f"{frame.f_code.co_name}, line {frame.f_lineno}: {name} = {value!r}")
        return self._look


def parts(value: object, depth: int) -> Iterator[object]:
    """A value and its contents, a few levels deep."""
    yield value
    if depth and isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from parts(inner, depth - 1)
    if depth and isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from parts(inner, depth - 1)


def rich_run() -> None:
    for number in range(6):
        random = Random(number)
        comparison = Comparison.drawn(random)
        play(comparison, random, 12)
        check_all(comparison)
        comparison.restore()


@pytest.mark.req("PLAY-LOOK-7")
def test_no_float_appears_at_run_time() -> None:
    guarded = Floats(FILES)

    guarded.watch(rich_run)

    assert guarded.found == []
    seen = {module for module, _ in guarded.lines}
    assert seen >= set(FILES.values()) - {"pendula.playback.model"}
    assert len(guarded.lines) > 500


def test_a_float_at_run_time_would_be_detected() -> None:
    source = "def inner(a):\n    b = [a]\n    return {'c': len(b)}\ndef outer():\n    return inner(0.5)\n"
    code: CodeType = compile(source, "planted.py", "exec")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - a module planted for this one case
    guarded = Floats({"planted.py": "planted"})

    guarded.watch(names["outer"])
    assert any("a = 0.5" in found for found in guarded.found)
    assert any("b = [0.5]" in found for found in guarded.found)

    unwatched = Floats({"elsewhere.py": "elsewhere"})
    unwatched.watch(names["outer"])
    assert unwatched.found == []
