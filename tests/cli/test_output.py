"""Stdout has only the result; progress goes to stderr, and only to a terminal."""

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Group, RenderableType
from rich.text import Text

from pendula.cli.commands.fleet.new import Scene
from pendula.cli.fitting import shared_out
from pendula.cli.output import Output, example, facts, reason_tree, table, titled_list
from pendula.kernel.engine import Reason
from pendula.kernel.errors import NotCanonical
from tests.cli.conftest import Pendula

WATCHED = """
from pendula.cli.fitting import shared_out
from pendula.cli.output import Output
out = Output(True)
with out.progress("replaying", 2) as advance:
    advance(1)
    advance(2)
with out.status("bench") as say:
    say("measuring")
out.result({"b": 1, "a": "é"}, lambda: "unused")
"""


def test_json_is_canonical_bytes_in_utf_8_whatever_the_locale() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED],
        capture_output=True,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )

    assert ended.stdout == '{"a":"é","b":1}\n'.encode()
    assert ended.stderr == b"bench: measuring\n"


def test_progress_goes_to_the_terminal_and_not_into_the_document() -> None:
    master, terminal = pty.openpty()
    try:
        ended = subprocess.run(
            [sys.executable, "-c", WATCHED],
            stdout=subprocess.PIPE,
            stderr=terminal,
            check=True,
            timeout=300,
            env={**os.environ, "TERM": "xterm"},
        )
        seen = os.read(master, 100_000).decode()
    finally:
        os.close(terminal)
        os.close(master)

    assert ended.stdout == '{"a":"é","b":1}\n'.encode()
    assert "replaying" in seen
    assert "measuring" in seen


WORDY = [("C-773d3caa9eea", "a truck that stands in P2 is in the way on A<->B"), ("x", "make its spur longer")]


@pytest.mark.parametrize("columns", ["200", "80", "60", "45", "38"])
def test_a_table_fits_its_width_and_splits_no_word(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    Output(False).result(None, lambda: table(("where", "what to do about it"), WORDY))

    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= int(columns)
    assert {word for row in WORDY for cell in row for word in cell.split()} <= set(out.split())


def test_a_row_that_does_not_fit_side_by_side_is_a_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")

    Output(False).result(None, lambda: table(("where", "what"), [("C-773d3caa9eea", "MAP_NOT_LIVE and_more_of_it")]))

    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "where  C-773d3caa9eea",
        "what   MAP_NOT_LIVE",
        "       and_more_of_it",
        "",
    ]


@pytest.mark.parametrize(
    ("available", "expected"),
    [(100, [5, 40, 20]), (60, [5, 35, 20]), (45, [5, 20, 20]), (44, [5, 20, 19]), (23, [5, 9, 9]), (22, None)],
)
def test_the_widest_columns_shrink_first_and_to_the_same_width(available: int, expected: list[int] | None) -> None:
    assert shared_out(available, [5, 9, 9], [5, 40, 20]) == expected


def test_text_is_written_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    Output(False).result(None, lambda: "[bold]" + "x" * 200)

    assert capsys.readouterr().out == "[bold]" + "x" * 200 + "\n"


def test_headings_and_cells_are_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    Output(False).result(None, lambda: table(("lines[to=ann]",), [("[red]a[/red]",)]))
    Output(False).result(None, lambda: facts([("[b]", ":smile:")]))

    out = capsys.readouterr().out
    assert "lines[to=ann]" in out
    assert "[red]a[/red]" in out
    assert "[b]  :smile:" in out


@pytest.mark.parametrize(
    "draw",
    [
        lambda evil: evil,
        lambda evil: table(("said",), [(evil,)]),
        lambda evil: table(("said",), [(Text(evil, style="red"),)]),
        lambda evil: facts([("said", evil)]),
        lambda evil: Group(Text(evil), table(("a",), [("b",)])),
        lambda evil: reason_tree(evil, Reason("a", evil)),
    ],
)
def test_terminal_control_characters_are_escaped(
    draw: Callable[[str], RenderableType], capsys: pytest.CaptureFixture[str]
) -> None:
    Output(False).result(None, lambda: draw("gone\x1b[2J\x00 \u202eabc"))

    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable()
    assert "gone\\x1b[2J\\x00" in out


def test_long_facts_are_wrapped_and_never_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    Output(False).result(None, lambda: facts([("digest", "a" * 300)]))

    assert capsys.readouterr().out.count("a") == 300


def test_a_document_without_canonical_bytes_leaves_stdout_empty(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotCanonical):
        Output(True).result({"ratio": 1.5}, lambda: "unused")

    assert capsys.readouterr().out == ""


def test_a_pipe_closed_during_a_table_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class ClosedPipe(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", ClosedPipe())

    with pytest.raises(BrokenPipeError):
        Output(False).result(None, lambda: table(("name",), [("a",)]))


def test_an_example_shows_brackets_unchanged() -> None:
    assert example("pendula x [a]").endswith(r"[cyan]pendula x \[a][/cyan]")


def test_a_shortened_list_counts_the_omitted_entries() -> None:
    lines = [str(part) for part in titled_list("Rejected", ["a", "b\x1b", "c"], 2)]

    assert lines == ["Rejected", "  a", "  b\\x1b", "  … and 1 more", ""]


def test_an_empty_list_has_no_title() -> None:
    assert list(titled_list("Rejected", [], 2)) == []


def test_a_reason_is_printed_above_its_own_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    reason = Reason(
        "waits", "It waits.", because=(Reason("held", "A has it.", because=(Reason("since", "Since 9."),)),)
    )

    Output(False).result(None, lambda: reason_tree("now: It waits.", reason, lambda one: [one.code]))

    assert capsys.readouterr().out.splitlines() == [
        "now: It waits.",
        "├── waits",
        "└── A has it.",
        "    ├── held",
        "    └── Since 9.",
        "        └── since",
    ]


@pytest.mark.parametrize(("columns", "lines"), [(None, 1), ("60", 3)])
def test_rows_are_not_wrapped_in_a_pipe_unless_a_width_is_set(
    columns: str | None, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    words = " ".join(["word"] * 30)

    Output(False).result({}, lambda: table(("said",), [(words,)]))

    assert sum("word" in line for line in capsys.readouterr().out.splitlines()) == lines


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("actions run day.yaml --gantt x.pdf", ".svg"),
        ("credit run village.json --ticks 3 --chart x.pdf", ".svg"),
        ("credit compare village.json --svg x.pdf", ".svg"),
        ("credit sweep village.json --ticks 3 --chart x.pdf", ".svg"),
        ("credit new --participants 5 -o x.pdf", ".json or .yaml or .yml"),
        ("fleet compile hall.json --profiles trucks.json -o x.pdf", ".json"),
        ("fleet draw hall.json -o x.pdf", ".svg or .geojson"),
        ("fleet draw head-on --at 3000 -o x.geojson", ".svg"),
        ("fleet tune hall --svg x.pdf", ".svg"),
    ],
)
def test_a_file_name_of_another_format_is_refused_with_the_allowed_ones(
    words: str, allowed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.chdir(tmp_path)

    ended = pendula(*words.split())

    assert (ended.code, list(tmp_path.iterdir())) == (2, [])
    assert f"cannot be written: use a name ending in {allowed}" in ended.err


def test_help_does_not_split_scene_names(monkeypatch: pytest.MonkeyPatch, pendula: Pendula) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    help_text = pendula("fleet", "new", "--help").out

    words = {word.strip(".,│ ") for word in help_text.split()}
    assert {scene.value for scene in Scene} <= words
