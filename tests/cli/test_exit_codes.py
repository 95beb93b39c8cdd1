"""An exit code has one meaning, whichever command ends with it."""

from pathlib import Path

import pytest

from pendula.cli.failing import MEANINGS
from scripts import reference
from scripts.reference import all_error_kinds
from tests.cli.conftest import Pendula
from tests.cli.test_program import LEAVES


def test_every_error_of_every_module_has_a_documented_exit_code() -> None:
    assert {kind.exit_code for kind in all_error_kinds()} <= set(MEANINGS)


def test_the_reference_has_the_table() -> None:
    page = reference.commands()

    for code, meaning in MEANINGS.items():
        assert f"| {code} | {meaning} |" in page


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_a_wrong_command_line_is_2_for_every_command(path: tuple[str, ...], pendula: Pendula) -> None:
    assert pendula(*path, "--no-such-option").code == 2


ABSENT = [
    "actions check gone.yaml",
    "actions run gone.yaml",
    "actions why gone.yaml floor --at 9",
    "backup gone",
    "credit check gone.json",
    "credit compare gone.json",
    "credit run gone.json --ticks 3",
    "credit sweep gone.json --ticks 3",
    "credit why gone --from a --to b --equivalent H --amount 1",
    "fleet check gone.json --profiles gone.json",
    "fleet compile gone.json --profiles gone.json -o x.json",
    "fleet draw gone.map.json -o x.svg",
    "fleet export gone",
    "fleet incidents gone",
    "fleet replay gone",
    "fleet run gone.yaml",
    "fleet tune gone.yaml",
    "jobs check --db sqlite:///gone.db",
    "jobs enqueue memory m decay --db sqlite:///gone.db",
    "jobs list --db sqlite:///gone.db",
    "jobs list --url http://127.0.0.1:1",
    "jobs worker --handlers json --once --db sqlite:///gone.db",
    "playback cache inspect gone.pch",
    "playback cache verify gone.pch",
    "playback play gone --count 1",
    "playback run gone.yaml --count 3",
    "playback why gone.yaml 3",
    "replay gone",
    "replay --db sqlite:///gone.db",
]


@pytest.mark.parametrize("words", ABSENT)
def test_a_missing_file_is_3_for_every_command(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.chdir(tmp_path)

    ended = pendula(*words.split())

    assert (ended.code, ended.out) == (3, ""), ended.err
    assert list(tmp_path.iterdir()) == []
