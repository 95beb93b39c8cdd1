"""Streams: live, from the buffer, from the journal, with explicit gaps."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.kernel.canonical import encode
from pendula.kernel.driver import Driver
from pendula.kernel.stream import Gap, Published, Ring, Stream, UnknownEventId
from pendula.testing import FaultyDisk
from pendula.testing.tally import Add, Advance, Changed, Command
from tests.kernel.journals import do, new_driver, recovered


def ids(stream: Stream[Changed], most: int = 1000) -> list[str]:
    return [item.id for item in stream.take(most) if isinstance(item, Published)]


def with_adds(driver: Driver[Command, Changed], count: int) -> Driver[Command, Changed]:
    for _ in range(count):
        do(driver, Add(1))
    return driver


def test_a_new_reader_gets_later_events() -> None:
    driver = with_adds(new_driver(FaultyDisk()), 3)
    stream = driver.subscribe()
    assert stream.take(10) == []

    do(driver, Add(7))

    (item,) = stream.take(10)
    assert isinstance(item, Published)
    assert (item.id, item.event.by, item.data) == (
        "6.0",
        7,
        b'{"at":0,"by":7,"cause":"add","total":10,"type":"changed"}',
    )


def test_no_event_is_delivered_before_the_flush() -> None:
    driver = new_driver(FaultyDisk())
    stream = driver.subscribe()
    driver.submit(Add(1), by="ann")
    assert stream.take(10) == []

    driver.flush()

    assert ids(stream) == ["0.0"]


def test_the_events_of_one_command_are_numbered() -> None:
    driver = new_driver(FaultyDisk())
    stream = driver.subscribe()
    do(driver, Add(1, at=5), Add(2, at=6), Advance(9))

    assert ids(stream) == ["4.0", "4.1"]
    assert ids(driver.subscribe("4.0")) == ["4.1"]
    assert ids(driver.subscribe("4.1")) == []


def test_a_resuming_reader_is_served_from_the_buffer() -> None:
    driver = with_adds(new_driver(FaultyDisk()), 5)

    assert ids(driver.subscribe("2.0")) == ["4.0", "6.0", "8.0"]


def test_a_reader_that_resumes_late_is_served_from_the_journal_then_the_buffer() -> None:
    driver = with_adds(new_driver(FaultyDisk(), buffer_events=2), 6)

    stream = driver.subscribe("0.0")

    assert [item_id for _ in range(10) for item_id in ids(stream, 2)] == ["2.0", "4.0", "6.0", "8.0", "10.0"]


def test_a_reader_resumes_after_a_restart() -> None:
    disk = FaultyDisk()
    with_adds(new_driver(disk), 4)
    driver = recovered(disk)

    stream = driver.subscribe("2.0")
    assert ids(stream) == ["4.0", "6.0"]
    do(driver, Add(1))
    assert ids(stream) == ["8.0"]


def test_a_slow_reader_gets_a_gap_with_the_number_of_missed_events() -> None:
    driver = new_driver(FaultyDisk(), buffer_events=3)
    stream = driver.subscribe()
    with_adds(driver, 1)
    assert ids(stream) == ["0.0"]

    with_adds(driver, 5)

    assert stream.take(10)[0] == Gap(missed=2, after="0.0", next="6.0")
    assert ids(driver.subscribe("4.0")) == ["6.0", "8.0", "10.0"]


def test_a_reader_of_a_pruned_past_gets_a_gap() -> None:
    driver = with_adds(new_driver(FaultyDisk(), {"segment_bytes": 500}, journal_bytes=20_000, buffer_events=2), 300)

    first = driver.subscribe("0.0").take(1)

    assert first == [Gap(missed=None, after="0.0", next=f"{driver.journal.first_n}.0")]


def test_the_journal_is_read_on_while_the_buffer_advances() -> None:
    driver = with_adds(new_driver(FaultyDisk(), buffer_events=2), 6)
    stream = driver.subscribe("0.0")
    seen = ids(stream, 1)
    with_adds(driver, 10)

    for _ in range(40):
        seen += ids(stream, 3)

    assert seen == [f"{n}.0" for n in range(2, 32, 2)]


@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_reader_without_events_has_a_position(before: int, restarted: bool) -> None:
    disk = FaultyDisk()
    driver = with_adds(new_driver(disk), before)
    if restarted:
        driver.close()
        driver = recovered(disk)
    place = driver.subscribe().last
    do(driver, Add(1), Add(2))

    items = driver.subscribe(place).take(10)

    assert [item.event.by for item in items if isinstance(item, Published)] == [1, 2]
    assert len(items) == 2


@pytest.mark.parametrize("bad", ["", "7", "1.", "-1.1", "-2.0", "01.0", "1.0.0", "x.y", "999.0"])
def test_an_unknown_event_id_is_refused(bad: str) -> None:
    driver = with_adds(new_driver(FaultyDisk()), 2)

    with pytest.raises(UnknownEventId):
        driver.subscribe(bad)


def test_a_callback_is_called_for_new_events_until_unsubscribed() -> None:
    driver = new_driver(FaultyDisk())
    calls: list[int] = []
    stop = driver.on_publish(lambda: calls.append(1))
    do(driver, Add(1))
    stop()
    do(driver, Add(1))

    assert calls == [1]


def test_a_log_gets_the_events_of_durable_commands_in_place_of_the_buffer() -> None:
    class Log:
        def __init__(self) -> None:
            self.got: list[tuple[int, bytes]] = []

        def publish(self, n: int, events: tuple[Any, ...], data: tuple[bytes, ...]) -> None:
            assert tuple(map(encode, events)) == data
            self.got += [(n, one) for one in data]

    log = Log()
    driver = new_driver(FaultyDisk(), log=log)
    driver.submit(Add(2), "ann")
    assert log.got == []
    driver.flush()

    assert [n for n, _ in log.got] == [0]
    with pytest.raises(AssertionError):
        driver.subscribe()


@given(st.lists(st.integers(), max_size=40), st.integers(1, 9), st.data())
def test_a_ring_holds_the_newest_items_by_their_numbers(items: list[int], capacity: int, data: st.DataObject) -> None:
    items = sorted(items)
    ring: Ring[int] = Ring(capacity)
    for item in items:
        ring.append(item)

    assert (ring.base, ring.end) == (max(0, len(items) - capacity), len(items))
    start = data.draw(st.integers(ring.base, ring.end))
    stop = data.draw(st.integers(start, ring.end))
    assert ring.items(start, stop) == items[start:stop]
    assert [ring[number] for number in range(ring.base, ring.end)] == items[ring.base :]
    wanted = data.draw(st.integers(-5, 5))
    newer = [number for number in range(ring.base, ring.end) if items[number] > wanted]
    assert ring.after(lambda item: item, wanted) == (newer[0] if newer else ring.end)


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(1, 6), st.integers(1, 5))
def test_no_reader_misses_or_repeats_an_event_unless_a_gap_says_so(steps: list[int], capacity: int, most: int) -> None:
    driver = new_driver(FaultyDisk(), buffer_events=capacity)
    stream = driver.subscribe()
    heard: list[int] = []
    published = 0
    for step in steps:
        for _ in range(step):
            do(driver, Add(1))
            published += 1
        for item in stream.take(most):
            match item:
                case Gap(missed=missed):
                    assert missed is not None
                    heard.extend([-1] * missed)
                case Published(event=event):
                    heard.append(event.total)
    while items := stream.take(most):
        heard.extend(item.event.total for item in items if isinstance(item, Published))
        heard.extend([-1] * sum(item.missed or 0 for item in items if isinstance(item, Gap)))

    assert len(heard) == published
    assert all(total in (-1, place) for place, total in enumerate(heard, 1))


def test_a_reader_whose_records_are_pruned_continues_after_a_gap() -> None:
    driver = with_adds(new_driver(FaultyDisk(), {"segment_bytes": 500}, snapshot_every=5, buffer_events=2), 40)
    stream = driver.subscribe("0.0")
    assert ids(stream, 1) == ["2.0"]

    driver.journal.prune(keep_bytes=0)
    items = [item for _ in range(100) for item in stream.take(3)]

    gaps = [item for item in items if isinstance(item, Gap)]
    assert len(gaps) == 1
    newest = max(record.n for record in driver.journal.read() if record.kind == "input")
    assert [item.id for item in items if isinstance(item, Published)][-1] == f"{newest}.0"
