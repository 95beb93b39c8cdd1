"""The served library: read by many players, refreshed while they play; folders as channels."""

import io
import shutil
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from pendula.kernel.commit import Busy
from pendula.kernel.disk import RealDisk
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from pendula.playback.cache.merge import Page
from pendula.playback.engine import Player
from pendula.server.schedulers.playback import library_service
from pendula.server.schedulers.playback.library import Library
from pendula.server.schedulers.playback.library_service import LibraryService
from pendula.server.settings import PlaybackSettings, Settings, load
from tests.playback.shelves import listed
from tests.server.living import JSON, client_of, code_of, running, supervisor_of
from tests.server.screens import (
    BASE,
    HALL,
    PAYLOAD,
    STILL,
    ask,
    channel,
    eventually,
    fill,
    hang,
    is_on,
    make,
    shown,
    view,
)

pytestmark = pytest.mark.anyio


async def _holds(client: httpx.AsyncClient, name: str, count: int) -> bool:
    return bool((await channel(client, name))["records"] == count)


async def _troubled(client: httpx.AsyncClient, name: str) -> bool:
    return bool((await channel(client, name))["trouble"])


async def _records(client: httpx.AsyncClient, count: int) -> bool:
    return bool((await view(client, "now"))["exposure"][0]["records"] == count)


# Players and editions


async def test_players_that_share_a_channel_are_all_notified_of_its_refresh(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    await hang(client, channels=["b"])
    old = (await channel(client, "b"))["generation"]
    await make(client, "porch", channels=["b", "a"])
    await make(client, "attic", channels=["a"])
    await shown(client, 4)

    done = await fill(client, "b", 14, 11, 12)

    assert done["updated_players"] == ["hall", "porch"]
    assert await shown(client, 4) == [14, 11, 12, 13]
    assert await shown(client, 4, "porch") == [14, 1, 11, 2]
    # No player uses the old edition any more.
    library = supervisor_of(app).store("playback").outside
    assert library.ask("record", {"channel": "b", "generation": old, "at": 0}) is None
    assert library.ask("record", {"channel": "b", "generation": old + 1, "at": 0}) is not None
    assert (await fill(client, "b", 14))["updated_players"] == []  # it exists already


async def test_a_closed_player_is_notified_of_a_refresh_when_it_opens(client: httpx.AsyncClient) -> None:
    await hang(client, channels=["b"])
    await client.post(f"{HALL}/close", headers=JSON)

    done = await fill(client, "b", 14, 15, complete=True)
    await client.post(f"{HALL}/open", headers=JSON)

    assert done["updated_players"] == []
    assert await shown(client, 3) == [14, 15, 14]


async def test_a_removed_channel_is_empty_until_the_next_upload(app: FastAPI, client: httpx.AsyncClient) -> None:
    await hang(client)
    library = supervisor_of(app).store("playback").outside
    assert isinstance(library, Library)
    library.remove("a")

    told_again = await fill(client, "b", 16)
    await client.post(f"{HALL}/close", headers=JSON)
    await client.post(f"{HALL}/open", headers=JSON)
    without = [one["channel"] for one in (await view(client, "now"))["exposure"] if one["weight"]]
    await fill(client, "a", 9)

    assert told_again["updated_players"] == ["hall"]
    assert without == ["b"]
    assert 9 in await shown(client, 2)


async def test_counts_survive_a_restart_and_a_player_catches_up_on_missed_ones(settings: Settings) -> None:
    async with running(settings, [STILL]) as app, client_of(app) as client:
        await fill(client, "a", 1, 2, total_count=500, recent_count=7)
        await fill(client, "b", 11)
        await make(client)
        await make(client, "porch", channels=[])
        await client.post(f"{HALL}/close", headers=JSON)
        await fill(client, "b", 11, total_count=40)
    async with running(settings, [STILL]) as app, client_of(app) as client:
        await client.post(f"{HALL}/open", headers=JSON)
        one, other = await channel(client, "a"), await channel(client, "b")
        again = await client.post(f"{BASE}/channels/a/refresh", headers=JSON)
        await ask(client, "follow", "porch", channels=["a"])

        assert (one["total_count"], one["recent_count"]) == (500, 7)
        assert (other["total_count"], other["recent_count"]) == (40, 0)
        assert again.json()["updated_players"] == []
        for player in ("hall", "porch"):
            exposure = (await view(client, "now", player))["settings"]["exposure"]
            assert (exposure["total_count"]["a"], exposure["recent_count"]["a"]) == (500, 7)
        assert (await view(client, "now"))["settings"]["exposure"]["total_count"]["b"] == 40


async def test_a_busy_player_is_updated_later(
    app: FastAPI, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_service, "AGAIN_SECONDS", 0.01)
    await hang(client, channels=["b"])
    host = supervisor_of(app).host("playback", "hall")
    submit, busy = host.submit, [True, True]

    async def sometimes(command: object, by: str, request_id: str | None) -> Any:
        if by == library_service.LIBRARY_ORIGIN and busy:
            busy.pop()
            raise Busy("Too many wait")
        return await submit(command, by, request_id)

    monkeypatch.setattr(host, "submit", sometimes)

    done = await fill(client, "b", 14)

    assert done["updated_players"] == []
    await eventually(lambda: _records(client, 4))
    assert busy == []


async def test_the_editions_of_a_removed_channel_are_released_after_its_players_are_updated(
    app: FastAPI, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hang(client)
    store = supervisor_of(app).store("playback")
    assert isinstance(store, LibraryService)
    edition = store.library.contents("a").generation
    host = supervisor_of(app).host("playback", "hall")
    submit, meanwhile = host.submit, []

    async def looking(command: object, by: str, request_id: str | None) -> Any:
        meanwhile.append(store.library.ask("record", {"channel": "a", "generation": edition, "at": 0}))
        return await submit(command, by, request_id)

    monkeypatch.setattr(host, "submit", looking)

    assert await store.remove("a") == ["hall"]

    assert len(meanwhile) == 1
    assert meanwhile[0] is not None
    assert store.library.ask("record", {"channel": "a", "generation": edition, "at": 0}) is None


async def test_a_player_survives_a_kill_and_its_journal_replays_without_the_library(
    settings: Settings, tmp_path: Path
) -> None:
    async with running(settings, [STILL]) as app, client_of(app) as client:
        await hang(client, settings={"lookahead": 2, "pick": {"mode": "random", "r": 3}})
        await ask(client, "nae", id=900, payload=PAYLOAD)
        await shown(client, 5)
        # The files on disk at this moment are those a kill would leave.
        killed = shutil.copytree(settings.data, tmp_path / "killed")
        expected = await shown(client, 5)
        before = await view(client, "now")

    async with running(Settings(data=str(killed)), [STILL]) as app, client_of(app) as client:
        assert await shown(client, 5) == expected
        after = await view(client, "now")
        assert after["t"] >= after["started_at"]
        assert after["item"] == before["item"]
    shutil.rmtree(killed / "stores")
    report = replay(FileJournal.open(RealDisk(killed / "schedulers" / "playback" / "hall")), lambda _: Player)
    assert (report.first_difference, report.commands >= 12) == (None, True)


async def test_a_refresh_interrupted_by_a_kill_is_completed_at_the_next_start(settings: Settings) -> None:
    async with running(settings, [STILL]) as app, client_of(app) as client:
        await hang(client, channels=["b"])
    library = Library(Path(settings.data) / "stores" / "playback")
    library.put("b", Page(listed((21, 22)), 2, complete=True))
    library.close()

    async with running(settings, [STILL]) as app, client_of(app) as client:
        assert await shown(client, 3) == [21, 22, 21]


@pytest.mark.req("PLAY-CACHE-9")
async def test_a_corrupt_cache_is_set_aside_and_reported_and_the_others_continue(settings: Settings) -> None:
    async with running(settings, [STILL]) as app, client_of(app) as client:
        await hang(client)
    file = Path(settings.data) / "stores" / "playback" / "a.pch"
    file.write_bytes(b"junk" + file.read_bytes()[4:])

    async with running(settings, [STILL]) as app, client_of(app) as client:
        (trouble,) = (await channel(client, "a"))["trouble"]
        items = await shown(client, 3)
        healed = await fill(client, "a", 5)

        assert (trouble["code"], trouble["facts"]["set_aside"]) == ("CorruptCache", "a.pch.bad")
        assert str(file.parent) not in str(trouble)
        assert set(items) <= {11, 12, 13}
        assert healed["updated_players"] == ["hall"]
        assert 5 in await shown(client, 2)


async def test_a_channel_set_aside_is_still_there_after_the_next_start(settings: Settings) -> None:
    async with running(settings, [STILL]) as app, client_of(app) as client:
        await hang(client)
    file = Path(settings.data) / "stores" / "playback" / "a.pch"
    file.write_bytes(b"junk" + file.read_bytes()[4:])
    async with running(settings, [STILL]):
        pass

    async with running(settings, [STILL]) as app, client_of(app) as client:
        found = await channel(client, "a")
        (trouble,) = found["trouble"]
        store = supervisor_of(app).store("playback")
        assert isinstance(store, LibraryService)
        await store.remove("a")

        assert (found["records"], trouble["code"], trouble["facts"]["set_aside"]) == (0, "CorruptCache", "a.pch.bad")
    assert Library(file.parent).names() == ["b"]


@pytest.mark.parametrize("again", ["records", "edition"])
async def test_an_unreadable_channel_is_tried_again(client: httpx.AsyncClient, settings: Settings, again: str) -> None:
    await hang(client, channels=[])
    file = Path(settings.data) / "stores" / "playback" / "b.pch"
    whole = file.read_bytes()
    if again == "records":
        with file.open("r+b") as damaged:
            damaged.seek(4096)
            damaged.write(bytes(4096))
        await ask(client, "follow", channels=["b"])
    else:
        unknown = {"type": "follow", "channel": {"id": "b", "count": 2, "generation": 77}}
        await client.post(f"{HALL}/commands", json=unknown)
    blind = await ask(client, "next")
    now = await view(client, "now")
    file.write_bytes(whole)

    answer = (await client.post(f"{BASE}/channels/b/refresh", headers=JSON)).json()

    assert (blind["answer"], now["exposure"][0]["readable"]) == (None, False)
    assert now["diagnostics"][-1]["code"] == "UnreadableChannel"
    assert answer["updated_players"] == ["hall"]
    assert sorted(await shown(client, 3)) == [11, 12, 13]


# Folders


async def test_a_configured_folder_is_a_channel_without_uploads(settings: Settings, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in ("one.jpg", "two.png", "notes.txt"):
        (pictures / name).write_bytes(b"x")
    config = tmp_path / "pendula.toml"
    config.write_text(f'[playback]\nfolders = {{ holidays = "{pictures}" }}\n')
    folders = load({"config": str(config)}, {}).playback.folders
    async with (
        running(msgspec.structs.replace(settings, playback=PlaybackSettings(folders=folders)), [STILL]) as app,
        client_of(app) as client,
    ):
        await eventually(lambda: _holds(client, "holidays", 2))
        found = await channel(client, "holidays")
        refused = await client.put(f"{BASE}/channels/holidays", json={"records": []})
        await make(client, channels=["holidays"])
        (pictures / "three.gif").write_bytes(b"x")
        await client.post(f"{BASE}/channels/holidays/refresh", headers=JSON)
        await eventually(lambda: _records(client, 3))

        assert (found["records"], found["folder"], found["total_count"]) == (2, True, 2)
        assert (refused.status_code, code_of(refused)) == (409, "channel_of_folder")
        assert (await view(client, "now"))["settings"]["exposure"]["total_count"] == {"holidays": 3}


async def test_an_unreadable_folder_is_listed_with_its_error_until_it_recovers(
    settings: Settings, tmp_path: Path, quiet_logs: io.StringIO
) -> None:
    folders = {"holidays": str(tmp_path / "picturs"), "garden": str(tmp_path / "gardn")}
    async with (
        running(msgspec.structs.replace(settings, playback=PlaybackSettings(folders=folders)), [STILL]) as app,
        client_of(app) as client,
    ):
        await eventually(lambda: _troubled(client, "garden"))
        await eventually(lambda: _troubled(client, "holidays"))
        found = await channel(client, "holidays")
        await make(client, channels=["holidays"])
        (tmp_path / "picturs").mkdir()
        (tmp_path / "picturs" / "one.jpg").write_bytes(b"x")
        store = supervisor_of(app).store("playback")
        assert isinstance(store, LibraryService)
        # As if the delay had passed.
        turn = store._refresher._plan._turns["holidays"]
        turn.due_ms = 0
        store._refresher.wake()
        await eventually(lambda: _records(client, 1))
        cured = await channel(client, "holidays")

        (trouble,) = found["trouble"]
        assert (found["records"], found["folder"], trouble["code"]) == (0, True, "RefreshFailed")
        assert trouble["sentence"].endswith("is retried later: No such file or directory.")
        assert str(tmp_path) not in str(found)
        assert (cured["records"], cured["trouble"]) == (1, [])
        assert await _troubled(client, "garden")
    logged = [line for line in quiet_logs.getvalue().splitlines() if "folder_not_read" in line]
    for place in folders.values():
        assert any(place in line for line in logged)


@pytest.mark.req("PLAY-CACHE-9")
async def test_a_folder_with_a_damaged_cache_is_scanned_at_once(settings: Settings, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in ("one.jpg", "two.jpg", "three.jpg"):
        (pictures / name).write_bytes(b"x")
    async with (
        running(
            msgspec.structs.replace(settings, playback=PlaybackSettings(folders={"holidays": str(pictures)})), [STILL]
        ) as app,
        client_of(app) as client,
    ):
        await eventually(lambda: _holds(client, "holidays", 3))
        before = (await channel(client, "holidays"))["generation"]
        with (Path(settings.data) / "stores" / "playback" / "holidays.pch").open("r+b") as damaged:
            damaged.seek(4096)
            damaged.write(bytes(4096))
        await make(client, channels=["holidays"])

        await eventually(lambda: is_on(client, "hall"))

        assert (await channel(client, "holidays"))["generation"] == before + 1
        assert len(set(await shown(client, 3))) == 3
