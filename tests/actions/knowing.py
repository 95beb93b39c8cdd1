"""Worlds with reveals, and their logs."""

from typing import Any

from pendula.actions import Advance, Logs, Submit, World
from pendula.kernel.canonical import decode
from tests.actions.worlds import EPOCH, lasting

DEFS = {"tell": lasting(10, may_trigger_event=True), "watch": lasting(3000)}


def lived(*actions: dict[str, Any], until: int = 1440, **config: Any) -> tuple[World, Logs]:
    world = World.create({"epoch": EPOCH, "action_defs": DEFS, "options": {"pc": "pia", "allies": ["ann"]}, **config})
    logs = Logs(world.header())
    logs.feed(world.apply(Submit(actions)).events)
    logs.feed(world.apply(Advance(until)).events)
    return world, logs


def read(line: bytes) -> Any:
    return decode(line)
