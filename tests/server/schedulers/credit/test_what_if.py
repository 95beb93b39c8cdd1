"""A served run that is asked what would be with other settings."""

from contextlib import ExitStack
from typing import Any

import pytest

from pendula.credit.engine import Run
from pendula.kernel.cancellation import Cancellation, Cancelled, cancellable
from pendula.kernel.limits import PAST_READS
from pendula.server.schedulers.credit.running.what_if import serialize_active_run, what_if
from pendula.server.schedulers.credit.shapes import WhatIf
from tests.server.living import code_of
from tests.server.schedulers.credit.simulators import VILLAGE, Simulator

pytestmark = pytest.mark.anyio


async def test_both_ways_begin_where_the_run_stands_and_only_the_settings_part_them(sim: Simulator) -> None:
    run_id = (await sim.ok("/runs", VILLAGE))["run_id"]
    await sim.after_tick(run_id, 3)
    await sim.ok(f"/runs/{run_id}/pause")
    tick = (await sim.look(f"/runs/{run_id}/details"))["tick_index"]

    found = await sim.ok(f"/runs/{run_id}/what-if", {"settings": {"clearing_enabled": "off"}, "ticks": 30})

    assert (found["tick_index"], found["ticks"]) == (tick, 30)
    assert list(found["settings"]) == ["CLEARING_ENABLED"]
    assert tick < found["first_difference"] < tick + 30
    assert (found["original"]["clearings"], found["fork"]["clearings"]) == (1, 0)
    for way in (found["original"], found["fork"]):
        assert sum(way["made_by_tick"]) == way["committed"]
        assert sum(way["tried_by_tick"]) == way["attempts"]


async def test_the_same_settings_lead_to_the_same_place(still: Simulator) -> None:
    run_id = await still.start(scenario_id="village-100")

    found = await still.ok(f"/runs/{run_id}/what-if", {"settings": {}, "ticks": 5})

    assert found["first_difference"] is None
    assert found["original"] == found["fork"]


async def test_the_run_itself_is_left_alone(still: Simulator) -> None:
    run_id = await still.start(scenario_id="village-100")
    before = await still.look(f"/runs/{run_id}/details")

    await still.ok(f"/runs/{run_id}/what-if", {"settings": {"amount_cap": "7"}, "ticks": 5})

    after = await still.look(f"/runs/{run_id}/details")
    assert (after["digests"], after["settings"]) == (before["digests"], before["settings"])


async def test_a_setting_that_is_misspelt_is_refused_with_the_one_that_was_meant(still: Simulator) -> None:
    wish = {"scenario_id": "ring-of-five", "mode": "real", "intensity_percent": 1}

    response = await still.post("/runs", {**wish, "settings": {"amount_cpa": "5"}})

    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_setting")
    assert "did you mean amount_cap?" in response.json()["error"]["message"]


async def test_what_cannot_be_asked_is_refused(still: Simulator) -> None:
    run_id = await still.start()

    unknown = await still.post(f"/runs/{run_id}/what-if", {"settings": {"no_such_setting": "1"}})
    far = await still.post(f"/runs/{run_id}/what-if", {"settings": {}, "ticks": 501})
    await still.ok(f"/runs/{run_id}/stop")
    ended = await still.post(f"/runs/{run_id}/what-if", {"settings": {}})

    assert [one.status_code for one in (unknown, far, ended)] == [400, 400, 409]
    assert ended.json()["error"]["code"] == "fork_refused"


async def test_only_so_many_wait_for_a_comparison(still: Simulator) -> None:
    run_id = await still.start(scenario_id="village-100")
    with ExitStack() as others:
        for _ in range(PAST_READS.default + 1):
            others.enter_context(still.service.comparisons.place())
        full = await still.post(f"/runs/{run_id}/what-if", {"settings": {}, "ticks": 5})
    later = await still.post(f"/runs/{run_id}/what-if", {"settings": {}, "ticks": 5})

    assert (full.status_code, code_of(full), full.headers["retry-after"]) == (503, "past_busy", "1")
    assert later.status_code == 200


async def test_a_comparison_that_is_cancelled_ends_after_the_tick_it_is_at(
    still: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await still.start(scenario_id="village-100")
    run = await still.service.find(still.service._records[run_id].owner, run_id)
    found = await run.ask(serialize_active_run)
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
        what_if(run_id, found, WhatIf({}, ticks=100))

    assert applied == [0, 0, 1, 1, 2, 2]
