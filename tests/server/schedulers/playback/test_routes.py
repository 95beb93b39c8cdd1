"""Commands and views of a player over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pendula.kernel.time import parse_utc
from pendula.server.schedulers.playback import routes
from pendula.server.security.identity import Role, TokenStore
from pendula.server.settings import Settings
from tests.server.living import JSON, LiveServer, StreamReader, client_of, code_of, running
from tests.server.screens import BASE, HALL, HOUR_MS, PAYLOAD, STILL, ask, fill, hang, make, records, shown, view

pytestmark = pytest.mark.anyio


# Life cycle


async def test_more_items_than_one_command_allows_are_refused(client: httpx.AsyncClient) -> None:
    await hang(client)

    refused = await client.post(f"{HALL}/commands", json={"type": "take", "n": routes.MOST_TAKEN + 1})

    assert (refused.status_code, code_of(refused)) == (422, "too_much_at_once")
    assert refused.json()["error"]["details"] == {"asked": routes.MOST_TAKEN + 1, "allowed": routes.MOST_TAKEN}


async def test_a_player_shows_its_first_item_as_soon_as_it_is_made(client: httpx.AsyncClient) -> None:
    await hang(client)

    now = await view(client, "now")

    assert (now["item"]["id"], now["item"]["channel"], now["item"]["origin"]) == (1, "a", "base")
    assert now["ends_at"] - now["started_at"] == now["item"]["dwell_ms"] == HOUR_MS
    assert parse_utc(now["ends_utc"]) - parse_utc(now["started_utc"]) == HOUR_MS * 1000
    assert now["clock"] >= now["t"]
    assert [player["name"] for player in (await client.get(BASE)).json()["players"]] == ["hall"]


async def test_a_missing_seed_is_drawn_once(client: httpx.AsyncClient) -> None:
    await make(client, channels=[], seed=None)

    seed = (await view(client, "stats"))["global_seed"]

    assert 0 <= seed < 2**64
    await client.post(f"{HALL}/close", headers=JSON)
    await client.post(f"{HALL}/open", headers=JSON)
    assert (await view(client, "stats"))["global_seed"] == seed


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"name": "channels"}, 422, "reserved_name"),
        ({"name": "A"}, 422, "invalid_name"),
        ({"name": "a\n"}, 422, "invalid_name"),
        ({"settings": {"exposure": {"manual_weights": {"a": [1]}}}}, 422, "input_refused"),
        ({"channels": ["nobody"]}, 422, "unknown_channel"),
        ({"channels": ["a", "a"]}, 422, "channel_taken"),
        ({"seed": -1}, 422, "invalid_parameter"),
        ({"settings": {"lookahead": 0}}, 422, "invalid_parameter"),
        ({"settings": {"exposure": {"manual_weights": {"a": "NaN"}}}}, 422, "invalid_weight"),
        ({"settings": {"lookahed": 3}}, 422, "document_refused"),
        ({"dwell_ms": 0}, 422, "invalid_parameter"),
    ],
)
async def test_an_invalid_player_is_refused_and_leaves_nothing(
    client: httpx.AsyncClient, changes: dict[str, Any], status: int, code: str
) -> None:
    await fill(client, "a", 1)

    response = await make(client, **{"channels": ["a"], **changes})

    assert (response.status_code, code_of(response)) == (status, code)
    assert "config" not in response.json()["error"]["details"]
    assert (await client.get(BASE)).json() == {"players": []}


async def test_a_second_player_of_the_same_name_is_refused(client: httpx.AsyncClient) -> None:
    await hang(client)

    again = await make(client)

    assert (again.status_code, code_of(again)) == (409, "engine_exists")


async def test_a_viewer_reads_but_cannot_skip_and_only_an_admin_removes(settings: Settings) -> None:
    secrets = {role: TokenStore(settings.data).new(f"the-{role}", role)[1] for role in Role}
    headers = {role: {"authorization": f"Bearer {secret}", **JSON} for role, secret in secrets.items()}
    async with running(settings, [STILL]) as app, client_of(app, headers=headers[Role.OPERATOR]) as client:
        await hang(client)

        looked = await client.get(f"{HALL}/now", headers={"authorization": headers[Role.VIEWER]["authorization"]})
        skipped = await client.post(f"{HALL}/next", headers=headers[Role.VIEWER])
        uploaded = await client.put(f"{BASE}/channels/a", json={"records": []}, headers=headers[Role.VIEWER])
        kept = [await client.delete(place) for place in (HALL, f"{BASE}/channels/a")]
        emptied = await client.delete(f"{BASE}/channels/a", headers=headers[Role.ADMIN])
        left = (await view(client, "now"))["exposure"]
        gone = [await client.delete(HALL, headers=headers[Role.ADMIN]) for _ in range(2)]

        assert looked.status_code == 200
        for refused in (skipped, uploaded, *kept):
            assert (refused.status_code, code_of(refused)) == (403, "role_too_low")
        assert [response.status_code for response in (emptied, *gone)] == [204, 204, 404]
        assert [(one["channel"], one["records"], one["weight"]) for one in left] == [("a", 0, 0), ("b", 3, 65536)]


# Commands


@pytest.mark.req("PLAY-HIST-2")
@pytest.mark.req("PLAY-HIST-3")
async def test_next_and_prev_walk_through_the_same_items(client: httpx.AsyncClient) -> None:
    await hang(client)

    forward = await shown(client, 3)
    back = [(await ask(client, "prev"))["answer"] for _ in range(4)]
    again = await shown(client, 4)

    assert forward == [11, 2, 12]
    assert [None if one is None else one["id"] for one in back] == [2, 11, 1, None]
    assert again == [11, 2, 12, 3]


@pytest.mark.req("PLAY-API-4")
async def test_peek_shows_the_next_items_and_changes_nothing(client: httpx.AsyncClient) -> None:
    await hang(client)
    before = (await view(client, "state"))["state"]["programme"]

    peeked = [item["id"] for item in (await view(client, "peek", n=3))["items"]]
    nothing = (await view(client, "peek", n=0))["items"]
    wrong = await client.get(f"{HALL}/peek", params={"n": -1})

    assert (await view(client, "state"))["state"]["programme"] == before
    assert (nothing, wrong.status_code) == ([], 422)
    assert await shown(client, 3) == peeked


async def test_settings_change_in_part_and_only_a_change_starts_an_epoch(client: httpx.AsyncClient) -> None:
    await hang(client)
    weights = {"exposure": {"mode": "MaE", "manual_weights": {"a": 0.5, "b": 1.5}}}

    async def change(**body: Any) -> Any:
        return (await client.patch(f"{HALL}/settings", json=body)).json()

    first = await change(**weights, lookahead=8)
    same = await change(**weights)
    slow = await change(dwell_ms=5000)
    refused = await client.patch(f"{HALL}/settings", json={"pick": {"r": 0}})
    now = await view(client, "now")

    assert [one["answer"]["epoch_id"] for one in (first, same, slow)] == [1, 1, 1]
    assert first["events"][0]["weights"] == {"a": 16384, "b": 49152}
    assert (refused.status_code, code_of(refused)) == (409, "invalid_parameter")
    assert (now["settings"]["lookahead"], now["settings"]["history"], now["dwell_ms"]) == (8, 32, 5000)
    assert [(channel["channel"], channel["target_ppm"]) for channel in now["exposure"]] == [
        ("a", 250_000),
        ("b", 750_000),
    ]


async def test_channels_are_followed_and_unfollowed_in_one_change(client: httpx.AsyncClient) -> None:
    await hang(client, channels=[])
    assert (await view(client, "now"))["item"] is None

    followed = await ask(client, "follow", channels=["b", "a"])
    unknown = await client.post(f"{HALL}/follow", json={"channels": ["x"]})
    left = await ask(client, "unfollow", channels=["b"])
    twice = await client.post(f"{HALL}/unfollow", json={"channels": ["b"]})

    assert (followed["answer"]["epoch_id"], left["answer"]["epoch_id"]) == (1, 2)
    assert (unknown.status_code, code_of(unknown)) == (422, "unknown_channel")
    assert (twice.status_code, code_of(twice)) == (409, "unknown_channel")
    now = await view(client, "now")
    assert [channel["channel"] for channel in now["exposure"]] == ["a"]
    assert now["settings"]["exposure"]["total_count"] == {"a": 4, "b": 3}


@pytest.mark.req("PLAY-NAE-3")
@pytest.mark.req("PLAY-NAE-10")
async def test_new_artwork_is_inserted_merged_rejected_and_shown(client: httpx.AsyncClient) -> None:
    await hang(client, settings={"lookahead": 1})

    results = [
        (await ask(client, "nae", id=900, ts=5, payload=PAYLOAD))["answer"]["result"],
        (await ask(client, "nae", id=900, ts=6))["answer"]["result"],
        (await ask(client, "nae", id=901, payload="AAAA"))["answer"]["result"],
        (await ask(client, "nae", id=902, payload=PAYLOAD))["answer"]["result"],
    ]
    pool = (await view(client, "now"))["pool"]
    seen = await shown(client, 4)
    await client.patch(f"{HALL}/settings", json={"nae": {"enabled": False}})

    assert results == ["INSERTED", "MERGED", "REJECTED", "INSERTED"]
    assert [(artwork["id"], artwork["priority_64"], artwork["ts"]) for artwork in pool] == [(900, 32, 6), (902, 32, 0)]
    assert pool[1]["payload"] == PAYLOAD
    assert {900, 902} & set(seen)
    assert (await ask(client, "nae", id=903))["answer"]["result"] == "DISABLED"


async def test_a_response_reports_the_result_of_the_command(client: httpx.AsyncClient) -> None:
    await hang(client, settings={"lookahead": 1})

    effects = [
        (await ask(client, what, **body))["effect"]
        for what, body in (
            ("nae", {"id": 900, "payload": PAYLOAD}),
            ("nae", {"id": 901, "payload": "AAAA"}),
            ("pause-channel", {"channel": "a"}),
            ("pause-channel", {"channel": "a"}),
            ("resume-channel", {"channel": "b"}),
            ("next", {}),
        )
    ]
    refused = await ask(client, "nae", id=901, payload="AAAA")

    assert effects == ["done", "refused", "done", "none", "none", "done"]
    assert refused["complaints"] == [{"code": "REJECTED", "message": "The record is invalid"}]


async def test_new_artwork_is_counted_separately_from_channels(client: httpx.AsyncClient) -> None:
    await hang(client, settings={"lookahead": 4})
    await ask(client, "nae", id=900, payload=PAYLOAD)

    seen = [(await view(client, "now"))["item"]["id"], *await shown(client, 12)]

    now = await view(client, "now")
    assert now["new_shown"] == seen.count(900) > 0
    assert sum(channel["shown"] for channel in now["exposure"]) == len(seen) - seen.count(900)


async def test_a_banned_item_disappears_at_once_and_returns_with_a_refresh(client: httpx.AsyncClient) -> None:
    await hang(client, channels=["b"])

    banned = await ask(client, "ban")
    without = await shown(client, 4)
    await fill(client, "b", 11, 12, 13, 14)
    after = await shown(client, 4)

    assert [event["type"] for event in banned["events"]] == ["banned", "epoch_began", "shown"]
    assert (await client.post(f"{HALL}/ban", json={"ordinal": 10**6})).status_code == 409
    assert 11 not in without
    assert sorted(after) == [11, 12, 13, 14]


async def test_a_paused_player_keeps_its_remaining_time(client: httpx.AsyncClient) -> None:
    await hang(client)

    await ask(client, "pause")
    paused = await view(client, "now")
    await ask(client, "resume")
    resumed = await view(client, "now")

    assert (paused["paused"], paused["ends_at"], paused["next_due"]) == (True, None, None)
    assert 0 < paused["left_ms"] <= HOUR_MS
    assert (resumed["paused"], resumed["left_ms"]) == (False, None)
    assert resumed["ends_at"] == resumed["t"] + paused["left_ms"]


async def test_a_reset_starts_a_new_epoch_with_its_reason(client: httpx.AsyncClient) -> None:
    await hang(client)

    done = await ask(client, "reset", reason="spring cleaning")

    reason = {"code": "asked_for", "subject": "spring cleaning"}
    assert done["events"][-1] | {"epoch_id": 1, "reason": reason} == done["events"][-1]
    assert (await view(client, "now"))["last_reset"] == "spring cleaning"


# Views


async def test_now_shows_lookahead_history_and_exposure(client: httpx.AsyncClient) -> None:
    await hang(client)
    await shown(client, 5)
    await ask(client, "prev")

    now = await view(client, "now")

    assert now["item"]["id"] == 3
    assert [one["id"] for one in now["before"]] == [12, 2, 11, 1]
    assert [item["id"] for item in now["coming"][:3]] == [13, 4, 11]
    assert [(channel["channel"], channel["shown"], channel["actual_ppm"]) for channel in now["exposure"]] == [
        ("a", 3, 500_000),
        ("b", 3, 500_000),
    ]
    assert now["exposure"][0] | {"weight": 32768, "records": 4, "banned": 0, "readable": True} == now["exposure"][0]
    assert (now["pool"], now["diagnostics"], now["broken"]) == ([], [], [])


async def test_now_and_why_work_for_any_past_record(client: httpx.AsyncClient) -> None:
    await hang(client)
    then = await ask(client, "next")
    before = await view(client, "now")
    reason = await view(client, "items/2")
    await ask(client, "reset", reason="over")

    after = await view(client, "now", at=then["n"])

    assert {**after, "clock": 0, "n": 0, "started_utc": "", "ends_utc": ""} == {
        **before,
        "clock": 0,
        "n": 0,
        "started_utc": "",
        "ends_utc": "",
    }
    assert abs(parse_utc(after["started_utc"]) - parse_utc(before["started_utc"])) < 10**6
    assert await view(client, "items/2", at=then["n"]) == reason
    assert (await client.get(f"{HALL}/now", params={"at": 10**6})).status_code == 422


async def test_every_item_explains_itself(client: httpx.AsyncClient) -> None:
    await hang(client)

    here = await view(client, "items/2")
    missing = await view(client, "items/5000")

    assert here["item"]["id"] == 11
    assert here["why"]["code"] == "turn_of_channel"
    codes = [reason["code"] for reason in here["why"]["because"]]
    assert codes == ["no_new_artwork", "largest_credit", "next_by_age"]
    assert here["why"]["because"][1]["facts"]["weights"] == {"a": 32768, "b": 32768}
    assert (missing["item"], missing["why"]["code"]) == (None, "unknown_item")


@pytest.mark.req("PLAY-API-8")
async def test_stats_count_by_origin_and_channel(client: httpx.AsyncClient) -> None:
    await hang(client, settings={"lookahead": 1})
    await shown(client, 5)

    stats = await view(client, "stats")

    assert stats["generated"]["channels"] == {"a": 3, "b": 3}
    assert not {"block_reads", "cache_hits"} & set(stats)  # blocks are read by the library
    assert stats["generated"]["origins"] == {"base": 6, "nae": 0, "nae_fallback": 0}


async def test_shown_items_are_streamed_as_time_advances(app: FastAPI, client: httpx.AsyncClient) -> None:
    await hang(client, channels=[])
    async with StreamReader(app, f"{HALL}/stream") as reader:
        await client.patch(f"{HALL}/settings", json={"dwell_ms": 30})
        await ask(client, "follow", channels=["a", "b"])

        heard = [json.loads(message["data"]) for message in await reader.messages(5)]

    assert heard[0]["type"] == "epoch_began"
    assert [(one["item"]["id"], one["cause"]) for one in heard[1:]] == [
        (1, "time"),
        (11, "time"),
        (2, "time"),
        (12, "time"),
    ]
    assert [one["ends_at"] for one in heard[1:4]] == [one["started_at"] for one in heard[2:5]]


# OpenAPI


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    place = str(tmp_path_factory.mktemp("screens") / "data")
    with LiveServer(Settings(port=0, data=place), [STILL]) as server:
        with server.client() as client:
            assert client.put(f"{BASE}/channels/hall", json={"records": records(1, 2, 3)}).status_code == 200
            made = client.post(BASE, json={"name": "hall", "channels": ["hall"], "dwell_ms": HOUR_MS})
            assert made.status_code == 201
        yield server


def test_every_generated_request_is_answered_as_documented(live: LiveServer) -> None:
    # Streams never end; the routes of every engine are tested with the tally.
    schema = schemathesis.openapi.from_url(f"{live.url}/openapi.json").include(path_regex="^/api/v1/playback")
    schema = schema.exclude(path_regex="/(stream|state|journal|why)$")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
    ]

    for operation in operations:
        # Real requests on a real socket, dozens of routes: a few each, and more of them with the long ones.
        @hypothesis_settings(
            max_examples=hypothesis_settings().max_examples // 33, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy())
        def answered_as_documented(case: "schemathesis.Case[Any]") -> None:
            for name in case.path_parameters or ():
                case.path_parameters[name] = 1 if name == "ordinal" else "hall"
            case.call_and_validate(checks=checks)

        answered_as_documented()
    assert len(operations) == 33


# Viewer controls


@pytest.mark.req("PLAY-USE-1")
async def test_an_artwork_is_pinned_and_comes_next(client: httpx.AsyncClient) -> None:
    await hang(client)

    pinned = await ask(client, "pin", id=77, ts=5, payload=PAYLOAD)
    coming = (await view(client, "now"))["coming"]
    refused = await client.post(f"{HALL}/pin", json={"id": 78, "payload": "AAAA"})

    assert pinned["answer"] == {"pinned": [77]}
    assert (coming[0]["id"], coming[0]["origin"], coming[0]["ordinal"]) == (77, "pinned", 0)
    assert (refused.status_code, code_of(refused)) == (409, "invalid_record")
    assert await shown(client, 3) == [77, 11, 2]
    assert (await view(client, "items/0"))["why"]["code"] == "pinned"


@pytest.mark.req("PLAY-USE-2")
async def test_a_channel_is_paused_and_resumed_without_a_new_epoch(client: httpx.AsyncClient) -> None:
    await hang(client)

    paused = await ask(client, "pause-channel", channel="a")
    while_it_rests = await shown(client, 3)
    exposure = (await view(client, "now"))["exposure"]
    unknown = await client.post(f"{HALL}/pause-channel", json={"channel": "x"})
    resumed = await ask(client, "resume-channel", channel="a")

    assert (paused["answer"], resumed["answer"]) == ({"paused_channels": ["a"]}, {"paused_channels": []})
    assert while_it_rests == [11, 12, 13]
    assert [(channel["channel"], channel["paused"], channel["weight"]) for channel in exposure] == [
        ("a", True, 0),
        ("b", False, 65536),
    ]
    assert (unknown.status_code, code_of(unknown)) == (409, "unknown_channel")
    assert 2 in await shown(client, 2)
    assert (await view(client, "now"))["epoch_id"] == 0


@pytest.mark.req("PLAY-USE-3")
async def test_an_artwork_is_banned_and_unbanned_by_its_id(client: httpx.AsyncClient) -> None:
    await hang(client)

    banned = await ask(client, "ban", id=2, for_ms=3_600_000)
    seen = await shown(client, 8)
    bans = (await view(client, "now"))["bans"]
    lifted = await ask(client, "lift", id=2)

    assert banned["answer"]["banned"] == [{"id": 2, "until": banned["events"][0]["until"]}]
    assert bans == banned["answer"]["banned"]
    assert 2 not in seen
    assert lifted["answer"] == {"banned": []}


@pytest.mark.req("PLAY-USE-5")
async def test_the_clock_of_a_player_is_set_and_applies_day_parts(client: httpx.AsyncClient) -> None:
    await hang(client)
    whole_day = {"name": "always", "start": "00:00", "end": "24:00", "weights": {"b": 1}}

    await client.patch(f"{HALL}/settings", json={"zone": "Europe/Berlin", "day_parts": [whole_day], "refresh": "keep"})

    now = await view(client, "now")
    assert (now["day_part"], [channel["weight"] for channel in now["exposure"]]) == ("always", [0, 65536])
    wrong = await client.patch(f"{HALL}/settings", json={"zone": "Europe/Berlln"})
    assert (wrong.status_code, code_of(wrong)) == (422, "unknown_zone")
    off = await client.patch(f"{HALL}/settings", json={"day_parts": [{**whole_day, "start": "25:00"}]})
    assert (off.status_code, code_of(off)) == (409, "invalid_parameter")


@pytest.mark.req("PLAY-USE-5")
async def test_a_new_player_starts_with_the_current_day_part(client: httpx.AsyncClient) -> None:
    await fill(client, "a", 1)
    await fill(client, "b", 11)
    parts = [{"name": "always", "start": "00:00", "end": "00:00", "weights": {"b": 1}}]

    await make(client, channels=["a", "b"], settings={"day_parts": parts})

    now = await view(client, "now")
    assert (now["day_part"], now["item"]["channel"]) == ("always", "b")
