"""The specification of the action scheduler, section by section, through the outermost interface."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from typer.testing import CliRunner

from pendula.actions import run_document
from pendula.actions.checks import load
from pendula.cli.program import run
from pendula.server.settings import Settings
from tests.server.worlds import STILL
from tests.specifications.printed import printed
from tests.specifications.serving import serving

EXAMPLES = Path(__file__).parents[2] / "examples" / "specifications"
NAMES = ("clean", "repair", "radio")
WORLDS = "/api/v1/actions"
YAML = {"content-type": "application/yaml"}
DAY = {"index": 0, "start_at": "2025-07-01T00:00:00", "end_at": "2025-07-02T00:00:00"}

# The expected values of the three examples, and the event that the third can trigger.
EXPECTED = {
    "clean": ["08:05 start A1", "09:05 end A1"],
    "repair": ["08:10 start A2", "09:00 end A2"],
    "radio": ["08:12 start A3", "08:17 end A3", "08:17 visibility_change A3"],
}


def example(name: str, source: str) -> str:
    """An example as printed in the specification, or from our own file."""
    if source == "printed":
        return printed("actions", "yaml")[NAMES.index(name)]
    return (EXAMPLES / f"actions-{name}.yaml").read_text()


def gist(events: list[dict[str, Any]]) -> list[str]:
    return [f"{event['at'][11:16]} {event['type']} {event['action_id']}" for event in events]


def command(*arguments: object) -> tuple[int, str]:
    """`pendula actions …`: the exit code and the output."""
    with CliRunner().isolation() as (out, _, _):
        code = run(["actions", *map(str, arguments)])
        return code, out.getvalue().decode()


def ran(folder: Path, text: str, *options: str) -> dict[str, Any]:
    """The output of `pendula actions run FILE --json`."""
    file = folder / "example.yaml"
    file.write_text(text)
    code, out = command("run", file, "--json", *options)
    assert code == 0, out
    result: dict[str, Any] = json.loads(out)
    return result


def events_of(folder: Path, document: dict[str, Any], *options: str) -> list[dict[str, Any]]:
    return [event for epoch in ran(folder, yaml.safe_dump(document), *options)["epochs"] for event in epoch["events"]]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = Settings(data=str(tmp_path_factory.mktemp("served")), port=0)
    with serving(settings, (STILL,)) as client:
        yield client


def served(client: httpx.Client, name: str, text: str, minutes: int = 1440) -> list[dict[str, Any]]:
    """The events of a world created from a YAML text and advanced to its end."""
    client.post(WORLDS, params={"name": name}, content=text, headers=YAML).raise_for_status()
    answer = client.post(f"{WORLDS}/{name}/advance", json={"to": minutes})
    answer.raise_for_status()
    return [event for event in answer.json()["events"] if "at" in event]


def definition(minutes: int, *locks: str, **more: Any) -> dict[str, Any]:
    plain = {"base_duration_min": minutes, "effort": "medium", "interruptible": True, "locks": list(locks)}
    return {**plain, **more}


def submission(action_id: str, verb: str, at: str, **more: Any) -> dict[str, Any]:
    return {"id": action_id, "actor": "ann", "verb": verb, "params": {}, "submitted_at": f"2025-07-01T{at}:00", **more}


def document(defs: dict[str, Any], *submissions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"epoch": DAY, "action_defs": defs, "actions_submitted": list(submissions), **more}


# 1 Short contract


@pytest.mark.section("1 Short contract", interface="command line")
def test_1_inputs_give_an_ordered_list_of_events_the_locks_and_the_resources(tmp_path: Path) -> None:
    """Epoch, submissions, definitions, skills and resources come in; ordered events, locks and resources come out."""
    defs = {"saw": definition(40, "workshop", resources=[{"name": "wood", "amount": 2}])}
    result = ran(
        tmp_path,
        yaml.safe_dump(
            document(
                defs,
                submission("B", "saw", "10:10"),
                submission("A", "saw", "10:00"),
                skills={"ann": {"saw": 3}},
                resources={"wood": 5},
            )
        ),
    )
    (epoch,) = result["epochs"]

    assert gist(epoch["events"]) == ["10:00 start A", "10:28 end A", "10:28 start B", "10:56 end B"]
    assert {"type", "action_id", "t", "meta"} <= epoch["events"][0].keys()
    assert epoch["locks"] == {"workshop": {"held_by": None, "queue": []}}
    assert epoch["resources"] == {"wood": {"available": 1, "reserved": 0}}


@pytest.mark.section("1 Short contract", interface="command line")
def test_1_both_logs_are_appended_and_the_player_log_is_chunked_by_epoch(tmp_path: Path) -> None:
    """Records are appended to the world log; the player's log has one chunk an epoch."""
    file = tmp_path / "two.yaml"
    defs = {"walk": definition(10)}
    whole = document(defs, submission("A", "walk", "23:55"), epochs=2, options={"pc": "ann"})
    file.write_text(yaml.safe_dump(whole))

    code, _ = command("run", file, "--logs", tmp_path / "logs", "--json")

    assert code == 0
    names = sorted(path.name for path in (tmp_path / "logs").iterdir() if path.suffix == ".jsonl")
    assert names == ["pc_log_epoch00.jsonl", "pc_log_epoch01.jsonl", "world_log.jsonl"]
    assert len((tmp_path / "logs" / "world_log.jsonl").read_text().splitlines()) == 2


@pytest.mark.section("1 Short contract", interface="HTTP")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"base_duration_min": 0}, "InvalidDuration"),
        ({"wait": "fail"}, "CannotAcquireLock"),
        ({"resources": [{"name": "parts", "amount": 1}]}, "InsufficientResources"),
    ],
)
def test_1_an_invalid_instance_is_rejected_with_its_code(
    client: httpx.Client, change: dict[str, Any], code: str
) -> None:
    """A duration of 0, a lock that is taken without waiting, and missing resources are rejections with these codes."""
    defs = {"hold": definition(60, "bench"), "bad": {**definition(5, "bench"), **change}}
    text = yaml.safe_dump(document(defs, submission("A", "hold", "08:00"), submission("B", "bad", "08:10")))
    client.post(WORLDS, params={"name": code.lower()}, content=text, headers=YAML).raise_for_status()

    events = client.post(f"{WORLDS}/{code.lower()}/advance", json={"to": 1440}).json()["events"]

    assert [(event["action_id"], event["code"]) for event in events if event["type"] == "rejection"] == [("B", code)]


# 2 Data model


@pytest.mark.section("2 Data model", interface="HTTP")
def test_2_an_event_has_minutes_inside_and_iso_time_outside(client: httpx.Client) -> None:
    """An event has minutes from the start of its epoch, and the ISO time."""
    first = served(client, "model", example("clean", "own"))[0]

    assert (first["type"], first["action_id"], first["t"], first["at"]) == ("start", "A1", 485, "2025-07-01T08:05:00")


@pytest.mark.section("2 Data model", interface="command line")
def test_2_the_lock_table_has_holder_and_queue(tmp_path: Path) -> None:
    """A row of the lock table names the holder of the lock and the waiting actions, in order."""
    defs = {"repair": definition(60, "workshop")}
    late = [submission(name, "repair", at) for name, at in (("A2", "23:30"), ("A4", "23:40"))]

    result = ran(tmp_path, yaml.safe_dump(document(defs, *late)))

    assert result["epochs"][0]["locks"] == {"workshop": {"held_by": "A2", "queue": ["A4"]}}


# 3 Duration


@pytest.mark.section("3 Duration", interface="command line")
@pytest.mark.parametrize(("effort", "minutes"), [("low", (102, 81, 69, 57)), ("medium", (113, 90, 77, 63))])
def test_3_effort_and_skill_scale_the_base_duration(tmp_path: Path, effort: str, minutes: tuple[int, ...]) -> None:
    """The duration is the base times the factors of effort and skill, rounded up to whole minutes."""
    defs = {"dig": definition(90, effort=effort)}
    people = [submission(f"A{level}", "dig", "08:00", actor=f"p{level}") for level in range(4)]
    skills = {f"p{level}": {"dig": level} for level in range(4)}

    found = {
        event["action_id"]: event["meta"]["d"]
        for event in events_of(tmp_path, document(defs, *people, skills=skills))
        if event["type"] == "start"
    }

    assert tuple(found[f"A{level}"] for level in range(4)) == minutes


@pytest.mark.section("3 Duration", interface="command line")
def test_3_time_of_day_and_weather_modify_it(tmp_path: Path) -> None:
    """Optional modifiers depend on the context, such as the time of day and the weather."""
    modifiers = [
        {"name": "night", "factor": 2, "daily": True, "from": "22:00", "to": "06:00"},
        {"name": "rain", "factor": "1.5", "when": {"weather": "rain"}},
    ]
    walks = [submission("N", "walk", "05:00"), submission("D", "walk", "12:00")]
    for weather, expected in (("sun", {"N": 20, "D": 10}), ("rain", {"N": 30, "D": 15})):
        state = {"weather": weather, "modifiers": modifiers}
        events = events_of(tmp_path, document({"walk": definition(10)}, *walks, world_state=state))
        assert {event["action_id"]: event["meta"]["d"] for event in events if event["type"] == "start"} == expected


# 4 Algorithm


@pytest.mark.section("4 Algorithm", interface="command line")
def test_4_an_action_starts_when_its_locks_are_free_and_ends_after_its_duration(tmp_path: Path) -> None:
    """An action starts at its submission or at the release of its last lock, whichever is later."""
    defs = {"a": definition(30, "x"), "b": definition(50, "y"), "both": definition(20, "x", "y")}
    actions = [submission("A", "a", "08:00"), submission("B", "b", "08:00"), submission("C", "both", "08:05")]

    events = gist(events_of(tmp_path, document(defs, *actions)))

    assert events[-2:] == ["08:50 start C", "09:10 end C"]


@pytest.mark.section("4 Algorithm", interface="HTTP")
def test_4_an_end_can_submit_a_follow_up(client: httpx.Client) -> None:
    """The end of an action may schedule a follow-up: a verb, some minutes later, on conditions."""
    answers = [
        {"verb": "answer", "after_min": 10, "when": {"params.channel": "ally"}},
        {"verb": "silence", "when": {"params.channel": "enemy"}},
    ]
    radio = yaml.safe_load(example("radio", "own"))
    radio["actions_submitted"][0]["submitted_at"] = "2025-07-01T08:12:00"
    radio["action_defs"]["radio"]["followups"] = answers
    radio["action_defs"] |= {"answer": definition(5), "silence": definition(5)}

    events = gist(served(client, "following", yaml.safe_dump(radio)))

    assert events == ["08:12 start A3", "08:17 end A3", "08:27 start answer/0", "08:32 end answer/0"]


@pytest.mark.section("4 Algorithm", interface="command line")
def test_4_unfinished_actions_are_carried_over_to_the_next_epoch(tmp_path: Path) -> None:
    """The start is in one epoch, the end in the next one; nothing is lost between two files."""
    first = ran(tmp_path, yaml.safe_dump(document({"watch": definition(120)}, submission("A", "watch", "23:00"))))
    tomorrow = {"index": 1, "start_at": "2025-07-02T00:00:00", "end_at": "2025-07-03T00:00:00"}
    follow = {**document({"watch": definition(120)}), "epoch": tomorrow, "carry": first["carry"]}

    second = ran(tmp_path, json.dumps(follow))

    assert gist(first["epochs"][0]["events"]) == ["23:00 start A"]
    assert second["epochs"][0]["carried_in"] == [{"action_id": "A", "remaining": 60}]
    assert gist(second["epochs"][0]["events"]) == ["01:00 end A"]


# 5 Interrupts and priorities


@pytest.mark.section("5 Interrupts and priorities", interface="HTTP")
def test_5_an_interrupted_action_resumes_with_its_remaining_minutes(client: httpx.Client) -> None:
    """A source of higher priority interrupts; the action resumes under its id with its remaining minutes."""
    defs = {"work": definition(60, "hall"), "alarm": definition(10, "hall", preempts=True, priority=5)}
    text = yaml.safe_dump(document(defs, submission("A", "work", "08:00"), submission("B", "alarm", "08:25")))

    events = served(client, "interrupting", text)

    assert gist(events) == [
        "08:00 start A",
        "08:25 interrupt A",
        "08:25 start B",
        "08:35 end B",
        "08:35 start A",
        "09:10 end A",
    ]
    assert (events[1]["meta"]["d_rem"], events[4]["meta"]["d"]) == (35, 35)


@pytest.mark.section("5 Interrupts and priorities", interface="command line")
def test_5_an_uninterruptible_action_runs_to_its_end(tmp_path: Path) -> None:
    """An action that is not interruptible ignores interrupts."""
    defs = {"work": definition(60, interruptible=False)}
    alarm = {"at": "2025-07-01T08:20:00", "target": "A", "priority": 9}

    result = ran(tmp_path, yaml.safe_dump(document(defs, submission("A", "work", "08:00"), interrupts=[alarm])))

    assert gist(result["epochs"][0]["events"]) == ["08:00 start A", "09:00 end A"]
    assert [diagnostic["code"] for diagnostic in result["epochs"][0]["diagnostics"]] == ["interrupt_ignored"]


@pytest.mark.section("5 Interrupts and priorities", interface="command line")
def test_5_an_action_stays_interrupted_while_the_cause_lasts(tmp_path: Path) -> None:
    """An action without a shared lock resumes when the cause ends, not in the minute of the interrupt."""
    defs = {"work": definition(60), "bell": definition(10, preempts=True, priority=5, interrupts=["work"])}

    events = gist(
        events_of(tmp_path, document(defs, submission("A", "work", "08:00"), submission("B", "bell", "08:25")))
    )

    assert events[-3:] == ["08:35 end B", "08:35 start A", "09:10 end A"]


# 6 Locks and deadlocks


@pytest.mark.section("6 Locks and deadlocks", interface="command line")
def test_6_locks_in_any_order_never_deadlock_and_queues_are_first_come_first_served(tmp_path: Path) -> None:
    """Locks are taken in one global order, so actions that name them differently cannot block each other."""
    defs = {"xy": definition(10, "x", "y"), "yx": definition(10, "y", "x"), "x": definition(10, "x")}
    actions = [submission(f"A{n}", verb, "08:00") for n, verb in enumerate(("xy", "yx", "x", "xy"))]

    events = gist(events_of(tmp_path, document(defs, *actions)))

    starts = [event for event in events if "start" in event]
    assert starts == ["08:00 start A0", "08:10 start A1", "08:20 start A2", "08:30 start A3"]


# 7 Examples


@pytest.mark.section("7.1 Example: clean", interface="command line")
@pytest.mark.parametrize("source", ["own", "printed"])
def test_7_1_the_example_runs_as_printed_on_the_command_line(tmp_path: Path, source: str) -> None:
    """Run as printed: cleaning starts at 08:05 and ends at 09:05."""
    assert gist(ran(tmp_path, example("clean", source))["epochs"][0]["events"]) == EXPECTED["clean"]


@pytest.mark.section("7.1 Example: clean", interface="HTTP")
@pytest.mark.parametrize("source", ["own", "printed"])
def test_7_1_the_example_runs_as_printed_over_http(client: httpx.Client, source: str) -> None:
    """Run as printed: cleaning starts at 08:05 and ends at 09:05."""
    assert gist(served(client, f"clean-{source}", example("clean", source))) == EXPECTED["clean"]


@pytest.mark.section("7.1 Example: clean", interface="library")
@pytest.mark.parametrize("source", ["own", "printed"])
def test_7_1_the_example_runs_as_printed_in_the_library(tmp_path: Path, source: str) -> None:
    """Run as printed: cleaning starts at 08:05 and ends at 09:05."""
    file = tmp_path / "example.yaml"
    file.write_text(example("clean", source))

    result = run_document(load(file))

    assert gist(result.as_json()["epochs"][0]["events"]) == EXPECTED["clean"]


@pytest.mark.section("7.2 Example: repair", interface="command line")
@pytest.mark.parametrize("source", ["own", "printed"])
def test_7_2_the_example_runs_as_printed_on_the_command_line(tmp_path: Path, source: str) -> None:
    """Run as printed: the repair starts at 08:10 and takes 50 minutes."""
    assert gist(ran(tmp_path, example("repair", source))["epochs"][0]["events"]) == EXPECTED["repair"]


@pytest.mark.section("7.2 Example: repair", interface="HTTP")
@pytest.mark.parametrize("source", ["own", "printed"])
def test_7_2_the_example_runs_as_printed_over_http(client: httpx.Client, source: str) -> None:
    """Run as printed: the repair starts at 08:10 and takes 50 minutes."""
    assert gist(served(client, f"repair-{source}", example("repair", source))) == EXPECTED["repair"]


@pytest.mark.section("7.2 Example: repair", interface="library")
@pytest.mark.parametrize("source", ["own", "printed"])
def test_7_2_the_example_runs_as_printed_in_the_library(tmp_path: Path, source: str) -> None:
    """Run as printed: the repair starts at 08:10 and takes 50 minutes."""
    file = tmp_path / "example.yaml"
    file.write_text(example("repair", source))

    result = run_document(load(file))

    assert gist(result.as_json()["epochs"][0]["events"]) == EXPECTED["repair"]


@pytest.mark.section("7.3 Example: radio", interface="command line")
@pytest.mark.parametrize("source", ["own", "printed"])
def test_7_3_the_example_runs_as_printed_on_the_command_line(tmp_path: Path, source: str) -> None:
    """Run as printed: the call takes 5 minutes, and can reveal an item."""
    assert gist(ran(tmp_path, example("radio", source))["epochs"][0]["events"]) == EXPECTED["radio"]


@pytest.mark.section("7.3 Example: radio", interface="HTTP")
@pytest.mark.parametrize("source", ["own", "printed"])
def test_7_3_the_example_runs_as_printed_over_http(client: httpx.Client, source: str) -> None:
    """Run as printed: the call takes 5 minutes, and can reveal an item."""
    assert gist(served(client, f"radio-{source}", example("radio", source))) == EXPECTED["radio"]


@pytest.mark.section("7.3 Example: radio", interface="library")
@pytest.mark.parametrize("source", ["own", "printed"])
def test_7_3_the_example_runs_as_printed_in_the_library(tmp_path: Path, source: str) -> None:
    """Run as printed: the call takes 5 minutes, and can reveal an item."""
    file = tmp_path / "example.yaml"
    file.write_text(example("radio", source))

    result = run_document(load(file))

    assert gist(result.as_json()["epochs"][0]["events"]) == EXPECTED["radio"]


@pytest.mark.section("7.2 Example: repair", interface="command line")
def test_7_2_a_repair_waits_for_an_occupied_workshop(tmp_path: Path) -> None:
    """While the workshop is occupied, the start is delayed until its release."""
    repair = yaml.safe_load(example("repair", "own"))
    repair["actions_submitted"][0]["submitted_at"] = "2025-07-01T08:10:00"
    repair["action_defs"]["saw"] = definition(40, "workshop")
    repair["actions_submitted"].append(submission("A0", "saw", "08:00"))

    assert gist(events_of(tmp_path, repair))[2:] == ["08:40 start A2", "09:30 end A2"]


@pytest.mark.section("7.3 Example: radio", interface="HTTP")
def test_7_3_a_radio_call_is_visible_to_the_player(client: httpx.Client) -> None:
    """A call that can trigger an event reaches the player by a visibility change."""
    text = example("radio", "own") + "options: {pc: Mira}\n"

    change = served(client, "reaching", text)[-1]

    assert change["type"] == "visibility_change"
    assert change["pc"] is True
    assert (change["meta"]["knowledge"], change["meta"]["to_scope"]) == ("action:A3", "pc")


@pytest.mark.section("7.3 Example: radio", interface="command line")
def test_7_3_a_radio_call_interrupts_lower_priority_actions_if_configured(tmp_path: Path) -> None:
    """With `preempts` and a list of verbs, a call interrupts running actions of a lower priority."""
    radio = yaml.safe_load(example("radio", "own"))
    radio["actions_submitted"][0]["submitted_at"] = "2025-07-01T08:12:00"
    radio["action_defs"]["clean"] = definition(60)
    radio["actions_submitted"].append(submission("A1", "clean", "08:05"))
    assert "08:12 interrupt A1" not in gist(events_of(tmp_path, radio))

    radio["action_defs"]["radio"] |= {"preempts": True, "priority": 1, "interrupts": ["clean"]}

    assert gist(events_of(tmp_path, radio))[1:3] == ["08:12 interrupt A1", "08:12 start A3"]


@pytest.mark.section("7.3 Example: radio", interface="command line")
def test_7_3_a_list_of_verbs_without_preemption_is_a_fault_of_the_file(tmp_path: Path) -> None:
    """A list of verbs that never interrupts anything is refused with the missing setting."""
    radio = yaml.safe_load(example("radio", "own"))
    radio["actions_submitted"][0]["submitted_at"] = "2025-07-01T08:12:00"
    radio["action_defs"]["radio"]["interrupts"] = ["radio"]
    (tmp_path / "radio.yaml").write_text(yaml.safe_dump(radio))

    code, _ = command("run", tmp_path / "radio.yaml")

    assert code == 1


# 8 Logs and visibility


@pytest.mark.section("8 Logs and visibility", interface="HTTP")
def test_8_the_player_log_has_visible_events_and_later_reveals_hidden_ones(client: httpx.Client) -> None:
    """The world log has every event; the player's has only visible ones, and a reveal copies older events to it."""
    defs = {"hide": definition(10), "tell": definition(10, may_trigger_event=True)}
    reveal = [{"id": "secret", "reveals": [0]}]
    text = yaml.safe_dump(
        document(
            defs,
            submission("A", "hide", "08:00", actor="bob"),
            submission("B", "tell", "09:00", actor="bob", knowledge=reveal),
            options={"pc": "ann"},
        )
    )
    client.post(WORLDS, params={"name": "logged"}, content=text, headers=YAML).raise_for_status()
    client.post(f"{WORLDS}/logged/advance", json={"to": 600}).raise_for_status()

    world = client.get(f"{WORLDS}/logged/world_log").text.splitlines()
    player = [json.loads(line) for line in client.get(f"{WORLDS}/logged/pc_log").text.splitlines()]

    assert len(world) == 5
    assert [line.get("type") for line in player] == [None, "visibility_change"]
    assert player[1]["revealed"] == [json.loads(world[0])]


@pytest.mark.section("8 Logs and visibility", interface="command line")
def test_8_audio_files_are_named_by_epoch_slot_and_channel(tmp_path: Path) -> None:
    """Names of audio files have epoch, slot and channel; the channel may be that of a radio."""
    result = ran(tmp_path, example("radio", "own"), "--audio-names")

    assert [file["name"] for file in result["audio"]] == ["epoch00_slot08_ally.ogg", "epoch00_slot08_world.ogg"]


@pytest.mark.section("8 Logs and visibility", interface="command line")
def test_8_an_expiry_is_an_event(tmp_path: Path) -> None:
    """Visibility changes only by events: an item expires by an event in the first minute after its lifetime."""
    knowledge = [{"id": "rumour", "scope": "pc", "freshness": 180, "ttl_min": 120}]

    (event,) = events_of(tmp_path, document({}, world_state={"knowledge": knowledge}, options={"pc": "ann"}))

    assert (event["type"], event["at"][11:16], event["meta"]["reason"]) == ("visibility_change", "05:01", "expired")


# 9 Acceptance criteria


@pytest.mark.section("9 Acceptance criteria", interface="command line")
@pytest.mark.parametrize("name", NAMES)
def test_9_the_same_input_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    """An example gives byte for byte the same output every time."""
    (tmp_path / "a.yaml").write_text(example(name, "own"))

    assert command("run", tmp_path / "a.yaml", "--json") == command("run", tmp_path / "a.yaml", "--json")


@pytest.mark.section("9 Acceptance criteria", interface="HTTP")
def test_9_an_uninterruptible_action_is_cancelled_only_by_force(client: httpx.Client) -> None:
    """An action that is not interruptible runs through; only a cancellation with force ends it, and reports that."""
    text = example("repair", "own")
    client.post(WORLDS, params={"name": "forced"}, content=text, headers=YAML).raise_for_status()
    client.post(f"{WORLDS}/forced/advance", json={"to": 500}).raise_for_status()
    events = []
    for more in ({}, {"force": True}):
        client.post(f"{WORLDS}/forced/cancel", json={"actions": ["A2"], **more}).raise_for_status()
        events += client.post(f"{WORLDS}/forced/advance", json={"by": 1}).json()["events"]

    assert [event.get("code") or event["meta"]["forced"] for event in events] == ["NotInterruptible", True]


# 10 Appendix: interfaces


@pytest.mark.section("10 Appendix: interfaces", interface="HTTP")
def test_10_an_instance_of_the_appendix_is_accepted_and_its_event_has_the_members(client: httpx.Client) -> None:
    """A submission and an event have the members of the appendix; later submissions can be YAML too."""
    text = example("repair", "own").partition("actions_submitted")[0] + f"epoch: {json.dumps(DAY)}\n"
    client.post(WORLDS, params={"name": "appendix"}, content=text, headers=YAML).raise_for_status()
    instance = "actions:\n  - {id: A2, actor: Ronja, verb: repair, params: any, submitted_at: 2025-07-01T08:10:00}\n"

    client.post(f"{WORLDS}/appendix/submit", content=instance, headers=YAML).raise_for_status()
    events = client.post(f"{WORLDS}/appendix/advance", json={"to": 500}).json()["events"]
    locks = client.get(f"{WORLDS}/appendix/now").json()["locks"]

    assert (events[0]["type"], events[0]["action_id"], events[0]["t"]) == ("start", "A2", 490)
    assert events[0]["meta"]["params"] == "any"
    assert (locks[0]["name"], locks[0]["held_by"], locks[0]["queue"]) == ("workshop", "A2", [])
