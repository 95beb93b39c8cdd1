"""`pendula credit run --engine`: payments and clearing through a service over HTTP."""

from pathlib import Path

import pytest

from tests.cli.commands.credit.villages import OFTEN, RING, error, read_json, write_file
from tests.cli.conftest import Pendula
from tests.credit.core import serving_core


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    return write_file(tmp_path / "ring.json")


@pytest.mark.req("SIM-PAY-24", "SIM-API-20")
def test_a_run_through_a_service_equals_the_embedded_one(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    run = ("credit", "run", ring, "--ticks", "9", *OFTEN, "--json")
    embedded = read_json(pendula(*run))
    token = tmp_path / "token"
    token.write_text("secret-word\n", encoding="utf-8")

    with serving_core(RING) as core:
        through = ("--engine", core.url, "--engine-token-file", token, "--journal", tmp_path / "journal")
        outside = read_json(pendula(*run, *through, "--set", "max_in_flight=3"))
        headers = core.posts[0][2]

    assert outside["digests"] == embedded["digests"]
    assert outside["clearing"] == embedded["clearing"] != []
    assert headers["authorization"] == "Bearer secret-word"
    assert core.paths.count("/clearing") == 2
    assert [one["code"] for one in outside["diagnostics"]] == ["seed_not_given", "outside_ledger"]
    replayed = pendula("replay", tmp_path / "journal", "--json")
    assert replayed.code == 0, replayed


@pytest.mark.req("SIM-PAY-24")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--engine", "core"), "is not the address of a payment service"),
        (("--engine", "http://x", "--engine-token-file", "nowhere"), "cannot be read"),
        (("--engine-token-file", "nowhere"), "--engine-token-file needs --engine"),
    ],
)
def test_an_unusable_engine_is_wrong_usage(ring: Path, pendula: Pendula, options: tuple[str, ...], words: str) -> None:
    ended = pendula("credit", "run", ring, "--ticks", "1", *options, "--json")

    assert ended.code == 2
    assert words in error(ended)["message"]


@pytest.mark.req("SIM-PAY-24", "SIM-ERR-4")
def test_an_unreachable_service_fails_every_payment(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    with serving_core(RING) as core:
        url = core.url

    journal = tmp_path / "journal"

    output = read_json(pendula("credit", "run", ring, "--ticks", "2", "--engine", url, "--journal", journal, "--json"))

    assert output["counters"]["errors_total"] == output["counters"]["attempts_total"] == 40
    (trouble,) = [one for one in output["diagnostics"] if one["code"] == "engine_unreachable"]
    assert trouble["message"] == f"The payment service {url}/payments brought no result: connection refused."
    assert trouble["count"] == 40
    replayed = pendula("replay", journal, "--json")
    assert replayed.code == 0, replayed
