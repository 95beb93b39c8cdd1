"""The data directory is private to its owner, and foreign files in it are ignored."""

from pathlib import Path

import httpx
import pytest

from pendula.server.data_directory import DataDirectory
from pendula.server.errors import DataUnusable
from pendula.server.security.identity import Role
from pendula.server.settings import Settings
from tests.server.living import client_of, code_of, running, supervisor_of


def test_a_world_writable_directory_is_refused_with_the_remedy(tmp_path: Path) -> None:
    open_to_all = tmp_path / "data"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)

    with pytest.raises(DataUnusable, match="chmod o-w"):
        DataDirectory.lock(open_to_all)
    assert list(open_to_all.iterdir()) == []


def test_symlinks_and_invalid_names_are_no_engines(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    engines = tmp_path / "data" / "schedulers" / "actions"
    for name in ("main", "-rf", ".hidden"):
        (engines / name).mkdir(parents=True)
    (engines / "linked").symlink_to(elsewhere)

    with DataDirectory.lock(tmp_path / "data") as data:
        assert data.engines("actions") == ["main"]
        assert data.strangers("actions") == ["-rf", "linked"]


@pytest.mark.anyio
async def test_engine_names_are_shown_only_to_authenticated_callers(settings: Settings) -> None:
    async with running(settings) as app:
        _, secret = supervisor_of(app).tokens.new("reader", Role.VIEWER)
        async with client_of(app) as client:
            anonymous = (await client.get("/readyz")).json()
            reader = (await client.get("/readyz", headers={"authorization": f"Bearer {secret}"})).json()

    assert [check["name"] for check in anonymous["checks"]] == ["tokens", "tally"]
    assert [check["name"] for check in reader["checks"]] == ["tokens", "tally/main"]
    assert anonymous["status"] == reader["status"] == "ready"


@pytest.mark.anyio
async def test_an_unknown_parameter_is_refused_with_a_suggestion(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/v1/tally/main/journal", params={"strat": "3", "limit": "2"})

    assert (response.status_code, code_of(response)) == (422, "invalid_request")
    assert response.json()["error"]["details"]["faults"] == [
        {
            "place": "query",
            "name": "strat",
            "problem": "unknown parameter (did you mean start?); allowed are start, limit",
        }
    ]


@pytest.mark.anyio
async def test_the_page_accepts_any_query(client: httpx.AsyncClient) -> None:
    assert (await client.get("/", params={"scheduler": "fleet"})).status_code != 422
