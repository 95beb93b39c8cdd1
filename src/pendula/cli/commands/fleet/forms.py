"""Trucks, fleets and scenarios in the forms that the commands read, for `pendula fleet new` to write."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pendula.fleet import Fleet, RobotProfile

# How long goods arrive, and when every truck must be back at rest.
_GOODS_MS = 120_000
_WHOLE_MS = 3_600_000


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
