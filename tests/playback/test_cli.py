"""`pendula playback`: input files, the output form, exit codes, journals, cache files, and `why`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pendula.cli.commands.playback.run import run
from pendula.cli.failing import ending
from pendula.documents import read_file
from pendula.kernel.canonical import decode, encode
from pendula.playback.runs import run_document
from tests.playback.caches import flipped
from tests.playback.program import HIST, NAE_E, PICK_D, Finished, media, pendula, written

FRAME = Path(__file__).parents[2] / "examples/frame/frame.yaml"
RECORDS = [{"id": id, "ts": 1000 - id} for id in range(1, 121)]


@pytest.fixture
def nae_e(tmp_path: Path) -> Path:
    return written(tmp_path / "nae.yaml", NAE_E)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    records = written(tmp_path / "records.json", json.dumps(RECORDS))
    assert pendula("cache", "write", tmp_path / "sea.pch", "--channel", "sea", "--records", records).code == 0
    return tmp_path / "sea.pch"


@pytest.mark.req("PLAY-FILE-3")
def test_json_is_one_canonical_document_in_the_fixed_form(nae_e: Path) -> None:
    ended = pendula("run", nae_e, "--json")

    result = decode(ended.out.encode())
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.encode() == encode(run_document(read_file(nae_e)).as_json()) + b"\n"
    assert isinstance(result, dict)
    assert sorted(result) == ["calls", "items", "stats"]
    assert ended.result["items"][0] == {"channel": None, "epoch_id": 0, "id": 900, "ordinal": 1, "origin": "nae"}
    assert ended.result["calls"][0] == {"call": "nae_insert", "result": "INSERTED"}
    marked = [f"{one['id']}{'N' if one['origin'] == 'nae' else ''}" for one in ended.result["items"]]
    assert " ".join(marked) == ("900N 1 11 2 901N 900N 901N 12 900N 3 901N 13 4 11 900N 1 12 2 13 3 11 4 901N 12")


@pytest.mark.req("PLAY-FILE-1")
def test_count_equals_that_many_calls_of_next(tmp_path: Path) -> None:
    result = pendula("run", written(tmp_path / "pick.yaml", PICK_D), "--count", "24", "--json").result

    expected = "4 2 11 3 2 3 13 3 2 3 12 4 2 1 11 3 2 4 11 3 4 3 13 2"
    assert " ".join(str(item["id"]) for item in result["items"]) == expected
    assert result["calls"] == [{"call": "next", "items": result["items"]}]


@pytest.mark.req("PLAY-HIST-2")
def test_results_of_prev_are_in_its_call_and_none_is_null(tmp_path: Path) -> None:
    result = pendula("run", written(tmp_path / "hist.yaml", HIST), "--json").result

    back = [None if item is None else item["id"] for item in result["calls"][1]["items"]]
    assert (result["calls"][1]["call"], back) == ("prev", [203, 103, 302, None, None])
    assert [item["id"] for item in result["items"]][-5:] == [103, 203, 303, 104, 204]


def test_json_files_give_the_same_bytes(nae_e: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "nae.json", json.dumps(yaml.safe_load(NAE_E)))

    assert pendula("run", other, "--json") == pendula("run", nae_e, "--json")


def test_without_json_the_output_has_items_exposure_and_a_summary(nae_e: Path) -> None:
    ended = pendula("run", nae_e)

    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert (ended.code, ended.err) == (0, "")
    assert "1 900 nae 0" in lines
    assert "2 1 a base 0" in lines
    assert "nae_insert: INSERTED" in lines
    assert any(line.startswith("a 50.0 % 50.0 % 8 ████████████┃") for line in lines)
    assert lines[-1] == "24 items, 8 of them new artwork, 0 repeated, epoch 0, seed 1"


def test_a_run_without_items_is_reported(tmp_path: Path) -> None:
    result = pendula("run", written(tmp_path / "none.yaml", "channels: []\nseed: 1\n"), "--count", "3").out

    assert "No items." in result
    assert "0 items" in result


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    text = r'{"seed": 1, "channels": [{"id": "\u001b[2J[red]", "records": [{"id": 1, "ts": 1}]}]}'
    path = written(tmp_path / "hostile.json", text)

    for result in (pendula("run", path, "--count", "1").out, pendula("why", path, "1").out):
        assert "\x1b" not in result
        assert "[red]" in result


@pytest.mark.req("PLAY-CACHE-9")
def test_diagnostics_are_shown_and_do_not_end_the_run(cache: Path) -> None:
    cache.write_bytes(flipped(cache.read_bytes(), 64))
    channels = "channels: [{id: sea, cache: sea.pch}, {id: b, records: [{id: 5, ts: 1}]}]\nseed: 1\n"
    path = written(cache.parent / "file.yaml", channels)
    assert pendula("why", path, "1").code == 0
    assert cache.exists()  # `why` changes no files

    ended = pendula("run", path, "--count", "2")

    assert ended.code == 0
    assert "The cache cannot be used" in ended.out
    assert "CorruptCache" in ended.out
    assert cache.with_name("sea.pch.bad").exists()


@pytest.mark.parametrize("command", ["run", "why"])
@pytest.mark.parametrize("channel", ["{id: see, cache: sea.pch}", "{id: sea, cache: note.txt}"])
def test_a_file_other_than_a_cache_of_the_channel_is_refused_and_unchanged(
    cache: Path, command: str, channel: str
) -> None:
    written(
        cache.parent / "note.txt", "milk, bread and a great many other things to buy today, none of them a cache file"
    )
    path = written(cache.parent / "file.yaml", f"channels: [{channel}]\n")
    before = {one.name: one.read_bytes() for one in cache.parent.iterdir()}

    ended = pendula(command, path, *(("--count", "1") if command == "run" else ("1",)), "--json")

    assert (ended.code, ended.error["code"]) == (3, "channel_unreachable")
    assert {one.name: one.read_bytes() for one in cache.parent.iterdir()} == before


@pytest.mark.req("PLAY-FILE-4")
@pytest.mark.parametrize(
    "text",
    [
        "- 1\n",
        "channels: [",
        "channels: 5\n",
        "channels: []\nchannels: []\n",
        "channels: []\nseeed: 1\n",
        "channels: [{id: a}]\n",
        f"channels: {'[' * 100}{']' * 100}\n",
    ],
)
@pytest.mark.parametrize("command", [("run",), ("why", "1")], ids=" ".join)
def test_a_file_with_faults_is_exit_1(text: str, command: tuple[str, ...], tmp_path: Path) -> None:
    path = written(tmp_path / "file.yaml", text)

    ended = pendula(command[0], path, *command[1:], "--json")

    assert (ended.code, ended.out) == (1, "")
    assert ended.error["code"] == "document_refused"


def test_faults_are_printed_one_per_line_in_editor_format(tmp_path: Path) -> None:
    path = written(tmp_path / "file.yaml", "channels:\n  - {id: a, record: []}\npick: {r: 0}\n")

    ended = pendula("run", path, "--count", "1")

    assert (ended.code, ended.out) == (1, "")
    assert [line.split(": ")[0] for line in ended.err.splitlines()] == [
        f"{path}:2:5",
        f"{path}:2:13",
        f"{path}:3:11",
    ]


@pytest.mark.req("PLAY-FILE-4")
def test_a_missing_file_named_by_the_script_is_exit_3(tmp_path: Path) -> None:
    text = "channels: [{id: a, cache: none.pch}, {id: b, folder: none}]\n"

    ended = pendula("run", written(tmp_path / "file.yaml", text), "--count", "1", "--json")

    assert (ended.code, ended.out) == (3, "")
    assert ended.error["code"] == "channel_unreachable"
    assert [(channel["channel"], channel["path"]) for channel in ended.error["details"]["channels"]] == [
        ("a", str(tmp_path / "none.pch")),
        ("b", str(tmp_path / "none")),
    ]
    assert pendula("run", tmp_path / "none.yaml", "--count", "1").code == 3


def test_paths_are_relative_to_the_folder_of_the_file(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    media(cache.parent / "pictures", "a.jpg")
    path = written(cache.parent / "f.yaml", "channels: [{id: sea, cache: sea.pch}, {id: p, folder: ./pictures}]")
    monkeypatch.chdir("/")

    assert [item["channel"] for item in pendula("run", path, "--count", "2", "--json").result["items"]] == ["sea", "p"]


@pytest.mark.req("PLAY-FILE-2")
@pytest.mark.req("PLAY-FILE-4")
def test_wrong_usage_is_exit_2(nae_e: Path, tmp_path: Path) -> None:
    pick = written(tmp_path / "pick.yaml", PICK_D)

    for arguments in (
        ("run", nae_e, "--count", "3"),
        ("run", pick),
        ("run", pick, "--count", "-1"),
        ("run", pick, "--count", "many"),
        ("run", pick, "--count", "10000001"),
        ("run",),
        ("run", pick, "--sideways"),
        ("why", nae_e),
        ("why", nae_e, "first"),
        ("why", nae_e, "1", "--count", "3"),
        ("play",),
        ("cache",),
        ("cache", "write", tmp_path / "x.pch"),
    ):
        ended = pendula(*arguments)
        assert (ended.code, ended.out) == (2, ""), arguments


@pytest.mark.req("PLAY-FILE-4")
def test_an_unwritable_target_is_exit_3(nae_e: Path) -> None:
    assert pendula("run", nae_e, "--journal", nae_e / "inside a file").code == 3
    assert pendula("cache", "verify", nae_e.parent / "none.pch").code == 3


def test_an_existing_journal_is_named_by_its_path(nae_e: Path, tmp_path: Path) -> None:
    assert pendula("run", nae_e, "--journal", tmp_path / "j1").code == 0

    again = pendula("run", nae_e, "--journal", tmp_path / "j1", "--json")

    assert (again.code, again.error["code"]) == (1, "journal_exists")
    assert again.error["message"] == f"A journal already exists: {tmp_path / 'j1'}"


@pytest.mark.req("PLAY-LOOK-7")
@pytest.mark.parametrize("file", ["frame", "nae"])
def test_a_journal_of_a_run_is_verified_by_replay(file: str, nae_e: Path, tmp_path: Path) -> None:
    path = FRAME if file == "frame" else nae_e
    plain = pendula("run", path, "--json")
    kept = pendula("run", path, "--journal", tmp_path / "journal", "--json")

    replayed = pendula("replay", tmp_path / "journal", "--json", scheduler=())

    assert kept == plain
    assert (replayed.code, replayed.result["verified"], replayed.result["scheduler"]) == (0, True, "playback")
    assert pendula("run", path, "--journal", tmp_path / "journal").code == 1


def test_a_long_run_gives_the_same_output_with_a_journal(tmp_path: Path) -> None:
    path = written(tmp_path / "pick.yaml", PICK_D)

    plain = pendula("run", path, "--count", "2500", "--json")

    assert pendula("run", path, "--count", "2500", "--json", "--journal", tmp_path / "journal") == plain
    assert pendula("replay", tmp_path / "journal", scheduler=()).code == 0


def test_why_names_the_step_that_chose_an_item(nae_e: Path) -> None:
    ended = pendula("why", nae_e, "2")
    result = pendula("why", nae_e, "2", "--json").result

    assert ended.code == 0
    assert "item 2 of epoch 0 is 1: It was the turn of channel 'a'" in ended.out
    assert "weights: a 32768, b 32768" in ended.out
    assert result["item"] == {"channel": "a", "epoch_id": 0, "id": 1, "ordinal": 2, "origin": "base"}
    assert result["reason"]["code"] == "turn_of_channel"
    assert [reason["code"] for reason in result["reason"]["because"]] == [
        "new_artwork_not_drawn",
        "largest_credit",
        "next_by_age",
    ]
    assert pendula("why", nae_e, "1", "--json").result["reason"]["code"] == "new_artwork"


def test_why_needs_no_count_and_accepts_epochs(tmp_path: Path) -> None:
    pick = written(tmp_path / "pick.yaml", PICK_D)
    calm = PICK_D + "calls: [{next: 2}, {reset: x}, {next: 70}]\nhistory: 1\nlookahead: 1\n"
    calls = written(tmp_path / "calls.yaml", calm)

    assert pendula("why", pick, "40", "--json").result["item"]["ordinal"] == 40
    assert pendula("why", pick, "3", "--count", "9", "--json").result["item"]["id"] == 11
    assert pendula("why", calls, "60", "--epoch", "1", "--json").result["item"]["epoch_id"] == 1
    unknown = pendula("why", calls, "60", "--json")
    assert (unknown.code, unknown.error["code"]) == (1, "unknown_item")
    assert unknown.error["details"]["items"] == {"0": 2, "1": 70}


def test_a_cache_written_from_records_is_sound(cache: Path) -> None:
    verified = pendula("cache", "verify", cache, "--channel", "sea", "--json")
    inspected = pendula("cache", "inspect", cache, "--json").result

    assert (verified.code, verified.result) == (0, {"faults": [], "file": str(cache), "sound": True})
    assert pendula("cache", "verify", cache).out == f"{cache} is sound.\n"
    assert inspected["header"]["count"] == inspected["records"] == 120
    assert inspected["bytes"] == 4 * 4096
    assert [block["records"] for block in inspected["blocks"]] == [51, 51, 18]
    assert "sound records  120" in pendula("cache", "inspect", cache).out
    run = written(cache.parent / "run.yaml", "channels: [{id: sea, cache: sea.pch}]")
    assert [item["id"] for item in pendula("run", run, "--count", "3", "--json").result["items"]] == [1, 2, 3]


def test_a_rewritten_cache_has_the_next_generation(cache: Path) -> None:
    write = ("cache", "write", cache, "--channel", "sea", "--records", cache.parent / "records.json")
    before = pendula("cache", "inspect", cache, "--json").result["header"]["generation"]

    result = pendula(*write, "--keep", "8", "--block-bytes", "8192", "--json").result

    assert result == {"channel": "sea", "count": 8, "file": str(cache), "generation": before + 1}
    assert "holds 8 records of 'sea'" in pendula(*write, "--keep", "8").out


@pytest.mark.parametrize(
    ("arguments", "records"),
    [
        (("--keep", "7"), "[]"),
        (("--keep", "8193"), "[]"),
        (("--block-bytes", "512"), "[]"),
        ((), "[{id: 1, ts: 1}, {id: 1, ts: 2}]"),
        ((), "{id: 1, ts: 1}"),
    ],
)
def test_an_invalid_cache_is_exit_1(arguments: tuple[str, ...], records: str, tmp_path: Path) -> None:
    listed = written(tmp_path / "records.yaml", records)

    ended = pendula("cache", "write", tmp_path / "x.pch", "--channel", "x", "--records", listed, *arguments)

    assert (ended.code, ended.out) == (1, "")
    assert not (tmp_path / "x.pch").exists()


def test_an_invalid_cache_name_is_refused(cache: Path) -> None:
    records = cache.parent / "records.json"
    for name in (cache.parent / ".hidden", cache.parent / "new" / "my sea.pch"):
        ended = pendula("cache", "write", name, "--channel", "x", "--records", records, "--json")

        assert (ended.code, ended.error["code"]) == (1, "invalid_parameter")
        assert not name.parent.joinpath("new").exists()
    cache.rename(cache.with_name("my sea.pch"))
    path = written(cache.parent / "file.yaml", "channels: [{id: sea, cache: my sea.pch}]\n")
    opened = pendula("run", path, "--count", "1", "--json")
    assert (opened.code, opened.error["code"]) == (3, "channel_unreachable")
    assert "use letters, digits" in opened.error["message"]


def test_a_channel_without_a_name_is_refused(cache: Path) -> None:
    before = cache.read_bytes()
    for command in (("write", cache, "--records", cache.parent / "records.json"), ("repair", cache)):
        ended = pendula("cache", *command, "--channel", "")

        assert (ended.code, cache.read_bytes()) == (2, before)


@pytest.mark.req("PLAY-CACHE-9")
def test_damage_is_detected_and_repaired(cache: Path) -> None:
    data = bytearray(cache.read_bytes())
    data[4096 + 80 * 2] ^= 1
    cache.write_bytes(data)

    found = pendula("cache", "verify", cache, "--json")
    repaired = pendula("cache", "repair", cache, "--json")

    assert (found.code, found.result["sound"], found.error["code"]) == (1, False, "cache_faulty")
    assert [(fault["place"], fault["record"], fault["offset"]) for fault in found.result["faults"]] == [
        ("record", 2, 4256)
    ]
    assert repaired.code == 0
    assert (repaired.result["kept"], repaired.result["written"]) == (119, True)
    assert [dropped_record["record"] for dropped_record in repaired.result["dropped"]] == [2]
    assert repaired.result["old"] == f"{cache}.bad"
    assert Path(repaired.result["old"]).read_bytes() == bytes(data)
    assert pendula("cache", "verify", cache).code == 0
    assert pendula("cache", "repair", cache).out == f"{cache} is sound; nothing was changed.\n"


def test_repair_lists_faults_and_dropped_records(cache: Path) -> None:
    data = bytearray(cache.read_bytes())
    data[4096] ^= 1
    data[8] ^= 1
    cache.write_bytes(data)

    verified, inspected = pendula("cache", "verify", cache), pendula("cache", "inspect", cache)
    nameless, repaired = pendula("cache", "repair", cache), pendula("cache", "repair", cache, "--channel", "sea")

    assert "checksum is wrong" in verified.out
    assert f"{cache} is damaged: " in verified.err
    assert "what is wrong" in inspected.out
    assert (nameless.code, repaired.code) == (1, 0)
    result = " ".join(repaired.out.split())
    assert "now has 119 records" in result
    assert "Dropped:" in result
    assert "sea.pch.bad" in result


def test_a_repair_without_loss_reports_it(cache: Path) -> None:
    data = bytearray(cache.read_bytes())
    data[-1] = 1
    cache.write_bytes(data)

    assert "No record was dropped." in " ".join(pendula("cache", "repair", cache).out.split())


GOOD: list[Any] = [yaml.safe_load(text) for text in (NAE_E, HIST, PICK_D)]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 70),
    st.integers(-(2**70), 2**70),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.sampled_from(["next", "MaE", "PrE", "random", "a", "zz"]),
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A valid file with other values in one to three places."""
    value = json.loads(json.dumps(draw(st.sampled_from(GOOD))))
    for _ in range(draw(st.integers(1, 3))):
        inner = value
        while True:
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(inner[key], dict | list) and draw(st.booleans()):
                inner = inner[key]
                continue
            match draw(st.sampled_from(("replace", "remove", "add"))):
                case "replace":
                    inner[key] = draw(JUNK)
                case "remove":
                    del inner[key]
                case _ if isinstance(inner, dict):
                    inner[draw(st.sampled_from(["id", "records", "exposure", "nae", "set", "next", "x"]))] = draw(JUNK)
                case _:
                    inner.append(draw(JUNK))
            break
    return value


@pytest.mark.req("PLAY-FILE-4")
@given(file=mutated(), count=st.sampled_from([None, 0, 5]))
def test_a_file_changed_at_random_is_run_or_refused(
    file: Any, count: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_text(json.dumps(file), encoding="utf-8")

    ended = straight(path, count)

    assert ended.code in (0, 1, 2), ended.err
    if ended.code == 0:
        assert sorted(ended.result) == ["calls", "items", "stats"]
    else:
        assert ended.out == ""
        assert ended.error["code"] != "internal_error"


@given(data=st.binary(max_size=40), at=st.integers(0, len(NAE_E)))
def test_a_file_with_arbitrary_bytes_inserted_is_run_or_refused(
    data: bytes, at: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.yaml"
    path.write_bytes(NAE_E.encode()[:at] + data + NAE_E.encode()[at:])

    ended = straight(path, None)

    assert ended.code in (0, 1, 2), ended.err


def straight(path: Path, count: int | None) -> Finished:
    """`pendula playback run PATH --json` without parsing a command line, which takes longer than the run."""

    def work() -> int:
        run(path, count, json=True)
        return 0

    with CliRunner().isolation() as (out, err, _):
        code = ending(["--json"], work)
        return Finished(code, out.getvalue().decode(), err.getvalue().decode())


def test_the_group_imports_nothing_of_server_or_other_schedulers() -> None:
    code = (
        "import sys\nfrom pendula.cli.program import run\n"
        f"run(['playback', 'run', {str(FRAME)!r}, '--json'])\nprint(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=300)

    loaded = set(ended.stderr.decode().split())
    assert not {"fastapi", "starlette", "uvicorn", "numpy", "rich", "aiomqtt", "pendula.actions"} & loaded


@pytest.mark.parametrize(
    "command",
    [(), ("run",), ("why",), ("play",), *(("cache", name) for name in ("inspect", "verify", "repair", "write"))],
    ids=" ".join,
)
def test_help_ends_with_an_example(command: tuple[str, ...]) -> None:
    ended = pendula(*command, "--help")

    assert (ended.code, ended.err) == (0, "")
    assert "pendula playback" in ended.out.split("Example")[1]
