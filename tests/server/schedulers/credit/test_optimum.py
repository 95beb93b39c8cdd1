"""Served runs that compare their clearings with the optimum."""

import pytest

from pendula.credit.outside.answers import SolverWhenAsked
from pendula.credit.sentences import sentence_of
from tests.server.schedulers.credit.simulators import Simulator

pytestmark = pytest.mark.anyio

AROUND = ("anna", "bakery", "farm", "dmytro", "cafe")


async def owe_in_a_circle(still: Simulator, run_id: str) -> None:
    for payer, payee in zip(AROUND, (*AROUND[1:], AROUND[0]), strict=True):
        payment = {"from_pid": payer, "to_pid": payee, "equivalent": "HOUR", "amount": "2"}
        await still.ok(f"/runs/{run_id}/actions/payment-real", payment)


async def test_a_clearing_event_has_the_optimum_if_the_run_asks_for_it(still: Simulator) -> None:
    run_id = await still.start(settings={"clearing_yardstick": "on"})
    await owe_in_a_circle(still, run_id)

    await still.ok(f"/runs/{run_id}/actions/clearing-real", {"equivalent": "HOUR"})

    (done,) = [one for one in await still.events(run_id) if one["type"] == "clearing.done"]
    assert (done["debt_reduction"], done["optimum"]) == ("10.00", "10.00")


async def test_a_run_clears_without_a_solver(still: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pendula.credit.outside.answers.find_spec", lambda _: None)
    run_id = await still.start(settings={"clearing_yardstick": "on"})
    await owe_in_a_circle(still, run_id)

    answer = await still.ok(f"/runs/{run_id}/actions/clearing-real", {"equivalent": "HOUR"})

    (done,) = [one for one in await still.events(run_id) if one["type"] == "clearing.done"]
    assert (answer["cleared_cycles"], "optimum" in done) == (1, False)


def test_a_missing_solver_is_refused_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pendula.credit.outside.answers.find_spec", lambda _: None)

    answer = SolverWhenAsked().ask("optimal_clearing", {"edges": []})

    assert isinstance(answer, dict)
    refused = answer["refused"]
    assert isinstance(refused, dict)
    sentence = sentence_of(str(refused["code"]), refused["facts"])
    assert (refused["code"], "pendula[optimal]" in sentence) == ("missing_extra", True)
