"""Reasons and bands of a view are computed with an index, and equal those of a plain search."""

import pytest

from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tick.records import Record
from pendula.server.schedulers.fleet.views import now_of

UM = 1000


def walked(record: Record, low_um: int, high_um: int) -> list[tuple[int, int, int]]:
    """A stretch of the way of a truck by looking at every segment of it."""
    found = []
    for one in () if record.track is None else record.track.segments:
        low, high = max(low_um, one.route_s0_um), min(high_um, one.route_s0_um + one.length_um)
        if low < high:
            first, last = ((at - one.route_s0_um + UM // 2) // UM for at in (low, high))
            found.append((one.edge, first, last))
    return found


@pytest.mark.req("FLT-OBS-7", "FLT-OBS-10")
def test_bands_and_reasons_of_a_view_equal_those_of_each_truck() -> None:
    run = Run(shipped("hall"))
    lookahead = run.engine.config.traffic.lookahead_um
    bands = zones = 0
    for _ in range(600):
        run.step()
        if run.now_ms % 1000:
            continue
        reply = now_of(run.engine, 0)
        assert run.traffic.whys() == [run.traffic.why(one.robot_id) for one in reply.trucks]
        for record, truck in zip(run.traffic.records, reply.trucks, strict=True):
            end = record.grant_um
            assert truck.bands.occupied == walked(record, record.bound_um, record.at_um)
            assert truck.bands.granted == walked(record, record.at_um, end)
            assert truck.bands.requested == walked(record, end, max(end, record.at_um + lookahead))
            assert truck.zones == sorted(record.zones)
            bands += len(truck.bands.granted)
            zones += len(truck.zones)
            # Where its stop line has not followed its grant, the band is that of the grant.
            record.hold_um -= 10_000
            assert now_of(run.engine, 0).trucks[record.number].bands == truck.bands
            record.hold_um += 10_000
    assert (bands > 100, zones > 20) == (True, True)


@pytest.mark.req("FLT-OBS-7")
def test_only_a_truck_that_turns_on_the_spot_says_so() -> None:
    run = Run(shipped("hall"))
    turned = 0
    before: dict[str, int] = {}
    for _ in range(600):
        run.step()
        for truck in now_of(run.engine, 0).trucks:
            assert truck.turning == (truck.sentence == f"{truck.robot_id} turns on the spot.")
            if truck.at is not None and truck.turning and truck.speed == 0:
                turned += before.get(truck.robot_id, truck.at.yaw) != truck.at.yaw
            if truck.at is not None:
                before[truck.robot_id] = truck.at.yaw
    assert turned > 10


@pytest.mark.req("FLT-OBS-7")
def test_a_truck_that_reports_an_obstacle_has_that_sentence() -> None:
    run = Run(shipped("hall"))
    while not any(record.v_um_s for record in run.traffic.records):
        run.step()
    first = next(record for record in run.traffic.records if record.v_um_s)
    first.obstructed, first.v_um_s = True, 0
    reply = now_of(run.engine, 0).trucks[first.number]

    assert (reply.obstructed, reply.sentence) == (True, f"{first.robot_id} waits: it reports an obstacle.")
