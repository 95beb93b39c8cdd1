"""Remedies with a number are sufficient: once applied, the obstacle is gone."""

from collections.abc import Iterator
from itertools import product
from math import cos, pi, sin
from re import fullmatch, search

import pytest
from msgspec.structs import replace

from pendula.fleet import certify, compile_map, examine
from pendula.fleet.compiler.generated_maps import random_map
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.map.liveness import Counterexample
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import (
    Direction,
    Fleet,
    Point,
    SourceEdge,
    SourceMap,
    SourceMember,
    SourceNode,
    SourceSection,
    Stream,
    Truck,
)
from pendula.kernel.rng import Pcg32
from tests.campaigns import campaign_after
from tests.fleet.foreign_maps import READERS, SMALL, drawn_fleet, source_of


def verdict(source: SourceMap, fleet: Fleet) -> Counterexample | None:
    made, findings = certify(compile_map(source, [FL_STD]), fleet, [FL_STD])
    assert made is not None, findings
    return made.counterexample


def lengthened(source: SourceMap, name: str, by_um: int) -> SourceMap:
    """The map with the dead end to a node longer, straight on."""
    edge = next(edge for edge in source.edges if name in (edge.start, edge.end))
    places = {node.id: node.at for node in source.nodes}
    mouth, at = places[edge.start if edge.end == name else edge.end], places[name]
    dx, dy = at.x_um - mouth.x_um, at.y_um - mouth.y_um
    part = by_um / (dx * dx + dy * dy) ** 0.5
    moved = Point(round(at.x_um + dx * part), round(at.y_um + dy * part))
    return replace(source, nodes=tuple(replace(node, at=moved) if node.id == name else node for node in source.nodes))


def applied(source: SourceMap, fleet: Fleet, why: Counterexample) -> Counterexample | None:
    """The certificate after the spur has the length of the remedy."""
    rest = why.details["restNodeIds"]
    assert isinstance(rest, list)
    return verdict(lengthened(source, str(rest[0]), round(float(str(why.details["missingM"])) * 1e6)), fleet)


def named(why: Counterexample) -> tuple[object, ...]:
    """The subject of an obstacle."""
    return tuple(str(why.details.get(key)) for key in ("robotId", "from", "to", "restNodeIds"))


def spurred(seed: int) -> tuple[SourceMap, Fleet]:
    """A random street with short spurs at odd angles: parks and stations, sometimes a section."""
    draw = Pcg32.seeded(seed, 3)
    sketch = Sketch(f"spurred-{seed}")
    names = [sketch.node(f"N{number}", number * 12, (draw.next() % 3) - 1) for number in range(5)]
    sketch.chain(*names)
    sketch.node("W", -14, 0, "ActionPoint")
    sketch.node("E", 62, 0, "ActionPoint")
    sketch.lane("W", "N0")
    sketch.lane("N4", "E")
    rests = []
    for number in range(1, 4):
        at = sketch.nodes[f"N{number}"].at
        aside, out = (draw.next() % 41) / 10 - 2, 1.5 + (draw.next() % 50) / 10
        up = 1 if draw.next() % 2 else -1
        sketch.node(f"P{number}", at.x_um / 1e6 + aside, at.y_um / 1e6 + up * out, "ParkPoint")
        sketch.lane(f"N{number}", f"P{number}")
        rests.append(f"P{number}")
    source = sketch.done()
    if draw.next() % 3 == 0:
        source = replace(source, sections=(SourceSection("CS", 1, (SourceMember("N2<->P2"), SourceMember("N1<->N2"))),))
    picks = ("W", "P3") if draw.next() % 4 == 0 else ("W",)
    trucks = tuple(Truck(f"R{number}", "FL-STD", rest) for number, rest in enumerate(rests))
    return source, Fleet(trucks, (Stream("S", picks, ("E",)),))


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("seed", range(40))
def test_a_length_in_a_remedy_is_sufficient(seed: int) -> None:
    source, fleet = spurred(seed)
    for _ in range(8):
        why = verdict(source, fleet)
        if why is None or "missingM" not in why.details:
            return
        after = applied(source, fleet, why)
        assert after is None or named(after) != named(why), (why, after)
        rest = why.details["restNodeIds"]
        assert isinstance(rest, list)
        source = lengthened(source, str(rest[0]), round(float(str(why.details["missingM"])) * 1e6))
    pytest.fail("the remedies do not come to an end")


@pytest.mark.req("FLT-LIVE-7")
def test_most_short_spurs_get_a_length() -> None:
    whys = [verdict(*spurred(seed)) for seed in range(40)]

    assert sum(why is not None and "missingM" in why.details for why in whys) >= 15


@pytest.mark.long
@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("seed", range(300))
def test_a_length_in_a_remedy_on_a_random_map_is_sufficient(seed: int) -> None:
    source = random_map(seed, odd=seed % 2 == 1)
    report = examine(source, [FL_STD])
    if report.compiled is None:
        return
    parks = [node.id for node in report.compiled.network.nodes if node.parking][:3]
    stations = [node.id for node in report.compiled.network.nodes if node.station][:3]
    fleet = Fleet(
        tuple(Truck(f"R{number}", "FL-STD", park) for number, park in enumerate(parks)),
        tuple(Stream(f"S{number}", (station,), (stations[0],)) for number, station in enumerate(stations[1:])),
    )
    why = verdict(source, fleet)
    if why is None or "missingM" not in why.details:
        return
    rest = why.details["restNodeIds"]
    assert isinstance(rest, list)
    moved = examine(lengthened(source, str(rest[0]), round(float(str(why.details["missingM"])) * 1e6)), [FL_STD])
    if moved.compiled is None:
        return
    made, _ = certify(moved.compiled, fleet, [FL_STD])
    assert made is not None
    assert made.counterexample is None or named(made.counterexample) != named(why)


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("apart", [1.0, 2.0, 3.3, 4.1, 4.4])
@pytest.mark.parametrize("ahead", [0.0, 2.0])
def test_a_distance_in_a_remedy_is_sufficient(apart: float, ahead: float) -> None:
    def street(between: float, step: float) -> SourceMap:
        sketch = Sketch("parallel")
        for name, x in (("W", -40.0), ("A", 0.0), ("B", between), ("E", 60.0)):
            sketch.node(name, x, 0)
        sketch.node("PA", 0, 12, "ParkPoint")
        sketch.node("PB", between, 12 + step, "ParkPoint")
        sketch.chain("W", "A", "B", "E")
        sketch.lane("A", "PA")
        sketch.lane("B", "PB")
        return sketch.done()

    fleet = Fleet((Truck("R1", "FL-STD", "PA"), Truck("R2", "FL-STD", "PB")), (Stream("S", ("W",), ("E",)),))
    why = verdict(street(apart, ahead), fleet)
    assert why is not None
    factor = float(str(why.details["distanceM"])) / (apart * apart + ahead * ahead) ** 0.5

    after = verdict(street(apart * factor, ahead * factor), fleet)

    # Staggered spurs may then block each other: another obstacle, with its own remedy.
    assert after is None or "nodeIds" not in after.details


def judged(source: SourceMap, fleet: Fleet, profile: RobotProfile) -> Counterexample | str | None:
    """The counterexample of a fleet on a map, None if it is LIVE, or why there is no verdict."""
    report = examine(source, [profile])
    if report.compiled is None:
        return f"the map is refused: {[finding.message for finding in report.findings][:3]}"
    made, findings = certify(report.compiled, fleet, [profile])
    return f"the fleet is refused: {findings}" if made is None else made.counterexample


def with_spur(source: SourceMap, mouth: str, angle: float, length_m: float) -> SourceMap:
    """The map with one more dead end at a node, to the node NEW."""
    at = next(node.at for node in source.nodes if node.id == mouth)
    end = Point(at.x_um + round(cos(angle) * length_m * 1e6), at.y_um + round(sin(angle) * length_m * 1e6))
    lane = SourceEdge("NEW", mouth, "NEW", direction=Direction.BOTH.value)
    return replace(source, nodes=(*source.nodes, SourceNode("NEW", end, "ParkPoint")), edges=(*source.edges, lane))


def resting_elsewhere(fleet: Fleet, robot: str, node: str) -> Fleet:
    moved = (replace(truck, park_node_id=node) if truck.robot_id == robot else truck for truck in fleet.trucks)
    return replace(fleet, trucks=tuple(moved))


def spurs_at(source: SourceMap, fleet: Fleet, mouths: list[str], robot: str) -> Iterator[tuple[SourceMap, Fleet]]:
    """A truck in a new spur, tried in every direction: short, and so long that it ends outside the map."""
    span = max(abs(at) for node in source.nodes for at in (node.at.x_um, node.at.y_um)) / 1e6
    for mouth, length, eighth in product(mouths, (6.0, 15.0, 2.5 * span), range(16)):
        yield with_spur(source, mouth, eighth * pi / 8 + 0.1, length), resting_elsewhere(fleet, robot, "NEW")


def remedied(source: SourceMap, fleet: Fleet, why: Counterexample) -> Iterator[tuple[SourceMap, Fleet]]:
    """Every way in which an engineer may follow a remedy."""
    names = sorted(node.id for node in source.nodes)
    if match := fullmatch(r"make the spur (.+) ([0-9.]+) m long", why.remedy):
        rest, need = why.details["restNodeIds"], why.details["missingM"]
        assert isinstance(rest, list)
        yield lengthened(source, str(rest[0]), round(float(str(need)) * 1e6)), fleet
    elif match := fullmatch(r"add a .*spur.* at (\S+) and let (\S+) rest there( instead of in \S+)?", why.remedy):
        yield from spurs_at(source, fleet, [match[1]], match[2])
    elif match := fullmatch(r"add an edge from (\S+) to (\S+)", why.remedy):
        yield replace(source, edges=(*source.edges, SourceEdge("NEW", match[1], match[2]))), fleet
    elif match := fullmatch(r"add a truck that rests in the network of (\S+), or join the networks", why.remedy):
        added = with_spur(source, match[1], 0.1, 40.0)
        yield added, replace(fleet, trucks=(*fleet.trucks, Truck("NEW", fleet.trucks[0].profile_id, "NEW")))
    elif fullmatch(r"place \S+ and \S+ ([0-9.]+) m apart", why.remedy):
        robots = why.details["robotIds"]
        assert isinstance(robots, list)
        yield from spurs_at(source, fleet, names, str(robots[1]))
    elif match := fullmatch(r".*capacity.* (\d+)( over the dead end)?, or let (\S+) rest elsewhere", why.remedy):
        yield with_capacity(source, fleet, str(why.details["criticalSectionId"]), int(match[1])), fleet
    elif match := search(r"let (\S+) rest (elsewhere than in|there)", why.remedy):
        yield from spurs_at(source, fleet, names, match[1])


def with_capacity(source: SourceMap, fleet: Fleet, section: str, capacity: int) -> SourceMap:
    """The map with a section of another capacity, drawn where it was generated."""
    drawn = [drawn_section for drawn_section in source.sections if drawn_section.id == section]
    if drawn:
        others = tuple(other for other in source.sections if other.id != section)
        return replace(source, sections=(*others, replace(drawn[0], capacity=capacity)))
    profile = next(profile for profile in (FL_STD, SMALL) if profile.profile_id == fleet.trucks[0].profile_id)
    site = compile_map(source, [profile])
    (made,) = [compiled for compiled in site.sections if compiled.id == section]
    members = tuple(SourceMember(site.network.groups[member.group].key) for member in made.members)
    return replace(source, sections=(*source.sections, SourceSection("NEW", capacity, members)))


def obstacle(why: Counterexample) -> tuple[object, ...]:
    keys = ("robotId", "from", "to", "restNodeIds", "nodeIds", "streamId", "criticalSectionId", "robotIds")
    return tuple(str(why.details.get(key)) for key in keys)


def helps(source: SourceMap, fleet: Fleet, profile: RobotProfile, why: Counterexample) -> bool:
    """Whether a remedy can be followed so that its obstacle is gone, and the addition is not one itself."""
    for changed, others in remedied(source, fleet, why):
        after = judged(changed, others, profile)
        if after is None:
            return True
        if isinstance(after, Counterexample) and obstacle(after) != obstacle(why):
            closing = after.details.get("restNodeIds")
            same = all(after.details.get(key) == why.details.get(key) for key in ("robotId", "from", "to"))
            if not (same and isinstance(closing, list) and "NEW" in closing):
                return True
    return False


def assert_no_truck_can_be_left_out(
    source: SourceMap, fleet: Fleet, profile: RobotProfile, why: Counterexample
) -> None:
    """The named trucks close the way, and without any one of them the others do not."""
    robots, own = why.details["restRobotIds"], why.details["robotId"]
    assert isinstance(robots, list)
    stream = next(stream for stream in fleet.streams if stream.stream_id == why.details["streamId"])

    def closes(named: list[object]) -> bool:
        trucks = tuple(truck for truck in fleet.trucks if truck.robot_id in (own, *named))
        left = replace(fleet, trucks=trucks, streams=(replace(stream, robot_ids=(str(own),)),))
        after = judged(source, left, profile)
        assert not isinstance(after, str), after
        return after is not None and all(after.details[key] == why.details[key] for key in ("robotId", "from", "to"))

    assert closes([*robots])
    for left_out in robots:
        assert not closes([robot for robot in robots if robot != left_out]), (left_out, robots)


def check_counterexample(source: SourceMap, fleet: Fleet, profile: RobotProfile) -> str | None:
    """The remedy of a fleet on a map, after it was followed; None if there is no obstacle."""
    why = judged(source, fleet, profile)
    if not isinstance(why, Counterexample):
        return None
    if "restRobotIds" in why.details:
        assert_no_truck_can_be_left_out(source, fleet, profile, why)
    assert helps(source, fleet, profile, why), (why.message, why.remedy)
    return why.remedy


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("seed", campaign_after(1, range(4)))
@pytest.mark.parametrize("name", READERS)
def test_on_a_foreign_map_the_named_trucks_are_minimal_and_the_remedy_helps(name: str, seed: int) -> None:
    source, profile = source_of(name), READERS[name][1]

    check_counterexample(source, drawn_fleet(source, profile, seed), profile)


@pytest.mark.long
@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("seed", range(4, 60))
@pytest.mark.parametrize("name", READERS)
def test_on_many_foreign_maps_the_remedies_help(name: str, seed: int) -> None:
    source, profile = source_of(name), READERS[name][1]

    check_counterexample(source, drawn_fleet(source, profile, seed), profile)


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("seed", range(12))
def test_on_a_random_map_the_named_trucks_are_minimal_and_the_remedy_helps(seed: int) -> None:
    source = random_map(seed, odd=seed % 2 == 1)

    check_counterexample(source, drawn_fleet(source, FL_STD, seed), FL_STD)


@pytest.mark.req("FLT-LIVE-7")
def test_of_twelve_trucks_at_rest_only_the_two_that_close_both_ways_are_named() -> None:
    """Two lanes lead from W to E; R1 and R2 stand in one each, the others in their own spurs."""
    sketch = Sketch("two-ways")
    for name, x, y in (("W", -20, 0), ("A", 0, 0), ("N", 30, 20), ("S", 30, -20), ("B", 60, 0), ("E", 80, 0)):
        sketch.node(name, x, y)
    sketch.chain("W", "A", "N", "B", "E")
    sketch.chain("A", "S", "B")
    rests = ["S", "N"]
    previous = "E"
    for number in range(10):
        junction = sketch.node(f"J{number}", 100 + 20 * number, 0)
        rests.append(sketch.node(f"P{number}", 100 + 20 * number, 12, "ParkPoint"))
        sketch.lane(previous, junction)
        sketch.lane(junction, rests[-1])
        previous = junction
    trucks = tuple(Truck(f"R{number + 1:02}", "FL-STD", rest) for number, rest in enumerate(rests))
    fleet = Fleet(trucks, (Stream("S", ("W",), ("E",), ("R03",)),))

    why = verdict(sketch.done(), fleet)

    assert why is not None
    assert why.details["restRobotIds"] == ["R01", "R02"]
    assert why.details["restNodeIds"] == ["S", "N"]
    assert why.message == (
        "truck 'R03' cannot go from 'P0' to 'W' while 'R01' rests in 'S' and 'R02' rests in 'N'; "
        "none of them can be left out"
    )
    assert why.remedy == "add a parking spur at S and let R01 rest there"
    assert helps(sketch.done(), fleet, FL_STD, why)
