"""Life cycle of worlds: created whole or not at all, closed, reopened, removed, recovered after a stop."""

import asyncio
import errno
import json
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from pendula.server import data_directory
from pendula.server.security.identity import Role, TokenStore
from pendula.server.settings import Settings
from tests.server.living import JSON, StreamReader, client_of, code_of, running
from tests.server.worlds import BASE, DOCUMENT, HOUSE, STILL, ask, gist, make, view

pytestmark = pytest.mark.anyio


async def test_a_world_is_created_from_a_file_with_its_submissions(client: httpx.AsyncClient) -> None:
    made = await make(client)

    assert (made.status_code, made.json()) == (201, {"name": "house", "events": []})
    assert (await client.get(BASE)).json() == {"worlds": [{"name": "house", "state": "ready", "t": 0, "broken": None}]}
    happened = await ask(client, "advance", to=600)
    assert gist(happened["events"]) == [
        ("start", "A1", 480),
        ("rejection", "A3", 490),
        ("end", "A1", 530),
        ("start", "A2", 530),
        ("end", "A2", 580),
    ]


async def test_a_world_of_definitions_alone_waits_for_its_first_submission(client: httpx.AsyncClient) -> None:
    config = {name: DOCUMENT[name] for name in ("epoch", "action_defs")}

    made = await client.post(BASE, params={"name": "empty"}, json=config)

    assert made.status_code == 201
    assert (await client.get(f"{BASE}/empty/now")).json()["next_due"] is None


async def test_instances_rejected_at_once_are_in_the_create_response(client: httpx.AsyncClient) -> None:
    submissions = [*DOCUMENT["actions_submitted"], {"id": "A1", "actor": "eve", "verb": "repair", "t": 5}]

    made = await make(client, actions_submitted=submissions)

    assert [(event["action_id"], event["code"]) for event in made.json()["events"]] == [("A1", "DuplicateActionId")]


async def test_a_second_world_of_the_same_name_is_refused(client: httpx.AsyncClient) -> None:
    await make(client)

    again = await make(client)

    assert (again.status_code, code_of(again)) == (409, "engine_exists")


async def test_of_concurrent_creates_of_one_world_one_succeeds(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(make(client) for _ in range(5)))

    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]


@pytest.mark.parametrize("name", ["", "A", "a b", "..", "a/b", "x" * 65, "ä", "a\n"])
async def test_invalid_names_are_refused(client: httpx.AsyncClient, name: str) -> None:
    response = await make(client, name)

    assert (response.status_code, code_of(response)) == (422, "invalid_request")


async def test_all_faults_of_a_document_are_reported_at_once_with_their_places(client: httpx.AsyncClient) -> None:
    body = '{"epoch": {"index": -1, "start_at": "2025"},\n "action_defs": [],\n "resouces": {},\n "options": {"pc": 3}}'

    response = await client.post(BASE, params={"name": "house"}, content=body, headers=JSON)

    assert (response.status_code, code_of(response)) == (422, "document_refused")
    faults = {(fault["path"], fault["line"]) for fault in response.json()["error"]["details"]["faults"]}
    assert {("$.epoch.index", 1), ("$.action_defs", 2), ("$.resouces", 3), ("$.options.pc", 4)} <= faults
    assert (await client.get(BASE)).json() == {"worlds": []}


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ({"epoch": {**DOCUMENT["epoch"], "end_at": "2025-07-01T23:59:00"}}, "InvalidEpoch"),
        ({"carry": {"format": 7}}, "InvalidCarryOver"),
    ],
)
async def test_an_invalid_world_is_refused_with_the_code_of_the_engine(
    client: httpx.AsyncClient, settings: Settings, part: dict[str, Any], code: str
) -> None:
    response = await make(client, **part)

    assert (response.status_code, code_of(response)) == (422, code)
    assert not (Path(settings.data) / "schedulers" / "actions" / "house").exists()


async def test_the_number_of_worlds_is_bounded(settings: Settings) -> None:
    few = msgspec.structs.replace(settings, limits={"engines": 2})
    async with running(few, [STILL]) as app, client_of(app) as client:
        made = [await make(client, name) for name in ("one", "two", "three")]
        await client.post(f"{BASE}/one/close", headers=JSON)
        closed_ones_count = await make(client, "three")

    assert [answer.status_code for answer in made] == [201, 201, 409]
    assert code_of(made[-1]) == code_of(closed_ones_count) == "too_many_engines"
    assert made[-1].json()["error"]["details"] == {"limit": "engines", "allowed": 2}


async def test_a_closed_world_is_reopened_unchanged(client: httpx.AsyncClient) -> None:
    await make(client)
    await ask(client, "advance", to=500)
    before = await view(client, "state")

    closed = await client.post(f"{HOUSE}/close", headers=JSON)
    missing = await client.get(f"{HOUSE}/now")
    reopened = await client.post(f"{HOUSE}/open", headers=JSON)

    assert closed.json()["worlds"] == [{"name": "house", "state": "closed", "t": None, "broken": None}]
    assert (missing.status_code, code_of(missing)) == (404, "not_found")
    assert reopened.json()["worlds"] == [{"name": "house", "state": "ready", "t": 500, "broken": None}]
    assert (await view(client, "state"))["state"] == before["state"]
    assert (await client.get("/readyz")).status_code == 200


async def test_a_world_survives_a_restart_of_the_server(settings: Settings) -> None:
    async with running(settings, [STILL]) as app, client_of(app) as client:
        await make(client)
        await ask(client, "advance", to=500)

    async with running(settings, [STILL]) as app, client_of(app) as client:
        rest = await ask(client, "advance", to=1440)

    assert gist(rest["events"]) == [("end", "A1", 530), ("start", "A2", 530), ("end", "A2", 580)]


async def test_half_created_and_half_removed_worlds_are_cleaned_up(settings: Settings) -> None:
    folder = Path(settings.data) / "schedulers" / "actions"
    for leftover in (data_directory.DRAFT, data_directory.REMOVED):
        (folder / f"house{leftover}").mkdir(parents=True)
        (folder / f"house{leftover}" / "00000000.journal").write_bytes(b"half")

    async with running(settings, [STILL]) as app, client_of(app) as client:
        listed = (await client.get(BASE)).json()
        made = await make(client)

    assert listed == {"worlds": []}
    assert made.status_code == 201
    assert [entry.name for entry in folder.iterdir()] == ["house"]


async def test_a_failed_create_or_remove_of_a_world_is_undone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    headers = {"authorization": f"Bearer {TokenStore(settings.data).new('head', Role.ADMIN)[1]}", **JSON}
    async with running(settings, [STILL]) as app, client_of(app, headers=headers) as client:
        with monkeypatch.context() as broken:
            broken.setattr(data_directory, "_sync", failing)
            not_made = await make(client)
        listed = (await client.get(BASE)).json()
        made = await make(client)
        await client.post(f"{HOUSE}/close")
        with monkeypatch.context() as broken:
            broken.setattr(data_directory, "_sync", failing)
            not_removed = await client.delete(HOUSE)
        opened = await client.post(f"{HOUSE}/open")

    assert (not_made.status_code, not_removed.status_code) == (503, 503)
    assert listed == {"worlds": []}
    assert made.status_code == 201
    assert opened.json()["worlds"][0]["state"] == "ready"


async def test_only_an_admin_removes_a_world(settings: Settings) -> None:
    secrets = {role: TokenStore(settings.data).new(f"the-{role}", role)[1] for role in Role}
    headers = {role: {"authorization": f"Bearer {secret}", **JSON} for role, secret in secrets.items()}
    async with running(settings, [STILL]) as app, client_of(app, headers=headers[Role.OPERATOR]) as client:
        await make(client)
        await client.post(f"{HOUSE}/close")

        refused = await client.delete(HOUSE)
        removed = await client.delete(HOUSE, headers=headers[Role.ADMIN])
        again = await client.delete(HOUSE, headers=headers[Role.ADMIN])

        assert (refused.status_code, code_of(refused)) == (403, "role_too_low")
        assert removed.status_code == 204
        assert (again.status_code, code_of(again)) == (404, "not_found")
        assert (await client.get(BASE)).json() == {"worlds": []}
        assert (await make(client)).status_code == 201
        assert (await client.get(f"{HOUSE}/now")).json()["t"] == 0


async def test_a_stream_ends_when_its_world_is_closed(app: FastAPI, client: httpx.AsyncClient) -> None:
    await make(client)
    async with StreamReader(app, f"{HOUSE}/stream") as reader:
        await ask(client, "advance", to=480)
        (message,) = await reader.messages(1)

        await client.post(f"{HOUSE}/close", headers=JSON)

        assert json.loads(message["data"])["action_id"] == "A1"
        assert await reader.ended() == b""
    assert "pendula_engine_broken{" not in (await client.get("/metrics")).text
