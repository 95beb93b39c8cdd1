"""Who gets to know what, when; and the two logs that remember it."""

from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest

from pendula.actions import Advance, Logs, Submit, World, audio_name
from pendula.actions.model import Channel, KnowledgeItem, Scope
from pendula.actions.rules.visibility import Circle, knows
from pendula.kernel.canonical import decode
from pendula.testing import FaultyDisk
from tests.actions.worlds import EPOCH, day, does, lasting, of

CIRCLE = Circle("pia", ("ann",), Decimal(0))
DEFS = {"tell": lasting(10, may_trigger_event=True), "watch": lasting(3000)}


def item(**given: Any) -> KnowledgeItem:
    return KnowledgeItem(id="k", **given)


def lived(*actions: dict[str, Any], until: int = 1440, **config: Any) -> tuple[World, Logs]:
    world = World.create({"epoch": EPOCH, "action_defs": DEFS, "options": {"pc": "pia", "allies": ["ann"]}, **config})
    logs = Logs(world.header())
    logs.feed(world.apply(Submit(actions)).events)
    logs.feed(world.apply(Advance(until)).events)
    return world, logs


def read(line: bytes) -> Any:
    return decode(line)


# Knowledge


@pytest.mark.req("ACT-VIS-1")
def test_a_knowledge_item_has_its_fields_and_choices() -> None:
    assert KnowledgeItem.__struct_fields__ == (
        "id", "about", "channel", "source", "scope", "confidence", "freshness", "ttl_min", "visibility_to",
        "derivation", "attachments",
    )  # fmt: skip
    assert [str(one) for one in Channel] == ["direct", "overhear", "rumor", "log", "reflex_link", "system"]
    assert [str(one) for one in Scope] == ["private", "allies_only", "pc", "public", "redacted"]


@pytest.mark.req("ACT-VIS-2")
@pytest.mark.parametrize(
    ("scope", "who"),
    [
        ("private", {"zoe", "lou"}),
        ("allies_only", {"zoe", "lou", "pia", "ann"}),
        ("pc", {"zoe", "lou", "pia"}),
        ("public", {"zoe", "lou", "pia", "ann", "bob"}),
        ("redacted", set()),
    ],
)
def test_a_scope_says_who_may_know(scope: str, who: set[str]) -> None:
    one = item(scope=Scope(scope), source="zoe", visibility_to=("lou",))

    assert {name for name in ("zoe", "lou", "pia", "ann", "bob") if knows(one, name, 0, CIRCLE)} == who


@pytest.mark.req("ACT-VIS-2")
def test_the_instant_of_expiry_is_inclusive() -> None:
    one = item(scope=Scope.PUBLIC, freshness=180, ttl_min=120)

    assert knows(one, "bob", 300, CIRCLE)
    assert not knows(one, "bob", 301, CIRCLE)


@pytest.mark.req("ACT-VIS-2")
def test_what_has_no_time_to_live_never_expires() -> None:
    assert knows(item(scope=Scope.PUBLIC, freshness=0, ttl_min=0), "bob", 10**9, CIRCLE)


@pytest.mark.req("ACT-VIS-2")
def test_what_is_not_sure_enough_is_not_known_even_to_its_source() -> None:
    strict = Circle("pia", (), Decimal("0.5"))

    assert knows(item(scope=Scope.PUBLIC, confidence=Decimal("0.5")), "bob", 0, strict)
    assert not knows(item(scope=Scope.PUBLIC, source="bob", confidence=Decimal("0.49")), "bob", 0, strict)


@pytest.mark.req("ACT-VIS-3")
@pytest.mark.parametrize(
    ("actor", "visibility", "seen"),
    [
        ("pia", None, True),
        ("pia", {"scope": "redacted"}, True),
        ("bob", None, False),
        ("bob", {"scope": "private"}, False),
        ("bob", {"scope": "private", "visibility_to": ["pia"]}, True),
        ("bob", {"scope": "pc"}, True),
        ("bob", {"scope": "allies_only"}, True),
        ("bob", {"scope": "public"}, True),
        ("bob", {"scope": "redacted", "visibility_to": ["pia"]}, False),
    ],
)
def test_an_action_shows_itself_as_its_visibility_says(actor: str, visibility: Any, seen: bool) -> None:
    more = {} if visibility is None else {"visibility": visibility}

    _, logs = lived(does("A", 5, "tell", actor=actor, **more))

    assert len(logs.chunks[0]) == (3 if seen else 1)


@pytest.mark.req("ACT-EVT-5")
def test_items_come_to_light_in_their_order_with_their_scopes() -> None:
    result = day(
        DEFS,
        does("A", 0, "tell", knowledge=["a", {"id": "b", "to_scope": "public", "reveals": [0]}, "a"]),
        does("B", 20, "tell", knowledge=[{"id": "b", "to_scope": "redacted"}]),
        world_state={"knowledge": [{"id": "a", "scope": "allies_only"}]},
    )

    changes = [event.meta for event in result.events if "knowledge" in event.meta]
    assert [(one["knowledge"], one["from_scope"], one["to_scope"], one["reveals"]) for one in changes] == [
        ("a", "allies_only", "pc", []),
        ("b", "private", "public", [0]),
        ("a", "pc", "pc", []),
        ("b", "public", "redacted", []),
    ]


@pytest.mark.req("ACT-EVT-5")
def test_a_verb_that_triggers_nothing_brings_nothing_to_light() -> None:
    result = day({"tell": lasting(10)}, does("A", 0, "tell", knowledge=["a"]))

    assert len(result.events) == 2


@pytest.mark.req("ACT-LOG-2")
def test_of_two_changes_in_one_minute_each_is_told_as_it_was() -> None:
    _, logs = lived(
        does("A", 0, "tell", actor="bob", knowledge=[{"id": "k", "to_scope": "private"}, {"id": "k", "to_scope": "pc"}])
    )

    told = [read(line)["meta"]["to_scope"] for line in logs.chunks[0][1:]]
    assert told == ["pc"]


# Logs


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
    assert records[1]["meta"] == {"segment": 0, "admission": 0}


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
