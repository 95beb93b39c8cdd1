"""The frame: it uses every feature, always has the same result, and satisfies the schema of the file."""

import copy
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs
import pytest
from examples.frame.painters import PAINTERS, channels, frame, new_picture, records, title_in

from pendula.documents import DocumentRefused, from_value
from pendula.kernel.canonical import digest
from pendula.playback.choosing.records import MemoryShelf
from pendula.playback.runs.loading import NAMES, NaeInsert, ViewerCall, file_schema, read_spec
from pendula.playback.runs.script import RunResult, name_of, run_document

ROOT = Path(__file__).parents[2]

# A change of the frame changes this line; a change of the scheduler must not.
FRAME_DIGEST = "21f6aaffe4f1e716596484d5783f705af38503066aa0d1cae4eb82b85bc7b218"


@pytest.fixture(scope="module")
def result() -> RunResult:
    return run_document(frame())


@pytest.mark.req("PLAY-LOOK-7")
def test_the_frame_always_has_the_same_result(result: RunResult) -> None:
    assert digest({"items": result.items, "calls": result.calls}) == FRAME_DIGEST


def test_the_records_of_the_file_are_those_generated_by_the_example() -> None:
    spec = read_spec(frame())

    assert [(channel.id, list(channel.records or ())) for channel in spec.channels] == [
        (painter.channel, records(painter)) for painter in PAINTERS
    ]
    assert spec.calls is not None
    assert [call.record for call in spec.calls if isinstance(call, NaeInsert)] == [new_picture(1, 1), new_picture(2, 2)]
    assert [channel.shelf.generation for channel in channels()] == [
        MemoryShelf(channel.records or ()).generation for channel in spec.channels
    ]


def test_every_picture_has_a_unique_id_and_title() -> None:
    made = [record for painter in PAINTERS for record in records(painter)]

    assert len({record.id for record in made}) == len(made) == 23
    assert len({title_in(record.payload) for record in made}) == len(made)
    assert all(record.dwell_ms >= 5000 for record in made)
    for painter in PAINTERS:
        times = [record.ts for record in records(painter)]
        assert times == sorted(times, reverse=True)


def test_the_frame_shows_every_feature(result: RunResult) -> None:
    spec = read_spec(frame())
    items: list[Any] = result.items

    assert spec.calls is not None
    viewers = {kind.__struct_config__.tag for kind in get_args(ViewerCall)}
    assert {name_of(call) for call in spec.calls} == set(NAMES) - viewers
    assert {item["origin"] for item in items} >= {"base", "nae"}
    assert {item["channel"] for item in items} == {"sea", "hills", "town", None}
    assert {item["epoch_id"] for item in items} == {0, 1, 2}


def test_the_frame_has_its_files_in_one_place() -> None:
    names = sorted(path.name for path in (ROOT / "examples/frame").iterdir() if path.name != "__pycache__")
    assert names == ["README.md", "evening.py", "frame.yaml", "painters.py", "pictures.py"]


def script(name: str, *arguments: object) -> str:
    command = [sys.executable, str(ROOT / "examples/frame" / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True, timeout=300).stdout.decode()


def test_the_scripts_draw_and_print(tmp_path: Path) -> None:
    painted = script("pictures.py", tmp_path)
    output = script("evening.py")

    assert painted.count("pictures\n") == 3
    newest = max((tmp_path / "sea").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert newest.stem.replace("-", " ") == title_in(records(PAINTERS[0])[0].payload).lower()
    assert len(list(tmp_path.rglob("*.svg"))) == 23
    assert "new    New, no. 1\n" in output
    assert "It was the turn of channel" in output


def plain(value: Any) -> Any:
    """The value as read by a JSON parser without exact numbers."""
    match value:
        case dict():
            return {name: plain(one) for name, one in value.items()}
        case list():
            return [plain(one) for one in value]
        case Decimal():
            return float(value)
        case _:
            return value


@pytest.fixture(scope="module")
def schema() -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(file_schema())


def test_the_schema_is_valid_and_plain_json() -> None:
    jsonschema_rs.meta.validate(file_schema())

    assert json.dumps(file_schema())
    assert file_schema() == file_schema()


def test_the_frame_satisfies_the_schema(schema: jsonschema_rs.Validator) -> None:
    assert [error.message for error in schema.iter_errors(plain(frame().value))] == []


CHANNEL = ("channels", 0)
RECORD = (*CHANNEL, "records", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("channels",), None),
        (("seed",), -1),
        (("seed",), 2**64),
        (("histroy",), 5),
        (("history",), 0),
        (("lookahead",), 1025),
        (("nae", "cap"), 65),
        (("nae", "enabled"), "yes"),
        (("pick", "mode"), "newest"),
        (("pick", "r"), 8193),
        (("exposure", "mode"), "eqe"),
        (("exposure", "alpha"), 2),
        (("exposure", "p_min"), 0),
        (("exposure", "manual_weights", "sea"), "much"),
        (("exposure", "total_count"), {"sea": -1}),
        ((*CHANNEL, "id"), ""),
        ((*CHANNEL, "cache"), "sea.pch"),
        ((*RECORD, "id"), -1),
        ((*RECORD, "kind"), 256),
        ((*RECORD, "payload"), "AAAA"),
        ((*RECORD, "colour"), "red"),
        (("calls", 0), "nxt"),
        (("calls", 0), {"next": -1}),
        (("calls", 0), {"next": 1, "prev": 1}),
        (("calls", 0), {}),
        (("calls", 0), {"set": {"nae": {"cap": 0}}}),
        (("calls", 0), {"nae_insert": {"colour": "red"}}),
        (("calls", 0), {"reset": 5}),
        (("preserve_history",), 1),
    ],
)
def test_schema_and_run_refuse_the_same_files(
    path: tuple[str | int, ...], value: Any, schema: jsonschema_rs.Validator
) -> None:
    given: Any = copy.deepcopy(frame().value)
    inner = given
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value

    assert not schema.is_valid(plain(given))
    with pytest.raises(DocumentRefused):
        read_spec(from_value(given))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), None),
        (("calls",), None),
        (("calls", 0), {"next": None}),
        (("calls", 0), {"nae_insert": {}}),
        (("calls", 0), {"nae_insert": {"id": -1, "payload": 5}}),
        (("calls", 0), {"set": {}}),
        ((*RECORD, "id"), 2**64 - 1),
        (("exposure",), {}),
    ],
)
def test_schema_and_run_accept_the_same_files(
    path: tuple[str | int, ...], value: Any, schema: jsonschema_rs.Validator
) -> None:
    given: Any = copy.deepcopy(frame().value)
    inner = given
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value

    assert [error.message for error in schema.iter_errors(plain(given))] == []
    read_spec(from_value(given))
