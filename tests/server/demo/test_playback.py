"""The frame of the demo plays, and its new artwork differs each time."""

import msgspec
import pytest

from pendula.demo.playback import CHANNELS, DEMO, next_command
from pendula.playback.engine import Player
from pendula.server.schedulers.playback.routes import SCHEDULER
from pendula.server.settings import Settings
from tests.server.living import client_of, running
from tests.server.screens import BASE, eventually, is_on, view

pytestmark = pytest.mark.anyio


async def test_the_frame_of_the_demo_plays_and_gets_new_artwork(settings: Settings) -> None:
    async with running(msgspec.structs.replace(settings, demo=True), [SCHEDULER]) as app, client_of(app) as client:
        await eventually(lambda: is_on(client, "frame"))
        now = await view(client, "now", "frame")

        assert [channel["channel"] for channel in now["exposure"]] == [one.name for one in CHANNELS]
        assert [channel["weight"] for channel in now["exposure"]] == [32768, 21845, 10923]
        assert (await view(client, "stats", "frame"))["nae"]["inserts"] == 1
        assert now["diagnostics"] == []
        assert (await client.get(f"{BASE}/channels")).json()["channels"][0]["trouble"] == []


def test_new_artwork_of_the_demo_differs_each_time_and_repeats_after_a_restart() -> None:
    player = Player.create(DEMO.config)
    first = next_command(player, 0)
    player.apply(first)
    second = next_command(player, 1)

    restored = Player.from_state(DEMO.config, player.state())

    assert (first.id, second.id) == (9000, 9001)
    assert first.payload != second.payload
    assert next_command(restored, 0) == second
