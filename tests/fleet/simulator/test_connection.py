"""Simulated trucks get the same orders from aims as from commands."""

import pytest

from pendula.fleet.contracts import CommandMode
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.simulator.truck import order_of, order_of_aim


@pytest.mark.req("FLT-RTP-1")
def test_a_command_and_its_aim_give_the_same_order() -> None:
    run, modes = Run(shipped("crossing-turn")), set()
    for _ in range(400):
        run.step()
        orders = run.engine.orders_out
        modes |= {aim.mode for aim in orders.aims}
        assert [order_of(command) for command in orders.commands] == [order_of_aim(aim) for aim in orders.aims]

    assert modes >= {CommandMode.GO, CommandMode.HOLD, CommandMode.TURN}


def test_commands_are_made_as_they_are_read_and_are_those_of_the_tick() -> None:
    run = Run(shipped("arrival"))
    commands = run.step().commands
    lazy = run.engine.orders_out.commands

    assert (len(lazy), tuple(lazy), lazy[0], lazy[:1]) == (len(commands), commands, commands[0], commands[:1])
