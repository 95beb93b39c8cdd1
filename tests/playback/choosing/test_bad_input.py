"""Invalid input is refused as a whole and by name; a broken shelf never stops playback."""

import copy
import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from pendula.kernel.errors import InputRefused
from pendula.playback import saving
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import UNREADABLE, Channel, MemoryShelf, Row, pack
from pendula.playback.engine import Player
from pendula.playback.explain import why
from pendula.playback.messages import Configure
from pendula.playback.model import (
    InsertResult,
    InvalidParameter,
    InvalidRecord,
    InvalidWeight,
    Record,
)
from pendula.playback.scheduler import Scheduler
from pendula.playback.sentences import sentence_of
from pendula.playback.settings import Exposure, Mode, Nae, Pick, PickMode, Settings
from tests.campaigns import campaign_after
from tests.playback.oracle import Artwork, Fault, Slot
from tests.playback.shelves import ids, listed
from tests.playback.worlds import RoughShelf

PAIR = (ids("a", *range(1, 6)), ids("b", 3, 11))
ENDLESS = 10**5000  # more digits than Python converts to a string

WEIGHTS = [
    float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), "NaN", "inf",
    "", "three", None, True, 1j, b"1", Decimal("1e31"), Decimal("1e-31"), "1" * 31, ENDLESS,
]  # fmt: skip


@pytest.mark.req("PLAY-EXP-3")
@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda value: repr(value)[:20] if value is not ENDLESS else "endless")
def test_a_weight_other_than_a_finite_number_is_refused(weight: Any) -> None:
    programme = Programme(PAIR, seed=1)
    programme.take(3)
    before = saving.save(programme)

    with pytest.raises(InvalidWeight) as refused:
        programme.configure(exposure=Exposure(Mode.MAE, {"a": Decimal(1), "b": weight}))

    assert refused.value.channel == "b"
    assert saving.save(programme) == before


@pytest.mark.req("PLAY-EXP-1")
@pytest.mark.parametrize("weight", [3, 3.0, "3", Decimal("3.00"), "30e-1"])
def test_a_number_counts_by_its_decimal_text(weight: Any) -> None:
    programme = Programme(PAIR, Settings(exposure=Exposure(Mode.MAE, {"a": weight, "b": Decimal(1)})), seed=1)

    assert programme.generator.weights == [49152, 16384]


UNFIT_COUNTS: tuple[Any, ...] = (-1, 1.5, "3", True, 2**63, None, ENDLESS)


def invalid_structs(kind: Any, name: str, values: Iterable[Any]) -> list[Any]:
    return [kind(**{name: value}) for value in values]


SETTINGS: list[dict[str, Any]] = [
    *({"history": value} for value in (0, 1025, -1, "3", 1.5, True, ENDLESS)),
    *({"lookahead": value} for value in (0, 1025, -1, "3", 1.5, True, ENDLESS)),
    *({"nae": invalid} for invalid in invalid_structs(Nae, "cap", (0, 65, -1, "3", 2.0, True))),
    *({"nae": invalid} for invalid in invalid_structs(Nae, "enabled", (1, 0, "yes", None))),
    *({"pick": invalid} for invalid in invalid_structs(Pick, "r", (0, 8193, -1, "3", 2.0, False))),
    *({"pick": invalid} for invalid in invalid_structs(Pick, "mode", ("newest", None, 1, ""))),
    *({"exposure": invalid} for invalid in invalid_structs(Exposure, "mode", ("eqe", None, 1))),
    *({"exposure": invalid} for invalid in invalid_structs(Exposure, "alpha", ("x", None, float("nan"), 2, -1))),
    *({"exposure": invalid} for invalid in invalid_structs(Exposure, "recent_count", ({"a": -1}, {"a": 1.5}))),
    *({"exposure": invalid} for invalid in invalid_structs(Exposure, "total_count", ({"a": n} for n in UNFIT_COUNTS))),
    {"preserve_history": "yes"},
]  # fmt: skip


@pytest.mark.req("PLAY-EXP-5")
@pytest.mark.parametrize("wrong", SETTINGS, ids=range(len(SETTINGS)))
def test_a_setting_out_of_range_is_refused_and_changes_nothing(wrong: dict[str, Any]) -> None:
    programme = Programme(PAIR, seed=1)
    programme.take(3)
    before = saving.save(programme)

    with pytest.raises(InvalidParameter) as refused:
        programme.configure(**{"lookahead": 7, **wrong})
    with pytest.raises(InvalidParameter):
        Programme(PAIR, Settings(**wrong), seed=1)

    assert refused.value.parameter
    assert saving.save(programme) == before


@pytest.mark.req("PLAY-RNG-5")
@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "1", True, None, ENDLESS], ids=range(7))
def test_a_seed_has_64_bits(seed: Any) -> None:
    with pytest.raises(InvalidParameter):
        Programme(PAIR, seed=seed)


@pytest.mark.req("PLAY-RNG-5")
def test_a_random_seed_is_shown() -> None:
    scheduler = Scheduler(PAIR)
    again = Scheduler(PAIR, seed=scheduler.stats()["global_seed"])  # type: ignore[arg-type]

    assert scheduler.take(50) == again.take(50)
    assert Scheduler(PAIR).stats()["global_seed"] != scheduler.stats()["global_seed"]


@pytest.mark.parametrize("name", ["", "x" * 257, 3, None, b"a"])
def test_a_channel_has_a_name(name: Any) -> None:
    with pytest.raises(InvalidParameter):
        Programme(PAIR, seed=1).follow(name, MemoryShelf([]))


RECORDS = [
    *({"id": value} for value in (-1, 2**64, "1", None, 1.0, True, ENDLESS)),
    *({"ts": value} for value in (2**63, -(2**63) - 1, "1", None)),
    *({"payload": value} for value in (b"", bytes(31), bytes(33), "x" * 32, None)),
    *({"storage_key": value} for value in (b"", bytes(15), bytes(17))),
    {"kind": 256}, {"format": -1}, {"flags": 65536}, {"dwell_ms": 2**32}, {"modified_ts": 2**32},
]  # fmt: skip


@pytest.mark.req("PLAY-CACHE-2")
@pytest.mark.req("PLAY-NAE-10")
@pytest.mark.parametrize("wrong", RECORDS, ids=range(len(RECORDS)))
def test_a_record_of_the_wrong_size_is_refused(wrong: dict[str, Any]) -> None:
    record = Record(**{"id": 1, "ts": 1, **wrong})

    with pytest.raises(InvalidRecord):
        MemoryShelf([record])
    assert Programme(PAIR, seed=1).nae_insert(record) is InsertResult.REJECTED


@pytest.mark.req("PLAY-CACHE-3")
@pytest.mark.parametrize("raws", [[b""], [pack(Record(1, 1))[:79]], [bytes(80)], [pack(Record(1, 1))] * 2])
def test_bytes_other_than_records_make_no_shelf(raws: list[bytes]) -> None:
    with pytest.raises(InvalidRecord):
        MemoryShelf(raws)


@pytest.mark.req("PLAY-API-5")
@pytest.mark.parametrize("record", [None, 3, "record", {"id": 1}, [1]])
def test_a_value_other_than_a_record_is_a_caller_error(record: Any) -> None:
    with pytest.raises(TypeError, match="is not a record; allowed are records and 80 bytes"):
        Programme(PAIR, seed=1).nae_insert(record)


class Hostile:
    """A shelf with arbitrary contents that change with each call."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.count = random.choice((0, 1, 2, 5, 60, 8192))
        self.generation = random.randrange(2**64)

    def run(self, at: int) -> Iterable[Row]:
        for place in range(at, min(self.count, at + self._random.choice((1, 2, 50)))):
            row = self.record(place)
            yield row
            if row[0] is None:
                return

    def record(self, at: int) -> Row:
        if at >= self.count:
            return UNREADABLE
        match self._random.randrange(4):
            case 0:
                return UNREADABLE
            case 1:
                return at, None, b""
            case _:
                return at, 1, pack(Record(1, 0))


@pytest.mark.req("PLAY-API-5")
@pytest.mark.req("PLAY-LOOK-6")
@pytest.mark.parametrize("mode", PickMode)
def test_next_and_prev_never_raise_whatever_a_shelf_does(mode: PickMode) -> None:
    for number in range(150):
        random = Random(number)
        channels = [Channel(name, Hostile(random)) for name in "abcdef"[: random.randrange(7)]]
        settings = Settings(pick=Pick(mode, random.choice((1, 3, 8192))), lookahead=random.choice((1, 4, 32)))
        programme = Programme(channels, settings, seed=number)
        for _ in range(40):
            if random.randrange(9) == 0:
                programme.nae_insert(Record(random.randrange(3), 0))
            programme.next()
            programme.prev()
            programme.take(random.randrange(5))
            for item in programme.lookahead:
                assert why(programme, item).sentence
        failed = sum(programme.generator.unreadable)
        codes = [diagnostic.code for diagnostic in programme.diagnostics]
        assert codes.count("UnreadableChannel") == failed


def state_and_channels(number: int) -> tuple[dict[str, Any], list[Channel]]:
    """A small state with every feature: pool, traces, bans, an unreadable channel, an earlier epoch."""
    rough: list[Slot] = [Artwork(31, 3), Fault.DAMAGED, Artwork(32, 2), Fault.UNREADABLE]
    channels = [ids("a", *range(1, 6)), Channel("c", RoughShelf(rough)), ids("b", 3, 11), ids("none")]
    settings = Settings(
        exposure=Exposure(Mode.MAE, {"a": Decimal(3), "b": Decimal(1), "c": Decimal("2.5")}),
        pick=Pick(PickMode.RANDOM, 3) if number % 2 else Pick(),
        history=4,
        lookahead=2,
        nae=Nae(cap=4),
        preserve_history=True,
    )
    programme = Programme(channels, settings, seed=number)
    programme.ban(programme.take(3)[0])
    for work in (900, 901):
        programme.nae_insert(Record(work, 0))
    programme.take(2 + number)
    programme.prev()
    programme.nae_insert(Record(902, 0))
    plain: dict[str, Any] = json.loads(json.dumps(saving.save(programme)))
    return plain, channels


HOSTILE: tuple[Any, ...] = (None, True, -1, 0, 1, 2, 65536, -65536, 2**63, 2**64, 10**30, 1.5, "", "x", "AAAA", [], {})


def mutated(state: Any) -> Iterator[tuple[str, Any]]:
    """The state with one fault, in every place and of many kinds."""
    for path, parent, key in places(state, ""):
        there = parent[key]
        for wrong in (*HOSTILE, *neighbours(there)):
            if wrong != there or type(wrong) is not type(there):
                parent[key] = wrong
                yield f"{path} = {json.dumps(wrong)[:60]}", copy.deepcopy(state)
        parent[key] = there
    for path, parent, key in list(places(state, "")):
        there = parent.pop(key)
        yield f"without {path}", copy.deepcopy(state)
        if isinstance(parent, dict):
            parent[key] = there
        else:
            parent.insert(key, there)
            parent.insert(key, there)
            yield f"twice {path}", copy.deepcopy(state)
            parent.pop(key)


def places(value: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    keys: Iterable[Any] = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield f"{path}/{key}", value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key], f"{path}/{key}")


def neighbours(there: Any) -> tuple[Any, ...]:
    if isinstance(there, int) and not isinstance(there, bool):
        return there + 1, there - 1, there + 65536, -there
    if isinstance(there, str):
        return there[:-1], there + "=", there.swapcase(), "ä"
    return ()


def use(state: Any, channels: list[Channel]) -> None:
    """Restore, continue, and call every query."""
    scheduler = Scheduler.from_state(state, channels)
    programme = scheduler._programme
    for item in (*programme.history, *programme.lookahead):
        scheduler.why(item)
    scheduler.peek(3)
    scheduler.prev()
    scheduler.nae_insert(Record(903, 0))
    for item in scheduler.take(9):
        scheduler.why(item)
    scheduler.stats()
    Scheduler.from_state(scheduler.state_dict(), channels).next()
    scheduler.reset("on")
    scheduler.take(5)


def try_all(number: int, every: int) -> tuple[int, int]:
    """The numbers of refused and accepted states; each accepted one must be harmless."""
    state, channels = state_and_channels(number)
    refused = taken = 0
    for count, (what, wrong) in enumerate(mutated(state)):
        if count % every:
            continue
        try:
            use(wrong, channels)
            taken += 1
        except InputRefused:
            refused += 1
        except Exception as trouble:
            trouble.add_note(f"state {number} with {what}")
            raise
    return refused, taken


@pytest.mark.req("PLAY-API-7")
@pytest.mark.parametrize("number", campaign_after(1, range(4)))
def test_a_wrong_state_is_refused_or_harmless(number: int) -> None:
    state, channels = state_and_channels(number)
    use(state, channels)

    refused, taken = try_all(number, every=5)

    assert refused > 2 * taken > 0


@pytest.mark.long
@pytest.mark.parametrize("number", range(12))
def test_every_wrong_state_is_refused_or_harmless(number: int) -> None:
    try_all(number, every=1)


@pytest.mark.req("PLAY-API-7")
def test_a_state_with_credit_for_a_channel_without_weight_is_refused_or_harmless() -> None:
    state, channels = state_and_channels(2)
    assert [row["id"] for row in state["channels"]] == ["a", "c", "b", "none"]
    state["channels"][0]["credit"] -= 2 * 65536
    state["channels"][3]["credit"] += 2 * 65536

    with pytest.raises(saving.InvalidState):
        Scheduler.from_state(state, channels)


@pytest.mark.req("PLAY-API-7")
def test_a_state_with_a_failed_channel_that_was_never_read_is_refused() -> None:
    channels = [ids("none")]
    state: dict[str, Any] = Scheduler(channels, seed=1).state_dict()
    state["channels"][0]["out"] = saving.OUT_NOW

    with pytest.raises(saving.InvalidState):
        Scheduler.from_state(state, channels)


@pytest.mark.req("PLAY-API-7")
def test_a_state_with_an_item_from_before_its_anchor_is_refused() -> None:
    state, channels = state_and_channels(7)
    stepped = [row for row in (*state["history"], *state["lookahead"]) if row[7] is not None]
    assert state["anchor"] > 0
    stepped[-1][7] = 1

    with pytest.raises(saving.InvalidState):
        Scheduler.from_state(state, channels)


@pytest.mark.req("PLAY-API-7")
def test_a_state_with_an_enormous_ordinal_is_read_without_counting_up_to_it() -> None:
    state, channels = state_and_channels(0)
    restored = Scheduler.from_state({**state, "ordinal": 2**61}, channels)

    assert max(item.ordinal for item in restored.take(200)) > 2**61


@pytest.mark.req("PLAY-API-7")
@pytest.mark.parametrize("state", [None, 3, "state", [], {}, {"seed": 1}, [1, 2], True])
def test_a_value_other_than_a_state_is_refused(state: Any) -> None:
    with pytest.raises(saving.InvalidState):
        Scheduler.from_state(state)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (None, "it is null; it must be an object"),
        ([], "it is a list of 0; it must be an object"),
        ({}, "'seed' is missing"),
    ],
)
def test_a_value_other_than_a_state_is_refused_with_a_readable_message(state: Any, sentence: str) -> None:
    with pytest.raises(saving.InvalidState) as refused:
        Scheduler.from_state(state, PAIR)

    assert refused.value.message == f"Invalid state of a programme: {sentence}"


@pytest.mark.req("PLAY-API-7")
def test_a_state_with_other_records_is_refused() -> None:
    state = Scheduler(PAIR, seed=1).state_dict()

    for channels in (
        [],
        [PAIR[0]],
        [PAIR[0], ids("b", 3)],
        [PAIR[0], ids("b", 3, 12)],
        [PAIR[0], Channel("b", MemoryShelf([*listed([3]), Record(11, 5)]))],
    ):
        with pytest.raises(saving.OtherContents) as refused:
            Scheduler.from_state(state, channels)
        assert refused.value.channel in ("a", "b")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"exposure": None}, "exposure is None; allowed is an object"),
        ({"exposure": {"mode": "Eqe"}}, "exposure.mode is 'Eqe'; allowed is EqE, MaE or PrE"),
        ({"pick": {"mode": "newest"}}, "pick.mode is 'newest'; allowed is recency or random"),
        ({"refresh": "kep"}, "refresh is 'kep'; allowed is reset or keep"),
        ({"pick": {"rr": 5}}, "pick.rr is not known; did you mean r?"),
        ({"lookahed": 5}, "lookahed is not known; did you mean lookahead?"),
        ({"zzz": 5}, "zzz is not known; known are exposure, pick, history"),
        ({"history": "many"}, "history is 'many'; allowed is an integer"),
        ({"nae": {"enabled": "yes"}}, "nae.enabled is 'yes'; allowed is true or false"),
        ({"day_parts": [{"name": "x"}]}, "day_parts[0] lacks start"),
        ({"day_parts": [{"name": "x", "from": 1}]}, "day_parts[0].from is not known; known are name, start, end"),
        ([], "settings is []; allowed is an object of settings"),
    ],
)
def test_settings_of_a_wrong_form_are_refused_with_a_readable_message(changes: Any, sentence: str) -> None:
    player = Player.create({"seed": 1})

    refusal = player.apply(Configure(changes)).refusal

    assert refusal is not None
    assert refusal.code == "invalid_parameter"
    assert sentence in sentence_of(refusal.code, refusal.facts)
    assert "`" not in sentence_of(refusal.code, refusal.facts)
