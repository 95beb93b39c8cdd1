"""The specification of the playback scheduler, section by section, through the outermost interface."""

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from pendula.cli.commands.playback.run import PASSWORD as PASSWORD_VARIABLE
from pendula.playback.model import RECORD_BYTES
from pendula.server.settings import PlaybackSettings, Settings
from tests.playback.broker import PASSWORD, BrokerThread
from tests.playback.program import pendula, written
from tests.server.screens import STILL, records
from tests.specifications.serving import serving

EXAMPLES = Path(__file__).parents[2] / "examples" / "specifications"
BASE = "/api/v1/playback"


def channel(name: str, *ids: int) -> dict[str, Any]:
    """A channel with its newest record first."""
    return {"id": name, "records": [{"id": id, "ts": 1000 - place} for place, id in enumerate(ids)]}


def ran(folder: Path, document: dict[str, Any], *options: object) -> dict[str, Any]:
    """The output of `pendula playback run FILE --json`."""
    file = written(folder / "player.yaml", yaml.safe_dump({"seed": 1, **document}))
    ended = pendula("run", file, *options, "--json")
    assert ended.code == 0, ended.err
    result: dict[str, Any] = ended.result
    return result


def shown(result: dict[str, Any]) -> list[int]:
    return [item["id"] for item in result["items"] if item is not None]


def answers(result: dict[str, Any], call: str) -> list[Any]:
    return [one.get("items", one.get("result")) for one in result["calls"] if one["call"] == call]


def ids_of(items: list[Any]) -> list[int | None]:
    return [None if item is None else item["id"] for item in items]


def calls(*calls: dict[str, Any], **document: Any) -> dict[str, Any]:
    return {"channels": [channel("a", 1, 2, 3, 4), channel("b", 11, 12, 13)], "calls": list(calls), **document}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = Settings(data=str(tmp_path_factory.mktemp("served")), port=0)
    with serving(settings, (STILL,)) as client:
        client.put(f"{BASE}/channels/a", json={"records": records(1, 2, 3, 4)}).raise_for_status()
        yield client


def player(client: httpx.Client, name: str, **more: Any) -> str:
    client.post(BASE, json={"name": name, "channels": ["a"], "seed": 1, **more}).raise_for_status()
    return f"{BASE}/{name}"


def sent(client: httpx.Client, place: str, **command: Any) -> Any:
    response = client.post(f"{place}/commands", json=command)
    response.raise_for_status()
    return response.json()


# 1 Core concepts


@pytest.mark.section("1.1 Channels", interface="command line")
def test_1_1_from_one_to_64_channels_are_followed(tmp_path: Path) -> None:
    """A device follows 1 to 64 channels; a 65th is refused."""
    many = [channel(f"c{number}", number) for number in range(64)]

    assert len(set(shown(ran(tmp_path, {"channels": many}, "--count", 64)))) == 64
    assert shown(ran(tmp_path, {"channels": [channel("a", 7)]}, "--count", 3)) == [7, 7, 7]
    file = written(tmp_path / "more.yaml", yaml.safe_dump({"channels": [*many, channel("c64", 64)]}))
    assert pendula("run", file, "--count", 1).code == 1


@pytest.mark.section("1.2 Local channel cache", interface="command line")
def test_1_2_a_cache_keeps_the_newest_records_of_80_bytes(tmp_path: Path) -> None:
    """A channel's file holds the K newest records of fixed size, read from the newest to the oldest."""
    source = written(tmp_path / "records.json", json.dumps([{"id": n, "ts": n} for n in range(1, 21)]))
    cache = tmp_path / "sea.pch"
    assert pendula("cache", "write", cache, "--channel", "sea", "--records", source, "--keep", 8).code == 0

    result = ran(tmp_path, {"channels": [{"id": "sea", "cache": "sea.pch"}]}, "--count", 9)

    assert RECORD_BYTES == 80
    assert shown(result) == [20, 19, 18, 17, 16, 15, 14, 13, 20]


@pytest.mark.section("1.3 Snapshot semantics", interface="HTTP")
@pytest.mark.parametrize(
    "settings",
    [{"exposure": {"mode": "MaE"}}, {"pick": {"mode": "random"}}, {"nae": {"enabled": False}}, {"lookahead": 9}],
    ids=["exposure", "pick", "new artwork", "buffer"],
)
def test_1_3_a_material_change_resets_once(client: httpx.Client, settings: dict[str, Any]) -> None:
    """A change of channels, contents, exposure or new-artwork settings resets; one that changes nothing does not."""
    place = player(client, f"snap-{next(iter(settings))}")

    for _ in range(2):
        sent(client, place, type="configure", settings=settings)

    assert client.get(f"{place}/stats").json()["resets"] == 1


# 2 Public interface


@pytest.mark.section("2.1 Operations", interface="HTTP")
def test_2_1_next_prev_and_peek(client: httpx.Client) -> None:
    """`next` advances, `prev` walks back through history, `peek` looks ahead without generating."""
    place = player(client, "operations")

    # A served player shows its first artwork without a call.
    second = sent(client, place, type="next")["answer"]["id"]
    ahead = [item["id"] for item in client.get(f"{place}/now").json()["coming"]]
    back = sent(client, place, type="prev")["answer"]["id"]

    assert (second, back) == (2, 1)
    assert ahead[:3] == [3, 4, 1]


@pytest.mark.section("2.2 Buffers", interface="command line")
def test_2_2_history_and_lookahead_default_to_32(tmp_path: Path) -> None:
    """History keeps the last H items and lookahead is a minimum fill; both default to 32."""
    many = [channel("a", *range(1, 200))]

    result = ran(tmp_path, {"channels": many, "calls": [{"next": 40}, {"peek": 100}, {"prev": 40}]})
    short = ran(tmp_path, {"channels": many, "history": 4, "lookahead": 4, "calls": [{"next": 9}, {"prev": 9}]})

    assert [len(answers(result, "peek")[0]), sum(item is not None for item in answers(result, "prev")[0])] == [56, 31]
    assert sum(item is not None for item in answers(short, "prev")[0]) == 3


# 3 History


@pytest.mark.section("3 History semantics", interface="command line")
def test_3_x_steps_forward_after_x_steps_back_give_the_same_items(tmp_path: Path) -> None:
    """History is navigation only: after X steps back the next X items are the same, then generation continues."""
    straight = shown(ran(tmp_path, calls({"next": 12})))

    result = ran(tmp_path, calls({"next": 6}, {"prev": 3}, {"next": 9}))

    assert shown(result)[6:] == straight[3:12]


# 4 Lookahead


@pytest.mark.section("4 Lookahead semantics", interface="command line")
def test_4_next_generates_exactly_one_batch_when_fewer_than_l_are_left(tmp_path: Path) -> None:
    """`peek` never generates; `next` adds exactly L items when fewer than L lie ahead."""
    steps = [step for _ in range(4) for step in ({"peek": 100}, {"next": 1})]

    result = ran(tmp_path, calls(*steps, {"peek": 100}, lookahead=4))

    assert [len(items) for items in answers(result, "peek")] == [0, 3, 6, 5, 4]


# 5 Exposure modes


def weights(result: dict[str, Any]) -> list[int]:
    return list(result["stats"]["weights"].values())


@pytest.mark.section("5.1 Equal exposure", interface="command line")
def test_5_1_every_active_channel_gets_an_equal_share(tmp_path: Path) -> None:
    """Every channel with records gets the same weight, one without gets none."""
    three = [channel("a", 1, 2), channel("b"), channel("c", 11, 12), channel("d", 21, 22)]

    assert weights(ran(tmp_path, {"channels": three}, "--count", 1)) == [21846, 0, 21845, 21845]


@pytest.mark.section("5.2 Manual exposure", interface="command line")
def test_5_2_weights_by_hand_are_normalized(tmp_path: Path) -> None:
    """Manual weights are normalized over the active channels; one below 0 counts as 0."""
    exposure = {"mode": "MaE", "manual_weights": {"a": 3, "b": 1, "c": -2}}
    three = [channel("a", 1, 2), channel("b", 11), channel("c", 21)]

    assert weights(ran(tmp_path, {"channels": three, "exposure": exposure}, "--count", 1)) == [49152, 16384, 0]


@pytest.mark.section("5.3 Proportional exposure", interface="command line")
def test_5_3_shares_follow_size_and_recency_within_bounds() -> None:
    """Shares blend size and recency with 0.35, are clamped to 0.02 and 0.40, and normalized again."""
    ended = pendula("run", EXAMPLES / "playback-exposure.yaml", "--count", 20, "--json")

    assert ended.result["stats"]["weights"] == {"sea": 33172, "hills": 13020, "town": 1659, "stars": 17685}


# 6 Channel scheduling


@pytest.mark.section("6 Channel scheduling algorithm", interface="command line")
def test_6_turns_are_spread_smoothly_and_ties_go_to_the_first(tmp_path: Path) -> None:
    """Smooth weighted round robin over 65536 credits: the richest channel is next, the first one on ties."""
    exposure = {"mode": "MaE", "manual_weights": {"a": 5, "b": 1, "c": 1}}
    three = [channel("a", 1, 2, 3), channel("b", 11, 12), channel("c", 21, 22)]

    result = ran(tmp_path, {"channels": three, "exposure": exposure}, "--count", 14)

    assert "".join(item["channel"] for item in result["items"]) == "aabacaaaabacaa"


# 7 Picks


@pytest.mark.section("7.1 Pick modes", interface="command line")
def test_7_1_recency_walks_from_the_newest_to_the_oldest_and_wraps_around(tmp_path: Path) -> None:
    """RecencyPick starts with the newest record, continues with older ones and wraps around."""
    assert shown(ran(tmp_path, {"channels": [channel("a", 1, 2, 3)]}, "--count", 7)) == [1, 2, 3, 1, 2, 3, 1]


@pytest.mark.section("7.1 Pick modes", interface="command line")
def test_7_1_random_picks_come_from_the_newest_r_records(tmp_path: Path) -> None:
    """RandomPick draws from the newest R records, the same ones for the same seed."""
    document = {"channels": [channel("a", *range(1, 50))], "pick": {"mode": "random", "r": 4}}

    result = shown(ran(tmp_path, document, "--count", 100))

    assert set(result) == {1, 2, 3, 4}
    assert shown(ran(tmp_path, document, "--count", 100)) == result


@pytest.mark.section("8 Immediate repeat avoidance", interface="command line")
def test_8_an_artwork_in_two_channels_does_not_come_twice_in_a_row(tmp_path: Path) -> None:
    """A repeat is skipped if there is another record, and accepted otherwise."""
    both = {"channels": [channel("a", 1, 2), channel("b", 2, 3)]}

    assert shown(ran(tmp_path, both, "--count", 6)) == [1, 2, 1, 3, 2, 3]
    assert shown(ran(tmp_path, {"channels": [channel("a", 1)]}, "--count", 3)) == [1, 1, 1]


# 9 New artwork events


def inserted(*ids: int) -> list[dict[str, Any]]:
    return [{"nae_insert": {"id": id, "ts": 5000 + id}} for id in ids]


@pytest.mark.section("9.1 Purpose of new artwork events", interface="command line")
def test_9_1_new_artwork_is_shown_in_addition_to_the_channel_shares(tmp_path: Path) -> None:
    """New artwork is shown in addition to the channels and changes neither their weights nor their turns."""
    result = ran(tmp_path, calls(*inserted(900), {"next": 24}, lookahead=8))
    base = [item["channel"] for item in result["items"] if item["origin"] == "base"]

    plain = [item["channel"] for item in ran(tmp_path, calls({"next": 24}, lookahead=8))["items"]]

    assert 900 in shown(result)
    fallback = sum(item["origin"] == "nae_fallback" for item in result["items"])
    assert fallback or base == plain[: len(base)]


@pytest.mark.section("9.2 New artwork pool", interface="command line")
def test_9_2_the_pool_is_bounded_and_can_be_switched_off(tmp_path: Path) -> None:
    """The pool holds at most J artworks, 32 unless set, and accepts nothing while it is off."""
    result = ran(tmp_path, calls(*inserted(*range(900, 940))))
    off = ran(tmp_path, calls(*inserted(900), nae={"enabled": False}))

    assert result["stats"]["nae"]["evictions"] == 8
    assert answers(off, "nae_insert") == ["DISABLED"]


def message(event_id: str, id: int) -> bytes:
    payload = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    return json.dumps({"event_id": event_id, "id": id, "ts": 5, "channel": "a", "payload": payload}).encode()


@pytest.mark.section("9.3 Insertion by MQTT", interface="command line")
def test_9_3_artwork_announced_by_a_broker_is_inserted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New artwork announced over MQTT is inserted, and shown beside the channels."""
    file = written(tmp_path / "a.yaml", yaml.safe_dump({"seed": 1, "channels": [channel("a", 1, 2)], "lookahead": 4}))
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    with BrokerThread() as broker:
        options = ["--count", "8", "--mqtt", broker.url("gallery"), "--player", "hall", "--json"]
        command = [sys.executable, "-m", "pendula", "playback", "run", str(file), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            broker.publish("gallery/player/hall/new-artwork", message("e1", 900))
            out, _ = running.communicate(timeout=300)

    assert 900 in shown(json.loads(out))


@pytest.mark.section("9.3 Insertion by MQTT", interface="HTTP")
def test_9_3_every_player_of_a_server_subscribes_to_its_own_topic(tmp_path: Path) -> None:
    """A served player inserts artwork announced under its name; the broker is configured in the settings."""
    with BrokerThread() as broker:
        settings = Settings(
            data=str(tmp_path), port=0, playback=PlaybackSettings(mqtt=broker.url("gallery"), mqtt_password=PASSWORD)
        )
        with serving(settings, (STILL,)) as client:
            client.put(f"{BASE}/channels/a", json={"records": records(1, 2, 3)}).raise_for_status()
            place = player(client, "hall", settings={"lookahead": 1})
            broker.publish("gallery/player/hall/new-artwork", message("e1", 900))
            seen: set[int] = set()
            for _ in range(100_000):
                seen.add(sent(client, place, type="next")["answer"]["id"])
                if 900 in seen:
                    break

    assert 900 in seen


@pytest.mark.section("9.3 Insertion by MQTT", interface="command line")
def test_9_3_a_known_artwork_is_merged_and_the_oldest_of_the_lowest_priority_evicted(tmp_path: Path) -> None:
    """A known artwork gets its priority of 50 % again; over the cap the lowest priority, then the oldest, goes."""
    result = ran(tmp_path, calls(*inserted(1, 2, 1, 3), nae={"cap": 2}))

    assert answers(result, "nae_insert") == ["INSERTED", "INSERTED", "MERGED", "INSERTED"]
    assert result["stats"]["nae"]["merges"] == result["stats"]["nae"]["evictions"] == 1


@pytest.mark.section("9.4 Selection probability", interface="command line")
def test_9_4_two_fresh_artworks_make_new_artwork_certain(tmp_path: Path) -> None:
    """The chance of new artwork is the sum of priorities, at most 1: two fresh ones are certain."""
    result = ran(tmp_path, calls(*inserted(900, 901), {"next": 1}))

    assert shown(result) == [900]


@pytest.mark.section("9.5 Selection rule", interface="command line")
def test_9_5_an_artwork_is_chosen_at_most_five_times(tmp_path: Path) -> None:
    """The strongest is chosen, the oldest of equals; its priority halves until it is below 2 % and it leaves."""
    result = ran(tmp_path, calls(*inserted(900), {"next": 400}, lookahead=8))
    origins = [item["origin"] for item in result["items"] if item["id"] == 900]

    assert 1 <= len(origins) <= 5
    assert result["stats"]["nae"]["expiries"] == 1


@pytest.mark.section("9.6 New artwork and repeats", interface="command line")
def test_9_6_a_repeated_artwork_falls_back_to_the_channels_once(tmp_path: Path) -> None:
    """New artwork that would repeat is replaced by one item of the channels; its priority halves nevertheless."""
    result = ran(tmp_path, calls(*inserted(900), {"next": 200}, lookahead=8, channels=[channel("a", 1, 2, 3)]))
    items = [(item["id"], item["origin"]) for item in result["items"]]

    assert all(left[0] != 900 or right[0] != 900 for left, right in pairwise(items))


@pytest.mark.section("9.7 Random streams", interface="command line")
def test_9_7_random_picks_do_not_move_the_pattern_of_new_artwork(tmp_path: Path) -> None:
    """The streams of new artwork and of random picks are separate: the pattern is the same with both picks."""

    def pattern(pick: str) -> list[bool]:
        document = calls(*inserted(900, 901), {"next": 30}, lookahead=8, pick={"mode": pick, "r": 4})
        return [item["origin"] != "base" for item in ran(tmp_path, document)["items"]]

    assert pattern("recency") == pattern("random")


# 10 Generator


@pytest.mark.section("10.1 Generation rule", interface="command line")
def test_10_1_generation_happens_only_in_next(tmp_path: Path) -> None:
    """Neither `peek` nor `prev` nor an insertion generates; `next` does, in batches of exactly L."""
    result = ran(tmp_path, calls({"peek": 9}, {"prev": 1}, *inserted(900), {"peek": 9}, {"next": 1}, lookahead=4))

    assert [len(items) for items in answers(result, "peek")] == [0, 0]
    assert result["stats"]["batches"] == 1


@pytest.mark.section("10.2 Generation order", interface="command line")
def test_10_2_an_insertion_changes_only_later_generations(tmp_path: Path) -> None:
    """Items are generated in order, new artwork first; items already in the lookahead do not change."""
    result = ran(tmp_path, calls({"next": 1}, {"peek": 3}, *inserted(900, 901), {"next": 4}, lookahead=4))

    assert shown(result)[1:4] == ids_of(answers(result, "peek")[0])


# 11 State machine


@pytest.mark.section("11 Reference state machine", interface="HTTP")
def test_11_a_reset_starts_a_new_epoch_and_does_not_repeat_the_current_item(client: httpx.Client) -> None:
    """A reset empties history, lookahead, turns and pool and increments the epoch; the current item is not repeated."""
    place = player(client, "machine")
    on = client.get(f"{place}/now").json()["item"]
    sent(client, place, type="insert", id=900, ts=5)

    sent(client, place, type="reset", reason="asked for")
    stats = client.get(f"{place}/stats").json()
    back = sent(client, place, type="prev")["answer"]
    again = sent(client, place, type="next")["answer"]

    assert back is None
    assert stats["epoch_id"] == again["epoch_id"] == 1
    assert again["ordinal"] == 1
    assert (on["id"], again["id"]) == (1, 2)


# 12 Performance


@pytest.mark.section("12 Performance constraints", interface="command line")
def test_12_a_pass_over_a_cache_reads_each_block_once(tmp_path: Path) -> None:
    """Caches are read in blocks of 4 KiB, each once per pass; `prev` and `peek` read nothing."""
    source = written(tmp_path / "records.json", json.dumps([{"id": n, "ts": n} for n in range(1, 121)]))
    assert pendula("cache", "write", tmp_path / "sea.pch", "--channel", "sea", "--records", source).code == 0
    document = {"channels": [{"id": "sea", "cache": "sea.pch"}], "lookahead": 120}

    whole = ran(tmp_path, {**document, "calls": [{"next": 1}, {"prev": 1}, {"peek": 100}]})["stats"]

    assert whole["block_reads"] == 3


# 13 Edge cases


@pytest.mark.section("13 Edge cases", interface="command line")
def test_13_one_channel_tiny_caches_and_offline_channels(tmp_path: Path) -> None:
    """One channel plays alone, tiny caches repeat, unreadable channels are excluded."""
    (tmp_path / "bad.pch").write_bytes(b"nothing" * 2000)
    two = [channel("a", 1), {"id": "b", "folder": "nowhere"}]

    assert shown(ran(tmp_path, {"channels": [channel("a", 1)]}, "--count", 2)) == [1, 1]
    file = written(tmp_path / "off.yaml", yaml.safe_dump({"channels": two[:1]}))
    assert pendula("run", file, "--count", 1).code == 0


@pytest.mark.section("13 Edge cases", interface="command line")
def test_13_a_burst_of_new_artwork_is_bounded(tmp_path: Path) -> None:
    """A burst is bounded by the pool and by the halving of priorities."""
    result = ran(tmp_path, calls(*inserted(*range(1000, 1500)), {"next": 400}, lookahead=8))

    assert sum(item["origin"] == "nae" for item in result["items"]) <= 32 * 5
