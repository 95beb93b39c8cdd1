"""The contract suite of engines, over two trucks that meet, wait and continue."""

from functools import cache

import msgspec
import pytest

from pendula.fleet.commands import Commands, Tick
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import FleetEvent
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tick.saving import route_form
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome
from pendula.testing import engine_contract


class _Recorder:
    """An applier that records its commands."""

    def __init__(self, engine: FleetEngine, commands: list[Commands]) -> None:
        self._engine, self._commands = engine, commands

    def apply(self, command: Commands) -> Outcome[FleetEvent]:
        self._commands.append(command)
        return self._engine.apply(command)


@cache
def head_on(ticks: int) -> tuple[Json, tuple[Commands, ...]]:
    """The configuration and the first ticks of the scenario in which two trucks meet on a lane."""
    commands: list[Commands] = []
    run = Run(shipped("head-on"), make_applier=lambda engine, _: _Recorder(engine, commands))
    for _ in range(ticks):
        run.step()
    return run.config, tuple(commands)


@pytest.mark.req("FLT-OBS-4")
def test_a_fleet_is_an_engine() -> None:
    config, commands = head_on(6)
    late, back = Tick(5_000), Tick(0)
    questions: tuple[Json, ...] = ({"robot": "R1"}, {"robot": "R9"}, {"task": "T-1"}, {"weather": "fine"})

    engine_contract(FleetEngine, config, (*commands[:3], *commands[3:], late, back), questions)


def test_a_route_that_is_not_on_the_map_is_refused_and_changes_nothing() -> None:
    config, commands = head_on(3)
    engine = FleetEngine.create(config)
    engine.apply(commands[0])
    route = route_form(engine.orders_out.routes[0])
    before = engine.state()
    for edges in ((10**6,), (-1,), (0, 0)):
        wrong = msgspec.structs.replace(route, edges=edges)

        outcome = engine.apply(Tick(commands[1].now_ms, routes=(wrong,)))

        assert outcome.refusal is not None
        assert outcome.refusal.code == "route_off_the_map"
        assert engine.state() == before
