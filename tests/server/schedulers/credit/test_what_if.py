"""What-if comparisons of a served run."""

from contextlib import ExitStack
from typing import Any

import pytest

from pendula.credit.engine import Run
from pendula.kernel.cancellation import Cancellation, Cancelled, cancellable
from pendula.kernel.limits import PAST_READS
from pendula.server.schedulers.credit.shapes import WhatIf
from pendula.server.schedulers.credit.what_if import serialize_active_run, what_if
from tests.server.living import code_of
from tests.server.schedulers.credit.simulators import VILLAGE, Simulator

pytestmark = pytest.mark.anyio


async def test_both_branches_start_from_the_current_state_and_differ_only_in_settings(sim: Simulator) -> None:
    run_id = (await sim.ok("/runs", VILLAGE))["run_id"]
    await sim.after_tick(run_id, 3)
    await sim.ok(f"/runs/{run_id}/pause")
    tick = (await sim.look(f"/runs/{run_id}/details"))["tick_index"]

    comparison = await sim.ok(f"/runs/{run_id}/what-if", {"settings": {"clearing_enabled": "off"}, "ticks": 30})

    assert (comparison["tick_index"], comparison["ticks"]) == (tick, 30)
    assert list(comparison["settings"]) == ["CLEARING_ENABLED"]
    assert tick < comparison["first_difference"] < tick + 30
    assert (comparison["original"]["clearings"], comparison["fork"]["clearings"]) == (1, 0)
    for branch in (comparison["original"], comparison["fork"]):
        assert sum(branch["made_by_tick"]) == branch["committed"]
        assert sum(branch["tried_by_tick"]) == branch["attempts"]


async def test_a_fork_with_equal_settings_does_not_differ(still: Simulator) -> None:
    run_id = await still.start(scenario_id="village-100")

    comparison = await still.ok(f"/runs/{run_id}/what-if", {"settings": {}, "ticks": 5})

    assert comparison["first_difference"] is None
    assert comparison["original"] == comparison["fork"]


async def test_what_if_does_not_change_the_run(still: Simulator) -> None:
    run_id = await still.start(scenario_id="village-100")
    before = await still.look(f"/runs/{run_id}/details")

    await still.ok(f"/runs/{run_id}/what-if", {"settings": {"amount_cap": "7"}, "ticks": 5})

    after = await still.look(f"/runs/{run_id}/details")
    assert (after["digests"], after["settings"]) == (before["digests"], before["settings"])


async def test_a_misspelt_setting_is_refused_with_a_suggestion(still: Simulator) -> None:
    request = {"scenario_id": "ring-of-five", "mode": "real", "intensity_percent": 1}

    response = await still.post("/runs", {**request, "settings": {"amount_cpa": "5"}})

    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_setting")
    assert "did you mean amount_cap?" in response.json()["error"]["message"]


async def test_an_invalid_what_if_is_refused(still: Simulator) -> None:
    run_id = await still.start()

    unknown = await still.post(f"/runs/{run_id}/what-if", {"settings": {"no_such_setting": "1"}})
    far = await still.post(f"/runs/{run_id}/what-if", {"settings": {}, "ticks": 501})
    await still.ok(f"/runs/{run_id}/stop")
    ended = await still.post(f"/runs/{run_id}/what-if", {"settings": {}})

    assert [one.status_code for one in (unknown, far, ended)] == [400, 400, 409]
    assert ended.json()["error"]["code"] == "fork_refused"


async def test_the_number_of_waiting_comparisons_is_limited(still: Simulator) -> None:
    run_id = await still.start(scenario_id="village-100")
    with ExitStack() as others:
        for _ in range(PAST_READS.default + 1):
            others.enter_context(still.supervisor._past.what_ifs.place())
        full = await still.post(f"/runs/{run_id}/what-if", {"settings": {}, "ticks": 5})
    later = await still.post(f"/runs/{run_id}/what-if", {"settings": {}, "ticks": 5})

    assert (full.status_code, code_of(full), full.headers["retry-after"]) == (503, "past_busy", "1")
    assert later.status_code == 200


async def test_a_cancelled_comparison_ends_after_its_current_tick(
    still: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await still.start(scenario_id="village-100")
    run = await still.service.find(still.service._records[run_id].owner, run_id)
    serialized = await run.ask(serialize_active_run)
    cancellation = Cancellation()
    applied: list[int] = []
    apply = Run.apply

    def counted(run: Run, command: Any) -> Any:
        applied.append(run.tick)
        if len(applied) == 6:
            cancellation.cancel()
        return apply(run, command)

    monkeypatch.setattr(Run, "apply", counted)
    with pytest.raises(Cancelled), cancellable(cancellation):
        what_if(run_id, serialized, WhatIf({}, ticks=100))

    assert applied == [0, 0, 1, 1, 2, 2]
