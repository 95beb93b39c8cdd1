"""A map compiled in a process of its own is the same map, and is given up where it takes too much."""

import threading
import time

import pytest

from pendula.fleet import compile_map
from pendula.fleet.model import CompileParams, MapRefused
from pendula.fleet.samples import FL_STD
from pendula.fleet.samples.halls import grid
from pendula.fleet.samples.scenes import Sketch
from pendula.kernel.limits import GIB, MIB
from pendula.server.schedulers.fleet.compiler_apart import CompilerApart, CompilerStopped

PARAMS = CompileParams()


@pytest.mark.req("FLT-PERF-3")
def test_a_map_compiled_apart_is_the_same_map() -> None:
    source = grid(4, 3)

    assert CompilerApart(60, GIB).run(source, [FL_STD], PARAMS).compiled_hash == (
        compile_map(source, [FL_STD], PARAMS).compiled_hash
    )


def test_a_map_that_cannot_be_used_is_refused_with_the_same_findings() -> None:
    sketch = Sketch("too-close")
    sketch.node("A", 0, 0)
    sketch.node("B", 0, 0)
    sketch.lane("A", "B")
    wrong = sketch.done()

    with pytest.raises(MapRefused) as here:
        compile_map(wrong, [FL_STD], PARAMS)
    with pytest.raises(MapRefused) as apart:
        CompilerApart(60, GIB).run(wrong, [FL_STD], PARAMS)

    assert apart.value.message == here.value.message
    assert list(apart.value.findings) == list(here.value.findings)


@pytest.mark.req("FLT-PERF-3")
@pytest.mark.parametrize(
    ("seconds", "memory", "reason", "words"),
    [(1, GIB, "too_long", "more than 1 s of a processor"), (60, 64 * MIB, "too_much_memory", "more than 64 MiB")],
)
def test_what_takes_too_much_is_given_up_in_words(seconds: int, memory: int, reason: str, words: str) -> None:
    with pytest.raises(CompilerStopped, match=words) as stopped:
        CompilerApart(seconds, memory).run(grid(30, 30), [FL_STD], PARAMS)

    assert stopped.value.reason == reason


@pytest.mark.parametrize("begun", [True, False])
def test_nobody_waits_for_a_map_that_nobody_wants_any_more(begun: bool) -> None:
    apart = CompilerApart(60, GIB)

    def leave() -> None:
        while begun and apart._process is None:
            time.sleep(0.001)
        apart.stop()

    leaving = threading.Thread(target=leave)
    leaving.start()
    if not begun:
        leaving.join()
    with pytest.raises(CompilerStopped, match="nobody waits for it any more"):
        apart.run(grid(30, 30), [FL_STD], PARAMS)

    leaving.join()
    assert apart._process is None or apart._process.returncode is not None
