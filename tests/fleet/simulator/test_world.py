"""Trucks in virtual time, driven by the commander of the tests."""

import dataclasses
from itertools import pairwise
from math import hypot

import numpy as np
import pytest
from msgspec.structs import replace

from pendula.fleet import AtNode, CompiledMap
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.contracts import CommandMode
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator import Fault, FaultKind
from pendula.fleet.simulator.truck import STILL, FaultRate, RandomFaults, WorldSettings
from pendula.fleet.simulator.world import Start, Telemetry, World
from tests.fleet.routes import route
from tests.fleet.simulator.commander import command, drive
from tests.fleet.sites import any_site, scene

NOISY = WorldSettings(localization_permille=1000, tracking_permille=1000, heading_permille=1000)


def world_at(site: CompiledMap, node: str, settings: WorldSettings = STILL, seed: int = 1) -> World:
    """One truck in a node, with the yaw of a truck that drove in."""
    edge = site.network.incoming[site.node_number[node]][0]
    path = site.network.edges[edge].path
    yaw = truck_yaw(path.heading(path.length_um), site.network.edges[edge].style)
    return World(site, [Start("R1", FL_STD, edge, path.length_um, yaw)], settings, seed)


@pytest.mark.req("FLT-TEST-28")
def test_a_truck_arrives_in_its_goal_and_stands_there() -> None:
    site = scene("straight-lane")
    world = world_at(site, "A")

    drive(world, route(site, AtNode(site.node_number["A"]), "B"), 70_000)

    assert world.trucks[0].at_goal
    assert (world.latest[0].x_um, world.latest[0].y_um, world.latest[0].v_um_s) == (60_000_000, 0, 0)


@pytest.mark.req("FLT-TEST-4")
def test_no_step_accelerates_or_brakes_more_than_the_profile_allows() -> None:
    site = scene("head-on-lane")
    seen = drive(world_at(site, "W1"), route(site, AtNode(site.node_number["W1"]), "E1"), 70_000)

    speeds = [0, *(v for _, v in seen)]
    assert max(speeds) == FL_STD.v_max_um_s
    assert max(b - a for a, b in pairwise(speeds)) <= FL_STD.accel_um_s2 // 10
    assert min(b - a for a, b in pairwise(speeds)) >= -FL_STD.brake_um_s2 // 10


@pytest.mark.req("FLT-TEST-4")
def test_a_turn_on_the_spot_takes_its_time() -> None:
    site = scene("straight-lane")
    world = world_at(site, "A")
    way = route(site, AtNode(site.node_number["A"]), "B")

    # It drove in, so its back is to the lane: half a turn at 0.5 rad/s.
    drive(world, way, 6_000)
    assert world.trucks[0].s_um == 0
    drive(world, way, 8_000)
    assert world.trucks[0].s_um > 0


def test_a_truck_stops_when_it_receives_no_commands() -> None:
    site = scene("straight-lane")
    world = world_at(site, "A")
    way = route(site, AtNode(site.node_number["A"]), "B")
    drive(world, way, 15_000)
    truck = world.trucks[0]
    assert truck.v_um_s == FL_STD.v_max_um_s
    where = truck.s_um

    world.advance(20_000)

    assert truck.v_um_s == 0
    # 0.7 s of watchdog at 1.2 m/s, and 0.9 m of braking.
    assert where + 1_600_000 < truck.s_um < where + 2_000_000


def test_an_older_command_is_ignored() -> None:
    site = scene("straight-lane")
    world = world_at(site, "A")
    way = route(site, AtNode(site.node_number["A"]), "B")
    drive(world, way, 10_000)
    truck = world.trucks[0]
    assert truck.order is not None
    last = truck.order.seq

    world.send(0, command(way, last - 1, 0, CommandMode.STOP))
    world.advance(10_050)

    assert truck.order.seq == last
    assert truck.v_um_s > 0


@pytest.mark.req("FLT-TEST-4")
def test_a_lost_command_never_arrives_and_a_late_one_later() -> None:
    site = scene("straight-lane")
    way = route(site, AtNode(site.node_number["A"]), "B")
    lost = world_at(site, "A", replace(STILL, command_loss_ppm=1_000_000))
    drive(lost, way, 5_000)
    late = world_at(site, "A", replace(STILL, command_latency_ms=(300, 300)))
    late.learn(0, way)
    late.send(0, command(way, 1, 0))

    late.advance(250)
    before = late.trucks[0].order
    late.advance(300)

    assert lost.trucks[0].order is None
    assert before is None
    assert late.trucks[0].order is not None


@pytest.mark.req("FLT-TEST-4")
def test_a_route_changed_while_its_first_command_is_in_transit_is_still_taken() -> None:
    site = scene("straight-lane")
    way = route(site, AtNode(site.node_number["A"]), "B")
    changed = dataclasses.replace(way, revision=way.revision + 1)
    world = world_at(site, "A", replace(STILL, command_latency_ms=(300, 300)))
    for number, plan in enumerate((way, changed), start=1):
        world.learn(0, plan)
        world.send(0, command(plan, number, 0))
        world.advance(number * 100)

    world.advance(350)
    first = world.trucks[0].route
    world.advance(500)

    assert first is way
    assert world.trucks[0].route is changed


@pytest.mark.req("FLT-TEST-4")
def test_a_report_is_as_old_as_its_latency() -> None:
    site = scene("straight-lane")
    world = world_at(site, "A", replace(STILL, telemetry_latency_ms=(150, 150)))

    world.advance(1_000)

    assert world.latest[0].at_ms == 800


@pytest.mark.req("FLT-TEST-4")
def test_errors_stay_within_the_bounds_of_the_profile() -> None:
    site = any_site("random-3")
    node = next(node.id for node in site.network.nodes if site.network.incoming[site.node_number[node.id]])
    world = world_at(site, node, NOISY)
    truth, reported = [], []

    for now in range(100, 60_001, 100):
        trace = world.advance(now)
        truth.append(
            hypot(trace.truth[0][-1, 0] - trace.route[0][-1, 0], trace.truth[1][-1, 0] - trace.route[1][-1, 0])
        )
        seen = world.latest[0]
        reported.append(hypot(seen.x_um - trace.route[0][-1, 0] * 1e6, seen.y_um - trace.route[1][-1, 0] * 1e6))

    assert 0.05 < max(truth) <= 0.18, "localization and tracking together"
    assert 20_000 < max(reported) <= 180_000


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    site = scene("head-on-lane")
    way = route(site, AtNode(site.node_number["W1"]), "E1")
    runs = []
    for seed in (1, 1, 2):
        world = world_at(site, "W1", NOISY, seed)
        drive(world, way, 20_000)
        runs.append(world.latest[0])

    assert runs[0] == runs[1] != runs[2]


@pytest.mark.req("FLT-TEST-4")
def test_switching_one_noise_off_changes_no_other() -> None:
    site = scene("straight-lane")
    traces = []
    for settings in (NOISY, replace(NOISY, tracking_permille=0)):
        world = world_at(site, "B", settings)
        traces.append(world.advance(5_000))

    both, without = traces
    # The truck stands along x: tracking moves it across, the error of position along is the same.
    assert np.array_equal(both.truth[0], without.truth[0])
    assert not np.array_equal(both.truth[1], without.truth[1])


@pytest.mark.parametrize("name", ["random-1", "random-4", "odd-2"])
def test_a_truck_is_where_its_route_says(name: str) -> None:
    site = any_site(name)
    nodes = [node.id for node in site.network.nodes]
    start, goal = nodes[0], nodes[-1]
    way = route(site, AtNode(site.node_number[start]), goal)
    world = world_at(site, start)
    world.learn(0, way)

    for now in range(0, 40_000, 100):
        drive(world, way, now + 100)
        truck, seen = world.trucks[0], world.latest[0]
        if truck.yaw_urad is None and truck.on_um and seen.at_ms == world.now_ms:
            here = way.pose_at(truck.s_um)
            assert abs(here.x_um - seen.x_um) <= 1
            assert abs(here.y_um - seen.y_um) <= 1
            assert abs(here.yaw_urad - seen.yaw_urad) <= 1


@pytest.mark.req("FLT-TEST-4")
def test_random_faults_follow_their_rates_and_the_seed() -> None:
    rates = (FaultRate(Fault(FaultKind.STAND, for_ms=1_000), per_hour=60),)

    def of(seed: int) -> list[tuple[int, int]]:
        random_faults = RandomFaults(rates, seed, 2, 0)
        return [(now, truck) for now in range(0, 10 * 3_600_000, 100) for truck, _ in random_faults.due(now)]

    assert of(1) == of(1) != of(2)
    # Two trucks for ten hours, sixty an hour, a second each.
    assert 1_100 < len(of(1)) < 1_300


@pytest.mark.req("FLT-TEST-4")
def test_random_faults_change_no_other_noise() -> None:
    rare = replace(shipped("arrival").world, faults=(FaultRate(Fault(FaultKind.STAND, 1), per_hour=1),))

    def poses(settings: WorldSettings) -> list[Telemetry]:
        run = Run(replace(shipped("arrival"), world=settings, seed=3))
        run.run(5_000)
        return run.world.latest

    assert poses(rare) == poses(shipped("arrival").world)


def test_a_truck_stops_for_an_obstacle_and_continues() -> None:
    site = scene("straight-lane")
    world = world_at(site, "A")
    way = route(site, AtNode(site.node_number["A"]), "B")
    drive(world, way, 15_000)
    world.start_fault(0, Fault(FaultKind.STAND, 25_000 - world.now_ms))

    drive(world, way, 25_000)
    stood = world.trucks[0].s_um, world.trucks[0].v_um_s
    drive(world, way, 27_000)

    assert stood[1] == 0
    assert world.trucks[0].s_um > stood[0]
