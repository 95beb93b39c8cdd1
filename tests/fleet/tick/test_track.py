"""A route as uses of resources, standing positions and acts."""

import pytest

from pendula.fleet import AtNode, CompiledMap, OnEdge, compile_map
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.tick.params import NodeLockPolicy
from pendula.fleet.tick.track import NEVER_UM, Ground, Track, track_of
from tests.fleet.routes import on, route
from tests.fleet.sites import aisle, scene, sketched

SHORT = 200_000


def track(
    site: CompiledMap, start: OnEdge | AtNode, *stops: str, rest: str, policy: NodeLockPolicy = NodeLockPolicy.TURNING
) -> Track:
    plan = route(site, start, *stops, rest=rest)
    return track_of(Ground(site, policy), plan, SHORT, plan.start_um, {})


def into_the_spur(policy: NodeLockPolicy = NodeLockPolicy.TURNING) -> Track:
    site = scene("hall-demo")
    return track(site, on(site, "LM1->LM2", 3.0), "AP1", "LM3", rest="PK2", policy=policy)


def used(track: Track, name: str) -> list[tuple[float, float]]:
    site = track.plan.site
    return [
        (use.need_um / 1e6, use.free_um / 1e6 if use.free_um < NEVER_UM else -1.0)
        for use in track.uses
        if site.resource_name(use.resource) == name
    ]


@pytest.mark.req("FLT-DCL-7", "FLT-EVO-4", "FLT-EVO-10")
def test_stop_positions_are_ends_of_cells_and_never_inside_a_section() -> None:
    stands = [at / 1e6 for at in into_the_spur().stands]

    assert stands[:4] == [3.0, 3.5, 4.0, 4.5]
    assert [at for at in stands if 9.5 < at < 25] == [10.0, 16.0, *(at for at in stands if 22 < at < 25)]


@pytest.mark.req("FLT-DCL-8", "FLT-RES-14")
def test_the_token_of_a_spur_is_kept_until_the_whole_envelope_is_outside() -> None:
    assert used(into_the_spur(), "CS:SPUR-AP1") == [(10.0, 22.0 + 2.3 + 0.2)]


@pytest.mark.req("FLT-RES-14", "FLT-RES-20", "FLT-LIVE-2")
def test_a_node_is_locked_from_its_window_on_one_edge_to_its_window_on_the_next() -> None:
    first, second = used(into_the_spur(), "NODE:LM2")

    assert first[0] == 5.0
    assert 14.0 < first[1] < 16.0
    assert second[0] > 16.0


@pytest.mark.req("FLT-LIVE-2", "FLT-LIVE-7", "FLT-RES-14")
def test_a_truck_at_rest_in_a_short_spur_has_given_back_the_disc_of_its_mouth() -> None:
    sketch = sketched(("W", -20, 0), ("M", 0, 0), ("E", 20, 0), ("P", 0, 3.7, "ParkPoint"))
    sketch.chain("W", "M", "E")
    sketch.lane("M", "P")
    site = compile_map(sketch.done(), [FL_STD])

    whole = track(site, AtNode(site.node_number["E"], 0), "W", rest="P")

    kept = {site.resource_name(resource) for resource in whole.demand.stands(whole.demand.last).tolist()}
    assert {"NODE:P"} == {name for name in kept if name.startswith("NODE:")}


def along_the_aisle(policy: NodeLockPolicy) -> Track:
    site = aisle(2)
    return track(site, AtNode(site.node_number["N0"], 0), "N2", rest="X1", policy=policy)


@pytest.mark.req("FLT-RES-20", "FLT-COR-8", "FLT-EVO-5")
@pytest.mark.parametrize(("policy", "locked"), [(NodeLockPolicy.TURNING, False), (NodeLockPolicy.EVERY, True)])
def test_a_node_passed_straight_is_locked_only_if_the_policy_requires_it(policy: NodeLockPolicy, locked: bool) -> None:
    assert bool(used(along_the_aisle(policy), "NODE:N1")) is locked


@pytest.mark.req("FLT-EVO-5", "FLT-DCL-7")
def test_no_stop_position_lies_in_a_node_passed_without_its_lock() -> None:
    assert 10_000_000 not in along_the_aisle(NodeLockPolicy.TURNING).stands
    assert 10_000_000 in along_the_aisle(NodeLockPolicy.EVERY).stands


@pytest.mark.req("FLT-LIVE-2", "FLT-LIVE-13")
def test_a_waiting_truck_may_stop_short_by_the_buffer_and_an_arrived_truck_may_not() -> None:
    """Position error and arrival tolerance are 0.2 m; the buffer before a stop line is 0.1 m."""
    track = into_the_spur()
    short = {at / 1e6: (at - bound) / 1e6 for at, bound in zip(track.stands, track.bounds, strict=True)}

    assert (short[3.5], short[10.0], short[16.0]) == (0.3, 0.2, 0.2)
    assert short[track.end_um / 1e6] == 0.2


@pytest.mark.req("FLT-LIVE-1")
def test_a_track_leads_over_all_stops_to_rest() -> None:
    track = into_the_spur()
    site = track.plan.site
    arrived = [site.network.nodes[act.node].id for act in track.acts if act.stop]

    assert arrived == ["AP1", "LM3", "PK2"]
    assert track.end_um == track.acts[-1].s_um


@pytest.mark.req("FLT-LIVE-2", "FLT-LIVE-13")
def test_resources_held_at_the_start_are_in_the_standing_sets_until_passed() -> None:
    site = scene("hall-demo")
    plan = route(site, on(site, "LM1->LM2", 3.0), "AP1", rest="PK2")
    zone = site.zone(site.node_number["LM1"])
    track = track_of(Ground(site), plan, SHORT, 3_000_000, {zone: 4_100_000})
    keeps = [zone in track.demand.stands(position) for position in range(5)]

    # Standing at 4.0 the release bound may be at 3.8; at 4.5 it has passed 4.1.
    assert keeps == [True, True, True, False, False]


@pytest.mark.req("FLT-RES-13")
def test_a_route_changed_on_the_way_does_not_take_passed_resources_again() -> None:
    site = scene("hall-demo")
    plan = route(site, on(site, "LM1->LM2", 3.0), "AP1", "LM3", rest="PK2")
    track = track_of(Ground(site), plan, SHORT, 10_000_000, {})

    assert min(use.free_um for use in track.uses) > 10_000_000 - SHORT - 100_000
