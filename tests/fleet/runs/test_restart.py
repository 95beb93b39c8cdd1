"""FLT-TEST-23: the manager is killed, trucks stop by themselves, and another manager resumes the journal."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pendula.fleet.commands import Tick
from pendula.fleet.contracts import CommandMode
from pendula.fleet.engine import FleetEngine
from pendula.fleet.gateway import read_gateway
from pendula.fleet.runs import Recording, fleet_at, last_tick, reading, recording_disk
from pendula.fleet.scenarios import Run, shipped
from pendula.kernel.replay import replay
from tests.campaigns import campaign_after
from tests.fleet.runs.journals import Recorded
from tests.fleet.runs.killed import Hall

KILLS = 50
MANY_SEEDS = range(20)


def killed(directory: Path, seed: int, kills: int, afterwards: int = 100) -> Hall:
    """The hall with its trucks under way, its manager killed so many times."""
    hall = Hall(replace(shipped("hall"), seed=seed), directory, seed)
    hall.begin()
    for _ in range(150):
        hall.step()
    while hall.kills < kills:
        for _ in range(hall.chance.randint(1, 60)):
            hall.step()
        hall.step_and_kill()
        hall.stand(hall.chance.choice((0, 300, 1_000, 3_000)))
        hall.restart(silent_ms=hall.chance.choice((0, 0, 400, 1_500)))
    for _ in range(afterwards):
        hall.step()
    hall.end()
    return hall


@pytest.mark.req("FLT-TEST-23")
@pytest.mark.req("FLT-OBS-3")
@pytest.mark.parametrize("seed", campaign_after(1, range(KILLS // 10)))
def test_a_killed_manager_loses_nothing_and_no_envelopes_meet(tmp_path: Path, seed: int) -> None:
    hall = killed(tmp_path / "j", seed, kills=10)

    with reading(tmp_path / "j") as journal:
        report = replay(journal, lambda _: FleetEngine)
        restarts = sum(b'"restarted":true' in bytes(one.body) for one in journal.read() if one.kind == "input")

    assert hall.violations == []
    assert hall.early == []
    assert hall.waited > 0
    assert hall.kills == restarts == 10
    assert report.first_difference is None


@pytest.mark.long
@pytest.mark.req("FLT-TEST-23")
@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_fifty_kills_at_random_ticks(tmp_path: Path, seed: int) -> None:
    hall = killed(tmp_path / "j", seed, KILLS, afterwards=1_200)

    with reading(tmp_path / "j") as journal:
        report = replay(journal, lambda _: FleetEngine)

    assert hall.violations == []
    assert hall.early == []
    assert hall.waited > 0
    assert hall.done > 0
    assert report.first_difference is None


@pytest.mark.campaign
@pytest.mark.req("FLT-TEST-23")
def test_without_a_manager_every_truck_stops_and_a_new_one_continues_tasks(tmp_path: Path) -> None:
    hall = Hall(shipped("hall"), tmp_path / "j", 5)
    hall.begin()
    for _ in range(250):
        hall.step()
    moving = sum(v > 0 for v in hall.speeds())
    before = hall.done

    hall.step_and_kill()
    hall.stand(4_000)
    standing = sum(v == 0 for v in hall.speeds())
    hall.restart()
    for _ in range(1_500):
        if hall.done > before:
            break
        hall.step()
    hall.end()

    assert moving >= 2
    assert standing == 4
    assert hall.done > before
    assert hall.violations == []


@pytest.mark.req("FLT-FAIL-14")
def test_after_a_restart_no_grant_grows_before_every_truck_has_reported(tmp_path: Path) -> None:
    made = Recorded("hall", tmp_path)
    made.step(250)
    run, now = made.run, made.run.world.now_ms
    reports = read_gateway(run.gateway.poll()).reports
    grants = {one.robot_id: one.grant_um for one in run.traffic.records}
    held = {one.robot_id: sorted(one.keeps) for one in run.traffic.records}
    made.recording.close()

    def spoken(engine: FleetEngine, number: int, count: int) -> Tick:
        """A tick in which so many trucks say where they stand, and that they know their commands."""
        at = now + 5_000 + 100 * number
        seqs = [one.seq for one in engine.traffic.records]
        said = zip(reports[:count], seqs, strict=False)
        return Tick(at, tuple(replace(one, at_ms=at, v_um_s=0, last_ack_seq=seq) for one, seq in said))

    with Recording.resume(recording_disk(tmp_path)) as again:
        for number in range(20):
            again.apply(spoken(again.engine, number, 3))
            records = again.engine.traffic.records
            assert {one.robot_id: one.grant_um for one in records} == grants
            assert all(set(one.keeps) <= set(held[one.robot_id]) for one in records)
            # The grants of the silent truck stay taken, whatever the others release behind them.
            assert sorted(records[-1].keeps) == held[records[-1].robot_id]
        modes = {one.robotId: one.mode for one in again.engine.orders_out.commands}
        for number in range(20, 60):
            again.apply(spoken(again.engine, number, 4))
        later = {one.robotId: one.mode for one in again.engine.orders_out.commands}

    assert CommandMode.STOP in modes.values()
    assert CommandMode.GO in later.values()


@pytest.mark.req("FLT-FAIL-14")
def test_the_first_tick_that_is_not_refused_reports_a_restart(tmp_path: Path) -> None:
    made = Recorded("hall", tmp_path)
    made.step(5)
    now = made.run.engine.now()
    made.recording.close()

    with Recording.resume(recording_disk(tmp_path)) as again:
        refused = again.apply(Tick(now - 1))
        again.apply(Tick(now + 3_000))
        result = [one.unheard for one in again.engine.traffic.records]
        again.apply(Tick(now + 3_100))
    with reading(tmp_path) as journal:
        restarts = [b'"restarted":true' in bytes(one.body) for one in journal.read() if one.kind == "input"]

    assert refused.refusal is not None
    assert result == [True] * 4
    assert restarts[-3:] == [True, True, False]


def test_a_resumed_fleet_sends_routes_and_operations_again(tmp_path: Path) -> None:
    made = Recorded("hall", tmp_path)
    while not made.run.dispatch.operations():
        made.step(1)
    expected = made.run.dispatch.operations()
    routes = {one.robot_id for one in made.run.traffic.records if one.track is not None}
    now, reports = made.run.world.now_ms, read_gateway(made.run.gateway.poll()).reports
    made.recording.close()

    with Recording.resume(recording_disk(tmp_path)) as again:
        again.apply(Tick(now, reports))
        first = again.engine.orders_out
        again.apply(Tick(now + 100, reports))
        second = again.engine.orders_out

    assert set(expected) <= set(first.operations)
    assert {one.robot_id for one in first.routes} == routes
    assert second.operations == ()


def test_a_killed_fleet_resumes_after_its_last_complete_tick(tmp_path: Path) -> None:
    hall = Hall(shipped("head-on"), tmp_path / "j", 2)
    hall.begin()
    for _ in range(45):
        hall.step()
    hall.step_and_kill()

    plain = Run(shipped("head-on"))
    with reading(tmp_path / "j") as journal:
        tick = last_tick(journal)
        for _ in range(45):
            plain.step()
        assert tick in (45, 46)
        assert fleet_at(journal, 45).state() == plain.engine.state()
