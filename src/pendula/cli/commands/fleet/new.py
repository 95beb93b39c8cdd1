"""`pendula fleet new`: maps of our own as files to start from, with the trucks and the fleet that go with them."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.commands.fleet import files
from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.fleet import Fleet, RobotProfile, SourceMap

NODES = 12
MOST_NODES = 2000


class Scene(StrEnum):
    HALL = "hall"
    WAREHOUSE = "warehouse"
    LARGE = "large"
    RANDOM = "random"
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
        ),
    )(new)


def new(
    scene: Annotated[Scene, typer.Option(help="Which map.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the graph goes, as JSON.", show_default=False)
    ],
    nodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many nodes a random map has.", show_default=str(NODES)),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", help="Which random map; the same seed, the same map.", show_default="0")
    ] = None,
    profiles: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the reference truck there.")] = None,
    fleet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the fleet of the scene there, if it has one.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Write a map to start from: the reference hall, a warehouse, a random one, or a scene of the tests."""
    require("fleet")
    from pendula.fleet.compiler.source_form import source_form
    from pendula.fleet.samples.scenes import FL_STD

    trucks = None if fleet is None else _fleet(scene)
    targets = [target for target in (out, profiles, fleet) if target is not None]
    for target in targets:
        if target.suffix.lower() != ".json":
            raise WrongUsage(f"{target}: what is written here is JSON; name a file that ends in .json")
    if len({target.absolute() for target in targets}) < len(targets):
        raise WrongUsage("The graph, the truck and the fleet go into files of their own")
    source = _source(scene, nodes, seed)
    _write(out, source_form(source))
    if profiles is not None:
        _write(profiles, profile_form(FL_STD))
    if fleet is not None and trucks is not None:
        _write(fleet, fleet_form(trucks))
    form = {
        "file": str(out),
        "mapId": source.map_id,
        "nodes": len(source.nodes),
        "edges": len(source.edges),
        "profiles": None if profiles is None else str(profiles),
        "fleet": None if fleet is None else str(fleet),
    }
    sizes = f"nodes {len(source.nodes)}, edges {len(source.edges)}"
    told = f"{out} holds {source.map_id}: {sizes}."
    Output(json).result(form, lambda: told)


def _fleet(scene: Scene) -> "Fleet":
    """The fleet of a scene; raises `WrongUsage` for a scene that has none."""
    from pendula.fleet.samples.halls import reference_fleet
    from pendula.fleet.samples.scene_fleets import SCENE_FLEETS

    if scene is Scene.HALL:
        return reference_fleet()
    if scene.value not in SCENE_FLEETS:
        names = ", ".join(("hall", *SCENE_FLEETS))
        raise WrongUsage(f"The scene {scene.value} has no fleet; there is one for {names}", scene=scene.value)
    return SCENE_FLEETS[scene.value]


def _source(scene: Scene, nodes: int | None, seed: int | None) -> "SourceMap":
    from pendula.fleet.samples import halls, scenes
    from pendula.fleet.samples.random_maps import random_map

    if scene is Scene.RANDOM:
        count = NODES if nodes is None else nodes
        if not 1 <= count <= MOST_NODES:
            raise WrongUsage(f"--nodes {count}: a random map has 1 to {MOST_NODES} nodes", nodes=count)
        if seed is not None and not 0 <= seed < 2**64:
            raise WrongUsage(f"--seed {seed}: allowed is 0 to {2**64 - 1}", seed=seed)
        return random_map(seed or 0, count, count)
    if nodes is not None or seed is not None:
        raise WrongUsage(f"--nodes and --seed belong to random maps; {scene.value} is always the same")
    made: dict[Scene, Callable[[], SourceMap]] = {
        Scene.HALL: halls.reference_hall,
        Scene.WAREHOUSE: halls.warehouse,
        Scene.LARGE: halls.large,
        Scene.HALL_DEMO: scenes.hall_demo,
        Scene.HEAD_ON_LANE: scenes.head_on_lane,
        Scene.PLUS_CROSSING: scenes.plus_crossing,
        Scene.TRIANGLE: scenes.triangle,
        Scene.RING_WITH_BYPASS: scenes.ring_with_bypass,
        Scene.NEAR_LANES: scenes.near_lanes,
        Scene.TAIL_SWING_BEND: scenes.tail_swing_bend,
        Scene.SPUR: scenes.spur,
        Scene.STRAIGHT_LANE: scenes.straight_lane,
    }
    return made[scene]()


def _write(target: Path, form: Any) -> None:
    """Canonical members, one a line: these files are there to be edited."""
    import msgspec

    from pendula.kernel.canonical import encode

    files.write(target, msgspec.json.format(encode(form), indent=2) + b"\n")


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
