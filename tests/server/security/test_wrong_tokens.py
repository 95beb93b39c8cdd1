"""Wrong tokens: a few are allowed, many are throttled, and valid ones are never delayed."""

from typing import Any

import httpx
import pytest

from pendula.server.errors import NotIdentified
from pendula.server.security import gates
from pendula.server.security.gates import AT_ONCE, SECONDS_EACH, WrongTokens, address_of
from pendula.server.security.identity import TokenStore
from pendula.server.settings import Settings
from tests.server.living import client_of, code_of, running, supervisor_of

SLIP = NotIdentified("wrong")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def of(address: str) -> dict[str, Any]:
    return {"client": (address, 50_000)}


def codes(wrong: WrongTokens, count: int, address: str = "192.0.2.1") -> list[str]:
    return [wrong.wrong(of(address), SLIP).code for _ in range(count)]


def test_a_wrong_token_beyond_the_allowed_burst_has_to_wait() -> None:
    assert codes(WrongTokens(Clock()), AT_ONCE + 2) == [SLIP.code] * AT_ONCE + ["too_many_wrong_tokens"] * 2


def test_each_waiting_period_allows_one_more_attempt() -> None:
    clock = Clock()
    wrong = WrongTokens(clock)
    codes(wrong, AT_ONCE)
    clock.now += SECONDS_EACH

    assert codes(wrong, 2) == [SLIP.code, "too_many_wrong_tokens"]


def test_after_the_announced_wait_another_attempt_is_allowed() -> None:
    clock = Clock()
    wrong = WrongTokens(clock)
    codes(wrong, AT_ONCE)
    response = wrong.wrong(of("192.0.2.1"), SLIP)
    clock.now += response.details["retry_after_seconds"]

    assert wrong.wrong(of("192.0.2.1"), SLIP) is SLIP


def test_other_addresses_are_not_affected() -> None:
    wrong = WrongTokens(Clock())
    codes(wrong, AT_ONCE + 1)

    assert codes(wrong, 1, "192.0.2.2") == [SLIP.code]


def test_a_valid_token_clears_the_count_of_wrong_ones() -> None:
    wrong = WrongTokens(Clock())
    codes(wrong, AT_ONCE)
    wrong.right(of("192.0.2.1"))

    assert codes(wrong, AT_ONCE) == [SLIP.code] * AT_ONCE


def test_the_table_is_bounded_and_evicts_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "MOST_ADDRESSES", 3)
    wrong = WrongTokens(Clock())
    codes(wrong, AT_ONCE, "192.0.2.0")
    for last in (1, 2, 3):
        codes(wrong, 1, f"192.0.2.{last}")

    assert len(wrong) == 3
    assert codes(wrong, 1, "192.0.2.0") == [SLIP.code]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::9", "2001:db8:1:2::/64"),
        ("unix", "unix"),
    ],
)
def test_addresses_of_one_network_count_as_one(address: str, shown: str) -> None:
    assert address_of(of(address)) == shown


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/api/v1/schedulers", "/scheduler/jobs"])
async def test_wrong_tokens_in_headers_are_throttled_and_valid_ones_pass(settings: Settings, path: str) -> None:
    _, secret = TokenStore(settings.data).new("shift", "operator")
    async with running(settings) as app, client_of(app) as client:
        # The calls are too quick for any of them to expire.
        supervisor_of(app).wrong_tokens._now = Clock()
        for _ in range(AT_ONCE):
            slip = await client.get("/api/v1/schedulers", headers={"authorization": "Bearer wrong"})
        response = await client.get(path, headers={"authorization": "Bearer wrong"})
        right = await client.get("/api/v1/schedulers", headers={"authorization": f"Bearer {secret}"})
        after = await client.get("/api/v1/schedulers", headers={"authorization": "Bearer wrong"})

    assert (slip.status_code, response.status_code, right.status_code, after.status_code) == (401, 429, 200, 401)
    assert response.headers["retry-after"] == str(int(SECONDS_EACH))


@pytest.mark.anyio
async def test_wrong_tokens_at_sign_in_count_like_those_in_headers(settings: Settings) -> None:
    TokenStore(settings.data).new("shift", "operator")
    async with running(settings) as app, client_of(app) as client:
        # The calls are too quick for any of them to expire.
        supervisor_of(app).wrong_tokens._now = Clock()
        for _ in range(AT_ONCE):
            await client.get("/api/v1/schedulers", headers={"authorization": "Bearer wrong"})

        response = await client.post("/api/v1/session", json={"token": "wrong"})

    assert (response.status_code, code_of(response)) == (429, "too_many_wrong_tokens")


@pytest.mark.anyio
async def test_behind_a_proxy_the_forwarded_address_counts(settings: Settings) -> None:
    TokenStore(settings.data).new("shift", "operator")
    given = Settings(data=settings.data, behind_proxy=True)

    async def ask(client: httpx.AsyncClient, address: str) -> int:
        headers = {"authorization": "Bearer wrong", "x-forwarded-for": f"203.0.113.9, {address}"}
        return (await client.get("/api/v1/schedulers", headers=headers)).status_code

    async with running(given) as app, client_of(app) as client:
        first = [await ask(client, "192.0.2.1") for _ in range(AT_ONCE + 1)]
        other = await ask(client, "192.0.2.2")

    assert (first[-1], other) == (429, 401)
