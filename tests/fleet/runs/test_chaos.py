"""FLT-TEST-24: with bad radio, jumps and endless tasks, no envelopes meet, no truck is stuck and all tasks are done."""

from pathlib import Path

import pytest

from pendula.fleet.engine import FleetEngine
from pendula.fleet.runs import Recording, reading, recording_disk
from pendula.fleet.tick.records import Stop
from pendula.kernel.canonical import Json
from pendula.kernel.replay import replay
from tests.campaigns import campaign_after
from tests.fleet.runs.chaos import Chaos

SHORT_MS, LONG_MS = 600_000, 8 * 3_600_000
SEEDS = range(20)


def check(lived: Chaos) -> None:
    run = lived.run
    form = run.result().form
    # What goes wrong did go wrong, and was noticed.
    assert lived.jumps
    assert {(name, Stop.POSE_JUMP) for name, _ in lived.jumps} <= run.measures.stops.keys()
    assert all(lost > run.now_ms // 10_000 for lost in run.world.lost)
    assert {name: one["violations"] for name, one in form["invariants"].items() if one["violations"]} == {}
    assert not {"DEADLOCK_SUSPECTED", "DEADLOCK_CONFIRMED"} & set(form["metrics"]["alerts"])
    assert form["tasks"]["done"] >= 10
    # Every task is done, or held with a reason.
    assert form["tasks"]["open"] == form["tasks"]["held"]
    assert all(one.at_rest for one in run.dispatch.drivers if one.task is None)


@pytest.mark.req("FLT-TEST-24")
@pytest.mark.parametrize("seed", campaign_after(0, SEEDS))
def test_chaos_for_ten_minutes_ends_with_all_tasks_done(seed: int) -> None:
    # The longest period that is allowed is the hardest on trucks, and costs half as much.
    lived = Chaos(SHORT_MS // 2, seed, most=1, tick_ms=100 if seed % 10 == 0 else 200)
    lived.live(least_ms=SHORT_MS)

    check(lived)


@pytest.mark.long
@pytest.mark.req("FLT-TEST-24")
@pytest.mark.req("FLT-TEST-50")
def test_chaos_for_some_minutes_replays(tmp_path: Path) -> None:
    opened: list[Recording] = []

    def make_applier(engine: FleetEngine, config: Json) -> Recording:
        opened.append(Recording.begin(engine, config, recording_disk(tmp_path)))
        return opened[0]

    lived = Chaos(SHORT_MS, 1, make_applier)
    lived.live()
    opened[0].close()

    check(lived)
    with reading(tmp_path) as journal:
        report = replay(journal, lambda _: FleetEngine)
    assert report.first_difference is None


@pytest.mark.long
@pytest.mark.req("FLT-TEST-24")
@pytest.mark.parametrize("seed", SEEDS)
def test_chaos_for_eight_hours(seed: int) -> None:
    lived = Chaos(LONG_MS, seed)
    lived.live()

    check(lived)
