"""`pendula actions`: input files, the output form, exit codes, journals, logs, pictures, and `why`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

import pytest
from msgspec import Struct
from typer.testing import CliRunner

from pendula.actions import run_document
from pendula.actions.checks import load
from pendula.cli.program import run
from pendula.kernel.canonical import decode, encode

TOWN = Path(__file__).parents[2] / "src/pendula/actions/example/town.yaml"

STANDARD = """\
epoch: {index: 0, start_at: "2025-07-01T00:00:00", end_at: "2025-07-02T00:00:00"}
action_defs:
  clean: {base_duration_min: 60, effort: medium, interruptible: true}
  repair: {base_duration_min: 45, effort: high, interruptible: false, locks: [workshop]}
  radio: {base_duration_min: 5, effort: low, interruptible: false, locks: [radio], may_trigger_event: true}
actions_submitted:
  - {id: A1, actor: ann, verb: clean, submitted_at: "2025-07-01T08:05:00"}
  - {id: A2, actor: mechanic, verb: repair, params: {part: valve}, submitted_at: "2025-07-01T08:10:00"}
  - {id: A3, actor: ally, verb: radio, submitted_at: "2025-07-01T08:12:00", knowledge: [msg-ally-1]}
"""


class Finished(Struct, frozen=True):
    code: int
    out: str
    err: str


Pendula: TypeAlias = Callable[..., Finished]


@pytest.fixture
def pendula(monkeypatch: pytest.MonkeyPatch) -> Pendula:
    """`pendula("run", path)` stands for `pendula actions run path`, in this process."""
    for name in [name for name in os.environ if name.startswith("PENDULA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "140")

    def call(*arguments: object, scheduler: tuple[str, ...] = ("actions",)) -> Finished:
        with CliRunner().isolation() as (out, err, _):
            code = run([*scheduler, *(str(argument) for argument in arguments)])
            sys.stdout.flush()
            sys.stderr.flush()
            return Finished(code, out.getvalue().decode(), err.getvalue().decode())

    return call


@pytest.fixture
def standard(tmp_path: Path) -> Path:
    path = tmp_path / "standard.yaml"
    path.write_text(STANDARD, encoding="utf-8")
    return path


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def exactly(text: str) -> Any:
    """JSON with exact numbers, as a carry needs them."""
    return decode(text.encode())


def error(ended: Finished) -> Any:
    return json.loads(ended.err)["error"]


@pytest.mark.req("ACT-FILE-2")
@pytest.mark.req("ACT-DATA-3")
def test_json_is_one_canonical_document_in_the_fixed_form(standard: Path, pendula: Pendula) -> None:
    ended = pendula("run", standard, "--json")

    output = decode(ended.out.encode())
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.encode() == encode(run_document(load(standard)).as_json()) + b"\n"
    assert isinstance(output, dict)
    assert sorted(output) == ["carry", "epochs"]
    (epoch,) = output["epochs"]
    assert sorted(epoch) == [
        "carried_in",
        "deferred",
        "diagnostics",
        "epoch",
        "events",
        "locks",
        "places",
        "rejections",
        "resources",
    ]
    assert [(event["t"], event["at"][11:16], event["type"], event["action_id"]) for event in epoch["events"]] == [
        (485, "08:05", "start", "A1"),
        (490, "08:10", "start", "A2"),
        (492, "08:12", "start", "A3"),
        (497, "08:17", "end", "A3"),
        (497, "08:17", "visibility_change", "A3"),
        (540, "09:00", "end", "A2"),
        (545, "09:05", "end", "A1"),
    ]


def test_without_json_the_output_is_a_table_of_events_and_a_summary(standard: Path, pendula: Pendula) -> None:
    ended = pendula("run", standard)

    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert ended.code == 0
    assert lines[0] == "Epoch 0, 2025-07-01T00:00:00 to 2025-07-02T00:00:00"
    assert "08:10 start A2 mechanic repair for 50 min" in lines
    assert "08:17 visibility_change A3 ally msg-ally-1: private → pc" in lines
    assert lines[-1] == "1 epoch, 7 events, 3 ended, 0 interrupts, 0 rejected, 0 carried, 0 deferred"


def test_rejections_diagnostics_and_held_locks_follow_the_events(pendula: Pendula) -> None:
    lines = [" ".join(line.split()) for line in pendula("run", TOWN).out.splitlines()]

    assert "anchor: iron: 2 needed, 1 available (InsufficientResources)" in lines
    assert "splinter waits: beam does not yield, it cannot be interrupted (preempt_refused)" in lines
    assert "mill: held by mill-tue" in lines
    assert "continued: mill-tue, 184 min left" in lines
    assert "15:40 interrupt letter mira by a knock at the door, 68 min left, on hold" in lines
    assert "10:05 interrupt burn eva by beam, 7 min left" in lines
    assert "10:15 start rescue-2 lotte cross for 88 min, waited 70 min" in lines


def test_an_epoch_without_events_is_reported(tmp_path: Path, pendula: Pendula) -> None:
    empty = written(tmp_path / "day.yaml", STANDARD[: STANDARD.index("actions_submitted")] + "actions_submitted: []\n")

    assert "No events." in pendula("run", empty).out


def test_control_characters_in_names_are_escaped(tmp_path: Path, pendula: Pendula) -> None:
    hostile = written(tmp_path / "day.yaml", STANDARD.replace("id: A1, actor: ann", r'id: "A\e[2J", actor: "[red]"'))

    output = pendula("run", hostile).out

    assert "\x1b" not in output
    assert r"A\x1b[2J" in output
    assert "[red]" in output


@pytest.mark.req("ACT-FILE-4")
def test_rejected_instances_are_no_failure(tmp_path: Path, pendula: Pendula) -> None:
    wrong = written(tmp_path / "day.yaml", STANDARD.replace("verb: clean", "verb: cleen"))

    ended = pendula("run", wrong, "--json")

    assert ended.code == 0
    assert json.loads(ended.out)["epochs"][0]["rejections"] == [
        {"action_id": "A1", "code": "UnknownVerb", "message": "There is no definition of cleen"}
    ]


@pytest.mark.req("ACT-FILE-4")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (STANDARD.replace("2025-07-02T00", "2025-07-02T01"), "InvalidEpoch"),
        (STANDARD + "carry: {format: 1}\n", "InvalidCarryOver"),
        (STANDARD + "skills: 5\n", "document_refused"),
        ("- 1\n", "document_refused"),
        ("a: [", "document_refused"),
        ("epoch: 1\nepoch: 2\n", "document_refused"),
        (f"a: {'[' * 100}{']' * 100}\n", "document_refused"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_an_invalid_file_is_exit_1(text: str, code: str, command: str, tmp_path: Path, pendula: Pendula) -> None:
    ended = pendula(command, written(tmp_path / "day.yaml", text), "--json")

    assert (ended.code, ended.out) == (1, "")
    assert error(ended)["code"] == code


def test_a_missing_file_is_exit_3(tmp_path: Path, pendula: Pendula) -> None:
    ended = pendula("run", tmp_path / "none.yaml")

    assert ended.code == 3
    assert "the file cannot be read" in ended.err


@pytest.mark.req("ACT-FILE-4")
@pytest.mark.parametrize("arguments", [("run",), ("run", TOWN, "--sideways"), ("why", TOWN, "x")])
def test_wrong_usage_is_exit_2(arguments: tuple[object, ...], pendula: Pendula) -> None:
    assert pendula(*arguments).code == 2


@pytest.mark.req("ACT-FILE-4")
def test_an_unwritable_target_is_exit_3(standard: Path, pendula: Pendula) -> None:
    for option in ("--gantt", "--journal", "--logs"):
        assert pendula("run", standard, option, standard / "inside a file.svg").code == 3


@pytest.mark.req("ACT-EVT-3")
def test_a_journal_of_a_run_is_verified_by_replay(tmp_path: Path, pendula: Pendula) -> None:
    plain = pendula("run", TOWN, "--json")
    kept = pendula("run", TOWN, "--journal", tmp_path / "journal", "--json")

    replayed = pendula("replay", tmp_path / "journal", "--json", scheduler=())

    assert kept == plain
    assert (replayed.code, json.loads(replayed.out)["verified"]) == (0, True)
    assert json.loads(replayed.out)["commands"] == 5


def test_a_second_run_does_not_overwrite_the_journal_or_logs_of_the_first(tmp_path: Path, pendula: Pendula) -> None:
    for option, folder in (("--journal", tmp_path / "journal"), ("--logs", tmp_path / "logs")):
        assert pendula("run", TOWN, option, folder).code == 0
        before = {path.name: path.read_bytes() for path in folder.iterdir()}

        again = pendula("run", TOWN, option, folder)

        assert (again.code, again.out) == (1, "")
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.req("ACT-LOG-1")
@pytest.mark.req("ACT-LOG-2")
def test_logs_are_the_events_of_the_run(tmp_path: Path, pendula: Pendula) -> None:
    output = json.loads(pendula("run", TOWN, "--logs", tmp_path, "--json").out)

    world = [json.loads(line) for line in (tmp_path / "world_log.jsonl").read_text().splitlines()]
    chunks = sorted(tmp_path.glob("pc_log_*.jsonl"))
    assert [one["seq"] for one in world] == [event["seq"] for epoch in output["epochs"] for event in epoch["events"]]
    assert [path.name for path in chunks] == [f"pc_log_epoch0{number}.jsonl" for number in range(3)]
    seen = [json.loads(line) for path in chunks for line in path.read_text().splitlines() if '"seq"' in line]
    assert [one["seq"] for one in seen] == [one["seq"] for one in world if one["pc"]]


@pytest.mark.req("ACT-LOG-1", "ACT-CARRY-4")
def test_a_carried_day_continues_in_the_folder_of_the_previous_day(tmp_path: Path, pendula: Pendula) -> None:
    whole: Any = load(TOWN)
    first, rest = tmp_path / "first.json", tmp_path / "rest.json"
    first.write_bytes(encode({**whole, "epochs": 1}))
    output = json.loads(pendula("run", first, "--logs", tmp_path / "logs", "--json").out)
    day_two = {"index": 1, "start_at": "2025-07-02T00:00:00", "end_at": "2025-07-03T00:00:00"}
    none: dict[str, Any] = {"actions_submitted": [], "interrupts": [], "commands": [], "world_state": {}}
    carried = {**whole, **none, "epoch": day_two, "epochs": 2, "carry": output["carry"]}
    rest.write_bytes(encode(carried))

    ended = pendula("run", rest, "--logs", tmp_path / "logs", "--json")
    again = pendula("run", rest, "--logs", tmp_path / "logs")

    assert ended.code == 0
    assert "this run does not continue them" in again.err
    world = [json.loads(line) for line in (tmp_path / "logs" / "world_log.jsonl").read_text().splitlines()]
    assert [one["seq"] for one in world] == list(range(len(world)))
    assert {one["epoch"] for one in world} == {0, 1, 2}
    assert len(list((tmp_path / "logs").glob("pc_log_*.jsonl"))) == 3


def test_logs_are_the_same_with_a_journal(tmp_path: Path, pendula: Pendula) -> None:
    plain = pendula("run", TOWN, "--logs", tmp_path / "plain", "--json")
    kept = pendula("run", TOWN, "--logs", tmp_path / "kept", "--journal", tmp_path / "journal", "--json")

    assert plain.out == kept.out
    for path in (tmp_path / "plain").iterdir():
        assert path.read_bytes() == (tmp_path / "kept" / path.name).read_bytes()


def test_a_picture_is_drawn_beside_the_result(tmp_path: Path, pendula: Pendula) -> None:
    picture = tmp_path / "town.svg"

    ended = pendula("run", TOWN, "--gantt", picture, "--json")

    assert ended == pendula("run", TOWN, "--json")
    assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.req("ACT-DATA-7")
def test_an_unknown_section_is_refused_with_a_suggestion(tmp_path: Path, pendula: Pendula) -> None:
    path = written(tmp_path / "day.yaml", STANDARD + "interupts: []\n")

    ended = pendula("run", path)

    assert ended.code == 1
    assert "the member 'interupts' is not known here (did you mean interrupts?)" in ended.err


def test_a_file_that_names_hooks_runs_without_them(tmp_path: Path, pendula: Pendula) -> None:
    wants = written(tmp_path / "day.yaml", STANDARD + "options: {follow_ups: true, ask_modifiers: true}\n")

    ended = pendula("run", wants, "--journal", tmp_path / "journal", "--json")

    assert ended.code == 0
    assert len(json.loads(ended.out)["epochs"][0]["events"]) == 7
    assert pendula("run", wants, "--json") == ended
    assert pendula("why", wants, "A1", "--at", "600").code == 0
    assert pendula("replay", tmp_path / "journal", scheduler=()).code == 0


def test_a_run_can_be_continued_from_its_output(tmp_path: Path, pendula: Pendula) -> None:
    one = load(TOWN) | {"epochs": 1}
    first = exactly(pendula("run", written(tmp_path / "one.json", encode(one).decode()), "--json").out)
    rest = {
        **one,
        "epoch": {"index": 1, "start_at": "2025-07-02T00:00:00", "end_at": "2025-07-03T00:00:00"},
        "actions_submitted": [],
        "interrupts": [],
        "commands": [],
        "carry": first["carry"],
        "epochs": 2,
    }

    second = exactly(pendula("run", written(tmp_path / "two.json", encode(rest).decode()), "--json").out)

    whole = exactly(pendula("run", TOWN, "--json").out)
    assert first["epochs"] + second["epochs"] == whole["epochs"]
    assert second["carry"] == whole["carry"]


def test_check_counts_the_parts_of_a_valid_file(pendula: Pendula) -> None:
    output = json.loads(pendula("check", TOWN, "--json").out)

    assert output["sound"] is True
    assert output["actions_submitted"] == len(load(TOWN)["actions_submitted"])
    assert pendula("check", TOWN).out.startswith(f"{TOWN} is sound: ")


def test_check_prints_one_fault_per_line_in_editor_format(tmp_path: Path, pendula: Pendula) -> None:
    path = written(tmp_path / "day.yaml", STANDARD.replace("verb: clean", "verb: cleen").replace("high", "hihg"))

    ended = pendula("check", path)

    effort = "'hihg' is not an effort (did you mean high?); allowed: low, medium, high"
    verb = "there is no definition of 'cleen' (did you mean clean?)"
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines() == [
        f"{path}:4:43: $.action_defs.repair.effort: {effort} (InvalidEffort)",
        f"{path}:7:32: $.actions_submitted[0].verb: {verb} (UnknownVerb)",
    ]


@pytest.mark.parametrize("at", ["2025-07-01T10:30:00", "630"])
def test_why_names_what_an_action_waits_for(at: str, pendula: Pendula) -> None:
    ended = pendula("why", TOWN, "council-tue", "--at", at)

    assert ended.code == 0
    assert "council-tue waits for hall, held by school-tue until 2025-07-01 11:00." in ended.out
    output = json.loads(pendula("why", TOWN, "council-tue", "--at", at, "--json").out)
    assert (output["t"], output["at"], output["reason"]["code"]) == (
        630,
        "2025-07-01T10:30:00",
        "waits_for_locks",
    )


FEAST = """
epoch: {index: 0, start_at: 2025-07-01T00:00:00, end_at: 2025-07-02T00:00:00}
epochs: 2
action_defs: {eat: {base_duration_min: 10, effort: medium, interruptible: true, resources: [{name: bread, amount: 2}]}}
resources: {bread: 3}
actions_submitted:
  - {id: first, actor: ann, verb: eat, submitted_at: 2025-07-01T08:00:00}
  - {id: second, actor: bo, verb: eat, submitted_at: 2025-07-01T09:00:00}
"""


@pytest.mark.parametrize("at", ["2025-07-01T10:00:00", "2025-07-02T10:00:00"])
@pytest.mark.parametrize(
    ("action", "output"),
    [
        ("first", "first ended at 2025-07-01T08:10:00."),
        ("second", "second was rejected at 2025-07-01T09:00:00: bread: 2 needed, 1 available."),
    ],
)
def test_why_of_a_finished_action_reports_its_end(
    action: str, output: str, at: str, tmp_path: Path, pendula: Pendula
) -> None:
    feast = tmp_path / "feast.yaml"
    feast.write_text(FEAST)

    assert pendula("why", feast, action, "--at", at).out.splitlines() == [f"{at}: {output}"]


def test_a_time_of_day_alone_is_refused_with_an_example(pendula: Pendula) -> None:
    ended = pendula("why", TOWN, "council-tue", "--at", "09:00")

    assert ended.code == 2
    assert "pass one like 2025-07-01T00:00:00, or a minute" in ended.err


def test_why_of_an_unknown_action_suggests_an_id(pendula: Pendula) -> None:
    ended = pendula("why", TOWN, "council-tu", "--at", "0")

    assert ended.code == 1
    assert "did you mean council-tue?" in ended.err


@pytest.mark.parametrize("at", ["4321", "2030-01-01T00:00:00", "noon", "9" * 5000, "2025-07-01T10:30:00Z"])
def test_why_outside_the_run_is_wrong_usage(at: str, pendula: Pendula) -> None:
    assert pendula("why", TOWN, "council-tue", "--at", at).code == 2


def test_the_group_imports_nothing_of_server_or_other_schedulers() -> None:
    code = (
        "import sys\nfrom pendula.cli.program import run\n"
        f"run(['actions', 'run', {str(TOWN)!r}, '--json'])\nprint(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=300)

    assert not {"fastapi", "starlette", "uvicorn", "numpy", "rich"} & set(ended.stderr.decode().split())


@pytest.mark.parametrize("command", [(), ("run",), ("check",), ("why",)], ids=" ".join)
def test_help_ends_with_an_example(command: tuple[str, ...], pendula: Pendula) -> None:
    ended = pendula(*command, "--help")

    assert (ended.code, ended.err) == (0, "")
    assert "pendula actions" in ended.out.split("Example")[1]
