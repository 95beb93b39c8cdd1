"""Timestamps in and out, refusals, and the two kinds of time that never mix."""

import operator
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.kernel.errors import InputRefused
from pendula.kernel.time import (
    MINUTE,
    Instant,
    InvalidTimestamp,
    MixedTimes,
    NaiveTimestamp,
    TimestampOutOfRange,
    format_iso,
    format_utc,
    minutes_between_ceil,
    parse_iso,
    parse_utc,
    plus_minutes,
    slot_of,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.req("JOB-OBJ-10")
@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2026-02-21T08:00:00+08:00", "2026-02-21T00:00:00Z"),
        ("2026-02-21T00:00:00Z", "2026-02-21T00:00:00Z"),
        ("2026-02-20T18:30:00-05:30", "2026-02-21T00:00:00Z"),
        ("2026-02-21T00:00:00-00:00", "2026-02-21T00:00:00Z"),
        ("2026-02-21T00:00:00.5Z", "2026-02-21T00:00:00.500000Z"),
        ("2026-02-21T00:00:00.000000Z", "2026-02-21T00:00:00Z"),
        ("2026-02-21T00:00:00.0000019Z", "2026-02-21T00:00:00.000001Z"),
        ("2026-02-21T00:00:00.9999999Z", "2026-02-21T00:00:00.999999Z"),
        ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        ("1969-12-31T19:00:00-05:00", "1970-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_a_timestamp_with_offset_is_converted_to_utc(text: str, printed: str) -> None:
    assert format_utc(parse_utc(text)) == printed


@pytest.mark.req("JOB-OBJ-10")
def test_instants_are_microseconds_since_1970() -> None:
    assert parse_utc("2026-02-21T08:00:00.000001+08:00") == 1_771_632_000_000_001


@pytest.mark.req("JOB-OBJ-11")
@pytest.mark.parametrize(
    "value",
    [
        "2026-02-21",
        "tomorrow",
        "",
        1771632000,
        1771632000.5,
        None,
        True,
        b"2026-02-21T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-02-30T00:00:00",
        "2023-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-00T00:00:00Z",
        "2026-02-21 00:00:00Z",
        "2026-02-21T00:00:60Z",
        "2026-02-21T00:60:00Z",
        "2026-02-21T24:00:00Z",
        "2026-02-21t00:00:00z",
        "2026-02-21T00:00:00z",
        "2026-02-21t00:00:00Z",
        "2026-02-21T00:00Z",
        "2026-02-21T00:00",
        "2026-02-21T00:00:00.Z",
        "2026-02-21T00:00:00,5Z",
        "2026-02-21T00:00:00+0800",
        "2026-02-21T00:00:00+08",
        "2026-02-21T00:00:00+24:00",
        "2026-02-21T00:00:00+08:60",
        "2026-02-21T00:00:00Z\n",
        " 2026-02-21T00:00:00Z",
        "+2026-02-21T00:00:00Z",
        "20260221T000000Z",
        "２０２６-02-21T00:00:00Z",
        "0000-02-30T00:00:00Z",
    ],
)
def test_an_invalid_timestamp_is_refused(value: object) -> None:
    with pytest.raises(InvalidTimestamp) as refused:
        parse_utc(value)

    assert refused.value.code == "invalid_timestamp"
    assert refused.value.details == {"value": value}


@pytest.mark.req("JOB-OBJ-11")
def test_a_timestamp_without_offset_is_refused() -> None:
    with pytest.raises(NaiveTimestamp) as refused:
        parse_utc("2026-02-21T00:00:00")

    assert refused.value.code == "naive_timestamp"


@pytest.mark.req("JOB-OBJ-11")
@pytest.mark.parametrize(
    "text",
    [
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "0000-02-29T00:00:00Z",
    ],
)
def test_an_instant_before_1970_or_after_9999_is_refused(text: str) -> None:
    with pytest.raises(TimestampOutOfRange) as refused:
        parse_utc(text)

    assert refused.value.code == "timestamp_out_of_range"


def test_a_refusal_shows_only_the_beginning_of_a_long_text() -> None:
    with pytest.raises(InputRefused) as refused:
        parse_utc("9" * 100_000)

    assert len(refused.value.message) < 200


utc_times = st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59)


@pytest.mark.req("JOB-OBJ-10")
@given(utc_times, offsets)
def test_parsing_agrees_with_the_standard_library_in_any_offset(moment: datetime, offset: int) -> None:
    text = moment.astimezone(timezone(timedelta(minutes=offset))).isoformat()

    assert parse_utc(text) == (moment - EPOCH) // timedelta(microseconds=1)


@pytest.mark.req("JOB-OBJ-10")
@given(utc_times)
def test_printing_and_parsing_are_inverse(moment: datetime) -> None:
    micros = parse_utc(moment.isoformat())

    assert parse_utc(format_utc(micros)) == micros
    assert format_utc(micros) == moment.isoformat().replace("+00:00", "Z")


near_timestamps = st.from_regex(
    r"\A[0-9]{4}-[0-3][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,9})?)?(Z|[+-][0-2][0-9]:[0-6][0-9])?\Z"
)


@given(st.text(max_size=30) | near_timestamps)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(InputRefused):
        assert parse_utc(text) >= 0
    with suppress(InputRefused):
        assert format_iso(parse_iso(text))[:16] == text[:16]


@pytest.mark.req("ACT-TIME-1")
@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T08:05:00",
        "2026-01-01T08:05:00.000250",
        "2026-01-01T08:05:00Z",
        "2026-01-01T08:05:00+02:00",
        "2026-01-01T00:05:00-09:30",
        "0001-01-01T00:00:00+05:00",
        "1889-12-31T23:59:59",
    ],
)
def test_a_time_is_shown_as_it_was_given(text: str) -> None:
    assert format_iso(parse_iso(text)) == text


@pytest.mark.req("ACT-TIME-1")
def test_seconds_may_be_left_out() -> None:
    assert format_iso(parse_iso("2026-01-01T08:05")) == "2026-01-01T08:05:00"
    assert parse_iso("2026-01-01T08:05+01:00") == parse_iso("2026-01-01T07:05:00Z")


@pytest.mark.req("ACT-TIME-1")
@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01 08:00:00", "2026-02-29T00:00:00", "08:00", 5])
def test_an_invalid_time_is_refused(text: object) -> None:
    with pytest.raises(InvalidTimestamp):
        parse_iso(text)


def test_a_time_before_the_year_one_is_refused() -> None:
    with pytest.raises(TimestampOutOfRange):
        parse_iso("0000-01-01T00:00:00")


COMPARISONS: list[Callable[[Any, Any], Any]] = [operator.lt, operator.le, operator.gt, operator.ge, operator.sub]


@pytest.mark.req("ACT-TIME-1")
@pytest.mark.parametrize("compare", COMPARISONS)
def test_local_and_offset_times_never_mix(compare: Callable[[Any, Any], Any]) -> None:
    local, offset = parse_iso("2026-01-01T08:00:00"), parse_iso("2026-01-01T08:00:00Z")

    for pair in ((local, offset), (offset, local)):
        with pytest.raises(MixedTimes) as refused:
            compare(*pair)
        assert refused.value.code == "mixed_times"
        assert isinstance(refused.value, InvalidTimestamp)
    assert local != offset


@pytest.mark.req("ACT-TIME-1")
def test_the_same_moment_in_two_offsets_is_one_instant() -> None:
    berlin, utc = parse_iso("2026-01-01T09:00:00+01:00"), parse_iso("2026-01-01T08:00:00Z")

    assert berlin == utc
    assert hash(berlin) == hash(utc)
    assert berlin - utc == 0
    assert not berlin < utc
    assert berlin <= utc
    assert berlin >= utc
    assert berlin != "2026-01-01T09:00:00+01:00"


@pytest.mark.req("ACT-TIME-1")
def test_a_day_has_exactly_its_minutes_whatever_the_season() -> None:
    start, end = parse_iso("2026-03-29T00:00:00"), parse_iso("2026-03-30T00:00:00")

    assert end - start == 1440 * MINUTE


@pytest.mark.req("ACT-TIME-2")
@pytest.mark.parametrize(("minute", "slot"), [(0, 0), (59, 0), (60, 1), (1379, 22), (1380, 23), (1439, 23), (1440, 23)])
def test_the_slot_of_a_minute(minute: int, slot: int) -> None:
    assert slot_of(minute) == slot


@pytest.mark.req("ACT-TIME-5")
def test_slots_of_another_length() -> None:
    assert [slot_of(minute, slot_minutes=10, slots=3) for minute in (0, 9, 10, 29, 30)] == [0, 0, 1, 2, 2]


@pytest.mark.req("ACT-TIME-2")
@pytest.mark.parametrize(
    ("start", "minutes", "shown"),
    [
        ("2026-01-01T00:00:00", 485, "2026-01-01T08:05:00"),
        ("2026-01-01T00:00:00+02:00", 1440, "2026-01-02T00:00:00+02:00"),
        ("2026-01-01T00:00:30Z", 0, "2026-01-01T00:00:30Z"),
    ],
)
def test_display_time_is_start_plus_minutes(start: str, minutes: int, shown: str) -> None:
    assert format_iso(plus_minutes(parse_iso(start), minutes)) == shown


def test_a_display_time_after_9999_is_refused() -> None:
    with pytest.raises(TimestampOutOfRange):
        format_iso(plus_minutes(parse_iso("9999-12-31T00:00:00"), 1440))


@pytest.mark.req("ACT-TIME-3")
@pytest.mark.parametrize(
    ("submitted_at", "minute"),
    [
        ("2026-01-01T08:05:00", 485),
        ("2026-01-01T08:05:01", 486),
        ("2026-01-01T08:05:00.000001", 486),
        ("2026-01-01T08:06:00", 486),
        ("2026-01-01T00:00:00", 0),
        ("2025-12-31T23:59:01", 0),
        ("2025-12-31T23:59:00", -1),
    ],
)
def test_a_started_minute_counts(submitted_at: str, minute: int) -> None:
    assert minutes_between_ceil(parse_iso("2026-01-01T00:00:00"), parse_iso(submitted_at)) == minute


@given(st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_the_minutes_are_the_smallest_number_that_is_enough(start: int, end: int) -> None:
    minutes = minutes_between_ceil(Instant(start), Instant(end))

    assert start + (minutes - 1) * MINUTE < end <= start + minutes * MINUTE
