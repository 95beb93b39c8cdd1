"""New artwork over MQTT through every interface: the commands `run` and `play`, and a server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pendula.cli.commands.playback.run import PASSWORD as PASSWORD_VARIABLE
from pendula.kernel.errors import MissingExtra
from pendula.playback.model import InvalidParameter
from pendula.playback.sources import mqtt
from pendula.playback.sources.mqtt import read_address
from pendula.server.settings import Settings, load
from tests.playback.broker import PASSWORD, BrokerThread
from tests.playback.program import media, pendula, written
from tests.playback.sources.test_mqtt import event
from tests.server.living import JSON, LiveServer, until
from tests.server.screens import STILL, records

pytestmark = pytest.mark.req("PLAY-NAE-11")

PREFIX = "gallery"
TWO = """\
seed: 1
channels: [{id: a, records: [{id: 1, ts: 4}, {id: 2, ts: 3}, {id: 3, ts: 2}]}]
lookahead: 4
"""


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerThread]:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    with BrokerThread() as broker:
        yield broker


def program(*arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "pendula", "playback", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("calls", ["", "calls: [{next: 12}]\n"], ids=["count", "calls"])
def test_run_inserts_received_artwork_before_the_first_call(tmp_path: Path, broker: BrokerThread, calls: str) -> None:
    file = written(tmp_path / "a.yaml", TWO + calls)
    count = [] if calls else ["--count", "12"]
    source = ["--mqtt", broker.url(PREFIX), "--player", "frame-7", "--receive", "2"]
    running = program("run", file, *count, *source, "--json")

    broker.publish(f"{PREFIX}/player/frame-7/new-artwork", event(), event("e1"), event("e2", 901))
    out, err = running.communicate(timeout=300)

    result = json.loads(out)
    assert (running.returncode, err) == (0, "")
    assert {900, 901} <= {item["id"] for item in result["items"] if item["origin"] == "nae"}
    assert result["stats"]["nae"]["inserts"] == 2


def test_run_fails_with_the_missing_number_if_too_little_arrives(tmp_path: Path, broker: BrokerThread) -> None:
    file = written(tmp_path / "a.yaml", TWO)

    ended = pendula("run", file, "--count", 1, "--mqtt", broker.url(PREFIX), "--player", "k", "--receive-s", 1)

    assert ended.code == 3
    assert "0 of 1 messages arrived within 1 s for gallery/player/k/new-artwork" in ended.err


def test_play_shows_artwork_published_while_it_runs(tmp_path: Path, broker: BrokerThread) -> None:
    folder = media(tmp_path / "sea", "a.png", "b.png", "c.png")
    running = program("play", folder, "--dwell-ms", 5, "--mqtt", broker.url(PREFIX), "--player", "frame-7")
    assert running.stderr is not None
    try:
        broker.publish(f"{PREFIX}/player/frame-7/new-artwork", event())
        found = any("900" in line for line in running.stderr)  # one line for each picture, until it is shown
    finally:
        running.terminate()
        running.communicate(timeout=300)

    assert found


def test_every_player_of_a_server_listens_under_its_own_name(tmp_path: Path, broker: BrokerThread) -> None:
    file = tmp_path / "pendula.toml"
    file.write_text(f'[playback]\nmqtt = "{broker.url(PREFIX)}"\nmqtt_password = "{PASSWORD}"\n')
    settings = load({"config": str(file), "data": str(tmp_path / "data"), "port": 0}, {})

    with LiveServer(settings, (STILL,)) as server, server.client(headers=JSON) as client:
        client.put("/api/v1/playback/channels/a", json={"records": records(1, 2, 3)}).raise_for_status()
        for name in ("hall", "yard"):
            body = {"name": name, "channels": ["a"], "seed": 1}
            client.post("/api/v1/playback", json=body).raise_for_status()
        broker.publish(f"{PREFIX}/player/hall/new-artwork", event())
        until(lambda: inserts(client, "hall") == 1)
        broker.publish(f"{PREFIX}/player/yard/new-artwork", event(), event("e2", 901))
        until(lambda: inserts(client, "yard") == 2)
        taken = client.post("/api/v1/playback/hall/commands", json={"type": "take", "n": 64}).json()

        assert inserts(client, "hall") == 1
        assert 900 in [item["id"] for item in taken["answer"]]


def inserts(client: Any, player: str) -> int:
    found: int = client.get(f"/api/v1/playback/{player}/stats").json()["nae"]["inserts"]
    return found


# URLs


def test_an_address_has_a_broker_and_a_prefix() -> None:
    address = read_address("mqtts://frame:behind%20it@broker.example.org/a/b")

    broker = address.broker
    assert (broker.host, broker.port, broker.username, broker.password) == (
        "broker.example.org",
        8883,
        "frame",
        "behind it",
    )
    assert broker.tls is not None
    assert address.prefix == "a/b"
    assert read_address("mqtt://h/x", "secret").broker == mqtt.Broker("h", 1883, password="secret")


@pytest.mark.parametrize("url", ["http://h/x", "mqtt://h", "mqtt:///x", "mqtt://h:0x/x", "mqtt://h/x+", "x", ""])
def test_an_invalid_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidParameter, match="must be"):
        read_address(url)


def test_errors_of_invalid_settings_reveal_no_password(tmp_path: Path) -> None:
    file = tmp_path / "pendula.toml"
    file.write_text('[playback]\nmqtt = "mqtt://frame:hidden@h"\n')

    with pytest.raises(Exception, match=r"playback\.mqtt") as refused:
        load({"config": str(file)}, {})

    assert "hidden" not in str(refused.value)
    assert Settings().playback.mqtt is None


def test_the_options_require_each_other(tmp_path: Path) -> None:
    ended = pendula("run", written(tmp_path / "a.yaml", TWO), "--count", 1, "--player", "k")

    assert (ended.code, "must be given together" in ended.err) == (2, True)


def test_play_with_fast_cannot_receive(tmp_path: Path) -> None:
    options = ["--fast", "--count", 1, "--mqtt", "mqtt://h/x", "--player", "k"]

    ended = pendula("play", media(tmp_path / "sea", "a.png"), *options)

    assert (ended.code, "--fast does not wait for messages" in ended.err) == (2, True)


def test_without_the_extra_the_options_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt, "find_spec", lambda _: None)

    with pytest.raises(MissingExtra):
        mqtt.require_library()
    ended = pendula("run", written(tmp_path / "a.yaml", TWO), "--count", 1, "--mqtt", "mqtt://h/x", "--player", "k")

    assert "mqtt" in ended.err
    assert ended.code != 0
