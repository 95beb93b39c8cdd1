"""The history of a run: its network and counts at any moment of its journal."""

import shutil
from pathlib import Path

import pytest

from pendula.credit.engine import Run
from pendula.credit.runs.headless import plan_run
from pendula.documents import from_value
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import new_journal
from pendula.server.schedulers.credit.recovery import EndedRun
from pendula.server.schedulers.credit.scenarios import bundled_scenario
from tests.server.schedulers.credit.simulators import Simulator

pytestmark = pytest.mark.anyio


async def test_a_past_moment_has_its_own_counts_and_network(sim: Simulator) -> None:
    run_id = await sim.start(scenario_id="village-100", intensity_percent=70)
    await sim.after_tick(run_id, 5)
    await sim.ok(f"/runs/{run_id}/pause")
    moments = (await sim.look(f"/runs/{run_id}/moments"))["moments"]

    first = await sim.look(f"/runs/{run_id}/past", at=moments[0]["n"])
    last = await sim.look(f"/runs/{run_id}/past", at=moments[-1]["n"])

    status = await sim.status(run_id)
    assert first["attempts_total"] < last["attempts_total"] == status["attempts_total"]
    assert last["graph"]["links"] == (await sim.look(f"/runs/{run_id}/graph/snapshot"))["links"]
    assert first["graph"]["links"] != last["graph"]["links"]


async def test_a_time_leads_to_its_record(sim: Simulator) -> None:
    run_id = await sim.start()
    await sim.after_tick(run_id, 3)

    response = await sim.look(f"/runs/{run_id}/moment", t=2)

    assert response["moment"]["t"] <= 2 < response["next"]["t"]
    assert (await sim.look(f"/runs/{run_id}/past", at=response["moment"]["n"]))["tick_index"] == response["moment"]["t"]


async def test_a_record_outside_the_journal_is_refused(still: Simulator) -> None:
    run_id = await still.start()

    far = await still.get(f"/runs/{run_id}/past", at=10**6)
    no_number = await still.get(f"/runs/{run_id}/past", at="x")

    assert [response.status_code for response in (far, no_number)] == [400, 400]


async def test_the_history_of_an_ended_run_is_that_of_the_open_run(sim: Simulator) -> None:
    run_id = await sim.start(scenario_id="village-100", intensity_percent=70)
    await sim.after_tick(run_id, 5)
    await sim.ok(f"/runs/{run_id}/pause")
    before = (await sim.look(f"/runs/{run_id}/moments"))["moments"]
    open_then = await sim.look(f"/runs/{run_id}/past", at=before[2]["n"])
    await sim.ok(f"/runs/{run_id}/stop")

    moments = (await sim.look(f"/runs/{run_id}/moments"))["moments"]
    ended_then = await sim.look(f"/runs/{run_id}/past", at=before[2]["n"])
    last = await sim.look(f"/runs/{run_id}/past", at=moments[-1]["n"])
    response = await sim.look(f"/runs/{run_id}/moment", t=2)

    assert moments[0] == before[0]
    assert {**ended_then, "graph": ended_then["graph"]["links"]} == {**open_then, "graph": open_then["graph"]["links"]}
    assert last["attempts_total"] == (await sim.status(run_id))["attempts_total"]
    assert response["moment"]["t"] <= 2


async def test_the_history_of_a_run_without_a_journal_is_refused(still: Simulator) -> None:
    run_id = await still.start()
    await still.ok(f"/runs/{run_id}/stop")
    shutil.rmtree(still.service.context.journal(run_id))

    gone = await still.get(f"/runs/{run_id}/moments")

    assert gone.status_code == 503
    assert "has no journal" in gone.json()["error"]["message"]


def test_an_ended_run_without_any_command_is_at_its_beginning(tmp_path: Path) -> None:
    config = plan_run(from_value(bundled_scenario("ring-of-five").document), seed=7).json
    new_journal(Run, config, RealDisk(tmp_path / "journal")).close()

    ended = EndedRun(tmp_path / "journal")

    assert ended.ask(lambda run: (run.tick, run.state_word, run.seed)) == (0, "running", 7)
