"""`pendula fleet payload`, `snapshot` and `export --snapshots`: the forms of the contract on the command line."""

import json
from pathlib import Path

import pytest

from pendula.fleet.contracts import parse, serialise
from tests.cli.conftest import Pendula
from tests.fleet.runs.journals import recorded

EXAMPLES = Path(__file__).parents[4] / "examples/specifications"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of the first half minute of head-on."""
    return recorded("head-on", tmp_path_factory.mktemp("kept"), 300, snapshot_every=100)


@pytest.mark.req("FLT-API-3")
@pytest.mark.parametrize("name", ["robot-state", "lock-result", "lock-snapshot"])
def test_an_example_is_recognized_by_its_members_and_printed_in_canonical_form(pendula: Pendula, name: str) -> None:
    file = EXAMPLES / f"fleet-{name}.json5"
    kind = name.title().replace("-", "")

    shown, printed = pendula("fleet", "payload", file), pendula("fleet", "payload", file, "--json")

    assert (shown.code, shown.out) == (0, f"{file} is a {kind}.\n")
    assert parse(kind, printed.out) == parse(kind, file.read_text(encoding="utf-8"))


@pytest.mark.req("FLT-API-3")
@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        ("{robotId: 'R1', pose: {x: 1}}", (), 1, "missing required field `y` - at `$.pose`"),
        ("{robotId: 'R1', pose: {x: 1, y: NaN}}", (), 1, "payload:1:33: $.pose.y: NaN is not a number in JSON5"),
        ("{colour: 1}", (), 1, "no contract has its members"),
        ("{}", ("--contract", "RobotSate"), 2, "did you mean RobotState?"),
        ("{ok: true}", ("--contract", "LockResult"), 1, "missing required field `robotId`"),
    ],
)
def test_a_fault_of_a_payload_is_named(
    pendula: Pendula, tmp_path: Path, text: str, options: tuple[str, ...], code: int, said: str
) -> None:
    file = tmp_path / "payload.json5"
    file.write_text(text, encoding="utf-8")

    ended = pendula("fleet", "payload", file, *options)

    assert ended.code == code
    assert said in ended.err


@pytest.mark.req("FLT-API-3")
@pytest.mark.parametrize(
    ("member", "name", "kind"),
    [("robots", "robot-state", "RobotState"), ("lockResults", "lock-result", "LockResult")],
)
def test_a_saved_answer_with_a_list_is_checked_payload_by_payload(
    pendula: Pendula, tmp_path: Path, member: str, name: str, kind: str
) -> None:
    one = json.loads(serialise(parse(kind, (EXAMPLES / f"fleet-{name}.json5").read_bytes())))
    file, wrong = tmp_path / "answer.json", tmp_path / "wrong.json"
    file.write_text(json.dumps({"tick": 7, "nowMs": 700, member: [one, one]}))
    wrong.write_text(json.dumps({"tick": 7, "nowMs": 700, member: [one, {**one, "robotId": 1}]}))

    shown, printed, refused = (
        pendula("fleet", "payload", *call) for call in ((file,), (file, "--contract", kind, "--json"), (wrong,))
    )

    assert (shown.code, shown.out) == (0, f"{file} is a list of 2 {kind}.\n")
    assert json.loads(printed.out) == {"tick": 7, "nowMs": 700, member: [one, one]}
    assert refused.code == 1
    assert f"no list of valid {kind}: Expected `str`, got `int` - at `$.{member}[1].robotId`" in refused.err


@pytest.mark.req("FLT-API-3")
def test_a_report_with_an_impossible_number_is_refused(pendula: Pendula, tmp_path: Path) -> None:
    file = tmp_path / "far.json5"
    file.write_text((EXAMPLES / "fleet-robot-state.json5").read_text(encoding="utf-8").replace("-20.90", "1e6"))

    ended = pendula("fleet", "payload", file)

    assert ended.code == 1
    assert "pose.x: 1E+6 is out of range; allowed is -100000 to 100000 m" in ended.err


def test_a_missing_file_is_named(pendula: Pendula, tmp_path: Path) -> None:
    ended = pendula("fleet", "payload", tmp_path / "none.json")

    assert ended.code != 0
    assert "none.json" in ended.err


@pytest.mark.req("FLT-API-3", "FLT-OBS-2")
def test_a_snapshot_is_the_line_of_its_tick_in_the_export(pendula: Pendula, kept: Path, tmp_path: Path) -> None:
    lines = pendula("fleet", "export", kept, "--snapshots", "--tick", 100, "--upto", 102).out.splitlines()
    one = pendula("fleet", "snapshot", kept, "--tick", 101, "--json").out
    listed = json.loads(pendula("fleet", "export", kept, "--snapshots", "--upto", 2, "--json").out)
    pendula("fleet", "export", kept, "--snapshots", "-o", tmp_path / "all.jsonl")

    assert lines[1] + "\n" == one
    assert [json.loads(line)["tick"] for line in lines] == [100, 101, 102]
    assert [form["tick"] for form in listed] == [1, 2]
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 300
    form = json.loads(one)
    parse("TickSnapshot", one)
    for contract, payloads in (
        ("RobotState", form["robots"]),
        ("LockResult", form["lockResults"]),
        ("LockSnapshot", [form["locks"]]),
        ("RollingTargetCommand", form["commands"]),
    ):
        for payload in payloads:
            parse(contract, json.dumps(payload))


@pytest.mark.req("FLT-API-3")
def test_a_snapshot_is_a_table_of_trucks_lanes_and_nodes(pendula: Pendula, kept: Path) -> None:
    ended = pendula("fleet", "snapshot", kept)

    assert ended.code == 0
    for head in ("truck", "status", "blocked by", "may drive to", "lane", "direction", "queue", "node", "radius"):
        assert head in ended.out
    assert "tick" in ended.out
    assert "300" in ended.out


@pytest.mark.req("FLT-API-3")
def test_an_unknown_tick_is_refused_with_the_known_range(pendula: Pendula, kept: Path) -> None:
    ended = pendula("fleet", "snapshot", kept, "--tick", 301)

    assert ended.code == 1
    assert "The journal has no tick 301; it shows ticks 1 to 300" in ended.err
