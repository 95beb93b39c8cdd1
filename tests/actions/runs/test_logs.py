"""The two logs: everything in one, what the player character learned in the other, never rewritten."""

from hashlib import sha256

import pytest

from pendula.actions import Advance, Logs, Submit, World, audio_name
from pendula.testing import FaultyDisk
from tests.actions.knowing import DEFS, lived, read
from tests.actions.worlds import EPOCH, day, does, lasting, of


@pytest.mark.req("ACT-LOG-1", "ACT-DATA-3")
def test_the_world_log_has_a_line_for_each_event() -> None:
    _, logs = lived(does("A", 60, "tell", actor="bob", knowledge=["k"]), does("bad", 0, "fly"))

    records = [read(line) for line in logs.world]
    assert [record["type"] for record in records] == ["start", "end", "visibility_change"]
    assert {name: records[1][name] for name in records[1] if name not in ("meta", "pc")} == {
        "seq": 1,
        "type": "end",
        "action_id": "A",
        "t": 70,
        "at": "2025-07-01T01:10:00",
        "epoch": 0,
        "slot": 1,
        "actor": "bob",
        "verb": "tell",
    }
    assert records[1]["meta"] == {"segment": 0, "admission": 0, "params": {}}


@pytest.mark.req("ACT-LOG-1")
def test_the_world_log_grows_as_time_goes_on_and_over_epochs() -> None:
    world, logs = lived(does("A", 0, "tell"), does("B", 1435, "tell"), until=5)

    assert len(logs.world) == 1
    before = list(logs.world)
    logs.feed(world.apply(Advance(3000)).events)
    assert logs.world[:1] == before
    assert [read(line)["seq"] for line in logs.world] == [0, 1, 2, 3]
    assert [read(line)["epoch"] for line in logs.world] == [0, 0, 0, 1]


@pytest.mark.req("ACT-LOG-2")
def test_the_player_gets_a_chunk_an_epoch_with_what_it_sees() -> None:
    world, logs = lived(does("mine", 1400, "watch", actor="pia"), does("theirs", 1400, "watch", actor="bob"))
    logs.feed(world.apply(Advance(2 * 1440 + 1)).events)

    assert [read(chunk[0]) for chunk in logs.chunks] == [
        {"epoch": 0, "start_at": "2025-07-01T00:00:00", "carried_in": []},
        {"epoch": 1, "start_at": "2025-07-02T00:00:00", "carried_in": [{"action_id": "mine", "remaining": 2960}]},
        {"epoch": 2, "start_at": "2025-07-03T00:00:00", "carried_in": [{"action_id": "mine", "remaining": 1520}]},
    ]
    assert [len(chunk) for chunk in logs.chunks] == [2, 1, 1]


@pytest.mark.req("ACT-LOG-2")
def test_a_chunk_is_never_changed_again() -> None:
    world, logs = lived(
        does("A", 0, "tell", actor="bob"), does("B", 1500, "tell", actor="bob", knowledge=[{"id": "k", "reveals": [0]}])
    )
    closed = sha256(b"\n".join(logs.chunks[0])).hexdigest()

    logs.feed(world.apply(Advance(5 * 1440)).events)

    assert sha256(b"\n".join(logs.chunks[0])).hexdigest() == closed
    assert len(logs.chunks) == 5


@pytest.mark.req("ACT-LOG-3")
def test_a_reveal_carries_copies_of_what_it_reveals() -> None:
    world, logs = lived(
        does("secret", 0, "tell", actor="bob"),
        does("B", 1500, "tell", actor="bob", knowledge=[{"id": "k", "reveals": [0, 1, 99]}]),
    )
    logs.feed(world.apply(Advance(2880)).events)

    (record,) = [read(line) for line in logs.chunks[1][1:]]
    assert record["type"] == "visibility_change"
    assert record["meta"]["reveals"] == [0, 1, 99]
    assert record["revealed"] == [read(line) for line in logs.world[:2]]
    assert len(logs.chunks[0]) == 1


@pytest.mark.req("ACT-LOG-1", "ACT-LOG-2")
def test_logs_are_written_as_the_events_come_and_a_closed_chunk_is_never_opened_again() -> None:
    disk = FaultyDisk()
    world = World.create({"epoch": EPOCH, "action_defs": DEFS, "options": {"pc": "pia"}})
    logs = Logs(world.header(), disk)
    world.apply(Submit((does("A", 0, "tell", actor="pia"), does("B", 1500, "tell", actor="pia"))))
    for minute, lines in ((5, 1), (20, 2), (1505, 3)):
        logs.feed(world.apply(Advance(minute)).events)

        left = disk.after_crash(minute)
        assert left.read("world_log.jsonl") == b"".join(line + b"\n" for line in logs.world)
        assert len(logs.world) == lines

    assert left.read("pc_log_epoch00.jsonl").count(b"\n") == 3
    assert left.read("pc_log_epoch01.jsonl").count(b"\n") == 2
    assert [call.name for call in disk.calls].index("pc_log_epoch01.jsonl") > max(
        place for place, call in enumerate(disk.calls) if call.name == "pc_log_epoch00.jsonl"
    )


@pytest.mark.req("ACT-LOG-4")
@pytest.mark.parametrize(
    ("epoch", "slot", "channel", "name"),
    [
        (3, 845 // 60, "pc", "epoch03_slot14_pc.ogg"),
        (120, 0, "world", "epoch120_slot00_world.ogg"),
        (0, 23, "sys", "epoch00_slot23_sys.ogg"),
        (12, 7, "ally", "epoch12_slot07_ally.ogg"),
    ],
)
def test_audio_names(epoch: int, slot: int, channel: str, name: str) -> None:
    assert audio_name(epoch, slot, channel) == name


@pytest.mark.req("ACT-LOG-4")
def test_a_channel_that_is_none_has_no_audio_name() -> None:
    with pytest.raises(ValueError, match="allowed are world, pc, sys, ally"):
        audio_name(0, 0, "radio")


@pytest.mark.req("ACT-TIME-2", "ACT-LOG-4")
def test_the_slot_of_an_event_names_its_audio() -> None:
    result = day({"x": lasting(5)}, does("A", 845, "x"), epoch={**EPOCH, "index": 3})

    event = of(result, "start", "A")
    assert audio_name(event.epoch, event.slot, "pc") == "epoch03_slot14_pc.ogg"
