"""Every source compiles in bounded time: limits are checked first, with a message."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.documents import DocumentRefused, from_value
from pendula.fleet import Code, CompileParams, MapDamaged, compile_map, examine, from_bytes, read_profiles, to_bytes
from pendula.fleet.compiler.samples import FL_STD, Sketch, spur
from pendula.fleet.map.network import MAP_PAIRS
from pendula.fleet.map.trucks import envelope_of, hash_of
from pendula.fleet.model import CurveKind, Direction, Point, SourceEdge, SourceMap, SourceNode
from pendula.kernel.canonical import digest_bytes, encode
from tests.campaigns import campaign_after
from tests.fleet.documents import GOLDEN
from tests.fleet.sites import scene

THOUSANDS = 3000


def lanes(count: int, length: float) -> SourceMap:
    sketch = Sketch("lanes")
    sketch.node("A", 0, 0)
    sketch.node("B", length, 0)
    both = Direction.BOTH.value
    return replace(sketch.done(), edges=tuple(SourceEdge(f"e{i:05}", "A", "B", direction=both) for i in range(count)))


def curves(count: int, length: float) -> SourceMap:
    source = lanes(count, length)
    controls = [(Point(round(length * 300_000), i * 60_000), Point(round(length * 700_000), 0)) for i in range(count)]
    bent = [replace(edge, kind=CurveKind.BEZIER, points=at) for edge, at in zip(source.edges, controls, strict=True)]
    return replace(source, edges=tuple(bent))


def heap(count: int) -> SourceMap:
    return SourceMap("heap", tuple(SourceNode(f"N{i:05}", Point(i, 0)) for i in range(count)), ())


def zigzag(count: int) -> SourceMap:
    source = lanes(1, count + 1)
    points = tuple(Point((i + 1) * 1_000_000, 5_000_000 * (i % 2)) for i in range(count))
    return replace(source, edges=(replace(source.edges[0], kind=CurveKind.POLYLINE, points=points),))


# Six million pairs take long; smaller limits are reached below and in the tests of the validator.
SLOW = pytest.param(
    lambda: lanes(100, 60), Code.CONFLICT_BUILD_FAILED, "Too many cells overlap", marks=pytest.mark.long
)
TOO_MUCH: list[tuple[Callable[[], SourceMap], Code, str]] = [
    (lambda: lanes(THOUSANDS, 10), Code.CONFLICT_BUILD_FAILED, "Too many edges meet in the same nodes"),
    (lambda: lanes(THOUSANDS, 0.5), Code.CONFLICT_BUILD_FAILED, "Too many edges meet in the same nodes"),
    (lambda: lanes(2, 199_999), Code.MAP_INVALID_GEOMETRY, "is more than 100000 m from the origin"),
    (lambda: lanes(12, 9_000), Code.CONFLICT_BUILD_FAILED, "The lanes of the map are too long together"),
    (lambda: curves(1, 251), Code.MAP_INVALID_GEOMETRY, "is longer than the 250 m allowed for a curve"),
    (lambda: curves(90, 240), Code.CONFLICT_BUILD_FAILED, "The curves of the map need too many poses"),
    (lambda: zigzag(1001), Code.MAP_INVALID_GEOMETRY, "has 1001 points; the limit is 1000"),
    (lambda: heap(THOUSANDS), Code.CONFLICT_BUILD_FAILED, "Too many turning discs overlap"),
    (lambda: heap(20_001), Code.CONFLICT_BUILD_FAILED, "The map has too many nodes"),
]


@pytest.mark.req("FLT-MAP-15", "FLT-PERF-3")
@pytest.mark.parametrize(("make", "code", "words"), [*TOO_MUCH, *campaign_after(0, [SLOW])])
def test_an_exceeded_limit_has_a_message(make: Callable[[], SourceMap], code: Code, words: str) -> None:
    report = examine(make(), [FL_STD])

    assert report.compiled is None
    assert any(finding.code is code and words in finding.message and finding.remedy for finding in report.findings)


def test_the_tree_is_queried_in_batches_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking the limit after a query of any size would be too late."""
    monkeypatch.setattr("pendula.fleet.compiler.overlaps._PAIRS", 1000)
    monkeypatch.setattr("pendula.fleet.compiler.overlaps.MAP_PAIRS", replace(MAP_PAIRS, default=20_000))

    report = examine(lanes(30, 30), [FL_STD])

    (found,) = [finding for finding in report.findings if finding.code is Code.CONFLICT_BUILD_FAILED]
    counted = int(found.message.split(": ")[1].split()[0])
    assert 20_000 < counted < 20_000 + 64 * 60 * 60


@pytest.mark.req("FLT-MAP-6")
def test_a_long_curve_and_its_way_back_are_one_lane() -> None:
    site = compile_map(curves(1, 240), [FL_STD])

    assert [group.key for group in site.network.groups] == ["A<->B"]


def profile(path: tuple[str, ...], value: Any) -> Any:
    form: Any = json.loads((GOLDEN / "RobotProfile.json").read_text(), parse_float=Decimal)
    at = form
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return form


LENGTHS = [
    *(("geometry", name) for name in ("head", "tail", "width")),
    *(("safety", name) for name in ("safetyFrontM", "safetyRearM", "safetySideM", "extraMarginM")),
    *(("safety", name, "value") for name in ("localizationErrorM", "trackingErrorM")),
]


@pytest.mark.req("FLT-GEO-4")
@pytest.mark.parametrize("path", LENGTHS)
def test_a_truck_too_large_for_exact_arithmetic_is_refused(path: tuple[str, ...]) -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_profiles(from_value(profile(path, Decimal("20.000001"))))

    assert [fault.path for fault in refused.value.faults] == ["$." + ".".join(path)]


@pytest.mark.req("FLT-GEO-4", "FLT-MAP-9")
def test_the_largest_truck_blocks_all_others() -> None:
    form = profile(("safety", "headingErrorRad"), Decimal("1.570797"))
    for path in LENGTHS:
        at = form
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = 20
    source = replace(spur(), nodes=tuple(replace(node, kind="LocationMark") for node in spur().nodes))

    site = compile_map(source, read_profiles(from_value(form)))

    assert site.conflicts.sizes().tolist() == [len(site.cells) + len(site.network.nodes)] * len(site.conflicts)


@pytest.mark.req("FLT-MAP-8", "FLT-MAP-11")
def test_the_margin_counts_for_discs_of_nodes_beside_an_edge_too() -> None:
    envelope = envelope_of(FL_STD)
    sketch = Sketch("beside")
    sketch.node("A", 0, 0)
    sketch.node("B", 20, 0)
    sketch.lane("A", "B")
    sketch.node("N", 10, (envelope.side_um + envelope.turn_radius_um + 800_000) / 1_000_000)

    def windows(margin_um: int) -> int:
        site = compile_map(sketch.done(), [FL_STD], CompileParams(conflict_margin_um=margin_um))
        return len(site.zones.by_node[site.node_number["N"]])

    assert [windows(margin) for margin in (0, 799_000, 801_000, 2_000_000)] == [0, 0, 2, 2]


@pytest.mark.req("FLT-MAP-20")
def test_two_profiles_of_one_name_have_one_hash_in_any_order() -> None:
    other = replace(FL_STD, width_um=1_200_000)

    assert hash_of([FL_STD, other]) == hash_of([other, FL_STD])


def resealed(form: Any) -> bytes:
    """A modified file with a correct hash."""
    form.pop("compiledMapHash")
    return encode({**form, "compiledMapHash": "sha256:" + digest_bytes(encode(form))})


@pytest.mark.req("FLT-MAP-16")
@pytest.mark.parametrize(
    ("part", "value"),
    [("nodes", []), ("edges", []), ("corridors", []), ("criticalSections", []), ("cells.quadsUm", [1, 2, 3])],
)
def test_a_file_whose_parts_do_not_fit_together_is_damaged(part: str, value: Any) -> None:
    form = json.loads(to_bytes(scene("spur")), parse_float=Decimal)
    at = form
    *steps, last = part.split(".")
    for step in steps:
        at = at[step]
    at[last] = value

    with pytest.raises(MapDamaged):
        from_bytes(resealed(form))
