"""Speeds from which a truck can stop in time."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.model import Fleet, SourceMap, Stream, Truck
from pendula.fleet.tick.aiming import speed_limit_um_s
from tests.fleet.sites import sketched
from tests.fleet.tick.yard import Yard


@pytest.mark.req("FLT-RTP-6")
@pytest.mark.parametrize(
    ("left_mm", "mm_s"), [(0, 0), (300, 421), (500, 604), (1_000, 955), (1_440, 1_200), (9_000, 1_200)]
)
def test_the_speed_makes_the_stop_line_reachable_without_passing_it(left_mm: int, mm_s: int) -> None:
    assert speed_limit_um_s(FL_STD, (), left_mm * 1000) == mm_s * 1000


def slow_between_b_and_c() -> CompiledMap:
    sketch = sketched(("A", 0, 0), ("B", 10, 0), ("C", 20, 0), ("D", 30, 0))
    sketch.chain("A", "B", "C", "D")
    source = sketch.done()
    return compile_map(_limited(source, {"B", "C"}, 400_000), [FL_STD])


def _limited(source: SourceMap, ends: set[str], limit_um_s: int) -> SourceMap:
    edges = tuple(
        replace(edge, max_speed_um_s=limit_um_s) if {edge.start, edge.end} == ends else edge for edge in source.edges
    )
    return replace(source, edges=edges)


@pytest.mark.req("FLT-RTP-6", "FLT-MAP-3")
def test_the_limit_of_an_edge_up_to_the_target_is_a_limit() -> None:
    site = slow_between_b_and_c()
    fast, slow = (site.network.edges[site.edge_number[key]] for key in ("A->B", "B->C"))

    assert speed_limit_um_s(FL_STD, (fast,), 9_000_000) == 1_200_000
    assert speed_limit_um_s(FL_STD, (fast, slow), 9_000_000) == 400_000
    assert speed_limit_um_s(FL_STD, (slow,), 100_000) < 400_000


@pytest.mark.req("FLT-RTP-6", "FLT-MAP-3")
def test_no_command_asks_for_more_than_the_limit_of_the_edge_a_truck_is_on() -> None:
    yard = Yard(slow_between_b_and_c(), Fleet((Truck("R1", "FL-STD", "A"),), (Stream("S", ("D",), ("A",)),)), [FL_STD])
    yard.send("R1", "D", "A")
    limits: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(500):
        (command,) = yard.step().commands
        assert isinstance(command.speedLimitMps, Decimal)
        limits[10 < command.currentS < 20].append(float(command.speedLimitMps))

    assert max(limits[False]) == 1.2
    assert max(limits[True]) == 0.4
