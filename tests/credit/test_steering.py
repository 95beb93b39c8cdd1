"""Commands that steer a run, failures of the outside, checkpoints."""

import msgspec
import pytest

from pendula.credit.commands import Abandon, Clear, Commands, Pause, Stop, Tick
from pendula.credit.engine import Run
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.documents import from_value
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.errors import InputRefused
from tests.credit.conftest import network


class FailingSolver:
    """An outside that raises."""

    def ask(self, name: str, question: Json) -> Json:
        raise RuntimeError(name)


@pytest.mark.req("SIM-CLR-11")
@pytest.mark.parametrize("command", [Tick(3), Tick(5), Clear()])
@pytest.mark.parametrize("setting", [{"clearing_mode": "optimal"}, {"clearing_yardstick": "on"}])
def test_a_solver_that_raises_leaves_the_run_unchanged(command: Commands, setting: dict[str, str]) -> None:
    options = change_settings(Settings(), {"clearing_every_n_ticks": "2", **setting})
    scenario = network(("B", "A", 50), ("C", "B", 50), ("A", "C", 50))
    run = Headless(plan_run(from_value(scenario), seed=3, settings=options))
    run.step(1)
    run.ask(FailingSolver())
    before = run.run.state()

    with pytest.raises(RuntimeError):
        run.do(command)

    assert run.run.state() == before


def abandon(run: Headless) -> Headless:
    run.do(Abandon())
    return run


@pytest.mark.req("SIM-RUN-12")
@pytest.mark.parametrize("before", [(), (Pause(),)])
def test_an_abandoned_run_ends_in_error_with_a_reason(before: tuple[Commands, ...]) -> None:
    run = Headless(plan_run(from_value(network(("B", "A", 50))), seed=3))
    run.step(2)
    for command in before:
        run.do(command)

    status = abandon(run).run.status()

    assert (status.state, status.tick_index) == ("error", 2)
    assert status.last_error is not None
    assert (status.last_error.code, "restarted" in status.last_error.message) == ("INTERNAL_ERROR", True)


def test_a_finished_run_cannot_be_abandoned() -> None:
    run = Headless(plan_run(from_value(network(("B", "A", 50))), seed=3))
    run.do(Stop())

    assert abandon(run).run.state_word == "stopped"


@pytest.mark.req("SIM-STO-8")
def test_a_run_from_a_checkpoint_continues_as_the_original() -> None:
    plan = plan_run(from_value(network(("B", "A", 50), ("C", "B", 50), ("A", "C", 50))), seed=3)
    whole, first = Headless(plan), Headless(plan)
    whole.step(30)
    first.step(12)
    checkpoint = decode(first.run.state())

    later = Headless(msgspec.structs.replace(plan, config=msgspec.structs.replace(plan.config, checkpoint=checkpoint)))
    later.step(18)

    assert later.run.digests() == whole.run.digests()


def test_a_checkpoint_is_part_of_the_configuration_in_a_journal() -> None:
    plan = plan_run(from_value(network(("B", "A", 50))), seed=3)
    first = Headless(plan)
    first.step(5)
    config = msgspec.structs.replace(plan.config, checkpoint=decode(first.run.state()))

    again = Run.create(decode(encode(config)))

    assert again.state() == first.run.state()


def test_a_checkpoint_of_another_scenario_is_rejected() -> None:
    other = Headless(plan_run(from_value(network(("X", "Y", 50))), seed=3)).run.state()
    plan = plan_run(from_value(network(("B", "A", 50))), seed=3)

    with pytest.raises(InputRefused):
        Run.create(decode(encode(msgspec.structs.replace(plan.config, checkpoint=decode(other)))))
