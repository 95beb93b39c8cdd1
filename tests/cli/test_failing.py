"""Every failure has an exit code and one form, whatever facts it carries and whatever characters are in it."""

import json
import sys
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import typer
from msgspec import Struct

from pendula.cli import failing, program
from pendula.cli.failing import InternalError, report, require, understood, wants_json
from pendula.documents.faults import DocumentRefused, Fault
from pendula.kernel.errors import InputRefused, MissingExtra, PendulaError, WorldBroken, WrongUsage
from tests.cli.conftest import Finished, Pendula

ROOT = Path(__file__).resolve().parents[2]


class OddFact(Struct):
    place: Path


def failing_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `pendula token list` end in `error`."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("pendula.cli.commands.token._store", fail)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputRefused("No"), 1, "pendula: No (input_refused)\n"),
        (WrongUsage("Not so"), 2, "pendula: Not so (wrong_usage)\n"),
        (WorldBroken("Gone"), 3, "pendula: Gone (world_broken)\n"),
        (OSError(28, "No space left on device", "a/b"), 3, "pendula: a/b: No space left on device (world_broken)\n"),
        (OSError("odd"), 3, "pendula: odd (world_broken)\n"),
        (typer.BadParameter("Not\n\ta day"), 2, "pendula: Invalid value: Not a day"),
        (KeyboardInterrupt(), 130, "pendula: Interrupted: nothing was written (interrupted)\n"),
        (typer.Abort(), 130, "pendula: Interrupted: nothing was written (interrupted)\n"),
        (typer.Exit(5), 5, ""),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_each_kind_of_failure_has_its_exit_code_and_line(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    failing_with(error, monkeypatch)

    ended = pendula("token", "list")

    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(message)
    assert ended.err.count("\n") <= 1


def test_a_defect_is_one_line_without_traceback(monkeypatch: pytest.MonkeyPatch, pendula: Pendula) -> None:
    failing_with(ZeroDivisionError("division by zero"), monkeypatch)

    assert pendula("token", "list") == Finished(
        3,
        "",
        "pendula: Internal error: ZeroDivisionError: division by zero; PENDULA_DEBUG=1 shows the traceback"
        " (internal_error)\n",
    )


def test_the_debug_option_shows_the_traceback_of_a_defect(monkeypatch: pytest.MonkeyPatch, pendula: Pendula) -> None:
    failing_with(ZeroDivisionError("division by zero"), monkeypatch)
    monkeypatch.setenv("PENDULA_DEBUG", "1")

    ended = pendula("token", "list")

    assert ended.err.startswith("Traceback")
    assert "in fail" in ended.err
    assert ended.err.endswith("(internal_error)\n")


def test_json_errors_have_code_message_and_details(monkeypatch: pytest.MonkeyPatch, pendula: Pendula) -> None:
    failing_with(InputRefused("No", place="here", allowed=[1, 2]), monkeypatch)

    ended = pendula("token", "list", "--json")

    assert ended == Finished(
        1,
        "",
        '{"error":{"code":"input_refused","details":{"allowed":[1,2],"place":"here"},"message":"No"}}\n',
    )


def test_a_refused_document_has_a_line_for_each_fault(monkeypatch: pytest.MonkeyPatch, pendula: Pendula) -> None:
    faults = [
        Fault(code="x", path="$.a", line=1, column=2, value=3, message="3 is odd", allowed=("2", "4")),
        Fault(code="y", path="$.b", line=3, column=4, value=None, message="null is nothing"),
    ]
    failing_with(DocumentRefused(faults, "town.yaml"), monkeypatch)

    plain, as_json = pendula("token", "list"), pendula("token", "list", "--json")

    assert plain == Finished(
        1, "", "town.yaml:1:2: $.a: 3 is odd; allowed: 2, 4\ntown.yaml:3:4: $.b: null is nothing\n"
    )
    assert [fault["path"] for fault in json.loads(as_json.err)["error"]["details"]["faults"]] == ["$.a", "$.b"]


@pytest.mark.parametrize(
    ("fact", "shown"),
    [
        (Path("a/b"), "a/b"),
        (1.5, "1.5"),
        (b"x", "b'x'"),
        (float("nan"), "nan"),
        (Decimal("NaN"), "NaN"),
        (Decimal("1.5"), 1.5),
        ({1: {2}}, {"1": "{2}"}),
        ((1, None, True), [1, None, True]),
        ("half \udcff", "half \\udcff"),
        (OddFact(Path("p")), {"place": "p"}),
    ],
)
def test_any_fact_of_an_error_can_be_reported(fact: Any, shown: Any, capsys: pytest.CaptureFixture[str]) -> None:
    report(InputRefused("No", fact=fact), as_json=True)

    assert json.loads(capsys.readouterr().err)["error"]["details"] == {"fact": shown}


def test_control_characters_and_surrogates_reach_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report(InputRefused("a\nb\x1b[31m\udcff é"), as_json=False)

    assert capsys.readouterr().err == "pendula: a\\nb\\x1b[31m\\udcff é (input_refused)\n"


def test_a_file_name_with_invalid_unicode_is_reported(pendula: Pendula) -> None:
    plain, as_json = pendula("replay", "\udcff"), pendula("replay", "\udcff", "--json")

    assert plain == Finished(3, "", "pendula: No journal found: \\udcff does not exist (journal_missing)\n")
    assert json.loads(as_json.err)["error"]["details"] == {"path": "\\udcff"}


@pytest.mark.parametrize(
    ("arguments", "wanted"), [([], False), (["a", "--json"], True), (["--", "--json"], False), (["--json", "--"], True)]
)
def test_errors_are_json_if_json_is_among_the_options(arguments: list[str], wanted: bool) -> None:
    assert wants_json(arguments) is wanted


def test_without_dependencies_the_error_names_the_plain_install_command(
    monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.setitem(sys.modules, "structlog", None)

    ended = pendula("serve")

    assert ended == Finished(
        3, "", "pendula: This needs structlog; install with: pip install pendula (missing_extra)\n"
    )


def test_this_environment_has_every_part() -> None:
    for part in (*failing.PLAIN, *failing.EXTRAS):
        require(part)


def modules_of(requirements: list[str]) -> set[str]:
    return {requirement.partition(">=")[0].partition("[")[0].replace("-", "_") for requirement in requirements}


def test_every_part_a_command_needs_is_declared_by_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    for modules in failing.PLAIN.values():
        assert set(modules) <= modules_of(project["dependencies"])
    for extra, modules in failing.EXTRAS.items():
        assert set(modules) <= modules_of(project["optional-dependencies"][extra])


@pytest.mark.parametrize("error", [InputRefused("x"), InternalError("x"), MissingExtra("x")])
def test_an_error_with_a_code_is_kept(error: PendulaError) -> None:
    assert understood(error) is error


def test_a_failing_program_writes_nothing_to_stdout(monkeypatch: pytest.MonkeyPatch, pendula: Pendula) -> None:
    monkeypatch.setattr(program, "build", lambda first: (_ for _ in ()).throw(RuntimeError("early")))

    assert pendula("replay", "x").out == ""
