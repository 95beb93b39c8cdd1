"""The sheet of a map: labels do not overlap, texts fit."""

from hypothesis import given
from hypothesis import strategies as st

from pendula.fleet.pictures.sheet import LEAST_WIDTH, MARGIN, Labels, sheet_of, shortened, text_width


@given(
    st.lists(st.tuples(st.integers(3, 400), st.integers(0, 300), st.text("abc", min_size=1, max_size=9)), max_size=40)
)
def test_labels_never_overlap(requested: list[tuple[int, int, str]]) -> None:
    labels = Labels(sheet_of((0, 0), (1_000_000, 1_000_000), 0))

    placed = [(x, y, text) for x, y, text in requested if labels.place(x, y, text, 1, "name", 10)]

    for i, (ax, ay, a) in enumerate(placed):
        for bx, by, b in placed[:i]:
            apart = ax >= bx + text_width(b, 10) or bx >= ax + text_width(a, 10) or abs(ay - by) >= 10 * 1.1 - 1e-9
            assert apart


@given(st.text(max_size=60), st.integers(12, 400))
def test_a_shortened_text_fits(text: str, width: int) -> None:
    short = shortened(text, width)

    assert text_width(short) <= max(width, text_width("…") * 3)
    assert short == text or short.endswith("…")


@given(st.integers(-50, 1200), st.text("abc", min_size=1, max_size=90), st.sampled_from([-1, 0, 1]))
def test_no_label_leaves_the_page(x: int, text: str, anchor: int) -> None:
    sheet = sheet_of((0, 0), (20_000_000, 1_000_000), 0)
    label = Labels(sheet).place(x, 50, text, anchor, "name", 10)
    page = max(LEAST_WIDTH, sheet.left + sheet.width + MARGIN)

    at = float(label.split('x="')[1].split('"')[0])
    left = at - text_width(text, 10) * (1 - anchor) / 2
    assert left >= 2.9
    assert left + text_width(text, 10) <= page - 2.9
