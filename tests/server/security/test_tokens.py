"""Tokens are shown once, stored as digests, and refused when wrong, revoked, expired or unreadable."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from pendula.server.errors import InvalidToken, TokensUnreadable
from pendula.server.security.identity import (
    COOKIE,
    MOST_SESSIONS,
    SECRET_PATTERN,
    SESSION_SECONDS,
    TOKENS_FILE,
    Role,
    Sessions,
    TokenStore,
    Via,
    cookie_value,
    set_cookie,
)


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000_000

    def __call__(self) -> int:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> TokenStore:
    return TokenStore(tmp_path / "data", clock)


def test_a_new_token_is_recognised_by_its_secret(store: TokenStore) -> None:
    record, secret = store.new("night-shift", Role.OPERATOR)

    assert store.check(secret) == record
    assert SECRET_PATTERN.fullmatch(secret)
    assert (record.name, record.role, record.expires_at) == ("night-shift", Role.OPERATOR, None)


def test_only_the_digest_of_a_secret_is_stored_readable_by_the_owner_alone(store: TokenStore, tmp_path: Path) -> None:
    _, secret = store.new("night-shift", "viewer")

    path = tmp_path / "data" / TOKENS_FILE
    kept = path.read_text()
    assert secret not in kept
    assert json.loads(kept)["tokens"][0]["sha256"] == sha256(secret.encode()).hexdigest()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("secret", ["", "pendula_", "x" * 51, "\udcff", "é"])
def test_a_wrong_secret_is_refused(store: TokenStore, secret: str) -> None:
    store.new("night-shift", "viewer")

    assert store.check(secret) is None


def test_an_expired_token_is_refused(store: TokenStore, clock: Clock) -> None:
    _, secret = store.new("guest", "viewer", clock.seconds + 10)

    clock.seconds += 9
    assert store.check(secret) is not None
    clock.seconds += 1
    assert store.check(secret) is None


def test_a_revoked_token_is_refused_and_its_name_stays_taken(store: TokenStore) -> None:
    _, secret = store.new("guest", "viewer")

    store.revoke("guest")

    assert store.check(secret) is None
    assert store.configured
    with pytest.raises(InvalidToken, match="choose an unused name"):
        store.new("guest", "viewer")


def test_a_running_server_notices_tokens_created_elsewhere(store: TokenStore, tmp_path: Path, clock: Clock) -> None:
    assert not store.configured
    other = TokenStore(tmp_path / "data", clock)

    _, secret = other.new("guest", "viewer")
    assert store.check(secret) is not None

    other.revoke("guest")
    assert store.check(secret) is None


@pytest.mark.parametrize("name", ["", "Guest", "a b", "a" * 65, "../x", "local"])
def test_names_that_look_alike_in_journals_are_refused(store: TokenStore, name: str) -> None:
    with pytest.raises(InvalidToken):
        store.new(name, "viewer")


def test_invalid_roles_and_times_are_refused(store: TokenStore, clock: Clock) -> None:
    with pytest.raises(InvalidToken, match="viewer, operator, admin"):
        store.new("guest", "root")
    with pytest.raises(InvalidToken, match="time in the future"):
        store.new("guest", "viewer", clock.seconds)
    with pytest.raises(InvalidToken, match="there are none"):
        store.revoke("nobody")


@pytest.mark.parametrize("damage", [b"", b"{", b'{"format":2,"tokens":[]}', b'{"format":1,"tokens":[{"name":"x"}]}'])
def test_a_damaged_token_file_refuses_every_caller(store: TokenStore, tmp_path: Path, damage: bytes) -> None:
    _, secret = store.new("guest", "viewer")

    (tmp_path / "data" / TOKENS_FILE).write_bytes(damage)

    with pytest.raises(TokensUnreadable):
        store.check(secret)
    with pytest.raises(TokensUnreadable):
        _ = store.configured


def test_a_deleted_token_file_does_not_open_the_server(store: TokenStore, tmp_path: Path) -> None:
    store.new("guest", "viewer")
    assert store.configured

    (tmp_path / "data" / TOKENS_FILE).unlink()

    with pytest.raises(TokensUnreadable, match="vanished"):
        _ = store.configured


def test_a_role_includes_the_lower_ones() -> None:
    assert [role.covers(Role.OPERATOR) for role in Role] == [False, True, True]


def test_a_session_replaces_its_token_for_twelve_hours(store: TokenStore, clock: Clock) -> None:
    record, _ = store.new("guest", "operator")
    sessions = Sessions(store, clock)

    value, principal = sessions.start(record)

    assert (principal.name, principal.role, principal.via) == ("guest", Role.OPERATOR, Via.SESSION)
    clock.seconds += SESSION_SECONDS - 1
    assert sessions.find(value) == principal
    clock.seconds += 1
    assert sessions.find(value) is None


def test_a_session_ends_with_its_token(store: TokenStore, clock: Clock) -> None:
    record, _ = store.new("guest", "viewer")
    brief, _ = store.new("brief", "viewer", clock.seconds + 5)
    sessions = Sessions(store, clock)
    value, _ = sessions.start(record)
    brief_value, _ = sessions.start(brief)

    clock.seconds += 5
    assert sessions.find(brief_value) is None
    store.revoke("guest")
    assert sessions.find(value) is None


def test_an_ended_session_is_unknown(store: TokenStore, clock: Clock) -> None:
    record, _ = store.new("guest", "viewer")
    sessions = Sessions(store, clock)
    value, _ = sessions.start(record)

    sessions.end(value)

    assert sessions.find(value) is None


def test_sessions_survive_a_restart_and_their_file_reveals_no_cookie(
    store: TokenStore, clock: Clock, tmp_path: Path
) -> None:
    record, _ = store.new("guest", "viewer")
    before = Sessions(store, clock, tmp_path)
    kept, _ = before.start(record)
    ended, _ = before.start(record)
    before.end(ended)

    after = Sessions(store, clock, tmp_path)
    after.load()

    assert after.find(kept) is not None
    assert after.find(kept) == before.find(kept)
    assert after.find(ended) is None
    assert kept not in (tmp_path / "sessions.json").read_text()
    assert (tmp_path / "sessions.json").stat().st_mode & 0o777 == 0o600


def test_an_unreadable_session_file_only_ends_the_sessions(store: TokenStore, clock: Clock, tmp_path: Path) -> None:
    (tmp_path / "sessions.json").write_text("[")
    sessions = Sessions(store, clock, tmp_path)
    sessions.load()
    record, _ = store.new("guest", "viewer")

    value, principal = sessions.start(record)

    assert sessions.find(value) == principal


def test_the_number_of_sessions_is_bounded(store: TokenStore, clock: Clock) -> None:
    record, _ = store.new("guest", "viewer")
    sessions = Sessions(store, clock)
    values = [sessions.start(record)[0] for _ in range(MOST_SESSIONS + 1)]

    assert sessions.find(values[0]) is None
    assert sessions.find(values[-1]) is not None


def test_scripts_and_other_sites_cannot_reach_the_cookie() -> None:
    assert set_cookie("v", 5, secure=False) == f"{COOKIE}=v; Max-Age=5; Path=/; HttpOnly; SameSite=Strict"
    assert set_cookie("v", 5, secure=True).endswith("; Secure")


@pytest.mark.parametrize(
    ("header", "value"),
    [(None, None), ("", None), ("a=b", None), (f"a=b; {COOKIE}=v", "v"), ("]=\0;", None), (f'{COOKIE}="q"', "q")],
)
def test_our_cookie_is_found_among_others(header: str | None, value: str | None) -> None:
    assert cookie_value(header) == value
