"""Fleets with rest nodes and streams, read from their own file or from a scenario."""

import pytest
from msgspec.structs import replace

from pendula.documents import from_value
from pendula.fleet import read_fleet
from pendula.fleet.model import Fleet, Stream, Truck
from pendula.kernel.canonical import Json
from tests.fleet.documents import faults, golden


def test_a_fleet_is_read_out_of_a_scenario() -> None:
    form: Json = {
        "robots": [{"robotId": "R1", "profileId": "FL-STD", "parkNodeId": "PK1", "startNodeId": "LM1"}],
        "streams": [golden("Stream")],
        "params": {"lookaheadM": 10, "tickPeriodMs": 200},
        "seed": 1,
    }

    fleet = read_fleet(from_value(form))

    assert fleet == replace(
        Fleet((Truck("R1", "FL-STD", "PK1"),), (Stream("S-A", ("AP1",), ("LM3",)),)),
        lookahead_um=10_000_000,
        tick_ms=200,
    )
    assert faults(read_fleet, {"robots": [{"robotId": "R1"}]}) == ["$.robots[0].parkNodeId", "$.robots[0].profileId"]


@pytest.mark.req("FLT-TASK-3")
def test_a_stream_with_a_node_that_is_pick_and_drop_is_refused_at_the_drop() -> None:
    stream: Json = {"streamId": "S", "pickNodeIds": ["A", "B"], "dropNodeIds": ["C", "B"]}

    assert faults(read_fleet, {"robots": [], "streams": [stream]}) == ["$.streams[0].dropNodeIds[1]"]
