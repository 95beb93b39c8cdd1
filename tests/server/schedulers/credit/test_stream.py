"""The stream of recent events: numbers, replay, readers that are too late or too slow."""

import threading

import pytest

from pendula.credit.runs.artifacts import event_id
from pendula.server.schedulers.credit.stream import Bounds, Cursor, EventGone, RunStream, StreamEvent

RUN = "run_20260128_120000_deadbeef"
STATUS = StreamEvent("run_status", None, b'{"type":"run_status"}')


def paid(equivalent: str = "UAH") -> StreamEvent:
    return StreamEvent("tx.updated", equivalent, b'{"type":"tx.updated"}')


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def stream_of(clock: Clock, count: int = 0, **bounds: int) -> RunStream:
    stream = RunStream(RUN, clock, Bounds(**bounds))
    stream.put([paid()] * count)
    return stream


def numbers(cursor: Cursor, most: int = 10_000) -> list[int]:
    return [entry.seq for entry in cursor.take(most)]


@pytest.mark.req("SIM-EVT-1")
def test_numbers_start_at_one_with_six_digits_and_no_gaps(clock: Clock) -> None:
    entries = stream_of(clock).put([paid(), STATUS, paid("EUR")])

    assert [entry.id for entry in entries] == [f"evt_{RUN}_00000{at}" for at in (1, 2, 3)]
    assert entries[0].data.startswith(f'{{"event_id":"evt_{RUN}_000001","ts":"2023-11-14T22:13:20.000Z",'.encode())


@pytest.mark.req("SIM-EVT-8")
def test_a_frame_has_id_name_and_one_line_of_json(clock: Clock) -> None:
    (entry,) = stream_of(clock).put([STATUS])

    assert entry.frame == b"id: %b\nevent: simulator.event\ndata: %b\n\n" % (entry.id.encode(), entry.data)


@pytest.mark.req("SIM-EVT-10", "SIM-TEST-12")
@pytest.mark.parametrize(
    ("last", "replayed"),
    [(100, list(range(101, 301))), (250, list(range(251, 301))), (300, [])],
    ids=["all", "some", "none"],
)
def test_a_reader_gets_the_events_after_the_last_one_it_saw(clock: Clock, last: int, replayed: list[int]) -> None:
    stream = stream_of(clock, 300, events=200)

    cursor = stream.subscribe("UAH", event_id(RUN, last), STATUS)

    assert numbers(cursor) == [*replayed, 301]


@pytest.mark.req("SIM-EVT-10", "SIM-TEST-12")
@pytest.mark.parametrize(
    "last",
    [
        event_id(RUN, 99),
        event_id(RUN, 301),
        event_id("run_other", 200),
        "200",
        "",
        "evt_",
        f"evt_{RUN}_12",
        f"evt_{RUN}_-00200",
        f"evt_{RUN}_٢٠٠٢٠٠",
        f"{event_id(RUN, 200)} ",
    ],
)
def test_an_unknown_last_event_is_gone(clock: Clock, last: str) -> None:
    stream = stream_of(clock, 300, events=200)

    with pytest.raises(EventGone):
        stream.subscribe("UAH", last, STATUS)
    assert stream.last_seq == 300


@pytest.mark.req("SIM-EVT-10")
def test_a_replay_beyond_the_unread_limit_is_gone(clock: Clock) -> None:
    stream = stream_of(clock, 30, unread=10)

    assert numbers(stream.subscribe("UAH", event_id(RUN, 21), STATUS)) == [*range(22, 31), 31]
    with pytest.raises(EventGone):
        stream.subscribe("UAH", event_id(RUN, 20), STATUS)


@pytest.mark.req("SIM-EVT-9")
def test_a_stream_has_every_status_and_only_its_own_equivalent(clock: Clock) -> None:
    stream = stream_of(clock)
    cursor = stream.subscribe("UAH", None, STATUS)
    stream.put([paid("UAH"), paid("EUR"), STATUS, paid("EUR"), paid("UAH")])

    assert numbers(cursor) == [1, 2, 4, 6]


@pytest.mark.req("SIM-EVT-9")
def test_a_new_reader_starts_with_the_status_of_the_run(clock: Clock) -> None:
    stream = stream_of(clock, 5)

    assert [entry.type for entry in stream.subscribe("UAH", None, STATUS).take(10)] == ["run_status"]


@pytest.mark.req("SIM-EVT-11")
def test_events_expire_after_their_ttl(clock: Clock) -> None:
    stream = stream_of(clock, 2, ttl_us=600_000_000)
    clock.now += 599_000_000
    stream.put([paid()])

    assert len(stream) == 3
    clock.now += 2_000_000
    assert len(stream) == 1
    assert numbers(stream.subscribe("UAH", event_id(RUN, 2), STATUS)) == [3, 4]
    with pytest.raises(EventGone):
        stream.subscribe("UAH", event_id(RUN, 1), STATUS)


@pytest.mark.req("SIM-EVT-11")
def test_the_ring_holds_at_most_the_allowed_events(clock: Clock) -> None:
    stream = stream_of(clock, 5000, events=100)

    assert len(stream) == 100
    assert len(stream._ring._items) <= 200


@pytest.mark.req("SIM-EVT-11", "SIM-TEST-12")
def test_a_slow_reader_is_disconnected_without_a_gap(clock: Clock) -> None:
    stream = stream_of(clock, unread=10)
    slow = stream.subscribe("UAH", None, STATUS)
    for _ in range(13):
        stream.put([paid()])

    assert numbers(slow) == []
    assert slow.over


def test_one_large_batch_disconnects_no_prompt_reader(clock: Clock) -> None:
    stream = stream_of(clock, unread=10)
    prompt = stream.subscribe("UAH", None, STATUS)
    prompt.take(10)
    stream.put([paid()] * 50)

    received = [seq for _ in range(10) for seq in numbers(prompt, 7)]

    assert received == list(range(2, 52))
    assert not prompt.over


@pytest.mark.req("SIM-EVT-9")
@pytest.mark.parametrize("count", [2000, 2400, 2499, 2500, 2501, 2999, 3000])
@pytest.mark.parametrize("behind", [1999, 2000])
def test_a_reader_gets_all_retained_events_while_old_ones_are_dropped(clock: Clock, count: int, behind: int) -> None:
    stream = stream_of(clock, count)

    cursor = stream.subscribe("UAH", event_id(RUN, count - behind), STATUS)
    stream.put([paid()])

    assert numbers(cursor) == list(range(count - behind + 1, count + 3))


def test_events_of_other_equivalents_do_not_count_as_unread(clock: Clock) -> None:
    stream = stream_of(clock, unread=10)
    cursor = stream.subscribe("UAH", None, STATUS)
    for _ in range(30):
        stream.put([paid("EUR")])
    stream.put([paid()])

    assert numbers(cursor) == [1, 32]


@pytest.mark.req("SIM-EVT-12")
def test_the_last_event_of_a_run_ends_its_streams(clock: Clock) -> None:
    stream = stream_of(clock)
    cursor = stream.subscribe("UAH", None, STATUS)
    stream.put([StreamEvent("run_status", None, b"{}", terminal=True)])

    assert numbers(cursor) == [1, 2]
    assert cursor.over


@pytest.mark.req("SIM-RUN-9")
def test_an_end_before_a_restart_does_not_end_a_replay(clock: Clock) -> None:
    stream = stream_of(clock, 1)
    stream.put([StreamEvent("run_status", None, b"{}", terminal=True)])
    stream.put([paid()])

    cursor = stream.subscribe("UAH", event_id(RUN, 1), STATUS)

    assert numbers(cursor) == [2, 3, 4]
    assert not cursor.over


def test_numbers_that_were_never_streamed_leave_no_gap(clock: Clock) -> None:
    stream = stream_of(clock, 3)
    line = stream.number(b'{"type":"note"}')
    stream.put([paid()])

    assert b"_000004" in line
    assert numbers(stream.subscribe("UAH", event_id(RUN, 3), STATUS)) == [5, 6]
    assert numbers(stream.subscribe("UAH", event_id(RUN, 4), STATUS)) == [5, 6, 7]


def test_numbers_continue_after_those_of_an_earlier_process(clock: Clock) -> None:
    stream = RunStream(RUN, clock, last_seq=1000)

    assert stream.put([paid()])[0].seq == 1001
    with pytest.raises(EventGone):
        stream.subscribe("UAH", event_id(RUN, 999), STATUS)


@pytest.mark.req("SIM-EVT-15")
def test_a_poll_returns_events_after_a_given_one_or_all_retained(clock: Clock) -> None:
    stream = stream_of(clock, 3)
    stream.put([paid("EUR"), STATUS])

    assert len(stream.after("UAH", None)) == 4
    assert [b"_000003" in event for event in stream.after("UAH", event_id(RUN, 2))] == [True, False]
    with pytest.raises(EventGone):
        stream.after("UAH", event_id(RUN, 9))


@pytest.mark.req("SIM-EVT-1")
def test_concurrent_writers_use_every_number_once_and_readers_see_them_in_order(clock: Clock) -> None:
    stream = stream_of(clock, events=100_000, unread=100_000)
    cursor = stream.subscribe("UAH", None, STATUS)
    threads = [threading.Thread(target=lambda: [stream.put([paid()] * 3) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    seen: list[int] = []
    while len(seen) < 2401:
        seen += numbers(cursor, 17)
    for thread in threads:
        thread.join()

    assert seen == list(range(1, 2402))
