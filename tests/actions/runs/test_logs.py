"""The two logs: all events in one, those visible to the player character in the other, append-only."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pendula.actions import Advance, Logs, Submit, World, audio_name, audio_names
from pendula.actions.messages import Event
from pendula.kernel.disk import RealDisk
from pendula.testing import FaultyDisk
from tests.actions.knowing import DEFS, lived, read
from tests.actions.worlds import EPOCH, NEXT_EPOCH, day, does, lasting, of


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
def test_the_world_log_grows_over_time_and_epochs() -> None:
    world, logs = lived(does("A", 0, "tell"), does("B", 1435, "tell"), until=5)

    assert len(logs.world) == 1
    before = list(logs.world)
    logs.feed(world.apply(Advance(3000)).events)
    assert logs.world[:1] == before
    assert [read(line)["seq"] for line in logs.world] == [0, 1, 2, 3]
    assert [read(line)["epoch"] for line in logs.world] == [0, 0, 0, 1]


@pytest.mark.req("ACT-LOG-2")
def test_the_player_log_has_a_chunk_of_visible_events_for_each_epoch() -> None:
    world, logs = lived(does("mine", 1400, "watch", actor="pia"), does("theirs", 1400, "watch", actor="bob"))
    logs.feed(world.apply(Advance(2 * 1440 + 1)).events)

    assert [read(chunk[0]) for chunk in logs.chunks] == [
        {"epoch": 0, "start_at": "2025-07-01T00:00:00", "carried_in": []},
        {"epoch": 1, "start_at": "2025-07-02T00:00:00", "carried_in": [{"action_id": "mine", "remaining": 2960}]},
        {"epoch": 2, "start_at": "2025-07-03T00:00:00", "carried_in": [{"action_id": "mine", "remaining": 1520}]},
    ]
    assert [len(chunk) for chunk in logs.chunks] == [2, 1, 1]


@pytest.mark.req("ACT-LOG-2")
def test_a_closed_chunk_never_changes() -> None:
    world, logs = lived(
        does("A", 0, "tell", actor="bob"), does("B", 1500, "tell", actor="bob", knowledge=[{"id": "k", "reveals": [0]}])
    )
    closed = sha256(b"\n".join(logs.chunks[0])).hexdigest()

    logs.feed(world.apply(Advance(5 * 1440)).events)

    assert sha256(b"\n".join(logs.chunks[0])).hexdigest() == closed
    assert len(logs.chunks) == 5


@pytest.mark.req("ACT-LOG-3")
@pytest.mark.parametrize(("wanted", "found"), [([0, 1, 99], 2), ([0], 1)])
def test_a_reveal_carries_copies_of_what_it_reveals(wanted: list[int], found: int) -> None:
    world, logs = lived(
        does("secret", 0, "tell", actor="bob"),
        does("B", 1500, "tell", actor="bob", knowledge=[{"id": "k", "reveals": wanted}]),
    )
    logs.feed(world.apply(Advance(2880)).events)

    (record,) = [read(line) for line in logs.chunks[1][1:]]
    assert record["type"] == "visibility_change"
    assert record["meta"]["reveals"] == wanted
    assert record["revealed"] == [read(line) for line in logs.world[:found]]
    assert len(logs.chunks[0]) == 1


@pytest.mark.req("ACT-LOG-1", "ACT-LOG-2")
def test_logs_are_written_with_the_events_and_closed_chunks_stay_closed() -> None:
    disk = FaultyDisk()
    world = World.create({"epoch": EPOCH, "action_defs": DEFS, "options": {"pc": "pia"}})
    logs = Logs(world.header(), disk)
    world.apply(Submit((does("A", 0, "tell", actor="pia"), does("B", 1500, "tell", actor="pia"))))
    for minute, lines in ((5, 1), (20, 2), (1505, 3)):
        logs.feed(world.apply(Advance(minute)).events)

        left = disk.after_crash(minute)
        assert left.read("world_log.jsonl").count(b"\n") == lines

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
        (12, 7, "kanal-7", "epoch12_slot07_kanal-7.ogg"),
    ],
)
def test_audio_names(epoch: int, slot: int, channel: str, name: str) -> None:
    assert audio_name(epoch, slot, channel) == name


@pytest.mark.req("ACT-LOG-4")
def test_an_invalid_channel_has_no_audio_name() -> None:
    for channel in ("", "Radio", "a b", "a" * 33, "ä", "../x"):
        with pytest.raises(ValueError, match="is not a channel; allowed are 1 to 32 characters of a-z, 0-9 and -"):
            audio_name(0, 0, channel)


@pytest.mark.req("ACT-LOG-4")
def test_every_event_is_in_the_files_of_its_channels() -> None:
    defs = {"call": lasting(5), "x": lasting(1)}
    actions = (does("A", 58, "call", actor="pia", params={"channel": "kanal-7"}), does("B", 58, "x"))
    result = day(defs, *actions, options={"pc": "pia"})

    assert [(one.name, one.events) for one in audio_names(result.events)] == [
        ("epoch00_slot00_kanal-7.ogg", (0,)),
        ("epoch00_slot00_pc.ogg", (0,)),
        ("epoch00_slot00_world.ogg", (0, 1, 2)),
        ("epoch00_slot01_kanal-7.ogg", (3,)),
        ("epoch00_slot01_pc.ogg", (3,)),
        ("epoch00_slot01_world.ogg", (3,)),
    ]


@pytest.mark.req("ACT-TIME-2", "ACT-LOG-4")
def test_the_slot_of_an_event_names_its_audio() -> None:
    result = day({"x": lasting(5)}, does("A", 845, "x"), epoch={**EPOCH, "index": 3})

    event = of(result, "start", "A")
    assert audio_name(event.epoch, event.slot, "pc") == "epoch03_slot14_pc.ogg"


# Logs written during an epoch and continued


@pytest.mark.req("ACT-LOG-1")
def test_the_logs_of_a_run_are_written_as_events_are_processed() -> None:
    disk = FaultyDisk()
    world = World.create({"epoch": EPOCH, "action_defs": DEFS, "options": {"pc": "pia"}})
    logs = Logs(world.header(), disk)
    lengths: list[int] = []

    def listen(events: Sequence[Event]) -> None:
        logs.write(events)
        lengths.append(disk.read("world_log.jsonl").count(b"\n"))

    world.current.listener = listen
    world.apply(Submit(tuple(does(f"A{n}", n * 60, "tell") for n in range(5))))
    world.apply(Advance(1440))

    assert lengths == list(range(1, 11))


@pytest.mark.req("ACT-LOG-3")
def test_a_reveal_of_an_earlier_day_has_its_copies_in_the_continued_folder(tmp_path: Path) -> None:
    config: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS, "options": {"pc": "pia"}}
    first = World.create(config)
    logs = Logs(first.header(), RealDisk(tmp_path))
    first.apply(Submit((does("A", 0, "tell", actor="bob"),)))
    logs.feed(first.apply(Advance(1440)).events)
    kept = (tmp_path / "pc_log_epoch00.jsonl").read_bytes()
    second = World.create({**config, "epoch": NEXT_EPOCH, "carry": first.carry()})
    submission = does("B", 5, "tell", actor="pia", knowledge=[{"id": "k", "reveals": [0, 1, 99]}])

    last_lines = {}
    for name, logs in (
        ("goes on", Logs.continued(RealDisk(tmp_path))),
        ("alone", Logs(second.header(), RealDisk(tmp_path / "alone"))),
    ):
        world = World.from_state({**config, "epoch": NEXT_EPOCH}, second.state())
        world.apply(Submit((submission,)))
        logs.feed((world.header(), *world.apply(Advance(100)).events))
        folder = tmp_path if name == "goes on" else tmp_path / "alone"
        last_lines[name] = read((folder / "pc_log_epoch01.jsonl").read_bytes().splitlines()[-1])

    assert [(one["seq"], one["action_id"]) for one in last_lines["goes on"]["revealed"]] == [(0, "A"), (1, "A")]
    assert "missing" not in last_lines["goes on"]
    assert last_lines["alone"]["missing"] == [0, 1]
    assert "revealed" not in last_lines["alone"]
    assert (tmp_path / "pc_log_epoch00.jsonl").read_bytes() == kept
    lines = (tmp_path / "world_log.jsonl").read_bytes().splitlines()
    assert [read(line)["seq"] for line in lines] == [0, 1, 2, 3, 4]


@pytest.mark.req("ACT-LOG-3")
def test_a_reveal_finds_events_of_a_carried_day_by_their_numbers() -> None:
    config: dict[str, Any] = {"epoch": EPOCH, "action_defs": DEFS, "options": {"pc": "pia"}}
    first = World.create(config)
    first.apply(Submit((does("A", 0, "tell", actor="bob"),)))
    first.apply(Advance(1440))
    second = World.create({**config, "epoch": NEXT_EPOCH, "carry": first.carry()})
    logs = Logs(second.header())
    # Numbers continue: A had 0 and 1, so S has 2 and 3, and the reveal by B is event 6.
    reveals = [{"id": "k", "reveals": [0, 2, 3, 6, 7]}]
    second.apply(Submit((does("S", 1, "tell", actor="bob"), does("B", 100, "tell", actor="pia", knowledge=reveals))))

    logs.feed(second.apply(Advance(300)).events)

    record = read(logs.chunks[0][-1])
    assert (record["type"], record["seq"]) == ("visibility_change", 6)
    assert [(one["seq"], one["action_id"]) for one in record["revealed"]] == [(2, "S"), (3, "S"), (6, "B")]
    assert record["missing"] == [0]
    # The world log has every event already; copies are for the audience of a reveal.
    assert "revealed" not in read(logs.world[-1])


@pytest.mark.req("ACT-LOG-3")
def test_a_reveal_finds_its_event_among_many(tmp_path: Path) -> None:
    world = World.create({"epoch": EPOCH, "action_defs": {**DEFS, "nap": lasting(1)}, "options": {"pc": "pia"}})
    logs = Logs(world.header(), RealDisk(tmp_path))
    wanted = [0, 255, 256, 511, 512, 1233]
    world.apply(Submit(tuple(does(f"A{n}", n, "nap", actor="bob") for n in range(1000))))
    world.apply(Submit((does("B", 1100, "tell", actor="pia", knowledge=[{"id": "k", "reveals": wanted}]),)))
    logs.feed(world.apply(Advance(1300)).events)

    record = read((tmp_path / "pc_log_epoch00.jsonl").read_bytes().splitlines()[-1])
    assert [one["seq"] for one in record["revealed"]] == wanted


@pytest.mark.req("ACT-DATA-2")
def test_params_are_in_both_logs() -> None:
    _, logs = lived(does("A", 60, "tell", actor="pia", params={"to": ["bo"]}))

    for lines in (logs.world, logs.chunks[0][1:]):
        assert [read(line)["meta"]["params"] for line in lines] == [{"to": ["bo"]}] * 2
