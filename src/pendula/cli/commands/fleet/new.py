"""`pendula fleet new`: sample maps as files to start from, with trucks and a fleet."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example
from pendula.cli.writing import write_whole
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.fleet import Fleet, RobotProfile, SourceMap

NODES = 12
MOST_NODES = 2000
# How long goods arrive, and when every truck must be back at rest.
_GOODS_MS = 120_000
_WHOLE_MS = 3_600_000


class Scene(StrEnum):
    HALL = "hall"
    WAREHOUSE = "warehouse"
    LARGE = "large"
    RANDOM = "random"
    BUILT_WAREHOUSE = "built-warehouse"
    SPUR_GRID = "spur-grid"
    LIVE_MAP = "live-map"
    HALL_DEMO = "hall-demo"
    HEAD_ON_LANE = "head-on-lane"
    PLUS_CROSSING = "plus-crossing"
    TRIANGLE = "triangle"
    RING_WITH_BYPASS = "ring-with-bypass"
    NEAR_LANES = "near-lanes"
    TAIL_SWING_BEND = "tail-swing-bend"
    SPUR = "spur"
    STRAIGHT_LANE = "straight-lane"


def register(group: typer.Typer) -> None:
    group.command(
        "new",
        epilog=example(
            "pendula fleet new --scene hall -o hall.json --profiles trucks.json --fleet fleet.json",
            "pendula fleet new --scene random --nodes 20 --seed 7 -o random.json",
            "pendula fleet new --scene built-warehouse -o house.json --scenario day.json",
        ),
    )(new)


def new(
    scene: Annotated[Scene, typer.Option(metavar="NAME", help=f"Which map: {', '.join(Scene)}.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file of the graph, as JSON.", show_default=False)
    ],
    nodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of nodes of a random map.", show_default=str(NODES)),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="S", help="Seed of a random map or live-map.", show_default="0"),
    ] = None,
    profiles: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the reference truck to this file.")
    ] = None,
    fleet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a fleet for which the map is LIVE to this file.")
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a scenario with that fleet to this file, for `fleet run`."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Write a map to start from: the reference hall, a warehouse, a random one, or a scene of the tests.

    `--fleet` adds trucks with rest nodes and streams of goods, for which the map is LIVE. `--scenario` adds a run of
    that fleet: goods arrive for two minutes, and every truck must be back at rest within an hour.
    """
    require("fleet")
    from pendula.fleet.compiler.compile import source_form
    from pendula.fleet.compiler.samples import FL_STD

    targets = _targets(out, profiles, fleet, scenario)
    source, trucks = _sample(scene, nodes, seed)
    if trucks is None and (fleet is not None or scenario is not None):
        trucks = _searched(source)
    _write(out, source_form(source))
    if profiles is not None:
        _write(profiles, profile_form(FL_STD))
    if fleet is not None and trucks is not None:
        _write(fleet, fleet_form(trucks))
    if scenario is not None and trucks is not None:
        _write(scenario, scenario_form(scene.value, trucks, _beside(out, scenario)))
    form = {
        "file": str(out),
        "mapId": source.map_id,
        "nodes": len(source.nodes),
        "edges": len(source.edges),
        "profiles": None if profiles is None else str(profiles),
        "fleet": None if fleet is None else str(fleet),
        "scenario": None if scenario is None else str(scenario),
    }
    sizes = f"nodes {len(source.nodes)}, edges {len(source.edges)}"
    summary = f"{out} holds {source.map_id}: {sizes}."
    summary += "".join(f" {target} is beside it." for target in targets[1:])
    Output(json).result(form, lambda: summary)


def _targets(*wanted: Path | None) -> list[Path]:
    """The files to write; raises `WrongUsage` if two are the same, or one is not JSON."""
    targets = [target for target in wanted if target is not None]
    for target in targets:
        if target.suffix.lower() != ".json":
            raise WrongUsage(f"{target}: the file is JSON; its name must end in .json")
    if len({target.absolute() for target in targets}) < len(targets):
        raise WrongUsage("The graph, the truck, the fleet and the scenario need different files")
    return targets


def _sample(scene: Scene, nodes: int | None, seed: int | None) -> "tuple[SourceMap, Fleet | None]":
    """The map, and its fleet if the scene has one."""
    from pendula.fleet.compiler.generated_maps import built_warehouse, live_map, spur_grid
    from pendula.fleet.compiler.samples import SCENE_FLEETS

    if seed is not None and not 0 <= seed < 2**64:
        raise WrongUsage(f"--seed {seed}: it must be 0 to {2**64 - 1}", seed=seed)
    if nodes is not None and scene is not Scene.RANDOM:
        raise WrongUsage(f"--nodes is for random maps only; {scene.value} has a fixed size")
    if seed is not None and scene not in (Scene.RANDOM, Scene.LIVE_MAP):
        raise WrongUsage(f"--seed is for random maps and live-map only; {scene.value} is always the same")
    match scene:
        case Scene.BUILT_WAREHOUSE:
            made = built_warehouse(percent=25)
        case Scene.SPUR_GRID:
            made = spur_grid(4, 4, 50)
        case Scene.LIVE_MAP:
            made = live_map(seed or 0)
        case _:
            return _source(scene, nodes, seed), SCENE_FLEETS.get(scene.value)
    return made.source, made.fleet


def _searched(source: "SourceMap") -> "Fleet":
    """A fleet for which the map is LIVE; raises `WrongUsage` if none is found."""
    from pendula.fleet import compile_map
    from pendula.fleet.compiler.samples import FL_STD
    from pendula.fleet.map.liveness import fitting_fleet

    found = fitting_fleet(compile_map(source, [FL_STD]), FL_STD)
    if found is None:
        raise WrongUsage(f"No fleet was found for which {source.map_id} is LIVE; try another --seed")
    return found


def _source(scene: Scene, nodes: int | None, seed: int | None) -> "SourceMap":
    from pendula.fleet.compiler import samples
    from pendula.fleet.compiler.generated_maps import random_map

    if scene is Scene.RANDOM:
        count = NODES if nodes is None else nodes
        if not 1 <= count <= MOST_NODES:
            raise WrongUsage(f"--nodes {count}: a random map has 1 to {MOST_NODES} nodes", nodes=count)
        return random_map(seed or 0, count, count)
    made: dict[Scene, Callable[[], SourceMap]] = {
        Scene.HALL: samples.reference_hall,
        Scene.WAREHOUSE: samples.warehouse,
        Scene.LARGE: samples.large,
        Scene.HALL_DEMO: samples.hall_demo,
        Scene.HEAD_ON_LANE: samples.head_on_lane,
        Scene.PLUS_CROSSING: samples.plus_crossing,
        Scene.TRIANGLE: samples.triangle,
        Scene.RING_WITH_BYPASS: samples.ring_with_bypass,
        Scene.NEAR_LANES: samples.near_lanes,
        Scene.TAIL_SWING_BEND: samples.tail_swing_bend,
        Scene.SPUR: samples.spur,
        Scene.STRAIGHT_LANE: samples.straight_lane,
    }
    return made[scene]()


def _beside(graph: Path, scenario: Path) -> str:
    """The path of the graph relative to the scenario."""
    from os.path import relpath

    return Path(relpath(graph.absolute(), scenario.absolute().parent)).as_posix()


def _write(target: Path, form: Any) -> None:
    """Write one member per line, so that the files are easy to edit."""
    import msgspec

    from pendula.kernel.canonical import encode

    write_whole(target, msgspec.json.format(encode(form), indent=2) + b"\n")


def scenario_form(name: str, fleet: "Fleet", graph: str) -> dict[str, Any]:
    """A scenario for `pendula fleet run`."""
    from pendula.fleet.compiler.samples import SCENE_STARTS
    from pendula.fleet.model import CONTRACT_VERSION

    plain = fleet_form(fleet)
    starts = SCENE_STARTS.get(name, {})
    return {
        "contractVersion": CONTRACT_VERSION,
        "name": name,
        "title": "Goods arrive for two minutes; every truck is back at rest within an hour.",
        "mapFile": graph,
        "robots": [
            {**one, "startNodeId": starts[one["robotId"]]} if one["robotId"] in starts else one
            for one in plain["robots"]
        ],
        "streams": [{**one, "maxConcurrent": 1, "lastMs": _GOODS_MS} for one in plain["streams"]],
        "durationMs": _WHOLE_MS,
        "expect": [{"tasksDone": "all"}, {"allAtRest": True}],
    }


def profile_form(profile: "RobotProfile") -> dict[str, Any]:
    """A truck profile in the form of its contract."""
    from pendula.fleet.model import CONTRACT_VERSION
    from pendula.fleet.units import plain

    def error(one: Any) -> dict[str, Any]:
        return {"value": plain(one.value_um), "source": one.source.value, "basis": one.basis}

    return {
        "contractVersion": CONTRACT_VERSION,
        "profileId": profile.profile_id,
        "geometry": {
            "head": plain(profile.head_um),
            "tail": plain(profile.tail_um),
            "width": plain(profile.width_um),
        },
        "safety": {
            "safetyFrontM": plain(profile.safety_front_um),
            "safetyRearM": plain(profile.safety_rear_um),
            "safetySideM": plain(profile.safety_side_um),
            "localizationErrorM": error(profile.localization_error),
            "trackingErrorM": error(profile.tracking_error),
            "extraMarginM": plain(profile.extra_margin_um),
            "minFollowingGapM": plain(profile.min_following_gap_um),
            "headingErrorRad": plain(profile.heading_error_urad),
        },
        "dynamics": {
            "vMax": plain(profile.v_max_um_s),
            "accel": plain(profile.accel_um_s2),
            "a_brake": plain(profile.brake_um_s2),
            "controlLatencyS": plain(profile.latency_us),
            "turnRateRadS": plain(profile.turn_rate_urad_s),
            "minTurnRadiusM": plain(profile.min_turn_radius_um),
            "stampJitterMs": profile.stamp_jitter_ms,
        },
        "capabilities": list(profile.capabilities),
    }


def fleet_form(fleet: "Fleet") -> dict[str, Any]:
    """Trucks, streams and limits in the form that `--fleet` reads."""
    from pendula.fleet.units import plain

    return {
        "robots": [
            {"robotId": truck.robot_id, "profileId": truck.profile_id, "parkNodeId": truck.park_node_id}
            for truck in fleet.trucks
        ],
        "streams": [
            {
                "streamId": stream.stream_id,
                "pickNodeIds": list(stream.pick_node_ids),
                "dropNodeIds": list(stream.drop_node_ids),
                **({"robotIds": list(stream.robot_ids)} if stream.robot_ids else {}),
            }
            for stream in fleet.streams
        ],
        "params": {
            "lookaheadM": plain(fleet.lookahead_um),
            "rtpLookaheadM": plain(fleet.rtp_lookahead_um),
            "tickPeriodMs": fleet.tick_ms,
        },
    }
