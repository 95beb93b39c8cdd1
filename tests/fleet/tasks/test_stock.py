"""Claims on goods and room: the oldest are served first, and thousands of them are checked once each."""

import pytest

from pendula.fleet.tasks import Conditions, TaskOrder, TaskStream
from pendula.fleet.tasks.book import Claims, TaskBook

STREAM = TaskStream("S", ("N",), ("S",), conditions=Conditions(pick_has_goods=True, drop_has_room=True))


class Name(str):
    """An id that counts its comparisons."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.req("FLT-TASK-3")
@pytest.mark.parametrize("goods", [0, 7, 1_999, 2_000, 5_000])
def test_each_claim_is_checked_a_few_times_per_step_whatever_their_number(goods: int) -> None:
    count = 2_000
    book = TaskBook.of([STREAM], trucks=2, limits={})
    for number in range(count):
        book.add(TaskOrder(Name(f"T-{number}"), "N", "S", stream_id="S"), 0, "SUBMITTED")
    book.stock.goods["N"] = book.stock.room["S"] = goods
    Name.compared = 0
    book.look(0)

    assert Name.compared <= 10 * count
    assert [*book.ready] == [f"T-{number}" for number in range(min(goods, count))]


def test_the_first_claims_change_when_a_claim_leaves_or_the_amount_grows() -> None:
    claims = Claims(["A", "B", "C"])
    before = [claims.is_among_first(name, 1) for name in claims]
    claims.remove("A")
    after = [claims.is_among_first(name, 1) for name in claims]
    claims.add("A")
    more = [claims.is_among_first(name, 2) for name in claims]

    assert (before, after, more) == ([True, False, False], [True, False], [True, True, False])
