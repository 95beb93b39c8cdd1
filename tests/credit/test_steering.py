"""Commands that steer a run: what is left where others fail."""

import pytest

from pendula.credit.commands import Clear, Commands, Tick
from pendula.credit.runs.headless import Headless, made
from pendula.credit.settings import Settings, changed
from pendula.documents import from_value
from pendula.kernel.canonical import Json
from tests.credit.conftest import network


class Broken:
    """Somebody who is asked and fails."""

    def ask(self, name: str, question: Json) -> Json:
        raise RuntimeError(name)


@pytest.mark.req("SIM-CLR-11")
@pytest.mark.parametrize("command", [Tick(3), Tick(5), Clear()])
@pytest.mark.parametrize("setting", [{"clearing_mode": "optimal"}, {"clearing_yardstick": "on"}])
def test_a_solver_that_raises_leaves_the_run_where_it_was(command: Commands, setting: dict[str, str]) -> None:
    options = changed(Settings(), {"clearing_every_n_ticks": "2", **setting})
    scenario = network(("B", "A", 50), ("C", "B", 50), ("A", "C", 50))
    run = Headless(made(from_value(scenario), seed=3, settings=options))
    run.step(1)
    run.ask(Broken())
    before = run.run.state()

    with pytest.raises(RuntimeError):
        run.do(command)

    assert run.run.state() == before
