"""The map conditions: certificates of LIVE maps, smallest counterexamples of the others."""

import pytest
from msgspec.structs import replace

from pendula.fleet import AtNode, Closed, CompiledMap, Fleet, Planner, Stream, Truck, certify, compile_map
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.samples import FL_STD, Sketch, reference_fleet, warehouse
from pendula.fleet.map.liveness import Certificate, Counterexample, least_lookahead_um
from pendula.fleet.map.resting import Rest, closed_by
from pendula.fleet.model import Code, MoveStyle, SourceMember, SourceSection, errors_of
from pendula.kernel.engine import Refusal
from tests.fleet.sites import scene, sketched

STREAM = Stream("S", ("W",), ("E",))


def trucks(*rests: str) -> tuple[Truck, ...]:
    return tuple(Truck(f"R{i + 1}", "FL-STD", rest) for i, rest in enumerate(rests))


def lane_with_spur(length: float, turning: bool = False) -> CompiledMap:
    """A through lane, a parking spur in its middle, another far off; with `turning`, a lane opposite the spur."""
    sketch = Sketch("spur")
    for name, x, y in (("W", -40, 0), ("Q", -20, 0), ("M", 0, 0), ("E", 40, 0)):
        sketch.node(name, x, y)
    sketch.node("P", 0, length, "ParkPoint")
    sketch.node("O", -20, 12, "ParkPoint")
    sketch.chain("W", "Q", "M", "E")
    sketch.lane("M", "P")
    sketch.lane("Q", "O")
    if turning:
        sketch.node("D", 0, -30)
        sketch.lane("M", "D")
    return compile_map(sketch.done(), [FL_STD])


def counterexample(site: CompiledMap, fleet: Fleet) -> Counterexample:
    certificate, findings = certify(site, fleet, [FL_STD])
    assert certificate is not None
    assert not certificate.live
    assert certificate.counterexample is not None
    assert findings[0].remedy == certificate.counterexample.remedy
    return certificate.counterexample


def certificate(site: CompiledMap, fleet: Fleet) -> Certificate:
    made, findings = certify(site, fleet, [FL_STD])
    assert made is not None
    assert made.live, made.counterexample
    assert errors_of(findings) == ()
    return made


@pytest.mark.req("FLT-LIVE-7")
def test_the_hall_of_the_contract_is_live_for_its_two_trucks() -> None:
    fleet = Fleet(trucks("PK1", "PK2"), (Stream("S-A", ("AP1",), ("LM3",)),))

    made = certificate(scene("hall-demo"), fleet)

    site = scene("hall-demo")
    assert {site.network.edges[edge].key for edge in made.closed["R1"].edges} == {"LM3->PK2", "PK2->LM3"}


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("count", [3, 4])
def test_the_reference_hall_is_live(count: int) -> None:
    assert certificate(scene("reference-hall"), reference_fleet(count)).legs == 6 * count


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize(("length", "turning", "needed"), [(3.4, False, 3.7), (5.0, True, 5.3), (4.2, True, 5.3)])
def test_a_spur_that_is_too_short_gets_its_needed_length(length: float, turning: bool, needed: float) -> None:
    stream = Stream("S", ("W",), ("D",)) if turning else STREAM

    why = counterexample(lane_with_spur(length, turning), Fleet(trucks("P", "O"), (stream,)))

    assert why.condition == "W1"
    assert float(str(why.details["spurM"])) == pytest.approx(needed)
    assert why.remedy == f"make the spur M<->P {needed} m long"
    assert why.details["robotId"] == "R2"


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize(("length", "turning"), [(3.7, False), (5.3, True)])
def test_a_spur_of_the_needed_length_is_enough(length: float, turning: bool) -> None:
    stream = Stream("S", ("W",), ("D",)) if turning else STREAM

    certificate(lane_with_spur(length, turning), Fleet(trucks("P", "O"), (stream,)))


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize(("apart", "live"), [(4.9, False), (5.0, True)])
def test_parallel_spurs_lie_five_metres_apart(apart: float, live: bool) -> None:
    sketch = Sketch("parallel")
    for name, x in (("W", -40), ("A", 0.0), ("B", apart), ("E", 40)):
        sketch.node(name, x, 0)
    sketch.node("PA", 0, 9, "ParkPoint")
    sketch.node("PB", apart, 9, "ParkPoint")
    sketch.chain("W", "A", "B", "E")
    sketch.lane("A", "PA")
    sketch.lane("B", "PB")
    site = compile_map(sketch.done(), [FL_STD])
    fleet = Fleet(trucks("PA", "PB"), (STREAM,))

    if live:
        certificate(site, fleet)
    else:
        why = counterexample(site, fleet)
        assert why.details == {"robotIds": ["R1", "R2"], "nodeIds": ["PA", "PB"], "distanceM": 5}


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize(("apart", "live"), [(4.9, False), (5.0, True)])
def test_no_truck_can_turn_in_a_station_beside_a_truck_at_rest(apart: float, live: bool) -> None:
    sketch = Sketch("beside")
    for name, x in (("W", -40), ("A", 0.0), ("B", apart), ("E", 40)):
        sketch.node(name, x, 0)
    sketch.node("PA", 0, 9, "ParkPoint")
    sketch.node("T", apart, 9, "ActionPoint")
    sketch.node("PE", 30, 9, "ParkPoint")
    sketch.node("F", 30, 0)
    sketch.chain("W", "A", "B", "F", "E")
    for start, end in (("A", "PA"), ("B", "T"), ("F", "PE")):
        sketch.lane(start, end)
    site = compile_map(sketch.done(), [FL_STD])

    made, _ = certify(site, Fleet(trucks("PA", "PE"), (Stream("S", ("W",), ("T",)),)), [FL_STD])

    assert made is not None
    assert made.live is live


@pytest.mark.req("FLT-LIVE-7", "FLT-TASK-9")
def test_two_trucks_cannot_share_a_rest_node() -> None:
    why = counterexample(scene("reference-hall"), Fleet(trucks("P1", "P1"), reference_fleet().streams))

    assert why.condition == "W1"
    assert why.details["robotIds"] == ["R1", "R2"]


@pytest.mark.req("FLT-LIVE-7")
def test_a_rest_node_on_the_way_through_is_named_with_its_remedy() -> None:
    why = counterexample(lane_with_spur(8.0), Fleet(trucks("M", "O"), (STREAM,)))

    assert why.details["restNodeIds"] == ["M"]
    assert why.remedy == "add a parking spur at M and let R1 rest there"


@pytest.mark.req("FLT-LIVE-7")
def test_a_stream_that_cannot_be_reached_is_found() -> None:
    why = counterexample(scene("hall-demo"), Fleet(trucks("PK1"), (Stream("S", ("AP1",), ("LM8",)),)))

    assert why.condition == "W2"
    assert (why.details["from"], why.details["to"]) == ("AP1", "LM8")


@pytest.mark.req("FLT-LIVE-7", "FLT-COR-4")
def test_a_lookahead_below_the_stopping_distance_is_found() -> None:
    fleet = replace(reference_fleet(), lookahead_um=5_250_000)

    why = counterexample(scene("reference-hall"), fleet)

    assert why.condition == "W3"
    assert least_lookahead_um(FL_STD, 500_000, fleet) == 5_260_000


@pytest.mark.req("FLT-LIVE-7")
def test_routes_avoid_the_rest_nodes_of_other_trucks() -> None:
    site = compile_map(warehouse(4, 6, 2), [FL_STD])
    rests = [node.id for node in site.network.nodes if node.parking]
    stations = tuple(node.id for node in site.network.nodes if node.station)
    fleet = Fleet(trucks(*rests), (Stream("S", stations[:3], stations[3:]),))

    made = certificate(site, fleet)
    planner = Planner(site, FL_STD)
    goal = site.node_number[stations[0]]
    way = planner.way(AtNode(site.node_number[rests[0]]), goal, made.closed["R1"])

    assert not isinstance(way, Refusal)
    foreign = [closed_by(site, [Rest(site.node_number[rest], 0)]) for rest in rests[1:]]
    assert not set(way.edges) & {edge for closed in foreign for edge in closed.edges}


def test_a_fleet_with_unknown_names_gets_findings_and_no_certificate() -> None:
    fleet = Fleet((Truck("R1", "OTHER", "NOWHERE"),), (Stream("S", ("X",), ("LM3",)),))

    made, findings = certify(scene("hall-demo"), fleet, [FL_STD])

    assert made is None
    codes = [finding.code.value for finding in findings]
    assert codes == ["PROFILE_MISSING_FIELD", "MISSING_PARKING_NODE", "MISSING_PICK_DROP_NODE"]


def test_the_certificate_has_a_readable_form() -> None:
    site = scene("hall-demo")
    made, _ = certify(site, Fleet(trucks("PK1", "PK2"), (Stream("S-A", ("AP1",), ("LM3",)),)), [FL_STD])
    assert made is not None

    form = made.form(site)

    assert form["live"] is True
    assert form["trucks"][1] == {
        "robotId": "R2",
        "closedEdgeKeys": ["LM3->PK1", "PK1->LM3"],
        "closedTurnNodeIds": ["PK1"],
    }
    assert not Closed()


@pytest.mark.req("FLT-DCL-19")
def test_a_pick_in_an_undeclared_dead_end_is_reported() -> None:
    graph = lane_with_spur(8.0)
    fleet = Fleet(trucks("P", "O"), (STREAM,))

    _, findings = certify(graph, fleet, [FL_STD])

    assert [(finding.code, finding.details["nodeId"], finding.remedy) for finding in findings] == [
        (Code.DEAD_END_WITHOUT_TOKEN, "E", "declare it under stations"),
        (Code.DEAD_END_WITHOUT_TOKEN, "W", "declare it under stations"),
    ]


@pytest.mark.req("FLT-DCL-19")
def test_the_remedy_for_a_dead_end_that_is_no_station_helps() -> None:
    graph = samples.spur()
    plain = replace(graph, nodes=tuple(replace(node, kind="LocationMark") for node in graph.nodes))
    fleet = Fleet((), (Stream("S", ("P",), ("M",)),))

    results = [
        certify(compile_map(variant, [FL_STD]), fleet, [FL_STD])[1]
        for variant in (plain, replace(plain, stations=("P",)))
    ]

    assert [len(findings) for findings in results] == [1, 0]


def resting(*rests: str, pick: str = "W", drop: str = "E") -> Fleet:
    return Fleet(tuple(Truck(f"R{i}", "FL-STD", r) for i, r in enumerate(rests)), (Stream("S", (pick,), (drop,)),))


def live(site: CompiledMap, fleet: Fleet) -> bool:
    made, _ = certify(site, fleet, [FL_STD])
    return made is not None and made.live


@pytest.mark.req("FLT-LIVE-2", "FLT-LIVE-7")
@pytest.mark.parametrize(("length", "fine"), [(3.2, False), (3.35, False), (3.55, True), (3.65, True), (3.70, True)])
def test_a_truck_at_rest_holds_what_its_release_bound_has_not_passed(length: float, fine: bool) -> None:
    assert live(lane_with_spur(length), resting("P", "O")) is fine


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("length", [2.0, 2.5, 2.6, 3.0, 3.1])
def test_the_needed_length_does_not_depend_on_where_cells_begin(length: float) -> None:
    made, _ = certify(lane_with_spur(length), resting("P", "O"), [FL_STD])
    assert made is not None
    assert made.counterexample is not None
    assert float(str(made.counterexample.details["spurM"])) == pytest.approx(3.7)


def bay(capacity: int) -> CompiledMap:
    sketch = sketched(("W", -40, 0), ("M", 0, 0), ("E", 40, 0), ("B", 0, 15))
    sketch.node("P1", -15, 15, "ParkPoint")
    sketch.node("P2", 15, 15, "ParkPoint")
    sketch.chain("W", "M", "E")
    for a, b in (("M", "B"), ("B", "P1"), ("B", "P2")):
        sketch.lane(a, b)
    members = tuple(SourceMember(key) for key in ("B<->M", "B<->P1", "B<->P2"))
    return compile_map(replace(sketch.done(), sections=(SourceSection("BAY", capacity, members),)), [FL_STD])


@pytest.mark.req("FLT-DCL-19", "FLT-LIVE-7")
@pytest.mark.parametrize(("capacity", "fine"), [(1, False), (2, True)])
def test_a_section_with_capacity_for_all_trucks_at_rest_closes_nothing(capacity: int, fine: bool) -> None:
    assert live(bay(capacity), resting("P1", "P2")) is fine


def test_a_fleet_with_duplicate_trucks_gets_no_certificate() -> None:
    doubled = Fleet((Truck("R", "FL-STD", "PK1"), Truck("R", "FL-STD", "PK1")))
    assert certify(scene("hall-demo"), doubled, [FL_STD])[0] is None


def necked(rest: float, *, parks: bool = True) -> CompiledMap:
    """A section between A and B; a stop `rest` metres behind it, on the way through or, with `parks`, at its end."""
    sketch = sketched(("W", -30, 0), ("Q", -15, 0), ("A", 0, 0), ("B", 20, 0))
    sketch.node("C", 20 + rest, 0, "ParkPoint" if parks else "LocationMark")
    sketch.node("P1", -15, 12, "ParkPoint")
    sketch.node("P2", -15, -12, "ParkPoint")
    sketch.chain("W", "Q", "A", "B", "C")
    sketch.lane("Q", "P1")
    sketch.lane("Q", "P2")
    neck = SourceSection("NECK", 1, (SourceMember("A<->B"),))
    return compile_map(replace(sketch.done(), sections=(neck,)), [FL_STD])


@pytest.mark.req("FLT-LIVE-2", "FLT-LIVE-7")
@pytest.mark.parametrize("behind", [0.8, 2.0, 2.4])
def test_a_stop_right_behind_a_section_is_no_obstacle(behind: float) -> None:
    site = necked(behind, parks=False)

    assert "CS_WITHOUT_EXIT_ROOM" in {f.code.value for f in site.findings}
    assert live(site, resting("P1", drop="C"))
    assert live(site, resting("P1", "P2", drop="C"))


@pytest.mark.req("FLT-LIVE-2", "FLT-LIVE-7")
@pytest.mark.parametrize(("behind", "fine"), [(2.5, False), (4.0, True)])
def test_a_truck_that_rests_right_behind_a_section_keeps_its_token_for_good(behind: float, fine: bool) -> None:
    sketch = sketched(("W", -30, 0), ("Q", -15, 0), ("A", 0, 0), ("B", 20, 0), ("E", 20, 20))
    sketch.node("P1", -15, 12, "ParkPoint")
    sketch.node("P2", 20 + behind + 6, 0, "ParkPoint")
    sketch.chain("W", "Q", "A", "B", "P2")
    sketch.lane("Q", "P1")
    sketch.lane("B", "E")
    neck = SourceSection("NECK", 1, (SourceMember("A<->B"), SourceMember("B<->P2", 0, 6_000_000)))
    site = compile_map(replace(sketch.done(), sections=(neck,)), [FL_STD])

    assert live(site, resting("P1", "P2")) is fine


@pytest.mark.req("FLT-LIVE-2", "FLT-LIVE-7")
@pytest.mark.parametrize(("rest", "fine"), [(8.7, False), (8.9, True)])
def test_a_section_ends_where_it_was_drawn_not_at_the_end_of_its_last_cell(rest: float, fine: bool) -> None:
    """2.3 m of truck, 0.2 m clearance and 0.2 m of uncertainty behind a section that ends at 6.1 m: 8.8 m."""
    sketch = sketched(("W", -30, 0), ("Q", -15, 0), ("A", 0, 0), ("B", 20, 0), ("E", 20, 20))
    sketch.node("P1", -15, 12, "ParkPoint")
    sketch.node("P2", 20 + rest, 0, "ParkPoint")
    sketch.chain("W", "Q", "A", "B", "P2")
    sketch.lane("Q", "P1")
    sketch.lane("B", "E")
    members = (SourceMember("A<->B"), SourceMember("B<->P2", 0, 6_100_000))
    site = compile_map(replace(sketch.done(), sections=(SourceSection("NECK", 1, members),)), [FL_STD])

    assert live(site, resting("P1", "P2")) is fine


@pytest.mark.req("FLT-LIVE-7")
def test_two_parks_in_one_dead_end_get_no_distance() -> None:
    sketch = sketched(("W", -30, 0), ("M", 0, 0), ("E", 30, 0))
    sketch.node("P1", 0, 10, "ParkPoint")
    sketch.node("P2", 0, 18, "ParkPoint")
    sketch.chain("W", "M", "E")
    sketch.chain("M", "P1", "P2")

    why = counterexample(compile_map(sketch.done(), [FL_STD]), resting("P1", "P2"))

    assert why.details == {"robotIds": ["R0", "R1"], "nodeIds": ["P1", "P2"]}
    assert why.remedy == "add a parking spur farther away from P1 and let R1 rest there"


@pytest.mark.req("FLT-LIVE-7")
def test_a_stop_in_which_another_truck_rests_gets_no_length() -> None:
    sketch = sketched(("W", -30, 0), ("M", 0, 0), ("E", 30, 0), ("N", 15, 0))
    sketch.node("P1", 0, 10, "ParkPoint")
    sketch.node("P2", 15, 10, "ParkPoint")
    sketch.chain("W", "M", "N", "E")
    sketch.lane("M", "P1")
    sketch.lane("N", "P2")

    why = counterexample(compile_map(sketch.done(), [FL_STD]), resting("P1", "P2", drop="P2"))

    assert why.remedy == "let R1 rest elsewhere than in P2: it is a stop of stream S"


def two_networks() -> CompiledMap:
    sketch = sketched()
    for name, y in (("A", 0.0), ("B", 30.0)):
        for end, x in (("W", -20.0), ("M", 0.0), ("E", 20.0)):
            sketch.node(f"{name}{end}", x, y)
        sketch.chain(f"{name}W", f"{name}M", f"{name}E")
        sketch.node(f"{name}P", 0, y + 10, "ParkPoint")
        sketch.lane(f"{name}M", f"{name}P")
    return compile_map(sketch.done(), [FL_STD])


@pytest.mark.req("FLT-LIVE-7")
def test_a_truck_serves_the_streams_of_its_network() -> None:
    streams = (Stream("SA", ("AW",), ("AE",)), Stream("SB", ("BW",), ("BE",)))

    assert certificate(two_networks(), Fleet(trucks("AP", "BP"), streams)).legs == 6


@pytest.mark.req("FLT-LIVE-7")
def test_a_stream_without_a_truck_in_its_network_is_not_live() -> None:
    why = counterexample(two_networks(), Fleet(trucks("AP"), (Stream("SB", ("BW",), ("BE",)),)))

    assert (why.condition, why.details) == ("W2", {"streamId": "SB"})


@pytest.mark.req("FLT-LIVE-7")
def test_a_stream_that_names_its_trucks_is_served_by_them_alone() -> None:
    fleet = Fleet(trucks("P1", "P2"), (Stream("S", ("WEST",), ("EAST",), ("R2",)),))

    assert certificate(scene("reference-hall"), fleet).legs == 3


def test_a_stream_that_names_an_unknown_truck_gets_a_finding() -> None:
    fleet = Fleet(trucks("P1"), (Stream("S", ("WEST",), ("EAST",), ("R9",)),))

    made, findings = certify(scene("reference-hall"), fleet, [FL_STD])

    assert made is None
    assert [finding.details for finding in findings] == [{"robotId": "R9"}]


def bays(turning: bool) -> CompiledMap:
    """Two bays 2.5 m apart that are reversed into."""
    sketch = sketched(("W", -20, 0), ("A", 0, 0), ("B", 2.5, 0), ("E", 20, 0))
    sketch.chain("W", "A", "B", "E")
    for name, x in (("A", 0.0), ("B", 2.5)):
        sketch.node(f"P{name}", x, 9, "ParkPoint")
        sketch.lane(name, f"P{name}", style=MoveStyle.BACKWARD)
    source = sketch.done()
    nodes = tuple(replace(node, turning=turning or node.kind != "ParkPoint") for node in source.nodes)
    return compile_map(replace(source, nodes=nodes), [FL_STD])


@pytest.mark.req("FLT-MAP-3", "FLT-LIVE-7")
@pytest.mark.parametrize("turning", [True, False])
def test_bays_entered_backward_may_be_close_without_turning(turning: bool) -> None:
    site = bays(turning)

    assert live(site, resting("PA", "PB")) is not turning
    assert bool(site.zones.by_node[site.node_number["PA"]]) is turning


@pytest.mark.req("FLT-MAP-3", "FLT-PLAN-1")
def test_no_route_turns_in_a_node_without_turning() -> None:
    sketch = sketched(("A", 0, 0), ("B", 10, 0), ("C", 10, 10), ("D", 20, 0))
    sketch.chain("A", "B", "D")
    sketch.lane("B", "C")
    source = sketch.done()
    planner = Planner(
        compile_map(replace(source, nodes=tuple(replace(n, turning=n.id != "B") for n in source.nodes)), [FL_STD]),
        FL_STD,
    )
    number = planner.site.node_number

    assert isinstance(planner.way(AtNode(number["A"]), number["C"]), Refusal)
    assert not isinstance(planner.way(AtNode(number["A"]), number["D"]), Refusal)
    assert isinstance(planner.way(AtNode(number["B"], 0), number["C"]), Refusal)


@pytest.mark.req("FLT-LIVE-3", "FLT-LIVE-7")
@pytest.mark.parametrize(("apart", "fine"), [(5.0, False), (6.0, True)])
def test_a_truck_at_rest_is_kept_at_the_following_gap(apart: float, fine: bool) -> None:
    """At 5 m neither areas nor turning discs overlap; the operating gap alone is missing. No truck turns in G: trucks
    leave it backward."""
    sketch = sketched(("W", -20, 0), ("G", 0, 0), ("N", apart, 0), ("E", 40, 0), ("Q", -20, 15))
    sketch.lane("W", "G", back=False)
    sketch.lane("G", "W", back=False, style=MoveStyle.BACKWARD)
    sketch.chain("G", "N", "E")
    sketch.lane("W", "Q")
    sketch.node("V", -35, 0)
    sketch.lane("W", "V")
    source = sketch.done()
    nodes = tuple(replace(node, turning=node.id != "G") for node in source.nodes)
    site = compile_map(replace(source, nodes=nodes), [FL_STD])
    waiting = site.cells.of_edge(site.edge_number["W->G"]).stop - 1
    resting_in = site.cells.of_edge(site.edge_number["G->N"]).stop - 1
    assert not site.conflicts.holds(waiting, resting_in)

    assert live(site, Fleet(trucks("N", "Q"), (Stream("S", ("V",), ("G",), ("R2",)),))) is fine
