"""Cron expressions against an oracle that tries every minute."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pendula.jobs.cron import Cron, CronRefused, next_after
from pendula.kernel.time import format_utc, parse_utc

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# The oracle parses the text for every minute; it shares nothing with the code under test.


def says(item: str, value: int, least: int, most: int, names: list[str]) -> bool:
    span, _, step = item.partition("/")
    by = int(step) if step else 1

    def number(word: str) -> int:
        return names.index(word) + least if word in names else int(word)

    if span == "*":
        low, high = least, most
    elif "-" in span:
        low, high = (number(word) for word in span.split("-"))
    else:
        low = number(span)
        high = most if step else low
    return low <= value <= high and (value - low) % by == 0


def any_says(field: str, value: int, least: int, most: int, names: list[str] | None = None) -> bool:
    return any(says(item, value, least, most, names or []) for item in field.split(","))


def counts(expression: str, at: datetime) -> bool:
    minute, hour, day, month, weekday = expression.split()
    if not any_says(minute, at.minute, 0, 59) or not any_says(hour, at.hour, 0, 23):
        return False
    if not any_says(month, at.month, 1, 12, MONTHS):
        return False
    sunday_is_0 = (at.weekday() + 1) % 7
    on_weekday = any_says(weekday, sunday_is_0, 0, 7, DAYS) or (sunday_is_0 == 0 and any_says(weekday, 7, 0, 7, DAYS))
    on_day = any_says(day, at.day, 1, 31)
    if day[0] != "*" and weekday[0] != "*":
        return on_day or on_weekday
    return on_day and on_weekday


def tried(expression: str, instant: int, most_minutes: int) -> int | None:
    at = (EPOCH + timedelta(microseconds=instant)).replace(second=0, microsecond=0)
    for _ in range(most_minutes):
        at += timedelta(minutes=1)
        if counts(expression, at):
            return int((at - EPOCH) / timedelta(microseconds=1))
    return None


def fields(least: int, most: int, names: list[str] | None = None) -> some.SearchStrategy[str]:
    number = some.integers(least, most)
    step = some.integers(2, min(9, most))
    pair = some.tuples(number, number).map(sorted)
    items = [
        some.just("*"),
        number.map(str),
        pair.map(lambda both: f"{both[0]}-{both[1]}"),
        some.tuples(pair, step).map(lambda it: f"{it[0][0]}-{it[0][1]}/{it[1]}"),
        step.map(lambda by: f"*/{by}"),
        some.tuples(number, step).map(lambda it: f"{it[0]}/{it[1]}"),
    ]
    if names:
        items.append(some.sampled_from(names))
    return some.lists(some.one_of(items), min_size=1, max_size=3).map(",".join)


expressions = some.builds(
    lambda *parts: " ".join(parts),
    fields(0, 59),
    fields(0, 23),
    some.one_of(some.just("*"), fields(1, 28)),
    some.one_of(some.just("*"), fields(1, 12, MONTHS)),
    some.one_of(some.just("*"), fields(0, 7, DAYS)),
)
instants = some.integers(0, parse_utc("2105-01-01T00:00:00Z"))
TRIED_MINUTES = 1500


@given(expressions, instants)
def test_the_next_time_is_the_first_matching_minute(expression: str, instant: int) -> None:
    found = next_after(expression, instant)
    expected = tried(expression, instant, TRIED_MINUTES)

    if expected is not None:
        assert found == expected
    else:
        assert found is None or found > instant + (TRIED_MINUTES - 1) * 60_000_000
    if found is not None:
        assert counts(expression, EPOCH + timedelta(microseconds=found))


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 29 2 *",
        "30 6 31 * *",
        "0 12 13 * fri",
        "15,45 */6 1-7 jan,jul mon",
        "59 23 28-31 */2 0",
        "0 0 * * 7",
        "0 0 29 2 */7",
    ],
)
def test_over_years_exactly_the_matching_times_are_found(expression: str) -> None:
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2033, 1, 1, tzinfo=UTC)
    of_day = [minute for minute in range(1440) if may_count(expression, minute)]
    expected = []
    for day in range((last - first).days):
        times = [first + timedelta(days=day, minutes=minute) for minute in of_day]
        expected += [at.isoformat() for at in times if counts(expression, at)]
    found, at_us = [], int((first - EPOCH) / timedelta(microseconds=1)) - 1
    cron = Cron.parse(expression)
    while (at_next := cron.after(at_us)) is not None and EPOCH + timedelta(microseconds=at_next) < last:
        found.append((EPOCH + timedelta(microseconds=at_next)).isoformat())
        at_us = at_next

    assert found == expected


def may_count(expression: str, minute: int) -> bool:
    of_hour, hour = expression.split()[:2]
    return any_says(of_hour, minute % 60, 0, 59) and any_says(hour, minute // 60, 0, 23)


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("* * * * *", "2026-02-20T12:00:00Z", "2026-02-20T12:01:00Z"),
        ("* * * * *", "2026-02-20T12:00:59.999999Z", "2026-02-20T12:01:00Z"),
        ("0 12 * * *", "2026-02-20T12:00:00Z", "2026-02-21T12:00:00Z"),
        ("0 12 * * *", "2026-02-20T11:59:59.999999Z", "2026-02-20T12:00:00Z"),
        ("0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"),
        ("0 9 * * fri-sun", "2026-02-20T09:00:00Z", "2026-02-21T09:00:00Z"),
        ("0 9 * * Mon-Fri", "2026-02-20T09:00:00Z", "2026-02-23T09:00:00Z"),
        ("@weekly", "2026-02-20T09:00:00Z", "2026-02-22T00:00:00Z"),
        ("@Yearly", "2026-02-20T09:00:00Z", "2027-01-01T00:00:00Z"),
        ("59 23 31 12 *", "9999-12-31T23:58:00Z", "9999-12-31T23:59:00Z"),
    ],
)
def test_known_times(expression: str, after: str, expected: str) -> None:
    found = next_after(expression, parse_utc(after))

    assert found is not None
    assert format_utc(found) == expected


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30-31 feb */2"])
def test_impossible_days_are_rejected_without_a_search(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr(Cron, "_on", lambda _cron, day: looked.append(day))

    with pytest.raises(CronRefused, match="never occurs"):
        Cron.parse(expression)

    assert looked == []


def test_no_time_follows_the_last_day() -> None:
    assert next_after("59 23 31 12 *", parse_utc("9999-12-31T23:59:00Z")) is None


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 8",
     "5-1 * * * *", "*/0 * * * *", "*/60 * * * *", "1,,2 * * * *", "-1 * * * *", "a * * * *", "* * * jan-foo *",
     "1-2-3 * * * *", "*/x * * * *", "１ * * * *", "? * * * *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "@never",
     "L * * * *", "* * * * *" + " " * 300],
)  # fmt: skip
def test_invalid_or_never_matching_expressions_are_rejected(expression: str) -> None:
    with pytest.raises(CronRefused) as refused:
        next_after(expression, 0)

    assert refused.value.code == "invalid_cron"
