"""`pendula token` makes, lists and revokes tokens of a data directory; a secret is printed once, on stdout."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from pendula.cli.commands.token import SECONDS_A_DAY, RoleName
from pendula.server.security.identity import Role, TokenStore, wall_seconds
from tests.cli.conftest import Finished, Pendula


def test_the_secret_alone_is_on_stdout(tmp_path: Path, pendula: Pendula) -> None:
    ended = pendula("token", "new", "--name", "night", "--role", "operator", "--data", tmp_path)

    secret = ended.out.removesuffix("\n")
    known = TokenStore(tmp_path).check(secret)
    assert ended.code == 0
    assert known is not None
    assert (known.name, known.role, known.expires_at) == ("night", Role.OPERATOR, None)
    assert secret not in ended.err


def test_a_new_token_as_json_carries_its_secret(tmp_path: Path, pendula: Pendula) -> None:
    before = wall_seconds()

    ended = pendula(
        "token", "new", "--name", "night", "--role", "viewer", "--expires-days", 2, "--data", tmp_path, "--json"
    )

    token = json.loads(ended.out)
    assert TokenStore(tmp_path).check(token["secret"]) is not None
    assert (token["name"], token["role"], token["state"]) == ("night", "viewer", "good")
    assert before + 2 * SECONDS_A_DAY <= token["expires_at"] <= wall_seconds() + 2 * SECONDS_A_DAY


def test_a_list_shows_states_and_never_secrets(tmp_path: Path, pendula: Pendula) -> None:
    made = TokenStore(tmp_path, now=lambda: 1_000)
    made.new("old", "admin", 2_000)
    _, secret = made.new("day", "viewer")
    pendula("token", "revoke", "day", "--data", tmp_path)
    pendula("token", "new", "--name", "night", "--role", "operator", "--data", tmp_path)

    table, as_json = (
        pendula("token", "list", "--data", tmp_path),
        pendula("token", "list", "--data", tmp_path, "--json"),
    )

    listed = json.loads(as_json.out)["tokens"]
    assert [(it["name"], it["role"], it["state"]) for it in listed] == [
        ("old", "admin", "expired"),
        ("day", "viewer", "revoked"),
        ("night", "operator", "good"),
    ]
    assert set(listed[0]) == {"created_at", "expires_at", "name", "role", "state"}
    assert re.search(r"old +admin +expired +1970-01-01 +1970-01-01", table.out)
    assert secret not in table.out + as_json.out


def test_an_empty_list_of_tokens_is_reported(tmp_path: Path, pendula: Pendula) -> None:
    assert pendula("token", "list", "--data", tmp_path / "none") == Finished(0, "No tokens.\n", "")
    assert pendula("token", "list", "--data", tmp_path / "none", "--json").out == '{"tokens":[]}\n'
    assert not (tmp_path / "none").exists()


def test_a_revoked_token_is_refused(tmp_path: Path, pendula: Pendula) -> None:
    _, secret = TokenStore(tmp_path).new("night", "operator")

    ended = pendula("token", "revoke", "night", "--data", tmp_path)

    assert ended == Finished(0, "Token night is revoked.\n", "")
    assert TokenStore(tmp_path).check(secret) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["new", "--name", "Not A Name", "--role", "viewer"],
        ["new", "--name", "taken", "--role", "viewer"],
        ["revoke", "nobody"],
    ],
)
def test_invalid_names_roles_and_times_are_refused(arguments: list[str], tmp_path: Path, pendula: Pendula) -> None:
    TokenStore(tmp_path).new("taken", "viewer")

    ended = pendula("token", *arguments, "--data", tmp_path)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.endswith("(invalid_token)\n")


@pytest.mark.parametrize(
    "arguments",
    [["--role", "king"], ["--role", "viewer", "--expires-days", "0"], ["--role", "viewer", "--expires-days", "x"]],
)
def test_wrong_options_are_wrong_usage(arguments: list[str], tmp_path: Path, pendula: Pendula) -> None:
    ended = pendula("token", "new", "--name", "x", *arguments, "--data", tmp_path)

    assert (ended.code, ended.out) == (2, "")
    assert list(tmp_path.iterdir()) == []


def test_the_data_directory_is_that_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.setenv("PENDULA_DATA", str(tmp_path / "from-environment"))
    settings = tmp_path / "settings.toml"
    settings.write_text(f"data = '{tmp_path / 'from-file'}'\n")

    pendula("token", "new", "--name", "a", "--role", "viewer")
    monkeypatch.delenv("PENDULA_DATA")
    pendula("token", "new", "--name", "b", "--role", "viewer", "--config", settings)

    assert [record.name for record in TokenStore(tmp_path / "from-environment").list()] == ["a"]
    assert [record.name for record in TokenStore(tmp_path / "from-file").list()] == ["b"]


def test_the_roles_offered_are_those_of_the_server() -> None:
    assert get_args(RoleName) == tuple(Role)
