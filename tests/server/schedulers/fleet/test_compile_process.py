"""The compile process gives the same map, and ends at its limits."""

import threading
import time

import pytest

from pendula.fleet import compile_map
from pendula.fleet.compiler.samples import FL_STD, Sketch, grid
from pendula.fleet.model import CompileParams, MapRefused
from pendula.kernel.limits import GIB, MIB
from pendula.server.schedulers.fleet.compile_process import CompileProcess, CompilerStopped

PARAMS = CompileParams()


@pytest.mark.req("FLT-PERF-3")
def test_the_process_compiles_the_same_map() -> None:
    source = grid(4, 3)

    assert CompileProcess(60, GIB).run(source, [FL_STD], PARAMS).compiled_hash == (
        compile_map(source, [FL_STD], PARAMS).compiled_hash
    )


def test_a_bad_map_has_the_same_findings() -> None:
    sketch = Sketch("too-close")
    sketch.node("A", 0, 0)
    sketch.node("B", 0, 0)
    sketch.lane("A", "B")
    wrong = sketch.done()

    with pytest.raises(MapRefused) as here:
        compile_map(wrong, [FL_STD], PARAMS)
    with pytest.raises(MapRefused) as apart:
        CompileProcess(60, GIB).run(wrong, [FL_STD], PARAMS)

    assert apart.value.message == here.value.message
    assert list(apart.value.findings) == list(here.value.findings)


@pytest.mark.req("FLT-PERF-3")
@pytest.mark.parametrize(
    ("seconds", "memory", "reason", "words"),
    [(1, GIB, "too_long", "more than 1 s of CPU time"), (60, 64 * MIB, "too_much_memory", "more than 64 MiB")],
)
def test_a_compilation_ends_at_its_limits(seconds: int, memory: int, reason: str, words: str) -> None:
    with pytest.raises(CompilerStopped, match=words) as stopped:
        CompileProcess(seconds, memory).run(grid(30, 30), [FL_STD], PARAMS)

    assert stopped.value.reason == reason


@pytest.mark.parametrize("begun", [True, False])
def test_a_cancelled_compilation_is_killed(begun: bool) -> None:
    apart = CompileProcess(60, GIB)

    def leave() -> None:
        while begun and apart._process is None:
            time.sleep(0.001)
        apart.stop()

    leaving = threading.Thread(target=leave)
    leaving.start()
    if not begun:
        leaving.join()
    with pytest.raises(CompilerStopped, match="the request was cancelled"):
        apart.run(grid(30, 30), [FL_STD], PARAMS)

    leaving.join()
    assert apart._process is None or apart._process.returncode is not None
