"""Injections of a scenario: what they change, and how often the network is built for it."""

from typing import Any

import pytest

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
