"""SVG primitives: texts out of files stay texts, and numbers look the same on every machine."""

from xml.etree import ElementTree

import pytest

from pendula import svg


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (-0.04, "0"), (3.0, "3"), (3.14159, "3.1"), (-2.5, "-2.5"), (1e6, "1000000")]
)
def test_a_number_has_one_decimal_at_most_and_no_negative_zero(value: float, text: str) -> None:
    assert svg.number(value) == text


@pytest.mark.parametrize("text", ["<script>", "a & b", '"quoted"', "]]>", "ordinary"])
def test_a_text_comes_out_as_it_went_in(text: str) -> None:
    element = ElementTree.fromstring(f'<g aria-label="{svg.safe(text)}">{svg.words(0, 0, text)}</g>')

    assert (element.get("aria-label"), element[0].text) == (text, text)


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\ufffe", "\u202e", "\u2066"])
def test_characters_that_xml_forbids_or_that_reverse_text_are_replaced(char: str) -> None:
    assert svg.safe(f"a{char}b") == "a\ufffdb"


def test_shapes_have_their_tooltip_inside_their_group() -> None:
    group = ElementTree.fromstring(svg.tooltip("A & B", svg.box(0, 0, 1, 1, "bar"), svg.line(0, 0, 1, 1, "grid")))

    assert [child.tag for child in group] == ["title", "rect", "line"]
    assert group[0].text == "A & B"


def test_a_picture_has_its_size_and_a_label_for_screen_readers() -> None:
    picture = ElementTree.fromstring(svg.opening(960, 80.04, "two <lanes>") + "</svg>")

    assert (picture.get("viewBox"), picture.get("aria-label")) == ("0 0 960 80", "two <lanes>")


def test_a_closed_trace_ends_where_it_began() -> None:
    assert svg.path(svg.trace([(0, 0), (1, 0), (1, 1)], closed=True), "rim", 2) == (
        '<path d="M0 0L1 0L1 1Z" class="rim" style="stroke-width:2px"/>'
    )
