"""The same map in any order and notation gives the same bytes; unchanged parts keep their names.

Hashes change when and only when meaning changes, and a recompilation on top of an older map gives the bytes of a full
one.
"""

import json
import random
from collections.abc import Callable
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from pendula.documents import Format, read_bytes
from pendula.fleet import (
    Code,
    CompiledMap,
    CompileParams,
    SourceMap,
    compile_map,
    examine,
    from_bytes,
    read_params,
    read_profiles,
    read_source_map,
    to_bytes,
)
from pendula.fleet.compiler.compile import source_form
from pendula.fleet.compiler.generated_maps import random_map
from pendula.fleet.compiler.samples import (
    FL_STD,
    Sketch,
    hall_demo,
    near_lanes,
    plus_crossing,
    tail_swing_bend,
    warehouse,
)
from pendula.fleet.map.site_file import cell_form, named_form
from pendula.fleet.map.trucks import RobotProfile, Source
from pendula.fleet.model import (
    CurveKind,
    Granularity,
    MoveStyle,
    Point,
    SourceEdge,
    SourceMember,
    SourceNode,
    SourceSection,
)
from pendula.kernel.canonical import encode

Edit = Callable[[SourceMap, random.Random], SourceMap]


def shuffled(values: tuple[Any, ...], draw: random.Random) -> tuple[Any, ...]:
    return tuple(draw.sample(values, len(values)))


def in_another_order(source: SourceMap, seed: int) -> SourceMap:
    """Every list of the source shuffled."""
    draw = random.Random(seed)
    sections = tuple(replace(section, members=shuffled(section.members, draw)) for section in source.sections)
    return replace(
        source,
        nodes=shuffled(source.nodes, draw),
        edges=shuffled(source.edges, draw),
        sections=shuffled(sections, draw),
        stations=shuffled(source.stations, draw),
        parking=shuffled(source.parking, draw),
    )


def furnished() -> SourceMap:
    """The hall of the contract with every member of a source."""
    sections = (
        SourceSection("NECK", 2, (SourceMember("LM1<->LM2"), SourceMember("LM2<->LM3", 1_000_000, 4_000_000))),
        SourceSection("ALONE", 1, (SourceMember("LM7<->LM8", 2_000_000, None),)),
    )
    bend = SourceEdge("x1", "LM1", "LM7", CurveKind.BEZIER, (Point(-4_000_000, 0), Point(-6_000_000, 1_700_000)))
    source = hall_demo()
    places = {node.id: node.at for node in source.nodes}
    inner = (Point(18_000_000, 900_000),)
    lane = SourceEdge("x2", "AP1", "LM8", CurveKind.POLYLINE, inner, places["AP1"], places["LM8"], direction="both")
    edges = (replace(source.edges[0], width_um=3_000_000), *source.edges[1:], bend, lane)
    return replace(source, edges=edges, sections=sections, stations=("LM3", "LM7"), parking=("LM1", "LM8"))


def other_profile() -> RobotProfile:
    return replace(FL_STD, profile_id="WIDE", width_um=1_200_000, tail_um=1_500_000)


@pytest.mark.req("FLT-MAP-9", "FLT-MAP-18", "FLT-MAP-20")
@pytest.mark.parametrize("granularity", Granularity)
def test_the_order_of_lists_makes_no_difference(granularity: Granularity) -> None:
    params, profiles = CompileParams(granularity=granularity, conflict_margin_um=300_000), [FL_STD, other_profile()]
    first = examine(furnished(), profiles, params)

    assert first.compiled is not None
    assert [section.id for section in first.compiled.sections] == ["ALONE", "NECK", "SPUR-PK1", "SPUR-PK2"]
    for seed in range(4):
        again = examine(in_another_order(furnished(), seed), profiles[::-1], params)
        assert again.data == first.data
        assert again.findings == first.findings


@pytest.mark.req("FLT-MAP-9", "FLT-MAP-15")
def test_findings_about_duplicate_ids_do_not_depend_on_the_order() -> None:
    source = furnished()
    twice = replace(
        source,
        nodes=(*source.nodes, replace(source.nodes[0], at=Point(3_000_000, 40_000_000))),
        edges=(*source.edges, replace(source.edges[0], end="NOWHERE"), replace(source.edges[1], style="?")),
        sections=(*source.sections, replace(source.sections[0], capacity=5)),
    )
    first = examine(twice, [FL_STD]).findings

    doubled = {finding.details["id"] for finding in first if finding.code is Code.DUPLICATE_ID}
    assert doubled == {"LM1", "e00001", "e00002", "NECK"}
    for seed in range(8):
        assert examine(in_another_order(twice, seed), [FL_STD]).findings == first


@pytest.mark.req("FLT-MAP-6", "FLT-MAP-18")
def test_lanes_between_two_nodes_are_the_same_in_all_orders() -> None:
    sketch = Sketch("lanes")
    sketch.node("A", 0, 0)
    sketch.node("B", 20, 0)
    for height in (4, -4):
        sketch.bezier("A", "B", (7, height), (13, height))
    sketch.lane("B", "A", back=False)
    source = sketch.done()
    first = examine(source, [FL_STD])

    assert first.compiled is not None
    assert [group.key for group in first.compiled.network.groups] == ["A<->B", "A<->B#2", "A<->B#3"]
    for edges in permutations(source.edges):
        assert examine(replace(source, edges=edges), [FL_STD]).data == first.data


def renamed(source: SourceMap, node: Callable[[str], str], edge: Callable[[str], str]) -> SourceMap:
    return replace(
        source,
        nodes=tuple(replace(n, id=node(n.id)) for n in source.nodes),
        edges=tuple(replace(e, id=edge(e.id), start=node(e.start), end=node(e.end)) for e in source.edges),
    )


@pytest.mark.req("FLT-MAP-6", "FLT-MAP-9")
@pytest.mark.parametrize("seed", range(4))
def test_new_names_in_the_same_order_change_names_and_nothing_else(seed: int) -> None:
    source, before = random_map(seed, 4, 9), compiled(random_map(seed, 4, 9))

    after = compiled(renamed(source, "Z{}".format, "y{}".format))

    for name in ("edge", "s0", "s1", "first", "quads", "quad_first"):
        assert getattr(after.cells, name).tolist() == getattr(before.cells, name).tolist()
    for name in ("at", "lo", "hi"):
        assert getattr(after.conflicts, name).tolist() == getattr(before.conflicts, name).tolist()
        assert getattr(after.following, name).tolist() == getattr(before.following, name).tolist()
    assert after.zones == before.zones
    assert after.standing.marks == before.standing.marks
    assert after.transitions.turn_urad.tolist() == before.transitions.turn_urad.tolist()


@pytest.mark.req("FLT-MAP-9")
@pytest.mark.parametrize("seed", range(4))
def test_new_names_in_another_order_keep_every_pair_of_places(seed: int) -> None:
    """Numbers change then, but the exclusions do not."""
    source = random_map(seed, 4, 7)
    names = [node.id for node in source.nodes]
    turned = dict(zip(names, reversed(names), strict=True))

    before, after = compiled(source), compiled(renamed(source, turned.__getitem__, str))

    back = {new: old for old, new in turned.items()}
    assert pairs_of_places(after, back.__getitem__) == pairs_of_places(before, str)


def pairs_of_places(site: CompiledMap, name: Callable[[str], str]) -> set[tuple[Any, Any]]:
    """The conflict relation in terms of source edges and positions on them."""
    count = len(site.cells)

    def place(resource: int) -> Any:
        if resource >= count:
            return name(site.network.nodes[resource - count].id)
        edge = site.network.edges[int(site.cells.edge[resource])]
        return edge.source_id, int(site.cells.s0[resource])

    return {(place(row), place(other)) for row in range(len(site.conflicts)) for other in site.conflicts.members(row)}


def compiled(source: SourceMap) -> CompiledMap:
    """The map, without everything that would keep a random one from being compiled."""
    plain = tuple(replace(node, kind="LocationMark") for node in source.nodes)
    return compile_map(replace(source, nodes=plain), [FL_STD])


def far_away(source: SourceMap) -> SourceMap:
    """The same source with another island that sorts between its nodes."""
    nodes = tuple(SourceNode(name, Point(900_000_000 + i * 9_000_000, 0)) for i, name in enumerate(("LM20", "A0", "Z")))
    edges = (SourceEdge("e00000", "LM20", "A0", direction="both"), SourceEdge("zz", "A0", "Z", direction="both"))
    return replace(source, nodes=(*source.nodes, *nodes), edges=(*source.edges, *edges))


def by_name(site: CompiledMap) -> dict[str, Any]:
    """The content of a compiled map by the names of its subjects; cells and their relations by their names."""
    form = named_form(site)
    content: dict[str, Any] = {}
    for part, key in (
        ("nodes", "nodeId"),
        ("edges", "edgeKey"),
        ("edgeGroups", "edgeGroupKey"),
        ("conflicts", "conflictId"),
        ("nodeZones", "nodeId"),
        ("criticalSections", "criticalSectionId"),
    ):
        content |= {f"{part} {member[key]}": member for member in form[part]}
    content |= {f"corridor {corridor['corridorId']}": corridor for corridor in form["corridors"]}
    for cell in range(len(site.cells)):
        cell_json = cell_form(site, cell)
        content[f"cell {cell_json['cellId']}"] = cell_json
    return content


@pytest.mark.req("FLT-MAP-9")
@pytest.mark.parametrize("make", [furnished, tail_swing_bend, near_lanes])
def test_parts_far_from_a_change_keep_their_ids_and_findings(make: Callable[[], SourceMap]) -> None:
    before = by_name(compile_map(make(), [FL_STD]))
    after = by_name(compile_map(far_away(make()), [FL_STD]))

    assert before.items() <= after.items()
    assert len(after) > len(before)


@pytest.mark.req("FLT-MAP-9")
def test_a_change_of_one_lane_keeps_all_other_ids() -> None:
    source = warehouse(4, 6, 2)
    before = compile_map(source, [FL_STD])
    nodes = tuple(node for node in source.nodes if node.id != "P002")
    edges = tuple(edge for edge in source.edges if "P002" not in (edge.start, edge.end))
    gone = compile_map(replace(source, nodes=nodes, edges=edges), [FL_STD])

    assert {group.key for group in before.network.groups} - {group.key for group in gone.network.groups} == {
        "P002<->S002-000"
    }
    assert {section.id for section in gone.sections} == {section.id for section in before.sections} - {"SPUR-P002"}
    assert {conflict.id for conflict in gone.named} <= {conflict.id for conflict in before.named}
    kept = [
        corridor
        for corridor in before.corridors
        if not {"P002", "S002-000"} & {before.network.nodes[n].id for n in corridor.nodes}
    ]
    assert {corridor.id for corridor in kept} <= {corridor.id for corridor in gone.corridors}


def written(source: SourceMap) -> Any:
    return json.loads(encode(source_form(source)), parse_float=Decimal)


def as_json(form: Any, **style: Any) -> SourceMap:
    return read_source_map(read_bytes(json.dumps(form, default=float, **style).encode()))


def as_yaml(form: Any, **style: Any) -> SourceMap:
    plain = json.loads(json.dumps(form, default=float))
    return read_source_map(read_bytes(yaml.safe_dump(plain, **style).encode(), Format.YAML))


def remarked(form: Any) -> Any:
    """With unknown members in every object, like comments of the author."""
    if isinstance(form, dict):
        return {"comment": "north door", **{name: remarked(value) for name, value in form.items()}, "colour": [1, {}]}
    return [remarked(item) for item in form] if isinstance(form, list) else form


def backwards(form: Any) -> Any:
    """The members of every object in the opposite order."""
    if isinstance(form, dict):
        return {name: backwards(form[name]) for name in reversed(form)}
    return [backwards(item) for item in form] if isinstance(form, list) else form


def in_full(form: Any) -> Any:
    """With every default written out, and numbers with redundant zeros."""
    for edge in form["edges"]:
        edge["props"].setdefault("width", None)
        edge.setdefault("startPos", None)
    for node in form["nodes"]:
        node["x"] = Decimal(node["x"]) + Decimal("0.00000000")
    return form


def in_short(form: Any) -> Any:
    """Without any defaults."""
    for edge in form["edges"]:
        if edge["className"] == "Straight":
            del edge["className"]
        usual = {"movestyle": "forward", "direction": "start_to_end"}
        edge["props"] = {name: value for name, value in edge["props"].items() if usual.get(name) != value}
        if not edge["props"]:
            del edge["props"]
    for node in form["nodes"]:
        if node["kind"] == "LocationMark":
            del node["kind"]
    return form


WRITINGS: list[Callable[[Any], SourceMap]] = [
    lambda form: as_json(form, indent=3),
    lambda form: as_json(form, separators=(",", ":"), sort_keys=True),
    lambda form: as_json(backwards(form)),
    lambda form: as_json(remarked(form)),
    lambda form: as_json(in_full(form)),
    lambda form: as_json(in_short(form)),
    as_yaml,
    lambda form: as_yaml(remarked(backwards(form)), default_flow_style=True, sort_keys=False),
    lambda form: read_source_map(read_bytes(encode(in_full(form)).replace(b'"x":10,', b'"x":1.00e1 ,'))),
]


@pytest.mark.req("FLT-MAP-18", "FLT-MAP-19")
@pytest.mark.parametrize("read", WRITINGS)
def test_the_notation_of_a_map_makes_no_difference(read: Callable[[Any], SourceMap]) -> None:
    assert examine(read(written(furnished())), [FL_STD]).data == examine(furnished(), [FL_STD]).data


def _node(source: SourceMap, number: int, **changes: Any) -> SourceMap:
    nodes = list(source.nodes)
    nodes[number] = replace(nodes[number], **changes)
    return replace(source, nodes=tuple(nodes))


def _edge(source: SourceMap, number: int, **changes: Any) -> SourceMap:
    edges = list(source.edges)
    edges[number] = replace(edges[number], **changes)
    return replace(source, edges=tuple(edges))


def _section(source: SourceMap, **changes: Any) -> SourceMap:
    return replace(source, sections=(replace(source.sections[0], **changes), *source.sections[1:]))


CURVED, BENT = 11, 12
MEANINGS: dict[str, Callable[[SourceMap], SourceMap]] = {
    "the name of the map": lambda source: replace(source, map_id="other"),
    "a coordinate by a micrometre": lambda source: _node(source, 0, at=Point(1, 0)),
    "a control point by a micrometre": lambda source: _edge(
        source, CURVED, points=(Point(-4_000_000, 1), Point(-6_000_000, 1_700_000))
    ),
    "an inner point by a micrometre": lambda source: _edge(source, BENT, points=(Point(18_000_001, 900_000),)),
    "the id of a node": lambda source: renamed(source, lambda name: name.replace("PK2", "PK3"), str),
    "the id of an edge": lambda source: _edge(source, 0, id="e00000"),
    "the kind of a node": lambda source: _node(source, 2, kind="ActionPoint"),
    "a style": lambda source: _edge(source, 0, style=MoveStyle.BACKWARD.value),
    "a direction": lambda source: _edge(source, 4, direction="both"),
    "a width": lambda source: _edge(source, 0, width_um=2_999_999),
    "an edge less": lambda source: replace(source, edges=source.edges[1:]),
    "a node more": lambda source: replace(source, nodes=(*source.nodes, SourceNode("NEW", Point(50_000_000, 0)))),
    "a station": lambda source: replace(source, stations=("LM3",)),
    "a parking": lambda source: replace(source, parking=("LM1",)),
    "the capacity of a section": lambda source: _section(source, capacity=3),
    "the id of a section": lambda source: _section(source, id="NACK"),
    "a member of a section": lambda source: _section(source, members=source.sections[0].members[:1]),
    "an interval by a micrometre": lambda source: _section(
        source, members=(source.sections[0].members[0], SourceMember("LM2<->LM3", 1_000_000, 4_000_001))
    ),
}


@pytest.mark.req("FLT-MAP-19")
@pytest.mark.parametrize("name", MEANINGS)
def test_the_hash_of_a_map_moves_with_its_meaning(name: str) -> None:
    base, changed = compile_map(furnished(), [FL_STD]), compile_map(MEANINGS[name](furnished()), [FL_STD])

    assert changed.map_hash != base.map_hash
    assert changed.compiled_hash != base.compiled_hash
    assert changed.profile_hash == base.profile_hash


@pytest.mark.req("FLT-MAP-19")
def test_all_listed_changes_of_meaning_give_different_hashes() -> None:
    hashes = {compile_map(change(furnished()), [FL_STD]).map_hash for change in MEANINGS.values()}

    assert len(hashes) == len(MEANINGS)


@pytest.mark.req("FLT-MAP-19")
@pytest.mark.parametrize(
    "params",
    [
        {"cellLenM": Decimal("0.500001")},
        {"polylineStepM": Decimal("0.06")},
        {"chordErrorM": Decimal("0.004")},
        {"conflictMarginM": Decimal("0.000001")},
        {"maxRectsPerCell": 31},
        {"tangentEps": Decimal("0.087301")},
        {"conflictGranularity": "edge"},
        {"turningExtraMarginM": Decimal("0.01")},
    ],
)
def test_the_hash_of_a_map_moves_with_every_parameter(params: dict[str, Any]) -> None:
    base = compile_map(plus_crossing(), [FL_STD])
    parsed = read_params(read_bytes(json.dumps(params, default=float).encode()))

    changed = compile_map(plus_crossing(), [FL_STD], parsed)

    assert changed.map_hash != base.map_hash
    assert changed.compiled_hash != base.compiled_hash
    assert changed.profile_hash == base.profile_hash


SHAPES = [name for name in RobotProfile.__struct_fields__ if name.endswith("_um") and name != "min_turn_radius_um"]
DYNAMICS = ["v_max_um_s", "accel_um_s2", "brake_um_s2", "latency_us", "turn_rate_urad_s"]


@pytest.mark.req("FLT-MAP-19")
@pytest.mark.parametrize("name", [*SHAPES, "min_turn_radius_um", "heading_error_urad", "profile_id"])
def test_the_hash_of_the_trucks_moves_with_their_shape(name: str) -> None:
    value = getattr(FL_STD, name)
    changed = replace(FL_STD, **{name: value + (1 if isinstance(value, int) else "X")})
    base, after = compile_map(plus_crossing(), [FL_STD]), compile_map(plus_crossing(), [changed])

    assert after.profile_hash != base.profile_hash
    assert after.compiled_hash != base.compiled_hash
    assert after.map_hash == base.map_hash


@pytest.mark.req("FLT-MAP-19")
def test_the_hash_of_the_trucks_ignores_dynamics_and_the_source_of_errors() -> None:
    base = compile_map(plus_crossing(), [FL_STD])
    changed = [replace(FL_STD, **{name: 2 * getattr(FL_STD, name)}) for name in DYNAMICS]
    changed.append(replace(FL_STD, capabilities=()))
    changed.append(replace(FL_STD, tracking_error=replace(FL_STD.tracking_error, source=Source.MEASURED, basis="P99")))

    assert {to_bytes(compile_map(plus_crossing(), [value])) for value in changed} == {to_bytes(base)}


@pytest.mark.req("FLT-MAP-20")
def test_the_notation_of_profiles_makes_no_difference() -> None:
    outline = {"head": 1.3, "tail": 1.7, "width": 1}
    text = json.dumps(outline)

    def profile(geometry: str) -> bytes:
        return (
            b'{"contractVersion":"1.0.0","profileId":"P","geometry":' + geometry.encode() + b',"safety":{'
            b'"safetyFrontM":0,"safetyRearM":0,"safetySideM":0,"extraMarginM":0,"minFollowingGapM":0,'
            b'"localizationErrorM":{"value":0,"source":"PROFILE","basis":"b"},'
            b'"trackingErrorM":{"value":0,"source":"PROFILE","basis":"b"}},"dynamics":{"vMax":1,"accel":1,'
            b'"a_brake":1,"controlLatencyS":0,"turnRateRadS":1,"minTurnRadiusM":0}}'
        )

    plain = read_profiles(read_bytes(profile(text)))

    assert read_profiles(read_bytes(profile('{"width": 1.000, "note": "x", "tail": 17e-1, "head": 1.30}'))) == plain
    assert read_profiles(read_bytes(profile(text), Format.YAML)) == plain


def moves_a_node(source: SourceMap, draw: random.Random) -> SourceMap:
    number = draw.randrange(len(source.nodes))
    at = source.nodes[number].at
    by = draw.choice((1, 1_000, 400_000))
    return _node(source, number, at=Point(at.x_um + draw.randint(-by, by), at.y_um + draw.randint(-by, by)))


def drops_an_edge(source: SourceMap, draw: random.Random) -> SourceMap:
    number = draw.randrange(len(source.edges))
    return replace(source, edges=source.edges[:number] + source.edges[number + 1 :])


def adds_an_edge(source: SourceMap, draw: random.Random) -> SourceMap:
    a, b = draw.sample(source.nodes, 2)
    return replace(source, edges=(*source.edges, SourceEdge(f"a{draw.random()}", a.id, b.id)))


def turns_a_style(source: SourceMap, draw: random.Random) -> SourceMap:
    return _edge(source, draw.randrange(len(source.edges)), style=draw.choice(list(MoveStyle)).value)


def bends_an_edge(source: SourceMap, draw: random.Random) -> SourceMap:
    """Moves a control point, now and then by so little that the polyline stays the same."""
    curved = [i for i, edge in enumerate(source.edges) if edge.points]
    if not curved:
        return source
    number = draw.choice(curved)
    first, *rest = source.edges[number].points
    by = draw.choice((1, 300_000))
    return _edge(source, number, points=(Point(first.x_um + by, first.y_um), *rest))


def renames_a_node(source: SourceMap, draw: random.Random) -> SourceMap:
    old = draw.choice(source.nodes).id
    new = f"{draw.choice('AMZ')}{draw.randrange(1000)}"
    return renamed(source, lambda name: new if name == old else name, str)


EDITS: tuple[Edit, ...] = (moves_a_node, drops_an_edge, adds_an_edge, turns_a_style, bends_an_edge, renames_a_node)


def edited_step_by_step(source: SourceMap, seed: int, steps: int) -> int:
    """Each step on top of the last map that compiled; the number of those that made a map."""
    draw = random.Random(seed)
    before, made = examine(source, [FL_STD]).compiled, 0
    for _ in range(steps):
        if len(source.edges) < 3:
            break
        source = draw.choice(EDITS)(source, draw)
        quick, whole = examine(source, [FL_STD], previous=before), examine(source, [FL_STD])
        assert quick.data == whole.data
        assert quick.findings == whole.findings
        if quick.data is not None:
            made += 1
            before = from_bytes(quick.data)
    return made


@pytest.mark.req("FLT-MAP-18")
def test_random_edits_recompiled_on_top_give_the_bytes_of_a_full_compilation() -> None:
    assert sum(edited_step_by_step(random_map(seed, 3, 6), seed, 6) for seed in range(10)) > 20


@pytest.mark.long
@pytest.mark.req("FLT-MAP-18")
@pytest.mark.parametrize("seed", range(40))
def test_many_random_edits_recompiled_on_top_give_the_bytes_of_a_full_compilation(seed: int) -> None:
    edited_step_by_step(random_map(seed), seed, 20)


@pytest.mark.req("FLT-MAP-18")
def test_a_previous_map_of_another_site_or_other_trucks_is_ignored() -> None:
    others = [compile_map(warehouse(4, 6, 2), [FL_STD]), compile_map(furnished(), [other_profile()])]
    others.append(compile_map(furnished(), [FL_STD], CompileParams(cell_len_um=700_000)))

    for other in others:
        assert examine(furnished(), [FL_STD], previous=other).data == examine(furnished(), [FL_STD]).data
