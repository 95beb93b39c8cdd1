"""Remedies remedy: a number that the certificate says is applied, and the obstacle it was said of is gone."""

import pytest
from msgspec.structs import replace

from pendula.fleet import certify, compile_map, examine
from pendula.fleet.liveness.certificate import Counterexample
from pendula.fleet.model import Fleet, Point, SourceMap, SourceMember, SourceSection, Stream, Truck
from pendula.fleet.samples.random_maps import random_map
from pendula.fleet.samples.scenes import FL_STD, Sketch
from pendula.kernel.rng import Pcg32


def verdict(source: SourceMap, fleet: Fleet) -> Counterexample | None:
    made, findings = certify(compile_map(source, [FL_STD]), fleet, [FL_STD])
    assert made is not None, findings
    return made.counterexample


def lengthened(source: SourceMap, name: str, by_um: int) -> SourceMap:
    """The map with the dead end to a node longer, straight on."""
    edge = next(one for one in source.edges if name in (one.start, one.end))
    places = {node.id: node.at for node in source.nodes}
    mouth, at = places[edge.start if edge.end == name else edge.end], places[name]
    dx, dy = at.x_um - mouth.x_um, at.y_um - mouth.y_um
    part = by_um / (dx * dx + dy * dy) ** 0.5
    moved = Point(round(at.x_um + dx * part), round(at.y_um + dy * part))
    return replace(source, nodes=tuple(replace(one, at=moved) if one.id == name else one for one in source.nodes))


def applied(source: SourceMap, fleet: Fleet, why: Counterexample) -> Counterexample | None:
    """The verdict after the spur was made as long as was said."""
    rest = why.details["restNodeIds"]
    assert isinstance(rest, list)
    return verdict(lengthened(source, str(rest[0]), round(float(str(why.details["missingM"])) * 1e6)), fleet)


def named(why: Counterexample) -> tuple[object, ...]:
    """What an obstacle is about."""
    return tuple(str(why.details.get(key)) for key in ("robotId", "from", "to", "restNodeIds"))


def spurred(seed: int) -> tuple[SourceMap, Fleet]:
    """A random street with short spurs at odd angles: parks and stations, a section now and then."""
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
def test_a_length_that_is_said_is_enough_for_its_obstacle(seed: int) -> None:
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
def test_lengths_are_said_of_most_short_spurs() -> None:
    whys = [verdict(*spurred(seed)) for seed in range(40)]

    assert sum(why is not None and "missingM" in why.details for why in whys) >= 15


@pytest.mark.long
@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("seed", range(300))
def test_a_length_that_is_said_of_a_random_map_is_enough_for_its_obstacle(seed: int) -> None:
    source = random_map(seed, odd=seed % 2 == 1)
    report = examine(source, [FL_STD])
    if report.compiled is None:
        return
    parks = [node.id for node in report.compiled.network.nodes if node.parking][:3]
    stations = [node.id for node in report.compiled.network.nodes if node.station][:3]
    fleet = Fleet(
        tuple(Truck(f"R{number}", "FL-STD", park) for number, park in enumerate(parks)),
        tuple(Stream(f"S{number}", (one,), (stations[0],)) for number, one in enumerate(stations[1:])),
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
def test_a_distance_that_is_said_is_enough(apart: float, ahead: float) -> None:
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

    # Staggered spurs may then be in each other's way out: another obstacle, with a remedy of its own.
    assert after is None or "nodeIds" not in after.details
