"""Injections of a scenario: their effects, and how often they rebuild the network."""

from typing import Any

import pytest
from msgspec import UNSET

from pendula.credit.commands import Tick
from pendula.credit.events import TopologyChanged
from pendula.credit.runs.headless import Headless
from pendula.credit.state.network import Network
from pendula.kernel.canonical import Json
from tests.credit.conftest import headless, network


def test_many_injections_build_the_network_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def adding(names: range) -> list[Json]:
        return [
            {
                "op": "add_participant",
                "participant": {"id": f"n{name:03}", "type": "person"},
                "initial_trustlines": [{"sponsor": "a", "equivalent": "UAH", "limit": 3}],
            }
            for name in names
        ]

    def run_of(events: list[Json]) -> Headless:
        return headless(network(("a", "b", 10), events=events), enable_inject="on")

    at_once = run_of([{"time": 0, "type": "inject", "effects": adding(range(50))}])
    one_by_one = run_of([{"time": 0, "type": "inject", "effects": adding(range(n, n + 1))} for n in range(50)])
    builds = 0
    real = Network.rebuild

    def counted(self: Network, *arguments: Any) -> None:
        nonlocal builds
        builds += 1
        real(self, *arguments)

    monkeypatch.setattr(Network, "rebuild", counted)
    at_once.step(1)
    assert builds == 1
    one_by_one.step(1)

    assert at_once.run.digests() == one_by_one.run.digests()
    assert len(at_once.run.network.people) == 52


@pytest.mark.req("SIM-SCN-14")
def test_injected_debts_and_injected_lines_are_separate_events() -> None:
    owing: Json = {"op": "inject_debt", "from": "a", "to": "b", "equivalent": "UAH", "amount": "4"}
    opening: Json = {"op": "create_trustline", "from": "b", "to": "a", "equivalent": "UAH", "limit": 5}
    event: Json = {"time": 0, "type": "inject", "effects": [owing, opening]}
    run = headless(network(("a", "b", 10), events=[event]), enable_inject="on")

    events = [event for event in run.do(Tick()).events if isinstance(event, TopologyChanged)]

    assert [event.reason for event in events] == ["inject", "inject_debt"]
    shape, debts = (event.payload for event in events)
    assert (len(shape.added_edges), shape.edge_patch) == (1, UNSET)
    assert isinstance(debts.edge_patch, tuple)
    assert [(line.source, line.target, line.used) for line in debts.edge_patch] == [("a", "b", "4.00")]
