"""Uploads of channels over HTTP: merged by id, bounded, refused with the place of the fault."""

from typing import Any

import httpx
import pytest

from tests.server.living import JSON, code_of
from tests.server.screens import BASE, fill, records

pytestmark = pytest.mark.anyio


@pytest.mark.req("PLAY-CACHE-8")
async def test_an_upload_is_merged_by_id_and_the_same_again_changes_nothing(client: httpx.AsyncClient) -> None:
    first = await fill(client, "a", 1, 2)
    again = await fill(client, "a", 1, 2)
    more = await fill(client, "a", 3)
    all_of_it = await fill(client, "a", 3, complete=True)

    assert [one["written"] for one in (first, again, more, all_of_it)] == [True, False, True, True]
    assert [one["channel"]["records"] for one in (first, again, more, all_of_it)] == [2, 2, 3, 1]
    generations = [one["channel"]["generation"] for one in (first, again, more, all_of_it)]
    assert generations == [generations[0], generations[0], generations[0] + 1, generations[0] + 2]
    assert [channel["name"] for channel in (await client.get(f"{BASE}/channels")).json()["channels"]] == ["a"]


async def test_an_upload_keeps_as_many_records_as_the_channel_kept_before(client: httpx.AsyncClient) -> None:
    many = await fill(client, "a", *range(1, 3001), k=8192)
    more = await fill(client, "a", 9000)
    fewer = await fill(client, "a", 9001, k=8)
    first = await fill(client, "b", *range(1, 1100))

    assert [one["channel"]["records"] for one in (many, more, fewer, first)] == [3000, 3001, 8, 1024]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"id": 2**64, "ts": 0}, "id"),
        ({"id": 1, "ts": 2**63}, "ts"),
        ({"id": 1, "ts": 0, "kind": 256}, "kind"),
        ({"id": 1, "ts": 0, "payload": "AAAA"}, "payload"),
        ({"id": 1, "ts": 0, "storage_key": "?"}, "storage_key"),
    ],
)
async def test_an_invalid_record_is_refused_with_its_place(
    client: httpx.AsyncClient, record: dict[str, Any], field: str
) -> None:
    response = await client.put(f"{BASE}/channels/a", json={"records": [*records(7), record]})

    assert (response.status_code, code_of(response)) == (422, "invalid_record")
    assert response.json()["error"]["details"] | {"place": 1, "field": field} == response.json()["error"]["details"]
    assert (await client.get(f"{BASE}/channels")).json() == {"channels": []}


async def test_missing_channels_are_reported(client: httpx.AsyncClient) -> None:
    for call in (client.get(f"{BASE}/channels/x"), client.post(f"{BASE}/channels/x/refresh", headers=JSON)):
        response = await call

        assert (response.status_code, code_of(response)) == (404, "not_found")
    named = await client.put(f"{BASE}/channels/-x", json={"records": []})
    assert (named.status_code, code_of(named)) == (422, "invalid_request")
