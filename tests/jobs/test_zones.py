"""Time zones: local times over gaps and repeated hours, against a search minute by minute."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from pendula.jobs.cron import MINUTE_US, Zone, ZoneRefused, next_after, zone_of
from pendula.kernel.time import format_utc, parse_utc

# Whole and fractional hours, both hemispheres, half an hour of summer time, a skipped day, changed offsets.
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Africa/Casablanca",
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = parse_utc("2009-01-01T00:00:00Z"), parse_utc("2031-01-01T00:00:00Z")


def after(expression: str, instant: str, zone: str) -> str:
    found = next_after(expression, parse_utc(instant), zone_of(zone))
    assert found is not None
    return format_utc(found)


@pytest.mark.req("JOB-USE-7")
def test_a_local_time_follows_summer_time() -> None:
    winter = after("30 6 * * *", "2026-02-01T00:00:00Z", "Europe/Berlin")
    summer = after("30 6 * * *", "2026-07-01T00:00:00Z", "Europe/Berlin")

    assert (winter, summer) == ("2026-02-01T05:30:00Z", "2026-07-01T04:30:00Z")


@pytest.mark.req("JOB-USE-7")
def test_a_missing_local_time_is_the_first_instant_after_the_gap() -> None:
    # 02:00 to 03:00 does not exist in Berlin on that day.
    assert after("30 2 * * *", "2026-03-29T00:00:00Z", "Europe/Berlin") == "2026-03-29T01:00:00Z"
    assert after("30 2 * * *", "2026-03-29T01:00:00Z", "Europe/Berlin") == "2026-03-30T00:30:00Z"


@pytest.mark.req("JOB-USE-7")
def test_all_local_times_of_one_gap_are_one_instant() -> None:
    assert after("* * * * *", "2026-03-29T00:59:00Z", "Europe/Berlin") == "2026-03-29T01:00:00Z"
    assert after("* * * * *", "2026-03-29T01:00:00Z", "Europe/Berlin") == "2026-03-29T01:01:00Z"


@pytest.mark.req("JOB-USE-7")
def test_a_repeated_local_time_runs_once_at_its_first_occurrence() -> None:
    # 02:00 to 03:00 occurs twice in Berlin on that day.
    assert after("30 2 * * *", "2026-10-25T00:00:00Z", "Europe/Berlin") == "2026-10-25T00:30:00Z"
    assert after("30 2 * * *", "2026-10-25T00:30:00Z", "Europe/Berlin") == "2026-10-26T01:30:00Z"
    assert after("*/30 * * * *", "2026-10-25T00:30:00Z", "Europe/Berlin") == "2026-10-25T02:00:00Z"


@pytest.mark.req("JOB-USE-7")
def test_a_skipped_day_maps_to_its_end() -> None:
    # Samoa skipped the 30th of December 2011.
    assert after("0 12 30 12 *", "2011-12-29T00:00:00Z", "Pacific/Apia") == "2011-12-30T10:00:00Z"


@given(some.sampled_from(ZONES), some.integers(FIRST // MINUTE_US, LAST // MINUTE_US))
def test_local_times_and_instants_agree_with_the_zone_database(zone: str, minute: int) -> None:
    instant = minute * MINUTE_US
    there = (EPOCH + timedelta(microseconds=instant)).astimezone(ZoneInfo(zone))

    shown = Zone(zone).wall(instant)

    assert EPOCH.replace(tzinfo=None) + timedelta(minutes=shown) == there.replace(tzinfo=None)
    again = Zone(zone).instant(shown)
    assert again == instant if there.fold == 0 else again < instant


# The oracle reads the local time of every minute of UTC: skipped times belong to the first minute after the gap.


def walked(hour: int, minute: int, start: int, zone: ZoneInfo) -> int | None:
    at = EPOCH + timedelta(minutes=start)
    seen = (at.astimezone(zone)).replace(tzinfo=None)
    for number in range(1, 3 * 1440):
        there = (at + timedelta(minutes=number)).astimezone(zone)
        shown = there.replace(tzinfo=None)
        wanted = shown.replace(hour=hour, minute=minute)
        skipped = seen < wanted < shown or seen < wanted - timedelta(days=1) < shown
        if (shown == wanted and there.fold == 0) or (skipped and shown - seen > timedelta(minutes=1)):
            return (start + number) * MINUTE_US
        seen = shown
    return None


@pytest.mark.req("JOB-USE-7")
@given(
    some.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"]),
    some.integers(0, 23),
    some.integers(0, 59),
    some.sampled_from(
        ["2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z", "2026-03-08T00:00:00Z", "2026-11-01T00:00:00Z",
         "2026-04-04T10:00:00Z", "2026-10-03T10:00:00Z", "2026-02-14T20:00:00Z", "2026-03-21T20:00:00Z"]
    ),
    some.integers(0, 720),
)  # fmt: skip
@example("Europe/Berlin", 2, 30, "2026-03-28T20:00:00Z", 0)
def test_daily_times_match_a_search_minute_by_minute(zone: str, hour: int, minute: int, near: str, offset: int) -> None:
    start = parse_utc(near) // MINUTE_US + offset
    # A search that begins in the second of two equal hours has not seen the first.
    if (EPOCH + timedelta(minutes=start)).astimezone(ZoneInfo(zone)).fold:
        start += 120

    found = next_after(f"{minute} {hour} * * *", start * MINUTE_US, zone_of(zone))

    assert found == walked(hour, minute, start, ZoneInfo(zone))


@pytest.mark.parametrize("name", ["Europe/Berln", "", "../etc/passwd", "/etc/localtime", "Europe/", "a" * 100, "É"])
def test_an_unknown_zone_is_rejected(name: str) -> None:
    with pytest.raises(ZoneRefused):
        zone_of(name)


@pytest.mark.req("JOB-USE-7")
@pytest.mark.parametrize(
    ("expression", "instant", "zone", "expected"),
    [
        ("0 12 31 12 *", "9999-06-01T00:00:00Z", "America/New_York", "9999-12-31T17:00:00Z"),
        ("0 12 31 12 *", "9999-06-01T00:00:00Z", "Asia/Kathmandu", "9999-12-31T06:15:00Z"),
        ("0 12 30 12 *", "9999-06-01T00:00:00Z", "Europe/Berlin", "9999-12-30T11:00:00Z"),
        ("0 22 31 12 *", "9999-06-01T00:00:00Z", "America/New_York", None),  # the year 10000 in UTC
        ("0 12 1 1 *", "1970-01-01T00:00:00Z", "America/New_York", "1970-01-01T17:00:00Z"),
        ("30 20 31 12 *", "1970-01-01T00:00:00Z", "America/New_York", "1970-01-01T01:30:00Z"),
    ],
)
def test_a_zone_applies_at_both_ends_of_the_calendar(
    expression: str, instant: str, zone: str, expected: str | None
) -> None:
    found = next_after(expression, parse_utc(instant), zone_of(zone))

    assert (None if found is None else format_utc(found)) == expected


def test_local_times_near_the_end_of_the_calendar_are_valid() -> None:
    assert next_after("0 0 * * *", parse_utc("9999-12-31T12:00:00Z"), zone_of("Asia/Kathmandu")) is None


def test_a_misspelt_zone_is_rejected_with_a_suggestion() -> None:
    with pytest.raises(ZoneRefused, match=r"\(did you mean Europe/Berlin\?\)"):
        zone_of("Europe/Berln")


def test_without_a_time_zone_database_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoneinfo.ZoneInfo", lambda name: {}[name])
    monkeypatch.setattr("zoneinfo.available_timezones", set)

    with pytest.raises(ZoneRefused, match="there is no time zone database here; install the package tzdata"):
        zone_of("Atlantic/Madeira")


def test_without_a_system_database_zones_come_from_the_package(tmp_path: Path) -> None:
    script = "from pendula.jobs.cron import zone_of; print(zone_of('Europe/Berlin').wall(1_800_000_000_000_000))"
    environ = {**os.environ, "PYTHONTZPATH": str(tmp_path)}

    ended = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)

    assert ended.stdout == f"{30_000_000 + 60}\n"
