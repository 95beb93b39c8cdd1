"""Rows of intervals; short forms and the order of names."""

from hypothesis import given
from hypothesis import strategies as st

from pendula.actions.gantt.picture import natural_order, packed, shortened, text_width


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20))))
def test_intervals_in_one_row_never_overlap(given_: list[tuple[int, int]]) -> None:
    intervals = [(place, since, since + long) for place, (since, long) in enumerate(sorted(given_))]

    rows, count = packed(intervals, most=4)

    assert count <= 4
    placed = [interval for interval in intervals if interval[0] in rows]
    for place, since, until in placed:
        assert rows[place] < count
        for other, start, end in placed:
            if other != place and rows[other] == rows[place]:
                assert end <= since or until <= start


@given(st.text(max_size=30), st.integers(0, 200))
def test_a_shortened_text_fits_or_is_empty(text: str, width: int) -> None:
    short = shortened(text, width)

    assert text_width(short) <= width or short == ""
    assert short in (text, "") or short.endswith("…")


def test_lanes_are_in_natural_order() -> None:
    assert sorted(["room 10", "room 9", "cellar", "9 lives", "room"], key=natural_order) == [
        "9 lives",
        "cellar",
        "room",
        "room 9",
        "room 10",
    ]
