"""Durations: parsing, formatting, rejections."""

import pytest

from pendula.governance.model import format_duration, parse_duration

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("P7D", 7 * DAY),
        ("P2W", 14 * DAY),
        ("PT12H", DAY // 2),
        ("P1DT30M", DAY + DAY // 48),
        ("PT0.000001S", 1),
        ("P36525D", 36_525 * DAY),
    ],
)
def test_a_duration_is_parsed_and_formatted(text: str, micros: int) -> None:
    assert parse_duration(text) == micros
    assert parse_duration(format_duration(micros)) == micros


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "P1M",
        "P1Y",
        "PT0S",
        "P0D",
        "-P1D",
        "P1.5D",
        "7D",
        "p7d",
        "P\N{ARABIC-INDIC DIGIT ONE}D",
        "P999999W",
        "P36525DT1S",
        7,
        None,
    ],
)
def test_an_invalid_duration_or_one_beyond_a_hundred_years_is_rejected(text: object) -> None:
    assert parse_duration(text) is None
