"""The event queue beside a model: a sorted list that does the obvious thing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from pendula.kernel.errors import WrongUsage
from pendula.kernel.queue import Entry, EventQueue


def drained(queue: EventQueue[Any]) -> list[Any]:
    return [queue.pop()[3] for _ in range(len(queue))]


def test_time_goes_before_rank_and_rank_before_the_order_of_pushing() -> None:
    queue: EventQueue[Any] = EventQueue()
    for time, rank, item in [
        (2, 0, "f"),
        (1, 1, "c"),
        (1, 0, "a"),
        (1, 1, "d"),
        (1, 0, "b"),
        (1, 7, "e"),
        (-3, 9, "_"),
    ]:
        queue.push(time, rank, item)

    assert drained(queue) == ["_", "a", "b", "c", "d", "e", "f"]


def test_an_entry_has_time_rank_sequence_and_item() -> None:
    queue: EventQueue[Any] = EventQueue()
    queue.push(7, 1, "later")
    handle = queue.push(5, 2, "first")

    assert queue.pop() == (5, 2, handle, "first")


def test_items_are_never_compared() -> None:
    queue: EventQueue[Any] = EventQueue()
    first, second = object(), object()
    queue.push(1, 1, first)
    queue.push(1, 1, second)

    assert drained(queue) == [first, second]


def test_an_empty_queue_returns_nothing() -> None:
    queue: EventQueue[Any] = EventQueue()

    assert len(queue) == 0
    assert queue.peek() is None
    assert queue.pop_instant() == []
    assert list(queue) == []
    with pytest.raises(IndexError):
        queue.pop()


def test_a_queue_of_cancelled_events_returns_nothing() -> None:
    queue: EventQueue[Any] = EventQueue()
    for handle in [queue.push(time, 0, time) for time in (1, 1, 2)]:
        assert queue.cancel(handle)

    assert queue.peek() is None
    assert queue.pop_instant() == []
    with pytest.raises(IndexError):
        queue.pop()


def test_peek_returns_what_pop_would_and_removes_nothing() -> None:
    queue: EventQueue[Any] = EventQueue()
    queue.push(3, 0, "b")
    queue.push(2, 0, "a")

    assert queue.peek() == queue.peek() == (2, 0, 1, "a")
    assert len(queue) == 2
    assert queue.pop() == (2, 0, 1, "a")


def test_pop_instant_returns_a_whole_instant_in_order() -> None:
    queue: EventQueue[Any] = EventQueue()
    for time, rank, item in [(4, 1, "b"), (9, 0, "z"), (4, 2, "c"), (4, 0, "a")]:
        queue.push(time, rank, item)
    cancelled = queue.push(4, 0, "never")
    queue.cancel(cancelled)

    assert [entry[3] for entry in queue.pop_instant()] == ["a", "b", "c"]
    assert [entry[3] for entry in queue.pop_instant()] == ["z"]
    assert queue.pop_instant() == []


def test_an_event_pushed_into_a_taken_instant_comes_next() -> None:
    queue: EventQueue[Any] = EventQueue()
    queue.push(4, 5, "a")
    queue.push(4, 5, "b")
    queue.push(6, 0, "z")
    queue.pop()

    queue.push(4, 1, "urgent")
    queue.push(4, 5, "c")

    assert drained(queue) == ["urgent", "b", "c", "z"]


def test_an_event_pushed_into_the_past_comes_next() -> None:
    queue: EventQueue[Any] = EventQueue()
    for item in "ab":
        queue.push(10, 0, item)
    queue.pop()

    queue.push(3, 0, "past")
    queue.push(10, 0, "c")

    assert drained(queue) == ["past", "b", "c"]


def test_a_cancelled_event_never_comes() -> None:
    queue: EventQueue[Any] = EventQueue()
    handles = [queue.push(time, 0, time) for time in (1, 2, 3, 4, 5)]

    assert [queue.cancel(handles[index]) for index in (0, 2, 4)] == [True, True, True]

    assert len(queue) == 2
    assert drained(queue) == [2, 4]


def test_only_queued_events_can_be_cancelled() -> None:
    queue: EventQueue[Any] = EventQueue()
    taken, cancelled = queue.push(1, 0, "a"), queue.push(2, 0, "b")
    queue.push(3, 0, "c")
    queue.pop()
    queue.cancel(cancelled)

    assert [queue.cancel(handle) for handle in (taken, cancelled, 99, -1)] == [False] * 4
    assert len(queue) == 1


def stored(queue: EventQueue[Any]) -> int:
    return len(queue._opened) + sum(len(bucket) for bucket in queue._buckets.values())


def test_cancelled_events_do_not_pile_up() -> None:
    queue: EventQueue[Any] = EventQueue()
    for time in range(100):
        queue.push(1_000_000 + time, 0, "keeps")
    most = 0

    for time in range(10_000):
        queue.cancel(queue.push(time, 0, "never"))
        most = max(most, stored(queue))

    assert most <= 2 * 100 + 2
    assert len(queue) == 100


def test_an_instant_that_pushes_to_itself_does_not_grow() -> None:
    queue: EventQueue[Any] = EventQueue()
    queue.push(0, 0, "again")
    most = 0

    for _ in range(10_000):
        time, rank, _, item = queue.pop()
        queue.push(time, rank, item)
        most = max(most, stored(queue))

    assert most < 200


def test_a_queue_rebuilt_from_its_entries_continues_like_the_original() -> None:
    old: EventQueue[Any] = EventQueue()
    handles = [old.push(time, rank, (time, rank)) for time, rank in [(5, 1), (3, 0), (5, 0), (3, 0), (8, 2)]]
    old.pop()
    old.cancel(handles[2])

    new = EventQueue(reversed(list(old)), old.next_seq)
    for queue in (old, new):
        queue.push(3, 0, "new")
        assert queue.cancel(handles[4])

    assert list(new) == list(old)
    assert new.next_seq == old.next_seq
    assert [new.pop() for _ in range(3)] == [old.pop() for _ in range(3)]


def test_entries_that_break_the_total_order_are_refused() -> None:
    with pytest.raises(WrongUsage, match="same sequence"):
        EventQueue([(1, 0, 3, "a"), (2, 0, 3, "b")], 4)
    with pytest.raises(WrongUsage, match="below the next"):
        EventQueue([(1, 0, 4, "a")], 4)


def test_iterating_a_queue_changes_nothing() -> None:
    queue: EventQueue[Any] = EventQueue()
    for time in (3, 1, 2):
        queue.push(time, 0, time)
    queue.pop()

    assert [entry[3] for entry in queue] == [entry[3] for entry in queue] == [2, 3]
    assert drained(queue) == [2, 3]


class QueueMachine(RuleBasedStateMachine):
    """The queue and a sorted list get the same commands; they must agree about everything."""

    handles: Bundle[int] = Bundle("handles")

    def __init__(self) -> None:
        super().__init__()
        self.queue: EventQueue[int] = EventQueue()
        self.model: list[Entry[int]] = []
        self.pushed = 0

    @rule(target=handles, time=st.integers(-3, 12), rank=st.integers(-1, 3))
    def push(self, time: int, rank: int) -> int:
        self.model = sorted([*self.model, (time, rank, self.pushed, self.pushed)])
        self.pushed += 1
        assert self.queue.push(time, rank, self.pushed - 1) == self.pushed - 1
        return self.pushed - 1

    @rule(count=st.integers(0, 150), time=st.integers(0, 5))
    def push_and_cancel_many(self, count: int, time: int) -> None:
        for handle in [self.queue.push(time, 0, -1) for _ in range(count)]:
            assert self.queue.cancel(handle)
        self.pushed += count

    @rule()
    def pop(self) -> None:
        if self.model:
            assert self.queue.pop() == self.model.pop(0)

    @rule()
    def pop_instant(self) -> None:
        taken = [entry for entry in self.model if entry[0] == self.model[0][0]]
        self.model = self.model[len(taken) :]
        assert self.queue.pop_instant() == taken

    @rule(handle=consumes(handles))
    def cancel(self, handle: int) -> None:
        there = any(entry[2] == handle for entry in self.model)
        self.model = [entry for entry in self.model if entry[2] != handle]
        assert self.queue.cancel(handle) is there

    @rule()
    def rebuild(self) -> None:
        self.queue = EventQueue(list(self.queue), self.pushed)

    @invariant()
    def agree_about_length_and_head(self) -> None:
        assert len(self.queue) == len(self.model)
        assert self.queue.peek() == (self.model[0] if self.model else None)
        assert self.queue.next_seq == self.pushed

    @invariant()
    def count_its_dead(self) -> None:
        assert self.queue._dead == stored(self.queue) - self.queue._at - len(self.queue)

    def teardown(self) -> None:
        assert list(self.queue) == self.model
        assert [self.queue.pop() for _ in self.model] == self.model


TestQueueMachine = QueueMachine.TestCase


@given(st.lists(st.tuples(st.integers(), st.integers(0, 9)), max_size=60))
def test_any_events_come_out_sorted(events: list[tuple[int, int]]) -> None:
    queue: EventQueue[Any] = EventQueue()
    for time, rank in events:
        queue.push(time, rank, None)

    assert [queue.pop() for _ in events] == sorted((time, rank, seq, None) for seq, (time, rank) in enumerate(events))
