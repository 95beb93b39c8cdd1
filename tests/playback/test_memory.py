"""Memory is small and does not grow with the number of calls.

What a scheduler holds is counted object by object; the long cases also measure the allocator.
"""

import gc
import sys
import tracemalloc
from collections.abc import Iterable
from types import FunctionType, ModuleType

import msgspec
import pytest

from pendula.playback.choosing import generator, new_artwork, programme, records, swrr
from pendula.playback.choosing.records import Channel, MemoryShelf
from pendula.playback.model import Record
from pendula.playback.scheduler import Scheduler
from pendula.playback.settings import Exposure, Mode, Nae, Pick, PickMode, Settings
from tests.playback.shelves import listed

MEBI, KIBI = 1 << 20, 1 << 10
PERIOD = 65536
# The lookahead holds between 31 and 62 items and shelves are read to different places; more than that is a leak, be it
# of one byte in thirty items.
SLACK = 32 * KIBI
NOT_COUNTED = (type, ModuleType, FunctionType, MemoryShelf)


def crowd() -> list[Channel]:
    return [
        Channel(f"channel {number}", MemoryShelf(listed(range(number * 100, number * 100 + 8)))) for number in range(64)
    ]


def uneven() -> Exposure:
    """Weights with a period of 65536 steps, so that the table has its largest size."""
    return Exposure(Mode.PRE, total_count={f"channel {number}": 7**number % 9973 for number in range(64)})


def inside(thing: object) -> Iterable[object]:
    # Structs that the garbage collector does not track are followed by their fields.
    if isinstance(thing, msgspec.Struct):
        return [getattr(thing, name) for name in thing.__struct_fields__]
    return gc.get_referents(thing)


def held(scheduler: Scheduler) -> int:
    """The bytes of all objects reachable from a scheduler and the variables of its modules, except the records."""
    scheduler.stats()
    waiting: list[object] = [
        scheduler,
        *(vars(module) for module in (generator, new_artwork, programme, records, swrr)),
    ]
    seen: dict[int, int] = {}
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen and not isinstance(thing, NOT_COUNTED):
            seen[id(thing)] = sys.getsizeof(thing)
            if not isinstance(thing, dict) or "__builtins__" not in thing:
                waiting.extend(inside(thing))
            else:
                waiting.extend(value for name, value in thing.items() if not name.startswith("__"))
    return sum(seen.values())


def warmed(settings: Settings) -> Scheduler:
    """After more than two periods: the table is complete, and shelves and buffers are full."""
    scheduler = Scheduler(crowd(), settings, seed=1)
    for _ in range(2 * PERIOD // 1000 + 1):
        scheduler.take(1000)
    return scheduler


@pytest.mark.req("PLAY-PERF-2")
@pytest.mark.parametrize("pick", [Pick(), Pick(PickMode.RANDOM, 64)])
def test_a_scheduler_of_64_channels_holds_less_than_a_mebibyte(pick: Pick) -> None:
    fresh = held(Scheduler(crowd(), Settings(), seed=1))

    scheduler = warmed(Settings(uneven(), pick, nae=Nae(cap=32)))
    for number in range(32):
        scheduler.nae_insert(Record(10**6 + number, 0))
    scheduler.take(90)

    assert len(scheduler._programme.generator.round.table) == PERIOD
    assert fresh + PERIOD < held(scheduler) < MEBI


def show(scheduler: Scheduler, items: int) -> None:
    """Take this many items, a thousand at a time, each time with a new artwork; at the end the pool is empty."""
    for number in range(items // 1000):
        scheduler.nae_insert(Record(10**6 + number, 0))
        scheduler.take(1000)
    while any(scheduler._programme.generator.pool):
        scheduler.take(1000)
    scheduler.take(1000)


@pytest.mark.req("PLAY-PERF-2")
def test_a_million_items_leave_no_memory_allocated() -> None:
    scheduler = warmed(Settings(uneven()))
    before = held(scheduler)

    show(scheduler, 10**6)

    assert held(scheduler) - before < SLACK


@pytest.mark.req("PLAY-PERF-2")
def test_single_calls_and_resets_leave_no_memory_allocated() -> None:
    scheduler = Scheduler(crowd(), Settings(pick=Pick(PickMode.RANDOM, 8)), seed=1)
    sizes = []
    for _ in range(3):
        for call in range(20_000):
            scheduler.next()
            if call % 50 == 0:
                scheduler.prev()
                scheduler.nae_insert(Record(10**6 + call, 0))
            if call % 4000 == 3999:
                scheduler.reset("now and then")
        sizes.append(held(scheduler))

    assert sizes[2] - sizes[1] < SLACK


def test_memory_held_by_a_scheduler_would_be_detected() -> None:
    scheduler = Scheduler(crowd(), Settings(history=1024), seed=1)
    scheduler.take(100)
    before = held(scheduler)

    scheduler.take(900)

    assert held(scheduler) - before > 2 * SLACK


def allocated(scheduler: Scheduler) -> int:
    scheduler.stats()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.long
@pytest.mark.req("PLAY-PERF-2")
def test_a_million_items_make_no_permanent_allocation() -> None:
    scheduler = warmed(Settings(uneven()))
    tracemalloc.start()
    try:
        show(scheduler, 100_000)
        before = allocated(scheduler)
        show(scheduler, 10**6)
        after = allocated(scheduler)
    finally:
        tracemalloc.stop()

    assert after - before < SLACK


@pytest.mark.long
@pytest.mark.req("PLAY-PERF-2")
def test_ten_million_items_leave_no_memory_allocated() -> None:
    scheduler = warmed(Settings(uneven()))
    before = held(scheduler)

    show(scheduler, 10**7)

    assert held(scheduler) - before < SLACK


@pytest.mark.long
@pytest.mark.req("PLAY-PERF-2")
def test_ten_million_single_calls_leave_no_memory_allocated() -> None:
    scheduler = warmed(Settings(uneven()))
    before = held(scheduler)
    for _ in range(10**7):
        scheduler.next()

    assert held(scheduler) - before < SLACK
