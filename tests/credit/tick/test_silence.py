"""With a budget of 0 time passes and the network does not change: no payment, no clearing, no decay."""

from decimal import Decimal
from typing import Any

import pytest

from pendula.credit.commands import Pay, SetIntensity
from pendula.credit.events import ClearingDone, Event, Ticked, TopologyChanged
from pendula.credit.runs.headless import Headless
from pendula.kernel.canonical import Json
from tests.credit.conftest import headless, network

CIRCLE = (("B", "A", 2), ("C", "B", 2), ("A", "C", 2))
DRIFT: Json = {"trust_drift": {"enabled": True, "overload_threshold": Decimal("0.1")}}


def circle(intensity: int, **settings: str) -> Headless:
    """A owes B, B owes C, C owes A: there is something to clear, and every line is overloaded."""
    run = headless(network(*CIRCLE, settings=DRIFT), 1, intensity, **settings)
    for sender, receiver in (("A", "B"), ("B", "C"), ("C", "A")):
        run.do(Pay(sender, receiver, "UAH", "1"))
    return run


def events_of(run: Headless, ticks: int) -> list[Event]:
    events: list[Event] = []
    run.step(ticks, events.extend)
    return events


@pytest.mark.req("SIM-INT-3")
@pytest.mark.parametrize("policy", ["static", "adaptive"])
@pytest.mark.parametrize(("intensity", "most"), [(0, "20"), (4, "20"), (100, "0")])
def test_a_budget_of_zero_emits_no_domain_event(policy: str, intensity: int, most: str) -> None:
    run = circle(intensity, clearing_policy=policy, clearing_every_n_ticks="5", actions_per_tick_max=most)
    before = [line.limit for line in run.run.network.ledgers["UAH"].book.lines()]

    events = events_of(run, 40)

    assert {type(event) for event in events} == {Ticked}
    assert (run.run.state_word, run.run.sim_time_ms) == ("running", 40_000)
    assert [line.limit for line in run.run.network.ledgers["UAH"].book.lines()] == before


@pytest.mark.req("SIM-INT-3", "SIM-INT-5")
def test_clearing_and_decay_resume_when_the_budget_is_above_zero() -> None:
    run = circle(0, clearing_every_n_ticks="5")
    run.step(5)

    run.do(SetIntensity(100))
    events = events_of(run, 1)

    assert any(isinstance(event, ClearingDone) for event in events)
    assert any(isinstance(event, TopologyChanged) for event in events)


@pytest.mark.req("SIM-INT-3")
def test_injections_are_reported_at_zero_intensity() -> None:
    effect: Json = {"op": "create_trustline", "from": "A", "to": "B", "equivalent": "UAH", "limit": 5}
    scenario: Any = network(*CIRCLE, events=[{"time": 2000, "type": "inject", "effects": [effect]}])
    run = headless(scenario, intensity=0, enable_inject="on")

    events = events_of(run, 4)

    assert [event.tick_index for event in events if isinstance(event, TopologyChanged)] == [2]
