"""The tree of commands: help, examples, version, exit codes of a whole process, and what is imported when."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

import pendula as package
from pendula.cli import program, schedulers
from pendula.cli.failing import ending
from pendula.cli.program import build, in_plain_words
from pendula.cli.schedulers import Group
from tests.cli.conftest import Finished, Pendula, quiet_environment

FULL = Path("/dev/full")
OBJECT_VERBS = ("amend", "create", "decide", "evidence", "list", "refill", "rollback-finished", "show", "why")
RUN = "from pendula.cli import main; main()"


@cache
def built(first: str | None) -> Any:
    """The command tree for this first argument; building it takes a tenth of a second."""
    return get_command(build(first))


def tree(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from tree(child, (*path, name))


COMMANDS = dict(tree(built(None)))
for scheduler in schedulers.GROUPS:
    # The commands of a scheduler exist only if it is the first argument.
    COMMANDS |= {path: command for path, command in tree(built(scheduler)) if path[:1] == (scheduler,)}
LEAVES = [path for path, command in COMMANDS.items() if not hasattr(command, "commands")]


# Types of the language, and defaults in brackets within brackets.
OF_PYTHON = re.compile(r"<(?!\w+\|)[\w\[\]]+>|default: \(")


def examples(command: Any) -> list[str]:
    lines = [line.strip().removeprefix("[cyan]").removesuffix("[/cyan]") for line in command.epilog.split("\n")]
    return [line.replace(r"\[", "[") for line in lines if line.startswith("pendula ")]


def test_the_permanent_commands_exist() -> None:
    assert sorted(LEAVES) == [
        ("actions", "check"),
        ("actions", "run"),
        ("actions", "why"),
        ("backup",),
        ("bench",),
        ("completion",),
        ("credit", "check"),
        ("credit", "compare"),
        ("credit", "fork"),
        ("credit", "new"),
        ("credit", "run"),
        ("credit", "sweep"),
        ("credit", "why"),
        ("fleet", "check"),
        ("fleet", "compile"),
        ("fleet", "draw"),
        ("fleet", "export"),
        ("fleet", "incidents"),
        ("fleet", "new"),
        ("fleet", "payload"),
        ("fleet", "replay"),
        ("fleet", "run"),
        ("fleet", "snapshot"),
        ("fleet", "tune"),
        ("fleet", "why"),
        ("jobs", "ack"),
        ("jobs", "alerts"),
        ("jobs", "audit", "verify"),
        ("jobs", "backup"),
        ("jobs", "cancel"),
        ("jobs", "check"),
        ("jobs", "enqueue"),
        ("jobs", "fail"),
        ("jobs", "free-key"),
        ("jobs", "gates", "list"),
        ("jobs", "gates", "set"),
        ("jobs", "history"),
        ("jobs", "init"),
        ("jobs", "list"),
        *(("jobs", "objects", verb) for verb in OBJECT_VERBS),
        ("jobs", "past"),
        ("jobs", "plans", "list"),
        ("jobs", "plans", "pause"),
        ("jobs", "plans", "put"),
        ("jobs", "plans", "remove"),
        ("jobs", "plans", "resume"),
        ("jobs", "plans", "run-now"),
        ("jobs", "pull"),
        ("jobs", "release"),
        ("jobs", "renew"),
        ("jobs", "requeue"),
        ("jobs", "retain"),
        ("jobs", "rollbacks"),
        ("jobs", "serve"),
        ("jobs", "set-time"),
        ("jobs", "show"),
        ("jobs", "stats"),
        ("jobs", "why"),
        ("jobs", "worker"),
        ("jobs", "workers"),
        ("playback", "cache", "inspect"),
        ("playback", "cache", "repair"),
        ("playback", "cache", "verify"),
        ("playback", "cache", "write"),
        ("playback", "play"),
        ("playback", "run"),
        ("playback", "why"),
        ("replay",),
        ("serve",),
        ("token", "list"),
        ("token", "new"),
        ("token", "revoke"),
    ]


@pytest.mark.parametrize("path", list(COMMANDS), ids=" ".join)
def test_help_of_every_command_ends_with_an_example(path: tuple[str, ...], pendula: Pendula) -> None:
    ended = pendula(*path, "--help")

    assert (ended.code, ended.err) == (0, "")
    assert "Example" in ended.out
    assert examples(COMMANDS[path])
    assert OF_PYTHON.search(ended.out) is None


@pytest.mark.parametrize("path", list(COMMANDS), ids=" ".join)
def test_examples_are_commands_that_exist(path: tuple[str, ...]) -> None:
    for example in examples(COMMANDS[path]):
        rest = shlex.split(example.split(" > ")[0])[1:]
        command: Any = built(rest[0])
        while hasattr(command, "commands") and not rest[0].startswith("-"):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context("pendula", rest)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_takes_json(path: tuple[str, ...]) -> None:
    assert any("--json" in parameter.opts for parameter in COMMANDS[path].params)


@pytest.mark.parametrize("path", list(COMMANDS), ids=" ".join)
def test_help_lines_fit_the_terminal(path: tuple[str, ...]) -> None:
    message = in_plain_words(copy(COMMANDS[path])).help

    assert [one for one in message.strip().split("\n\n") if "\n" in one] == []


def test_without_a_command_the_help_is_shown(pendula: Pendula) -> None:
    ended = pendula()

    assert (ended.code, ended.err) == (0, "")
    assert "replay" in ended.out


def test_help_offers_completion_as_a_command_and_not_as_options(pendula: Pendula) -> None:
    assert "--install-completion" not in pendula("--help").out
    assert "completion" in pendula("--help").out


def test_version_imports_only_what_it_needs(python: Callable[..., Finished]) -> None:
    ended = python(f"import sys\ntry:\n {RUN}\nfinally:\n print(*sys.modules, file=sys.stderr)", "--version")

    assert ended.out == f"pendula {package.__version__}\n"
    assert not {"typer", "rich", "msgspec", "pydantic", "fastapi", "numpy"} & set(ended.err.split())


def test_version_works_beside_other_options(pendula: Pendula) -> None:
    assert pendula("--version", "replay") == Finished(0, f"pendula {package.__version__}\n", "")


def test_a_command_imports_no_library_of_another(python: Callable[..., Finished]) -> None:
    ended = python(f"import sys\ntry:\n {RUN}\nfinally:\n print(*sys.modules)", "replay", "no-such-journal")

    assert ended.code == 3
    assert not {"fastapi", "starlette", "uvicorn", "numpy", "rich"} & set(ended.out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'; see pendula --help"),
        (["replay"], "Missing argument 'JOURNAL', or --db for a store of jobs; see pendula replay --help"),
        (
            ["replay", "x", "--db", "sqlite:///y"],
            "--db excludes JOURNAL, --upto and --force: a trail is replayed to its end",
        ),
        (["replay", "x", "--sideways"], "No such option: --sideways; see pendula replay --help"),
        (["token"], "Missing command; see pendula token --help"),
        (
            ["token", "new", "--name", "x", "--role", "a"],
            "Invalid value for '--role': 'a' is not one of 'viewer', 'operator', 'admin'; see pendula token new --help",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(arguments: list[str], message: str, pendula: Pendula) -> None:
    assert pendula(*arguments) == Finished(2, "", f"pendula: {message} (wrong_usage)\n")


def test_wrong_usage_with_json_is_one_object_on_stderr(pendula: Pendula) -> None:
    ended = pendula("replay", "--json")

    assert (ended.code, ended.out) == (2, "")
    assert json.loads(ended.err) == {
        "error": {
            "code": "wrong_usage",
            "details": {"command": "pendula replay"},
            "message": "Missing argument 'JOURNAL', or --db for a store of jobs; see pendula replay --help",
        }
    }


def test_json_after_two_dashes_is_an_argument(pendula: Pendula) -> None:
    assert pendula("replay", "--", "--json").err.startswith("pendula: No journal found: --json")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["replay"], "pendula: This needs typer"), (["--json"], '{"error":{"code":"missing_extra"')],
)
def test_without_the_dependencies_one_sentence_names_the_install_command(
    arguments: list[str], expected: str, python: Callable[..., Finished]
) -> None:
    ended = python(f"import sys; sys.modules.update(typer=None, rich=None)\n{RUN}", *arguments)

    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith(expected)
    assert "pip install pendula" in ended.err
    assert ended.err.count("\n") == 1


def test_python_m_pendula_is_the_same_program() -> None:
    ended = subprocess.run([sys.executable, "-m", "pendula", "--version"], capture_output=True, check=True, timeout=300)

    assert ended.stdout.decode() == f"pendula {package.__version__}\n"


def test_a_terminal_without_unicode_gets_everything(tmp_path: Path, python: Callable[..., Finished]) -> None:
    frame = tmp_path / "frame.yaml"
    frame.write_text("channels: [{id: sea, records: [{id: 1, ts: 1}, {id: 2, ts: 2}]}]\ncalls: [{next: 2}]\n")

    ended = python(RUN, "playback", "run", str(frame), environ={"PYTHONIOENCODING": "ascii"})

    assert (ended.code, ended.err) == (0, "")
    assert "100.0 %" in ended.out


# Each one is a process; they differ in what writes to stdout: plain text, rich, a table, a document.
SPEAKING = [
    ["--version"],
    pytest.param(["--help"], marks=pytest.mark.long),
    ["replay", "--help"],
    pytest.param([], marks=pytest.mark.long),
    pytest.param(["token", "list", "--data", "none"], marks=pytest.mark.long),
    ["token", "list", "--data", "none", "--json"],
]


@pytest.mark.parametrize("arguments", SPEAKING, ids=" ".join)
def test_a_closed_pipe_ends_the_program_quietly(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        ended = process(arguments, write)
    finally:
        os.close(write)

    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.parametrize("arguments", SPEAKING, ids=" ".join)
def test_with_stdout_closed_the_command_runs_silently(arguments: list[str]) -> None:
    ended = process(arguments, subprocess.PIPE, closed=">&-")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.parametrize("closed", ["2>&-", pytest.param(">&- 2>&-", marks=pytest.mark.long), "<&- >&- 2>&-"], ids=str)
@pytest.mark.parametrize(("arguments", "code"), [(["replay", "no-such-journal"], 3), (["nonsense", "--json"], 2)])
def test_with_stderr_closed_the_exit_code_is_unchanged(arguments: list[str], code: int, closed: str) -> None:
    ended = process(arguments, subprocess.PIPE, closed=closed)

    assert (ended.returncode, ended.stdout, ended.stderr) == (code, b"", b"")


def test_no_opened_file_reuses_the_number_of_a_closed_stream() -> None:
    code = "import os; from pendula.cli.failing import ending; ending([], lambda: os._exit(os.open('.', os.O_RDONLY)))"

    ended = shell([sys.executable, "-c", code], subprocess.PIPE, closed="<&- >&- 2>&-")

    assert ended.returncode > 2


def test_a_library_can_exit_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="7"):
        ending([], lambda: sys.exit(7))


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["token", "list", "--data", "none"]], ids=" ".join)
def test_a_full_disk_behind_stdout_is_a_broken_world(arguments: list[str]) -> None:
    with FULL.open("wb") as full:
        ended = process(arguments, full.fileno())

    assert ended.returncode == 3
    assert b"No space left on device" in ended.stderr
    assert ended.stderr.count(b"\n") == 1


def process(arguments: list[str], stdout: int, *, closed: str = "") -> subprocess.CompletedProcess[bytes]:
    return shell([sys.executable, "-m", "pendula", *arguments], stdout, closed=closed)


def shell(command: list[str], stdout: int, *, closed: str = "") -> subprocess.CompletedProcess[bytes]:
    """The command as a separate process, with the streams closed by these redirections."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=300,
        check=False,
        env=quiet_environment(),
    )


def test_only_the_named_scheduler_is_imported(monkeypatch: pytest.MonkeyPatch, pendula: Pendula) -> None:
    groups = {
        "near": Group("tests.cli.conftest:scheduler", "The near scheduler."),
        "far": Group("no.such:module", "The far scheduler."),
    }
    monkeypatch.setattr(program, "GROUPS", groups)
    monkeypatch.setattr(schedulers, "import_module", lambda name: _SchedulerModule)

    helped, called = pendula("--help"), pendula("near", "greet")

    assert "The near scheduler." in helped.out
    assert "The far scheduler." in helped.out
    assert called == Finished(0, "hello\n", "")


class _SchedulerModule:
    scheduler = typer.Typer()

    @staticmethod
    @scheduler.command()
    def greet() -> None:
        typer.echo("hello")

    @staticmethod
    @scheduler.command()
    def leave() -> None:
        typer.echo("bye")
