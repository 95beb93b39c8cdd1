"""Day parts: which one applies when, by the clock of the engine alone, across every daylight-saving change."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from pendula.kernel.canonical import Json
from pendula.playback import Scheduler, UnknownZone, clock_at
from pendula.playback.choosing.dayparts import WEEK, next_change, part_at, wall_clock
from pendula.playback.choosing.programme import Programme
from pendula.playback.clocks import NoMoment, minute_of_week, utc_ms
from pendula.playback.engine import Player
from pendula.playback.messages import Advance, Clock, Configure, EpochBegan, Event, Next, Pause
from pendula.playback.model import InvalidParameter, InvalidWeight, UnknownChannel
from pendula.playback.settings import DayPart, Refresh, Settings
from tests.playback.shelves import ids
from tests.playback.test_contract import Library
from tests.playback.worlds import day_part, some_parts

MORNING = DayPart("morning", "06:00", "12:00", {"a": 3, "b": 1}, ("mon", "tue", "wed", "thu", "fri"))  # type: ignore[dict-item]
NIGHT = DayPart("night", "22:00", "06:00", {"b": 1}, ("sun",))  # type: ignore[dict-item]
PARTS = (MORNING, NIGHT)


def minute(day: int, time: str) -> int:
    return 1440 * day + 60 * int(time[:2]) + int(time[3:])


@pytest.mark.req("PLAY-USE-5")
@pytest.mark.parametrize(
    ("at", "part"),
    [
        (minute(0, "05:59"), "night"),
        (minute(0, "06:00"), "morning"),
        (minute(0, "11:59"), "morning"),
        (minute(0, "12:00"), None),
        (minute(5, "08:00"), None),
        (minute(6, "21:59"), None),
        (minute(6, "22:00"), "night"),
        (minute(6, "23:59"), "night"),
        (minute(1, "03:00"), None),
        (None, None),
    ],
)
def test_a_part_applies_on_its_days_from_its_start_until_its_end(at: int, part: str | None) -> None:
    assert part_at(PARTS, at) == part


@pytest.mark.req("PLAY-USE-5")
def test_the_next_change_is_the_first_minute_of_another_part() -> None:
    for number in range(8):
        random = Random(number)
        parts = [day_part(part, "ab") for part in some_parts(random)]
        week = [part_at(parts, at) for at in range(WEEK)]
        for at in (random.randrange(WEEK) for _ in range(5)):
            later = next((n for n in range(1, WEEK + 1) if week[(at + n) % WEEK] != week[at]), None)
            assert next_change(parts, at) == later


def test_a_part_whose_end_is_its_start_lasts_a_day() -> None:
    whole = DayPart("whole", "06:00", "06:00", {}, ("mon",))

    assert [part_at((whole,), minute(*at)) for at in ((0, "05:59"), (0, "06:00"), (1, "05:59"), (1, "06:00"))] == [
        None,
        "whole",
        "whole",
        None,
    ]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"start": "6:00"}, r"day_parts\[0\].start is '6:00'; allowed is a time of day from 00:00 to 23:59"),
        ({"start": "24:00"}, "start is '24:00'"),
        ({"end": "24:01"}, "end is '24:01'"),
        ({"end": None}, "end is None"),
        ({"days": ("monday",)}, "days is 'monday'; allowed is days out of mon, tue, wed, thu, fri, sat, sun"),
        ({"name": ""}, "name is ''"),
    ],
)
def test_an_invalid_part_is_refused_with_its_place(change: dict[str, object], sentence: str) -> None:
    members = {"name": "x", "start": "01:00", "end": "02:00", "weights": {}, **change}
    with pytest.raises(InvalidParameter, match=sentence):
        Programme((ids("a", 1),), Settings(day_parts=(DayPart(**members),)), seed=1)  # type: ignore[arg-type]


def test_parts_have_unique_names_known_channels_and_a_bounded_number() -> None:
    twice = (DayPart("x", "01:00", "02:00", {}), DayPart("x", "03:00", "04:00", {}))
    for parts, trouble in (
        (twice, InvalidParameter),
        ((DayPart("x", "01:00", "02:00", {"aa": 1}),), UnknownChannel),  # type: ignore[dict-item]
        ((DayPart("x", "01:00", "02:00", {"a": float("nan")}),), InvalidWeight),  # type: ignore[dict-item]
        (tuple(DayPart(str(n), "01:00", "02:00", {}) for n in range(33)), InvalidParameter),
        ((5,), InvalidParameter),
        ("morning", InvalidParameter),
    ):
        with pytest.raises(trouble):
            Programme((ids("a", 1),), Settings(day_parts=parts), seed=1)  # type: ignore[arg-type]


@pytest.mark.req("PLAY-USE-5")
def test_a_scheduler_with_a_clock_applies_day_parts() -> None:
    settings = Settings(day_parts=PARTS, zone="Europe/Berlin", refresh=Refresh.KEEP)
    scheduler = Scheduler((ids("a", *range(1, 9)), ids("b", *range(11, 19))), settings, seed=1)
    assert (scheduler.day_part, scheduler.epoch_id) == (None, 0)

    scheduler.clock(datetime(2026, 3, 30, 4, 0, tzinfo=UTC))  # Monday, 06:00 in Berlin, in summer
    assert (scheduler.day_part, scheduler.epoch_id) == ("morning", 1)
    assert Counter(item.channel for item in scheduler.take(40)) == {"a": 30, "b": 10}
    scheduler.clock(datetime(2026, 3, 30, 5, 0, tzinfo=UTC))
    assert scheduler.epoch_id == 1
    scheduler.clock(datetime(2026, 3, 30, 12, 0, tzinfo=ZoneInfo("Europe/Berlin")))
    assert (scheduler.day_part, scheduler.stats()["last_reset"]) == (None, "no part of the day holds")
    scheduler.configure(day_parts=(DayPart("noon", "12:00", "13:00", {"b": 1}),))  # type: ignore[dict-item]
    assert scheduler.day_part == "noon"


def test_bans_of_a_scheduler_end_by_its_clock() -> None:
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    scheduler = Scheduler((ids("a", 1, 2),), Settings(lookahead=1), seed=1)
    scheduler.ban_artwork(1, until=noon)
    scheduler.clock(noon - timedelta(milliseconds=1))
    assert {item.id for item in scheduler.take(4)} == {2}

    scheduler.clock(noon)

    assert {item.id for item in scheduler.take(4)} == {1, 2}


def test_an_unknown_zone_and_a_time_without_a_zone_are_refused() -> None:
    with pytest.raises(UnknownZone, match="did you mean Europe/Berlin"):
        Scheduler((), Settings(zone="Europe/Berlln"), seed=1)
    with pytest.raises(UnknownZone):
        Scheduler(seed=1).configure(zone="Mars/Olympus")
    with pytest.raises(NoMoment, match=r"a datetime with a zone, such as datetime.now\(UTC\)"):
        Scheduler(seed=1).clock(datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(InvalidParameter, match="an IANA zone"):
        Programme((), Settings(zone="../etc/passwd"), seed=1)


@pytest.mark.req("PLAY-USE-5")
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
def test_the_clock_of_a_player_matches_local_time_across_every_change(zone: str) -> None:
    begun = utc_ms(datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC))
    clock = clock_at(zone, begun)
    wall = wall_clock(1000, clock.utc_ms, clock.offsets)
    place = ZoneInfo(zone)

    for hours in range(0, 3 * 366 * 24, 5):
        moment = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC) + timedelta(hours=hours)
        there = moment.astimezone(place)
        expected = 1440 * there.weekday() + 60 * there.hour + there.minute
        assert wall.minute(1000 + hours * 3_600_000) == expected
        assert minute_of_week(zone, utc_ms(moment)) == expected


CONFIG: Json = {
    "seed": 1,
    "channels": [{"id": "a", "count": 8}, {"id": "b", "count": 3, "generation": 7}],
    "settings": {
        "zone": "Europe/Berlin",
        "day_parts": [{"name": "small hours", "start": "01:30", "end": "03:30", "weights": {"a": 1}}],
    },
    "dwell_ms": 600_000,
}


def began(events: tuple[Event, ...]) -> list[tuple[int, str | None]]:
    return [(event.at, event.message) for event in events if isinstance(event, EpochBegan)]


@pytest.mark.req("PLAY-USE-5")
@pytest.mark.parametrize(
    ("night", "hours"),
    [(datetime(2026, 3, 28, 23, tzinfo=UTC), 1), (datetime(2026, 10, 24, 22, tzinfo=UTC), 3)],
    ids=["an hour is skipped", "an hour comes twice"],
)
@pytest.mark.parametrize("step_ms", [86_400_000, 61_000])
def test_a_player_follows_its_clock_across_a_daylight_saving_change(night: datetime, hours: int, step_ms: int) -> None:
    """Both nights start at midnight in Berlin; the part lasts two hours of local time, one or three elapsed hours."""
    player = Player.create(CONFIG)
    player.outside = Library()
    player.apply(clock_at("Europe/Berlin", night))
    found: list[tuple[int, str | None]] = []
    for to in range(step_ms, 86_400_000 + 1, step_ms):
        found += began(player.apply(Advance(to)).events)

    begin = 90 * 60_000
    assert found == [
        (begin, "the day part 'small hours' began"),
        (begin + hours * 3_600_000, "no part of the day holds"),
    ]


@pytest.mark.req("PLAY-USE-5")
def test_after_the_clock_is_set_forward_or_back_the_right_part_applies() -> None:
    player = Player.create(CONFIG)
    player.outside = Library()
    night, noon = datetime(2026, 7, 1, 0, tzinfo=UTC), datetime(2026, 7, 1, 10, tzinfo=UTC)

    epochs = [began(player.apply(clock_at("Europe/Berlin", moment)).events) for moment in (noon, night, night, noon)]

    assert [len(epoch) for epoch in epochs] == [0, 1, 0, 1]


@pytest.mark.req("PLAY-USE-5")
def test_parts_set_later_apply_at_once_also_to_a_paused_player() -> None:
    player = Player.create(CONFIG)
    player.outside = Library()
    player.apply(Next())
    player.apply(Pause())
    player.apply(clock_at("Europe/Berlin", datetime(2026, 7, 1, 10, tzinfo=UTC)))
    parts: Json = [{"name": "noon", "start": "12:00", "end": "13:00", "weights": {"b": 1}}]

    set_now = player.apply(Configure({"day_parts": parts}))

    assert player.programme.snapshot.part == "noon"
    assert player.programme.generator.weights == [0, 65536]
    assert len(began(set_now.events)) == 1
    assert player.next_due() == 3_600_000


@pytest.mark.parametrize("wrong", [Clock(1 << 51), Clock(0, ()), Clock(0, ((5, 0), (4, 0))), Clock(0, ((0, 90_000),))])
def test_an_invalid_clock_is_refused(wrong: Clock) -> None:
    player = Player.create(CONFIG)
    before = player.state()

    outcome = player.apply(wrong)

    assert outcome.refusal is not None
    assert player.state() == before
