"""Commands and views of a world over HTTP."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
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

from pendula.actions import Advance, Logs, Submit, World, run_document
from pendula.actions.runs.batch import config_of
from pendula.server.schedulers.actions import routes
from pendula.server.settings import Settings
from tests.server.living import LiveServer, client_of, code_of, running, supervisor_of
from tests.server.worlds import BASE, DOCUMENT, HOUSE, STILL, ask, gist, make, view

pytestmark = pytest.mark.anyio


# Commands


async def test_submissions_without_a_time_are_for_the_present_minute_and_one_command(client: httpx.AsyncClient) -> None:
    await make(client, actions_submitted=[])
    await ask(client, "advance", to=100)

    taken = await ask(
        client,
        "submit",
        actions=[{"id": "B1", "actor": "ann", "verb": "repair"}, {"id": "B2", "actor": "bob", "verb": 7}, 5],
    )
    started = await ask(client, "advance", by=1)

    assert taken["answer"] == {"taken": 1}
    assert [(event["action_id"], event["code"]) for event in taken["events"]] == [
        ("B2", "InvalidAction"),
        (None, "InvalidAction"),
    ]
    assert gist(started["events"]) == [("start", "B1", 100)]
    assert "late" not in started["events"][0]["meta"]
    inputs = [record for record in (await view(client, "journal"))["records"] if record["kind"] == "input"]
    assert len(inputs) == 3


@pytest.mark.parametrize("way", ["advance", "commands"])
async def test_a_step_that_is_too_long_is_refused_before_it_is_computed(client: httpx.AsyncClient, way: str) -> None:
    await make(client, actions_submitted=[])
    named = {"type": "advance"} if way == "commands" else {}

    refused = await client.post(f"{HOUSE}/{way}", json={**named, "to": 10_000_000})
    after = await view(client, "state")
    allowed = await client.post(f"{HOUSE}/{way}", json={**named, "to": routes.MOST_MINUTES})

    assert (refused.status_code, code_of(refused)) == (422, "too_much_at_once")
    assert refused.json()["error"]["details"] == {
        "asked": 10_000_000,
        "allowed": routes.MOST_MINUTES,
        "next_to": routes.MOST_MINUTES,
    }
    # Neither the state nor the journal has it.
    assert (after["n"], after["t"]) == (-1, 0)
    assert allowed.status_code == 200


async def test_an_interrupted_action_is_resumed(client: httpx.AsyncClient) -> None:
    await make(client, actions_submitted=[{"id": "L", "actor": "ann", "verb": "write", "t": 0}])
    await ask(client, "advance", to=20)

    await ask(client, "interrupt", interrupts=[{"target": "L", "priority": 3, "source": "a knock"}])
    broken = await ask(client, "advance", by=10)
    reason = (await client.post(f"{HOUSE}/why", json={"question": {"action": "L"}})).json()
    await ask(client, "resume", actions=["L"], t=40)
    resumed = await ask(client, "advance", to=100)

    assert gist(broken["events"]) == [("interrupt", "L", 20)]
    assert broken["events"][0]["meta"] | {"by": "a knock", "d_rem": 40} == broken["events"][0]["meta"]
    assert reason["code"] == "suspended"
    assert gist(resumed["events"]) == [("start", "L", 40), ("end", "L", 80)]


@pytest.mark.req("ACT-USE-5")
@pytest.mark.parametrize(
    ("what", "body", "effect", "codes"),
    [
        ("submit", {"actions": [{"id": "B", "actor": "ann", "verb": "repair"}]}, "accepted", []),
        ("submit", {"actions": [{"id": "B", "actor": "ann", "verb": 7}]}, "refused", ["InvalidAction"]),
        ("submit", {"actions": [{"id": "B", "actor": "ann", "verb": "repair"}, 5]}, "accepted", ["InvalidAction"]),
        ("submit", {"actions": []}, "none", []),
        ("interrupt", {"interrupts": [{"target": "A1", "priority": 9}]}, "accepted", []),
        ("interrupt", {"interrupts": [{"target": "A1"}]}, "refused", ["InvalidInterrupt"]),
        ("cancel", {"actions": ["A1", "A9"]}, "accepted", []),
        ("advance", {"by": 1}, "done", []),
    ],
)
async def test_a_response_reports_the_result_of_the_command(
    client: httpx.AsyncClient, what: str, body: dict[str, Any], effect: str, codes: list[str]
) -> None:
    await make(client)
    await ask(client, "advance", to=481)

    answer = await ask(client, what, **body)

    assert (answer["effect"], [one["code"] for one in answer["complaints"]]) == (effect, codes)
    assert all(one["message"] for one in answer["complaints"])


async def test_a_submission_without_a_time_sent_as_a_command_is_refused_with_its_reason(
    client: httpx.AsyncClient,
) -> None:
    await make(client)

    answer = await ask(client, "commands", type="submit", actions=[{"id": "B", "actor": "ann", "verb": "repair"}])

    assert answer["effect"] == "refused"
    (complaint,) = answer["complaints"]
    assert complaint == {"code": answer["events"][0]["code"], "message": answer["events"][0]["message"]}


async def test_what_if_estimates_a_start_and_changes_nothing(client: httpx.AsyncClient) -> None:
    await make(client)
    await ask(client, "advance", to=490)
    before = await view(client, "now")

    supposed = await ask(client, "what-if", action={"actor": "cy", "verb": "repair"})
    later = await ask(client, "what-if", action={"id": "L", "actor": "cy", "verb": "repair", "t": 700})

    # A1 has the workshop until 08:50, A2 waits for it.
    assert (supposed["start"], supposed["end"], supposed["start_at"]) == (580, 630, "2025-07-01T09:40:00")
    assert (later["action_id"], later["start"], later["end_at"]) == ("L", 700, "2025-07-01T12:30:00")
    assert supposed["code"] is supposed["why"] is None
    assert await view(client, "now") == before


@pytest.mark.req("ACT-USE-5")
@pytest.mark.parametrize(
    ("action", "code"),
    [
        ({"actor": "cy", "verb": "fly"}, "UnknownVerb"),
        ({"id": "A1", "actor": "cy", "verb": "repair"}, "DuplicateActionId"),
        ({"id": 5, "actor": "cy", "verb": "repair"}, "InvalidAction"),
        (5, "InvalidAction"),
        ({"actor": "cy", "verb": "repair", "submitted_at": "noon"}, "InvalidTimestamp"),
    ],
)
async def test_what_if_explains_a_rejection(client: httpx.AsyncClient, action: Any, code: str) -> None:
    await make(client)

    supposed = await ask(client, "what-if", action=action)

    assert (supposed["code"], supposed["start"]) == (code, None)
    assert supposed["message"]


@pytest.mark.req("ACT-USE-5")
async def test_what_if_names_what_a_submission_would_never_get(client: httpx.AsyncClient) -> None:
    await make(client)
    await ask(client, "advance", to=490)

    supposed = await ask(client, "what-if", action={"actor": "cy", "verb": "repair"}, until=500)

    assert (supposed["start"], supposed["code"]) == (None, None)
    assert supposed["why"]["code"] == "waits_for_locks"
    assert (await client.post(f"{HOUSE}/what-if", json={"unknown": {}})).status_code == 422


async def test_cancelled_actions_end_and_unknown_ones_are_diagnosed(client: httpx.AsyncClient) -> None:
    await make(client)
    await ask(client, "advance", to=489)

    await ask(client, "cancel", actions=["A2", "nobody"])
    came = await ask(client, "advance", to=600)

    assert [(event["type"], event["action_id"]) for event in came["events"]] == [
        ("diagnostic", "nobody"),
        ("rejection", "A3"),
        ("end", "A1"),
    ]
    assert came["events"][0]["code"] == "NotCancellable"


async def test_malformed_requests_are_diagnostics_with_the_codes_of_the_engine(client: httpx.AsyncClient) -> None:
    await make(client)

    interrupts = await ask(client, "interrupt", interrupts=[{"target": "A1"}, 3])
    commands = await ask(client, "cancel", actions=["A1"], at="yesterday")

    assert [event["code"] for event in interrupts["events"]] == ["InvalidInterrupt", "InvalidInterrupt"]
    assert [event["code"] for event in commands["events"]] == ["InvalidCommand"]


async def test_time_advances_to_the_next_due_event_and_never_back(client: httpx.AsyncClient) -> None:
    await make(client)

    steps = [(await ask(client, "advance"))["answer"]["now"] for _ in range(3)]
    back = await client.post(f"{HOUSE}/advance", json={"to": 3})

    assert steps == [480, 485, 490]
    assert (back.status_code, code_of(back)) == (409, "time_goes_forward")


async def test_an_invalid_body_is_refused_with_its_fault(client: httpx.AsyncClient) -> None:
    await make(client)

    for what, body in (("submit", {"action": []}), ("advance", {"to": -1}), ("cancel", {"actions": [1]})):
        response = await client.post(f"{HOUSE}/{what}", json=body)

        assert (response.status_code, code_of(response)) == (422, "document_refused"), what


# Views


async def test_now_shows_running_actions_and_what_each_wait_is_for(client: httpx.AsyncClient) -> None:
    await make(client)
    await ask(client, "advance", to=489)

    now = await view(client, "now")

    assert (now["t"], now["at"], now["next_due"]) == (489, "2025-07-01T08:09:00", 490)
    assert now["counts"] == {"running": 1, "waiting": 1, "held": 0, "suspended": 0, "coming": 1, "locks": 1}
    running_one, waiting_one = now["actions"]
    assert (running_one["id"], running_one["stage"], running_one["since"], running_one["until"]) == (
        "A1",
        "running",
        480,
        530,
    )
    assert (waiting_one["id"], waiting_one["stage"], waiting_one["since"]) == ("A2", "waiting", 485)
    assert waiting_one["why"]["sentence"] == "A2 waits for workshop, held by A1 until 2025-07-01 08:50."
    assert now["locks"] == [
        {
            "name": "workshop",
            "held_by": "A1",
            "until": 530,
            "queue": ["A2"],
            "waiting": 1,
            "capacity": 1,
            "holders": ["A1"],
        }
    ]
    assert now["resources"] == [{"name": "parts", "available": 1, "reserved": 2, "consumed": 0, "produced": 0}]
    assert [(item["kind"], item["action_id"], item["t"]) for item in now["coming"]] == [("submit", "A3", 490)]
    assert now["epoch"] | {"index": 0, "slot": 8, "starts": 0, "ends": 1440} == now["epoch"]


async def test_concurrent_readers_of_a_busy_world_share_one_response(
    app: FastAPI, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(client)
    host = supervisor_of(app).host("actions", "house")
    asked: list[Any] = []
    go_on = threading.Event()
    look = host.look

    async def noted(question: Any) -> bytes:
        asked.append(question)
        return await look(question)

    monkeypatch.setattr(host, "look", noted)
    working = asyncio.create_task(host.ask(lambda _: go_on.wait(120)))
    looks = [asyncio.create_task(client.get(f"{HOUSE}/now")) for _ in range(20)]
    async with asyncio.timeout(120):
        while len(asked) < 20:
            await asyncio.sleep(0.001)
    shared = len(host._looks)
    go_on.set()
    answers = await asyncio.gather(*looks)
    await working

    assert shared == 1
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1


async def test_a_running_action_is_timed_from_its_start_not_its_admission(client: httpx.AsyncClient) -> None:
    await make(client)
    await ask(client, "advance", to=540)

    (second,) = (await view(client, "now"))["actions"]

    assert (second["id"], second["since"], second["until"], second["remaining"]) == ("A2", 530, 580, 40)


async def test_now_works_for_any_past_record(client: httpx.AsyncClient) -> None:
    await make(client)
    then = await ask(client, "advance", to=489)
    before = await view(client, "now")
    await ask(client, "advance", to=1000)

    after = await view(client, "now", at=then["n"])

    assert {**after, "n": before["n"]} == before
    assert (await client.get(f"{HOUSE}/now", params={"at": 10**6})).status_code == 422


async def test_events_are_paged_and_filtered_by_type(client: httpx.AsyncClient) -> None:
    await make(client)
    await ask(client, "advance", to=500)
    end = await ask(client, "advance", to=1000)

    first = await view(client, "events", limit=2)
    rest = await view(client, "events", after=first["next"])
    ends = await view(client, "events", type=["end", "rejection"])
    pc = await view(client, "events", pc=True)
    early = await view(client, "events", upto=end["n"] - 1)

    assert gist([event["event"] for event in first["events"]]) == [("start", "A1", 480), ("rejection", "A3", 490)]
    assert (first["more"], rest["more"], first["gap"]) == (True, False, None)
    assert [event["event"]["action_id"] for event in rest["events"]] == ["A1", "A2", "A2"]
    assert gist([event["event"] for event in ends["events"]]) == [
        ("rejection", "A3", 490),
        ("end", "A1", 530),
        ("end", "A2", 580),
    ]
    assert [event["event"]["action_id"] for event in pc["events"]] == ["A1", "A1"]
    assert early["events"] == first["events"]
    late = await client.get(f"{HOUSE}/events", params={"after": "999.0"})
    assert (late.status_code, code_of(late)) == (422, "unknown_event_id")


@pytest.mark.req("ACT-LOG-1")
@pytest.mark.req("ACT-LOG-2")
async def test_the_logs_are_those_of_a_run_of_the_same_file(client: httpx.AsyncClient) -> None:
    night = {"id": "N", "actor": "ann", "verb": "watch", "t": 1400, "knowledge": []}
    await make(client, actions_submitted=[*DOCUMENT["actions_submitted"], night])
    for minute in (500, 1440, 2880):
        await ask(client, "advance", to=minute)
    expected = run_document({**DOCUMENT, "actions_submitted": [*DOCUMENT["actions_submitted"], night], "epochs": 2})

    world = (await client.get(f"{HOUSE}/world_log")).text.splitlines()
    chunks = [(await client.get(f"{HOUSE}/pc_log", params={"epoch": epoch})).text.splitlines() for epoch in (0, 1)]
    rest = (await client.get(f"{HOUSE}/world_log", params={"after": 1, "limit": 2})).text.splitlines()

    events = [event for epoch in expected.epochs for event in epoch.events]
    assert [json.loads(line)["seq"] for line in world] == [event.seq for event in events] == list(range(6))
    assert rest == world[2:4]
    assert [json.loads(line) for line in chunks[1]] == [
        {"epoch": 1, "start_at": "2025-07-02T00:00:00", "carried_in": [{"action_id": "N", "remaining": 440}]},
        json.loads(world[5]),
    ]
    assert chunks[0][1:] == [line for line in world if json.loads(line)["pc"] and json.loads(line)["epoch"] == 0]
    missing = await client.get(f"{HOUSE}/pc_log", params={"epoch": 2})
    assert (missing.status_code, code_of(missing)) == (404, "not_found")


@pytest.mark.req("ACT-FILE-1")
async def test_a_world_and_its_submissions_are_accepted_as_yaml(client: httpx.AsyncClient) -> None:
    yaml = {"content-type": "application/yaml; charset=utf-8"}
    text = "action_defs: {nap: {base_duration_min: 5, effort: medium, interruptible: true}}\n"
    first = "actions_submitted: [{id: A, actor: ann, verb: nap, submitted_at: 2025-07-01T08:00:00}]\n"

    made = await client.post(BASE, params={"name": "house"}, content=text + first, headers=yaml)
    more = "actions: [{id: B, actor: ann, verb: nap, submitted_at: 2025-07-01T09:00:00}]"
    taken = await client.post(f"{HOUSE}/submit", content=more, headers=yaml)
    events = (await ask(client, "advance", to=600))["events"]

    assert (made.status_code, taken.json()["answer"]) == (201, {"taken": 1})
    assert gist(events) == [("start", "A", 480), ("end", "A", 485), ("start", "B", 540), ("end", "B", 545)]


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (HOUSE + "/advance", "to: 5", 415, "wrong_content_type"),
        (HOUSE + "/submit", "actions: [", 422, "document_refused"),
        (HOUSE + "/submit", "[]", 422, "document_refused"),
    ],
)
async def test_invalid_yaml_and_yaml_on_other_routes_are_refused(
    client: httpx.AsyncClient, path: str, body: str, status: int, code: str
) -> None:
    await make(client)

    answer = await client.post(path, content=body, headers={"content-type": "application/yaml"})

    assert (answer.status_code, code_of(answer)) == (status, code)


@pytest.mark.req("ACT-LOCK-8")
async def test_an_uninterruptible_action_is_cancelled_by_force(client: httpx.AsyncClient) -> None:
    night = {"id": "N", "actor": "ann", "verb": "watch", "t": 0, "knowledge": []}
    await make(client, actions_submitted=[night])
    await ask(client, "advance", to=10)

    await ask(client, "cancel", actions=["N"])
    refused = (await ask(client, "advance", by=1))["events"]
    await ask(client, "cancel", actions=["N"], force=True)
    ended = (await ask(client, "advance", by=1))["events"]

    assert [event["code"] for event in refused] == ["NotInterruptible"]
    assert [(event["type"], event["meta"]["forced"]) for event in ended] == [("end", True)]


@pytest.mark.req("ACT-LOG-2")
async def test_a_closed_chunk_never_changes(client: httpx.AsyncClient) -> None:
    await make(client)
    await ask(client, "advance", to=1441)
    before = (await client.get(f"{HOUSE}/pc_log", params={"epoch": 0})).content

    await ask(client, "submit", actions=[{"id": "late", "actor": "ann", "verb": "repair"}])
    await ask(client, "advance", to=4000)

    assert (await client.get(f"{HOUSE}/pc_log", params={"epoch": 0})).content == before


@pytest.mark.req("ACT-CARRY-4")
async def test_the_carry_of_an_epoch_starts_another_world(client: httpx.AsyncClient) -> None:
    await make(client, actions_submitted=[{"id": "N", "actor": "ann", "verb": "watch", "t": 1400, "knowledge": []}])
    early = await client.get(f"{HOUSE}/carry")
    end = await ask(client, "advance", to=1440)
    carry = await view(client, "carry")
    await ask(client, "advance", to=1500)

    assert (early.status_code, code_of(early)) == (409, "not_at_epoch_end")
    assert await view(client, "carry", at=end["n"]) == carry
    assert [one["remaining"] for one in carry["running"]] == [440]
    epoch = {"index": 1, "start_at": "2025-07-02T00:00:00", "end_at": "2025-07-03T00:00:00"}
    made = await make(client, "tomorrow", epoch=epoch, carry=carry, actions_submitted=[])
    assert made.status_code == 201
    came = await client.post(f"{BASE}/tomorrow/advance", json={})
    assert gist(came.json()["events"]) == [("end", "N", 440)]


async def test_a_pruned_journal_serves_only_whole_chunks(settings: Settings) -> None:
    tight = msgspec.structs.replace(
        settings, limits={"journal_bytes": 24_000, "engines": 1, "segment_bytes": 2_000, "snapshot_every": 8}
    )
    whole = World.create(config_of(DOCUMENT))
    logs = Logs(whole.header())
    async with running(tight, [STILL]) as app, client_of(app) as client:
        await make(client, actions_submitted=[])
        for number in range(50):
            submission = {"id": f"W{number}", "actor": "ann", "verb": "write", "t": number * 361}
            await ask(client, "submit", actions=[submission])
            await ask(client, "advance", by=361)
            logs.feed(whole.apply(Submit((submission,))).events)
            logs.feed(whole.apply(Advance((number + 1) * 361)).events)

        events = await view(client, "events", limit=1)
        lost = await client.get(f"{HOUSE}/pc_log", params={"epoch": 0})
        first, last = (lost.json()["error"]["details"][name] for name in ("first", "last"))
        kept = [(await client.get(f"{HOUSE}/pc_log", params={"epoch": one})).content for one in range(first, last + 1)]

        assert (events["gap"]["missed"], lost.status_code, code_of(lost)) == (None, 404, "not_found")
        assert 0 < first <= last == 50 * 361 // 1440
        assert kept == [b"".join(line + b"\n" for line in chunk) for chunk in logs.chunks[first:]]
        assert (await client.get(f"{HOUSE}/pc_log")).content == kept[-1]


# OpenAPI


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    place = str(tmp_path_factory.mktemp("worlds") / "data")
    with LiveServer(Settings(port=0, data=place), [STILL]) as server:
        with server.client() as client:
            assert client.post(BASE, params={"name": "house"}, json=DOCUMENT).status_code == 201
        yield server


def test_every_generated_request_is_answered_as_documented(live: LiveServer) -> None:
    # Streams never end; their own tests read them.
    schema = schemathesis.openapi.from_url(f"{live.url}/openapi.json").include(path_regex="^/api/v1/actions")
    schema = schema.exclude(path_regex="/stream$")
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
                case.path_parameters[name] = "house"
            case.call_and_validate(checks=checks)

        answered_as_documented()
    assert len(operations) == 24
