"""User-written shelves: any failure excludes only its channel, with one diagnostic."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from pendula.playback import Channel, InvalidRecord, MemoryShelf, NoShelf, Pick, PickMode, Record, Scheduler, Settings
from pendula.playback.choosing.records import Row
from tests.playback.shelves import ids, listed, manual

RANDOM = Pick(PickMode.RANDOM, 4)


class FailingShelf:
    """Three records; from its `fails_at`th call on it runs the given failure instead of answering."""

    def __init__(self, instead: Callable[[], Any], fails_at: int = 2) -> None:
        self.count, self.generation = 3, 7
        self.asked = 0
        self._sound = MemoryShelf(listed((91, 92, 93)))
        self._instead, self._fails_at = instead, fails_at

    def run(self, at: int) -> Iterable[Row]:
        self.asked += 1
        return self._instead() if self.asked >= self._fails_at else [self._sound.record(at)]

    def record(self, at: int) -> Row:
        self.asked += 1
        return self._instead() if self.asked >= self._fails_at else self._sound.record(at)


def raising(trouble: BaseException) -> Callable[[], Any]:
    def instead() -> Any:
        raise trouble

    return instead


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even words")


def endless() -> Iterator[Row]:
    row = MemoryShelf(listed((91, 92, 93))).record(0)
    while True:
        yield row


def later() -> Iterator[Row]:
    raise OSError("the card is gone")
    yield


ODD: dict[str, Callable[[], Any]] = {
    "a system's error": raising(OSError(5, "Input/output error")),
    "the end of an iteration": raising(StopIteration()),
    "the end of a generator": raising(GeneratorExit()),
    "a cancelled task": raising(asyncio.CancelledError()),
    "what is no Exception": raising(BaseException("odd")),
    "one without words": raising(Speechless()),
    "nothing at all": lambda: iter(()),
    "None": lambda: None,
    "a number": lambda: 5,
    "no row": lambda: [("x",)],
    "a row of elsewhere": lambda: [(2, 93, bytes(80))],
    "the same row for ever": endless,
    "an error while it is read": later,
}


def with_failing_shelf(instead: Callable[[], Any], pick: Pick, fails_at: int = 2) -> tuple[Scheduler, FailingShelf]:
    strange = FailingShelf(instead, fails_at)
    channels = [
        Channel("a", MemoryShelf(listed(range(1, 9)))),
        Channel("s", strange),
        Channel("b", MemoryShelf(listed((31, 32)))),
    ]
    return Scheduler(channels, Settings(pick=pick, lookahead=4), seed=1), strange


@pytest.mark.req("PLAY-USE-6")
@pytest.mark.req("PLAY-LOOK-6")
@pytest.mark.req("PLAY-API-5")
@pytest.mark.parametrize("pick", [Pick(), RANDOM], ids=["recency", "random"])
@pytest.mark.parametrize("odd", ODD)
def test_a_misbehaving_shelf_excludes_its_channel_and_the_others_continue(odd: str, pick: Pick) -> None:
    scheduler, strange = with_failing_shelf(ODD[odd], pick)

    items = [scheduler.next() for _ in range(60)]

    assert None not in items
    channels = [item.channel for item in items if item is not None]
    assert channels.count("s") <= 2
    assert channels[-20:].count("a") in range(8, 13)
    assert strange.asked <= 4
    diagnostics = [diagnostic for diagnostic in scheduler.diagnostics() if diagnostic.code == "UnreadableChannel"]
    assert [diagnostic.facts["channel"] for diagnostic in diagnostics] == ["s"]


@pytest.mark.req("PLAY-USE-6")
def test_the_diagnostic_has_the_problem_of_the_shelf() -> None:
    scheduler, _ = with_failing_shelf(ODD["a system's error"], Pick())
    scheduler.take(30)

    [diagnostics] = scheduler.diagnostics()
    assert "Its shelf: OSError:" in diagnostics.sentence
    assert "Input/output error" in diagnostics.facts["shelf"]


@pytest.mark.req("PLAY-USE-6")
def test_a_refresh_with_the_same_shelf_tries_it_again() -> None:
    scheduler, strange = with_failing_shelf(raising(OSError("away")), Pick())
    scheduler.take(30)
    strange._fails_at = 10**9

    scheduler.refresh("s", strange)

    assert "s" in {item.channel for item in scheduler.take(6)}


class Uncountable(FailingShelf):
    @property
    def count(self) -> int:
        raise OSError("the disk is away")

    @count.setter
    def count(self, value: int) -> None:
        pass


@pytest.mark.req("PLAY-USE-6")
def test_a_shelf_without_a_readable_count_is_excluded_and_reported_once() -> None:
    shelf = Uncountable(list)
    scheduler = Scheduler([Channel("u", shelf), ids("a", 1, 2)], seed=1)
    scheduler.reset("again")
    scheduler.reset("and again")

    assert {item.channel for item in scheduler.take(9)} == {"a"}
    assert [diagnostic.facts["channel"] for diagnostic in scheduler.diagnostics()] == ["u"]
    again = Scheduler.from_state(scheduler.state_dict(), [Channel("u", shelf), ids("a", 1, 2)])
    assert again.take(9) == scheduler.take(9)


@pytest.mark.req("PLAY-USE-6")
def test_bytes_other_than_a_record_are_skipped_as_damaged() -> None:
    scheduler, _ = with_failing_shelf(lambda: [(0, 91, b"short")], Pick(), fails_at=1)

    assert {item.channel for item in scheduler.take(30)} == {"a", "b"}


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("pick", [Pick(), RANDOM], ids=["recency", "random"])
def test_an_interrupt_during_a_shelf_read_loses_nothing(trouble: type[BaseException], pick: Pick) -> None:
    scheduler, strange = with_failing_shelf(raising(trouble()), pick, fails_at=3)
    first = []
    with pytest.raises(trouble):
        while True:
            first.append(scheduler.next())
    strange._fails_at = 10**9

    rest = scheduler.take(60)

    ordinals = [item.ordinal for item in (*first, *rest) if item is not None]
    assert ordinals == list(range(1, len(ordinals) + 1))
    assert not scheduler.diagnostics()


@pytest.mark.parametrize("call", ["next", "peek", "reset", "state_dict", "follow", "nae_insert"])
def test_a_shelf_cannot_call_the_scheduler_that_reads_it(call: str) -> None:
    asked: list[Scheduler] = []
    arguments: dict[str, tuple[Any, ...]] = {
        "peek": (1,),
        "reset": ("why",),
        "follow": ("new", [Record(1, 1)]),
        "nae_insert": (Record(5, 5),),
    }
    scheduler, _ = with_failing_shelf(lambda: getattr(asked[0], call)(*arguments.get(call, ())), Pick())
    asked.append(scheduler)

    items = scheduler.take(40)

    assert len(items) == 40
    assert scheduler.epoch_id == 0
    assert "Reentered" in scheduler.diagnostics()[0].facts["shelf"]


def test_after_a_reentrant_shelf_call_other_threads_are_not_blocked() -> None:
    asked: list[Scheduler] = []
    scheduler, _ = with_failing_shelf(lambda: asked[0].take(1), Pick())
    asked.append(scheduler)
    scheduler.take(40)
    found: list[Any] = []

    thread = threading.Thread(target=lambda: found.append(scheduler.next()))
    thread.start()
    thread.join(240)

    assert found[0] is not None


@pytest.mark.parametrize("given", [[Record(1, 1)], (Record(1, 1),), None, "records", 5, object()])
def test_a_channel_without_a_shelf_is_refused_with_a_helpful_message(given: Any) -> None:
    with pytest.raises(NoShelf) as refused:
        Channel("sea", given)

    assert "Channel 'sea'" in refused.value.message
    assert "MemoryShelf" in refused.value.message


def test_values_other_than_records_are_refused_with_their_place() -> None:
    with pytest.raises(InvalidRecord, match=r"records\[1\] is 'x'"):
        Scheduler(seed=1).follow("a", [Record(1, 1), "x"])  # type: ignore[list-item]
    with pytest.raises(NoShelf):
        Scheduler(seed=1).follow("a", 5)  # type: ignore[arg-type]


def test_a_shelf_with_a_count_above_the_limit_provides_the_newest() -> None:
    class Huge:
        count, generation = 81_920, 1

        def run(self, at: int) -> Iterable[Row]:
            return [self.record(at)]

        def record(self, at: int) -> Row:
            return at, at + 1, MemoryShelf([Record(at + 1, 1)]).record(0)[2]

    scheduler = Scheduler([Channel("h", Huge())], Settings(exposure=manual(h=1), lookahead=1), seed=1)

    assert [item.id for item in scheduler.take(8193)][-2:] == [8192, 1]
