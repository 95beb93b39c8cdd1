"""Maps of other programs (openTCS, Open-RMF, Nav2) as source maps, and fleets drawn for them.

The files are not part of the project: tests that need them are skipped without them. Lanes become straight edges;
other content of the files is ignored.
"""

import json
from collections.abc import Callable
from functools import cache
from math import dist
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from msgspec.structs import replace

from pendula.fleet import CompiledMap, certify, examine
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import Fleet, SourceMap, Stream, Truck
from pendula.fleet.scenarios import Scenario
from pendula.fleet.scenarios.model import Calm, Robot
from pendula.fleet.simulator import WorldSettings
from pendula.fleet.tasks import TaskStream
from pendula.kernel.rng import Pcg32

FOLDERS = [parent / "shared" / "data" / "fleet" / "maps" for parent in Path(__file__).resolve().parents]
FOLDER = next((folder for folder in FOLDERS if folder.is_dir()), None)
# A small indoor truck: the maps of buildings and shelves are not made for forklifts.
SMALL = replace(
    FL_STD,
    profile_id="SMALL",
    head_um=300_000,
    tail_um=300_000,
    width_um=400_000,
    safety_front_um=100_000,
    safety_rear_um=50_000,
    safety_side_um=50_000,
    localization_error=replace(FL_STD.localization_error, value_um=50_000),
    tracking_error=replace(FL_STD.tracking_error, value_um=30_000),
    min_following_gap_um=200_000,
    min_turn_radius_um=300_000,
)


def opentcs(text: str) -> SourceMap:
    """Points, paths and locations of a plant model; millimetres."""
    root = ElementTree.fromstring(text)
    loading = {link.get("point") for link in root.iter("link")}
    sketch = Sketch("opentcs")
    for at in root.iter("point"):
        name = at.attrib["name"]
        kind = "ActionPoint" if name in loading else "LocationMark"
        kind = "ParkPoint" if at.get("type") == "PARK_POSITION" else kind
        sketch.node(name, int(at.attrib["positionX"]) / 1000, int(at.attrib["positionY"]) / 1000, kind)
    for path in root.iter("path"):
        sketch.lane(
            path.attrib["sourcePoint"], path.attrib["destinationPoint"], back=path.get("maxReverseVelocity") != "0"
        )
    return sketch.done()


def nav2(text: str) -> SourceMap:
    """Points and line strings of a route graph; metres."""
    sketch = Sketch("nav2")
    features = json.loads(text)["features"]
    for feature in features:
        if feature["geometry"]["type"] == "Point":
            sketch.node(f"N{feature['properties']['id']}", *feature["geometry"]["coordinates"][:2])
    for feature in features:
        if feature["geometry"]["type"] != "Point":
            start, end = (f"N{feature['properties'][key]}" for key in ("startid", "endid"))
            sketch.lane(start, end, back=False)
    return sketch.done()


def rmf(text: str) -> SourceMap:
    """The first level of a building: lanes and named vertices, scaled by its measurements."""
    level: Any = msgspec.yaml.decode(text)["levels"]["L1"]
    vertices = level["vertices"]
    first, second, measured = level["measurements"][0]
    scale = measured["distance"][1] / dist(vertices[first][:2], vertices[second][:2])
    sketch = Sketch("rmf")
    for number in sorted({end for lane in level["lanes"] for end in lane[:2]}):
        x, y, _, name, *more = vertices[number]
        props = more[0] if more else {}
        parks = props.get("is_parking_spot", [4, False])[1] or props.get("is_charger", [4, False])[1]
        kind = "ParkPoint" if parks else "ActionPoint" if name else "LocationMark"
        sketch.node(f"V{number}", x * scale, -y * scale, kind)
    for start, end, props in level["lanes"]:
        sketch.lane(f"V{start}", f"V{end}", back=props["bidirectional"][1])
    return sketch.done()


READERS: dict[str, tuple[Callable[[str], SourceMap], RobotProfile]] = {
    "openTCS-Demo-01.xml": (opentcs, SMALL),
    "openTCS-PlantModelV6.sample.xml": (opentcs, SMALL),
    "nav2-warehouse.geojson": (nav2, SMALL),
    "nav2-turtlebot3.geojson": (nav2, SMALL),
    "rmf-office.building.yaml": (rmf, SMALL),
    "rmf-hotel.building.yaml": (rmf, SMALL),
}


def source_of(name: str) -> SourceMap:
    """The source map of a file; skips the test if the files are missing."""
    if FOLDER is None:
        pytest.skip("the maps of other programs (shared/data/fleet/maps) are missing")
    return READERS[name][0]((FOLDER / name).read_text())


@cache
def foreign_site(name: str) -> CompiledMap | None:
    """The compiled map; None if our compiler rejects the map."""
    return examine(source_of(name), [READERS[name][1]]).compiled


def drawn_fleet(source: SourceMap, profile: RobotProfile, seed: int, most: int = 12) -> Fleet:
    """Trucks that rest anywhere, and two streams between any other nodes; one stream if there are few nodes."""
    draw = Pcg32.seeded(seed, 26)
    names = sorted(node.id for node in source.nodes)
    for at in range(len(names) - 1, 0, -1):
        other = draw.next() % (at + 1)
        names[at], names[other] = names[other], names[at]
    stations = 4 if len(names) > 4 else 2
    count = 1 + draw.next() % min(most, len(names) - stations)
    rests = names[stations : stations + count]
    trucks = tuple(Truck(f"R{number:02}", profile.profile_id, rest) for number, rest in enumerate(rests))
    pairs = [(names[at], names[at + 1]) for at in range(0, stations, 2)]
    return Fleet(trucks, tuple(Stream(f"S{n}", (pick,), (drop,)) for n, (pick, drop) in enumerate(pairs, 1)))


def live_scenario(name: str, seed: int, trucks: int, minutes: int) -> Scenario:
    """Ordinary traffic on a map: rest nodes that keep the fleet LIVE, and two streams between drawn nodes."""
    source, profile, site = source_of(name), READERS[name][1], foreign_site(name)
    if site is None:
        pytest.skip("the compiler rejects this map: a station has no way out")
    draw = Pcg32.seeded(seed, 12)
    names = sorted(node.id for node in source.nodes)
    while True:
        for at in range(len(names) - 1, 0, -1):
            other = draw.next() % (at + 1)
            names[at], names[other] = names[other], names[at]
        fleet = Fleet((), tuple(Stream(f"S{at}", (names[2 * at],), (names[2 * at + 1],)) for at in range(2)))
        for rest in names[4:30]:
            truck = Truck(f"R{len(fleet.trucks) + 1}", profile.profile_id, rest)
            grown = replace(fleet, trucks=(*fleet.trucks, truck))
            certificate, _ = certify(site, grown, [profile])
            if certificate is not None and certificate.live and len(fleet.trucks) < trucks:
                fleet = grown
        if len(fleet.trucks) >= min(3, trucks):
            break
    return Scenario(
        name=f"{name}-{seed}",
        title="",
        source=source,
        profiles=(profile,),
        robots=tuple(Robot(truck.robot_id, truck.park_node_id, profile.profile_id) for truck in fleet.trucks),
        streams=tuple(
            TaskStream(stream.stream_id, stream.pick_node_ids, stream.drop_node_ids, 3_000, 2_000)
            for stream in fleet.streams
        ),
        duration_ms=minutes * 60_000,
        expect=(Calm(),),
        world=WorldSettings(step_ms=100),
        seed=seed,
    )
