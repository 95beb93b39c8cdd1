"""A saved programme continues unchanged, whatever the hash seed; its state stays small."""

import json
import os
import subprocess
import sys
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.playback import saving
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import Channel, MemoryShelf
from pendula.playback.model import Item, Record
from pendula.playback.saving import OtherContents
from pendula.playback.scheduler import Scheduler
from pendula.playback.settings import DayPart, Exposure, Mode, Nae, Pick, PickMode, Refresh, Settings
from tests.playback.histories import Comparison, public
from tests.playback.oracle import Artwork, Fault, Slot
from tests.playback.shelves import ids, listed, shown
from tests.playback.worlds import RoughShelf, random_settings, settings, shelf, some_slots

ROOT = Path(__file__).resolve().parents[2]
STATE_MOST = 64 * 1024


def lived(random: Random) -> tuple[Scheduler, list[Channel]]:
    """A scheduler after a short life, and its channels."""
    channels = [Channel(name, shelf(some_slots(random))) for name in "abc"[: random.randrange(4)]]
    scheduler = Scheduler(
        channels, settings(random_settings(random), [channel.id for channel in channels]), seed=random.randrange(2**64)
    )
    for _ in range(random.randrange(25)):
        match random.randrange(6):
            case 0:
                scheduler.nae_insert(Record(random.randrange(12), 0))
            case 1:
                scheduler.prev()
            case 2 if random.randrange(3) == 0 and (item := scheduler.now()) and item.epoch_id == scheduler.epoch_id:
                scheduler.ban(item)
            case _:
                scheduler.take(random.randrange(6))
    return scheduler, channels


def continued(scheduler: Scheduler) -> list[object]:
    """The results of the same calls from here on, and the final state."""
    scheduler.nae_insert(Record(950, 7))
    seen: list[object] = [public(item) for item in (scheduler.prev(), scheduler.now(), *scheduler.take(70))]
    scheduler.reset("on")
    seen += [public(item) for item in (*scheduler.take(20), scheduler.prev())]
    # Diagnostics report the past; they decide nothing and are not saved.
    return [*seen, {**scheduler.stats(), "diagnostics": None}, scheduler.state_dict()]


def frame(keep: bool = False) -> Scheduler:
    """Two channels, of which seven items were shown; one artwork is pinned, one banned."""
    chosen = Settings(lookahead=4, refresh=Refresh.KEEP if keep else Refresh.RESET)
    scheduler = Scheduler([ids("a", *range(1, 9)), ids("b", *range(11, 19))], chosen, seed=1)
    assert shown(scheduler.take(7)) == [1, 11, 2, 12, 3, 13, 4]
    scheduler.show_next(Record(77, 5))
    scheduler.ban_artwork(15)
    return scheduler


# The second channel with one more record.
GROWN = Channel("b", MemoryShelf([*listed(range(11, 19)), Record(99, 2_000_000)]))


@pytest.mark.parametrize("keep", [False, True], ids=["reset", "keep"])
def test_a_state_continues_with_new_records_as_after_a_refresh(keep: bool) -> None:
    scheduler = frame(keep)
    now = [ids("a", *range(1, 9)), GROWN]

    restored = Scheduler.from_state(scheduler.state_dict(), now, refresh=True)
    scheduler.refresh("b", now[1].shelf)

    assert restored.epoch_id == scheduler.epoch_id == 1
    assert shown(restored.peek(1)) == [77]
    assert [public(item) for item in restored.take(40)] == [public(item) for item in scheduler.take(40)]
    assert 15 not in shown(restored.take(40))


def test_with_keep_the_turns_continue() -> None:
    restored = Scheduler.from_state(frame(keep=True).state_dict(), [ids("a", *range(1, 9)), GROWN], refresh=True)

    assert shown(restored.take(5)) == [77, 14, 5, 16, 6]


def test_a_state_continues_with_other_channels() -> None:
    scheduler = frame()
    scheduler.pause("b")

    restored = Scheduler.from_state(scheduler.state_dict(), [ids("c", 21, 22), ids("b", *range(11, 19))], refresh=True)

    assert (restored.channels, restored.paused, restored.epoch_id) == (("b", "c"), ("b",), 1)
    assert shown(restored.take(3)) == [77, 21, 22]


def test_a_state_with_unchanged_channels_continues_without_a_reset() -> None:
    scheduler = frame()

    restored = Scheduler.from_state(
        scheduler.state_dict(), [ids("a", *range(1, 9)), ids("b", *range(11, 19))], refresh=True
    )

    assert restored.state_dict() == scheduler.state_dict()


def test_without_refresh_other_contents_are_refused() -> None:
    with pytest.raises(OtherContents, match="Channel 'b' holds other records"):
        Scheduler.from_state(frame().state_dict(), [ids("a", *range(1, 9)), ids("b", 99)])


@pytest.mark.req("PLAY-API-7")
@given(st.integers(0, 2**32))
def test_a_restored_scheduler_continues_exactly_like_the_saved_one(number: int) -> None:
    scheduler, channels = lived(Random(number))
    text = json.dumps(scheduler.state_dict())

    restored = Scheduler.from_state(json.loads(text), channels)

    assert json.dumps(restored.state_dict()) == text
    assert continued(restored) == continued(scheduler)


@pytest.mark.req("PLAY-API-7")
def test_it_can_be_restored_after_every_single_call() -> None:
    rough: list[Slot] = [Artwork(31, 3), Fault.DAMAGED, Artwork(32, 2), Fault.UNREADABLE]
    channels = [ids("a", 1, 2, 3), ids("b", 3), Channel("c", RoughShelf(rough))]
    saved = whole = Scheduler(channels, Settings(pick=Pick(PickMode.RANDOM, 3), lookahead=3), seed=4)
    saved = Scheduler.from_state(whole.state_dict(), channels)
    for call in range(120):
        for scheduler in (whole, saved):
            if call % 4 == 0:
                scheduler.nae_insert(Record(900 + call % 3, call))
        assert public(saved.next()) == public(whole.next())
        saved = Scheduler.from_state(saved.state_dict(), channels)
        assert saved.state_dict() == whole.state_dict()


# Members that are not restored: shelves are passed in, messages were delivered.
NOT_SAVED = {"generator", "diagnostics", "read_before", "snapshot"}


@pytest.mark.req("PLAY-API-7")
def test_a_restored_programme_has_every_attribute_of_the_saved_one() -> None:
    channels = [ids("a", 1, 2, 3), ids("b", 11, 12), Channel("c", RoughShelf([Fault.UNREADABLE]))]
    part = DayPart("evening", "18:00", "23:00", {"a": Decimal(1), "b": Decimal(2)})
    programme = Programme(channels, Settings(lookahead=4, day_parts=(part,), preserve_history=True), seed=4)
    programme.take(6)
    programme.time_is(18 * 60)
    programme.take(5)
    programme.show_next(Record(77, 1))
    programme.ban_artwork(12, until=90)
    programme.pause("b")
    programme.prev()
    plain = vars(Programme((), seed=4))
    changed = {name for name, value in vars(programme).items() if value != plain[name]}
    assert changed > {
        "diagnosed",
        "minute",
        "behind",
        "batches",
        "resets",
        "last_reset",
        "pins",
        "bans",
        "paused_channels",
    }

    restored = saving.load(saving.save(programme), lambda row: {c.id: c.shelf for c in channels}[row.id])

    assert _kept(restored) == _kept(programme)
    assert restored.snapshot.same(programme.snapshot)
    assert restored.snapshot.part == "evening"


def _kept(programme: Programme) -> dict[str, object]:
    kept = {name: value for name, value in vars(programme).items() if name not in NOT_SAVED}
    # Items without their traces: of the pool of an item only numbers and ids are saved.
    items: dict[str, list[Item]] = {"history": list(programme.history), "lookahead": list(programme.lookahead)}
    return {**kept, **{name: [public(item) for item in held] for name, held in items.items()}}


def crowd(named: str, records: int = 60) -> list[Channel]:
    return [
        Channel(named.format(number), MemoryShelf(listed(range(number * 1000, number * 1000 + records))))
        for number in range(64)
    ]


def as_json(scheduler: Scheduler) -> int:
    return len(json.dumps(scheduler.state_dict(), ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.req("PLAY-API-7")
@pytest.mark.parametrize("pick", [Pick(), Pick(PickMode.RANDOM, 8192)])
@pytest.mark.parametrize("mode", Mode)
def test_a_state_is_at_most_64_kib(pick: Pick, mode: Mode) -> None:
    channels = crowd("https://example.org/channels/{:03}")
    huge = {channel.id: 2**62 + number for number, channel in enumerate(channels)}
    exposure = Exposure(mode, {}, huge, huge) if mode is Mode.PRE else Exposure(mode)
    scheduler = Scheduler(channels, Settings(exposure, pick, nae=Nae(cap=32), preserve_history=True), seed=2**64 - 1)
    largest = 0
    scheduler.take(100_000)
    for call in range(150):
        for number in range(32):
            scheduler.nae_insert(Record(2**64 - 1 - number - 40 * (call % 7), 2**62))
        scheduler.take(1 + call % 5)
        if call % 50 == 30:
            scheduler.reset("now and then")
        largest = max(largest, as_json(scheduler))
    assert 16 * 1024 < largest <= STATE_MOST


@pytest.mark.req("PLAY-API-7")
def test_a_state_with_many_bans_is_at_most_64_kib() -> None:
    scheduler = Scheduler(crowd("{}", 40), Settings(preserve_history=True), seed=1)
    for _ in range(300):
        scheduler.take(3)
        if (item := scheduler.now()) is not None and item.channel is not None:
            scheduler.ban(item)
    scheduler.take(40)

    assert as_json(scheduler) <= STATE_MOST


def digest_of_histories() -> str:
    """One digest over many histories: items, states, statistics, diagnostics."""
    seen: list[object] = []
    for number in range(60):
        random = Random(number)
        scheduler, _ = lived(random)
        seen.append(scheduler.state_dict())
        seen.append(scheduler.stats())
        seen.append([(diagnostic.code, dict(diagnostic.facts)) for diagnostic in scheduler.diagnostics()])
        with scheduler.update():
            for name in ("x", "y", "z"):
                scheduler.follow(name, listed(range(3)))
            scheduler.configure(exposure=Exposure(Mode.MAE, {}, {}, {}))
        seen.append([repr(public(item)) for item in scheduler.take(40)])
        seen += [scheduler.stats(), scheduler.state_dict()]
    # As serialized: the order of members counts too.
    return sha256(json.dumps(seen).encode()).hexdigest()


@pytest.mark.req("PLAY-LOOK-7")
def test_the_hash_seed_changes_nothing() -> None:
    program = "from tests.playback.test_saving import digest_of_histories as d; print(d(), hash('a channel'))"
    places = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    found = []
    for seed in ("0", "1", "4294967295"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(reversed(places))}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        found.append(done.stdout.split())

    assert len({digest for digest, _ in found}) == 1
    assert len({hashed for _, hashed in found}) == 3
    assert found[0][0] == digest_of_histories()


@pytest.mark.req("PLAY-API-7")
def test_a_history_can_be_saved_and_restored_at_any_call() -> None:
    random = Random(1)
    comparison = Comparison.drawn(random)
    for _ in range(5):
        comparison.restore()
        comparison.compare(whole=True)
    assert comparison.calls == ["restore"] * 5
