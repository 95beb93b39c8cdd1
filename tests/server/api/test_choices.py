"""Choices of an engine: every offered question is answered, every example accepted."""

from typing import Any

import httpx
import pytest
from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.server.runtime.scheduler_spec import fields_of, form
from pendula.server.settings import Settings
from tests.server import screens, worlds
from tests.server.living import BASE, TALLY, client_of, code_of, running

pytestmark = pytest.mark.anyio
SCHEDULERS = (TALLY, worlds.STILL, screens.STILL)
ENGINES = {"tally": BASE, "actions": worlds.HOUSE, "playback": screens.HALL}


async def made(client: httpx.AsyncClient, scheduler: str) -> str:
    """The address of an engine with running and waiting work."""
    if scheduler == "tally":
        assert (
            await client.post(f"{ENGINES[scheduler]}/commands", json={"type": "add", "amount": 5})
        ).status_code == 200
    if scheduler == "actions":
        # A1 runs and A2 waits for it; L was interrupted and waits for a resume command.
        await worlds.make(client)
        await worlds.ask(client, "submit", actions=[{"id": "L", "actor": "cy", "verb": "write", "t": 0}])
        await worlds.ask(client, "interrupt", interrupts=[{"target": "L", "priority": 3, "t": 20}])
        await worlds.ask(client, "advance", to=490)
    if scheduler == "playback":
        await screens.hang(client)
        await screens.shown(client, 3)
        await screens.ask(client, "pause-channel", channel="b")
        await screens.ask(client, "ban", id=4)
    return ENGINES[scheduler]


def command_of(offered: dict[str, Any]) -> dict[str, Any]:
    """The command that the page sends for an unchanged form."""
    values = {field["name"]: field["example"] for field in offered["fields"] if field["example"] is not None}
    inside = offered["inside"]
    return {"type": offered["type"], **(values if inside is None else {inside: [values]})}


@pytest.mark.parametrize("scheduler", ENGINES)
async def test_every_offered_question_is_answered(settings: Settings, scheduler: str) -> None:
    async with running(settings, SCHEDULERS) as app, client_of(app) as client:
        engine = await made(client, scheduler)
        questions = (await client.get(f"{engine}/choices")).json()["questions"]

        answers = [(await client.post(f"{engine}/why", json={"question": one["question"]})) for one in questions]

    assert questions
    assert [answer.status_code for answer in answers] == [200] * len(questions)
    assert {answer.json()["code"] for answer in answers} & {"unknown", "unknown_question", "unknown_item"} == set()


async def test_commands_without_a_valid_target_are_not_offered(settings: Settings) -> None:
    async with running(settings, SCHEDULERS) as app, client_of(app) as client:
        await worlds.make(client, actions_submitted=[])
        await screens.make(client, channels=[])
        await screens.ask(client, "ban", id=1)  # otherwise this artwork would be the example
        empty = [(await client.get(f"{ENGINES[scheduler]}/choices")).json() for scheduler in ("actions", "playback")]

        for engine, offers in zip((ENGINES["actions"], ENGINES["playback"]), empty, strict=True):
            for offered in offers["commands"]:
                answer = await client.post(f"{engine}/commands", json=command_of(offered))
                assert answer.status_code == 200, (offered["title"], answer.text)

    titles = [command["title"] for offers in empty for command in offers["commands"]]
    assert "Submit an action" in titles
    assert not [one for one in titles if one.startswith(("Interrupt", "Cancel", "Resume an", "Let a", "Follow"))]


@pytest.mark.parametrize("scheduler", ENGINES)
async def test_every_offered_example_is_accepted(settings: Settings, scheduler: str) -> None:
    async with running(settings, SCHEDULERS) as app, client_of(app) as client:
        engine = await made(client, scheduler)
        titles = [command["title"] for command in (await client.get(f"{engine}/choices")).json()["commands"]]

        refused = []
        for title in titles:
            # Each one sees the changes of the one before.
            now = (await client.get(f"{engine}/choices")).json()["commands"]
            (offered,) = [one for one in now if one["title"] == title]
            answer = await client.post(f"{engine}/commands", json=command_of(offered))
            if answer.status_code != 200 or any(event["type"] == "rejection" for event in answer.json()["events"]):
                refused.append((title, command_of(offered), answer.text))

    assert len(titles) >= 5
    assert refused == []


async def test_the_submission_example_differs_each_time(settings: Settings) -> None:
    async with running(settings, SCHEDULERS) as app, client_of(app) as client:
        engine = await made(client, "actions")
        answers = []
        for _ in range(3):
            forms = (await client.get(f"{engine}/choices")).json()["commands"]
            (submit,) = [one for one in forms if one["type"] == "submit"]
            answers.append((await client.post(f"{engine}/commands", json=command_of(submit))).json())

    assert [answer["answer"] for answer in answers] == [{"taken": 1}] * 3


async def test_the_submission_example_of_a_world_starts(settings: Settings) -> None:
    async with running(settings, SCHEDULERS) as app, client_of(app) as client:
        engine = await made(client, "actions")
        forms = (await client.get(f"{engine}/choices")).json()["commands"]
        (submit,) = [one for one in forms if one["type"] == "submit"]

        await client.post(f"{engine}/commands", json=command_of(submit))
        events = (await worlds.ask(client, "advance", by=300))["events"]

    assert ("start", "by-hand-1") in [(event["type"], event["action_id"]) for event in events]


async def test_a_missing_engine_offers_nothing(settings: Settings) -> None:
    async with running(settings, SCHEDULERS) as app, client_of(app) as client:
        missing = await client.get("/api/v1/tally/nobody/choices")

    assert (missing.status_code, code_of(missing)) == (404, "not_found")


class Letter(Struct, tag="letter"):
    to: str
    pages: int
    stamp: bool = True
    copies: int | None = None
    extra: dict[str, int] | list[int] = {}


def test_the_form_of_a_command_follows_from_its_type() -> None:
    examples: dict[str, Json] = {"to": "ann", "pages": 2}

    made = form("Write", Letter, examples, {"to": ["ann", "bo"]})

    assert (made.type, made.title, made.inside) == ("letter", "Write", None)
    assert [(one.name, one.kind, one.required, one.example, one.choices) for one in made.fields] == [
        ("to", "text", True, "ann", ["ann", "bo"]),
        ("pages", "integer", True, 2, []),
        ("stamp", "yes_no", False, None, []),
        ("copies", "integer", False, None, []),
        ("extra", "json", False, None, []),
    ]


def test_fields_are_in_the_order_of_their_examples() -> None:
    assert [one.name for one in fields_of(Letter, {"pages": 1, "to": "bo"})] == ["pages", "to"]
