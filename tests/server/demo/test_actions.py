"""The town of the demo: its days repeat, from any state, until it is closed."""

import asyncio
from typing import Any

import msgspec
import pytest

from pendula.actions import World
from pendula.demo.actions import DEMO
from pendula.server.schedulers.actions.routes import SCHEDULER
from pendula.server.settings import Settings
from tests.server.living import JSON, client_of, running, supervisor_of
from tests.server.worlds import BASE

pytestmark = pytest.mark.anyio


def test_the_town_continues_after_its_last_day() -> None:
    world = World.create(DEMO.config)
    rounds: list[list[tuple[Any, ...]]] = []
    for number in range(3):
        seen: list[Any] = []
        while world.now() < (number + 1) * 3 * 1440:
            outcome = world.apply(DEMO.next_command(world, 0))  # type: ignore[arg-type]
            assert outcome.refusal is None
            seen += outcome.events
        rounds.append([(type(event).__name__, getattr(event, "code", None)) for event in seen])

    kinds = [{kind for kind, _ in one} for one in rounds]
    assert kinds == [{"Start", "End", "Interrupted", "VisibilityChange", "Rejection", "Diagnostic", "EpochBegan"}] * 3
    assert not [code for one in rounds for _, code in one if code in ("DuplicateActionId", "UnknownVerb")]
    # Every round does the same amount of work: no resource runs out.
    assert len({one.count(("End", None)) for one in rounds[1:]}) == 1
    assert list(world.broken()) == []


def test_the_town_continues_from_any_state() -> None:
    def lived(restarted: bool) -> tuple[list[Any], bytes]:
        world = World.create(DEMO.config)
        seen: list[Any] = []
        while world.now() < 5 * 1440:
            seen += world.apply(DEMO.next_command(world, 0)).events  # type: ignore[arg-type]
            world = World.from_state(DEMO.config, world.state()) if restarted else world
        return seen, world.state()

    assert lived(restarted=True) == lived(restarted=False)


async def test_the_demo_submits_to_its_town_until_it_is_closed(settings: Settings) -> None:
    demo = msgspec.structs.replace(settings, demo=True)
    async with running(demo, [SCHEDULER]) as app, client_of(app) as client:
        while (await client.get(f"{BASE}/town/now")).json()["n"] < 1:
            await asyncio.sleep(0.01)
        await client.post(f"{BASE}/town/close", headers=JSON)

        assert [(world["name"], world["state"]) for world in (await client.get(BASE)).json()["worlds"]] == [
            ("town", "closed")
        ]
        assert list(supervisor_of(app).hosts()) == []
