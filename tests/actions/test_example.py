"""The town: it uses every feature and always has the same result."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.actions import Code, RunResult, run_document
from pendula.actions.checks import SECTIONS, accept, load, town
from pendula.kernel.canonical import digest

ROOT = Path(__file__).parents[2]


# A change of the town changes this line; a change of the engine must not.
TOWN_DIGEST = "c9a46480dfcb6d4fd6a457c9afa8cdcf7c21177877cf90084766ba71d552ba46"


@pytest.fixture(scope="module")
def result() -> RunResult:
    return run_document(accept(town()))


@pytest.mark.req("ACT-EVT-3")
def test_the_town_always_has_the_same_result(result: RunResult) -> None:
    assert digest(without_messages(result.as_json()["epochs"])) == TOWN_DIGEST


def without_messages(value: Any) -> Any:
    """Everything but the text of messages, which can improve."""
    match value:
        case dict():
            return {name: without_messages(one) for name, one in value.items() if name != "message"}
        case list():
            return [without_messages(one) for one in value]
        case _:
            return value


def test_the_town_is_three_days_of_a_dozen_people(result: RunResult) -> None:
    actors = {event.actor for epoch in result.epochs for event in epoch.events}

    assert len(result.epochs) == 3
    assert len(actors) >= 12
    assert all(epoch.events for epoch in result.epochs)


def test_the_town_shows_every_feature(result: RunResult) -> None:
    events = [event for epoch in result.epochs for event in epoch.events]
    codes = {rejection.code for epoch in result.epochs for rejection in epoch.rejections}
    codes |= {diagnostic.code for epoch in result.epochs for diagnostic in epoch.diagnostics}
    metas = {name for event in events for name in event.meta}
    given = accept(town())

    assert {event.__struct_config__.tag for event in events} == {"start", "end", "interrupt", "visibility_change"}
    assert codes == {
        Code.CANNOT_ACQUIRE_LOCK,
        Code.INSUFFICIENT_RESOURCES,
        Code.INTERRUPT_IGNORED,
        Code.PREEMPT_REFUSED,
    }
    assert {"skill_override", "modifiers"} <= metas
    assert {event.meta["resume"] for event in events if "resume" in event.meta} == {"auto", "manual", "drop"}
    assert any(event.meta.get("waited") for event in events)
    assert any(event.meta.get("reveals") for event in events)
    assert {event.pc for event in events} == {True, False}
    assert all(epoch.header.carried_in for epoch in result.epochs[1:])
    assert "mend-all" in [one["id"] for one in result.epochs[0].deferred]
    assert not result.epochs[-1].deferred
    assert given["options"]["actor_exclusive"] is True
    assert set(SECTIONS) - set(given) == {"carry", "locks"}


def test_on_wednesday_mira_sees_the_start_of_the_mill(result: RunResult) -> None:
    events = {event.seq: event for epoch in result.epochs for event in epoch.events}
    (talk,) = [event for event in events.values() if event.meta.get("reveals")]

    revealed = [events[seq] for seq in talk.meta["reveals"]]

    assert [(one.action_id, one.__struct_config__.tag) for one in revealed] == [("mill-tue", "start")]


def test_resources_of_the_town_match_the_story(result: RunResult) -> None:
    left = {name: row["available"] for name, row in result.epochs[-1].resources.items()}

    assert left["scalpel"] == 2
    assert left["flour"] == Decimal("3.0")
    assert left["bread"] == 130


def test_there_is_one_copy_of_the_town() -> None:
    assert load(ROOT / "src/pendula/actions/example/town.yaml") == town().value
    assert sorted(path.name for path in (ROOT / "examples/town").iterdir()) == ["README.md", "story.py"]


def test_the_script_prints_the_story_and_draws_it(tmp_path: Path) -> None:
    picture = tmp_path / "town.svg"

    printed = subprocess.run(
        [sys.executable, ROOT / "examples/town/story.py", picture], capture_output=True, check=True, timeout=300
    ).stdout.decode()

    assert "  15:40  mira stops (write), because of a knock at the door\n" in printed
    assert "  13:46  now known: night-mill\n" in printed
    assert "emil begins: grind" not in printed
    assert picture.read_text(encoding="utf-8").startswith("<svg")
