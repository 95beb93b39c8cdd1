"""Engines of any scheduler are created, closed and removed by the same routes, below the prefix of their scheduler."""

import errno
from collections.abc import Sequence
from typing import Annotated, Any, Self
from unittest.mock import Mock

import httpx
import msgspec
import pytest
from fastapi import Query
from msgspec import Struct

from pendula.kernel.errors import InputRefused
from pendula.server.api.engines import InvalidName, ReservedName, check_name
from pendula.server.app import create_app
from pendula.server.runtime.scheduler_spec import Lifecycle, New, SchedulerSpec, Sentences
from pendula.server.security.identity import Role, TokenStore
from pendula.server.settings import Settings
from pendula.server.views import EngineSummary
from pendula.testing.tally import Add, Tally
from tests.server.living import client_of, code_of, running
from tests.server.tally_scheduler import SCHEDULER

pytestmark = pytest.mark.anyio
BASE = "/api/v1/simulator"


class Purse(EngineSummary, frozen=True):
    """A purse."""


class Purses(Struct, frozen=True):
    purses: list[Purse]


async def begin(name: str, seed: Annotated[int, Query()] = 1, add: int = 0) -> New:
    return New(name, {"seed": seed}, [Add(add)] if add else [])


PURSES = Lifecycle(
    noun="purse",
    plural="purses",
    begin=begin,
    takes={},
    summary=Purse,
    listing=Purses,
    sentences=Sentences(make="Make.", close="Close.", open="Open.", remove="Remove."),
)
COUNTING: SchedulerSpec = msgspec.structs.replace(SCHEDULER, lifecycle=PURSES, prefix=BASE, demo=None)


@pytest.fixture
def schedulers() -> Sequence[SchedulerSpec]:
    return (COUNTING,)


async def make(client: httpx.AsyncClient, **asked: Any) -> httpx.Response:
    return await client.post(BASE, params={"name": "red", **asked}, json={})


async def listed(client: httpx.AsyncClient) -> Any:
    return (await client.get(BASE)).json()


def purse(state: str, t: int | None = 0) -> dict[str, Any]:
    return {"name": "red", "state": state, "t": t, "broken": None}


async def test_a_new_engine_is_below_the_prefix_of_its_scheduler_with_all_engine_routes(
    client: httpx.AsyncClient,
) -> None:
    made = await make(client, add=5)

    assert (made.status_code, made.json()) == (201, purse("ready"))
    assert await listed(client) == {"purses": [purse("ready")]}
    assert (await client.get(f"{BASE}/red/state")).json()["state"]["total"] == 5
    assert (await client.get("/api/v1/tally/red/state")).status_code == 404


async def test_an_engine_is_closed_and_reopened_unchanged(client: httpx.AsyncClient) -> None:
    await make(client, add=5)

    closed = await client.post(f"{BASE}/red/close", json={})
    twice = await client.post(f"{BASE}/red/close", json={})
    unknown = await client.post(f"{BASE}/blue/close", json={})
    reopened = await client.post(f"{BASE}/red/open", json={})

    assert closed.json() == twice.json() == {"purses": [purse("closed", None)]}
    assert (unknown.status_code, code_of(unknown)) == (404, "not_found")
    assert reopened.json() == {"purses": [purse("ready")]}
    assert (await client.get(f"{BASE}/red/state")).json()["state"]["total"] == 5


async def test_a_closed_engine_stays_closed_over_restarts_until_it_is_opened(settings: Settings) -> None:
    async with running(settings, [COUNTING]) as app, client_of(app) as client:
        await make(client, add=5)
        await client.post(f"{BASE}/red/close", json={})
    async with running(settings, [COUNTING]) as app, client_of(app) as client:
        restarted = await listed(client)
        asked = await client.get(f"{BASE}/red/state")
        taken = await make(client)
        opened = (await client.post(f"{BASE}/red/open", json={})).json()
    async with running(settings, [COUNTING]) as app, client_of(app) as client:
        again = await listed(client)

    assert restarted == {"purses": [purse("closed", None)]}
    assert (asked.status_code, code_of(asked)) == (404, "not_found")
    assert asked.json()["error"]["message"] == "'red' of the scheduler tally is closed; open it first"
    assert (taken.status_code, code_of(taken)) == (409, "engine_exists")
    assert opened == again == {"purses": [purse("ready")]}


@pytest.mark.parametrize(("most", "shares"), [(64, [8] * 8 + [9, 10]), (2, [2, 2])])
async def test_new_engines_share_the_journal_bytes_of_their_scheduler(
    settings: Settings, most: int, shares: list[int]
) -> None:
    whole = 720_000_000
    given = msgspec.structs.replace(settings, limits={"journal_bytes": whole, "engines": most})
    async with running(given, [COUNTING]) as app, client_of(app) as client:
        supervisor, found = app.state.supervisor, []
        for number in range(len(shares)):
            assert (await make(client, name=f"p{number}")).status_code == 201
            found.append({one.driver.journal_bytes for one in supervisor.hosts()})
        # A closed engine keeps its journal and its share.
        await client.post(f"{BASE}/p0/close", json={})
        closed = {one.driver.journal_bytes for one in supervisor.hosts()}
        await supervisor.remove(COUNTING, "p0")
        removed = {one.driver.journal_bytes for one in supervisor.hosts()}

    assert found == [{whole // share} for share in shares]
    assert closed == found[-1]
    assert removed == found[-2]


async def test_a_journal_larger_than_its_new_share_is_pruned_and_continues(settings: Settings) -> None:
    given = msgspec.structs.replace(settings, limits={"journal_bytes": 80_000, "segment_bytes": 1_000, "engines": 1})
    async with running(given, [COUNTING]) as app, client_of(app) as client:
        await make(client, add=5)
        host = app.state.supervisor.host("tally", "red")
        for _ in range(100):
            assert (await client.post(f"{BASE}/red/commands", json={"type": "add", "amount": 1})).status_code == 200
        before = host.journal.total_bytes
        host.allow(before // 2)
        after = await client.post(f"{BASE}/red/commands", json={"type": "add", "amount": 1})

        assert after.status_code == 200, after.text
        assert host.journal.total_bytes < before // 2
        assert (await client.get(f"{BASE}/red/state")).json()["state"]["total"] == 106


async def test_closing_is_recorded_before_the_engine_closes(
    settings: Settings, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(client)
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("pendula.server.data_directory.replace", Mock(side_effect=full))

    response = await client.post(f"{BASE}/red/close", json={})

    assert response.status_code == 503
    assert "red cannot be marked closed: No space left" in response.json()["error"]["message"]
    assert await listed(client) == {"purses": [purse("ready")]}


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 403), (Role.OPERATOR, 403), (Role.ADMIN, 204)])
async def test_only_an_admin_removes_an_engine(settings: Settings, role: Role, status: int) -> None:
    _, secret = TokenStore(settings.data).new("somebody", role)
    _, admin = TokenStore(settings.data).new("admin", Role.ADMIN)
    async with running(settings, [COUNTING]) as app, client_of(app) as client:
        await client.post(BASE, params={"name": "red"}, json={}, headers={"authorization": f"Bearer {admin}"})
        headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}

        removed = await client.delete(f"{BASE}/red", headers=headers)

        left = (await client.get(BASE, headers=headers)).json()["purses"]
    assert (removed.status_code, len(left)) == (status, 0 if status == 204 else 1)


async def test_a_viewer_is_refused_before_the_request_is_read(settings: Settings) -> None:
    _, secret = TokenStore(settings.data).new("somebody", Role.VIEWER)
    async with running(settings, [COUNTING]) as app, client_of(app) as client:
        response = await client.post(BASE, json={}, headers={"authorization": f"Bearer {secret}"})

    assert (response.status_code, code_of(response)) == (403, "role_too_low")


async def test_a_name_invalid_in_a_path_is_refused_with_the_noun_of_the_scheduler(
    client: httpx.AsyncClient,
) -> None:
    response = await client.post(f"{BASE}/Red/close", json={})

    assert (response.status_code, code_of(response)) == (422, "invalid_request")
    assert [fault["name"] for fault in response.json()["error"]["details"]["faults"]] == ["purse"]


async def test_a_refused_configuration_is_not_repeated(settings: Settings) -> None:
    class Picky(Tally):
        @classmethod
        def create(cls, config: Any) -> Self:
            raise InputRefused("The seed is not liked", config=config)

    scheduler = msgspec.structs.replace(COUNTING, engine=Picky)
    async with running(settings, [scheduler]) as app, client_of(app) as client:
        response = await make(client)

    assert response.json()["error"] == {"code": "input_refused", "message": "The seed is not liked", "details": {}}


def test_the_create_route_documents_its_own_parameters(settings: Settings) -> None:
    paths = create_app(settings, [COUNTING]).openapi()["paths"]

    assert [one["name"] for one in paths[BASE]["post"]["parameters"]] == ["name", "seed", "add"]
    assert paths[BASE]["get"]["operationId"] == "tally_purses"
    assert {path for path in paths if path.startswith(f"{BASE}/{{purse}}")} == {
        f"{BASE}/{{purse}}",
        f"{BASE}/{{purse}}/close",
        f"{BASE}/{{purse}}/open",
    }


@pytest.mark.parametrize(("name", "refusal"), [("A", InvalidName), ("a\n", InvalidName), ("channels", ReservedName)])
def test_names_in_bodies_are_checked_with_a_readable_message(name: str, refusal: type[Exception]) -> None:
    with pytest.raises(refusal, match=r"name (of|for) a purse"):
        check_name(name, "purse", ["channels"])
