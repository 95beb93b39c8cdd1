"""The clock of a player is set again only when it has drifted."""

from datetime import UTC, datetime, timedelta

import pytest

from pendula.playback import clock_at
from pendula.playback.choosing.dayparts import wall_clock
from pendula.server.schedulers.playback.library_service import agree

BEGUN = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.req("PLAY-USE-5")
@pytest.mark.parametrize(
    ("hours", "late_ms", "zone", "same"),
    [
        (0, 0, "Europe/Berlin", True),
        (24 * 200, 900, "Europe/Berlin", True),
        (5, 5000, "Europe/Berlin", False),
        (5, -5000, "Europe/Berlin", False),
        (5, 0, "America/New_York", False),
        (24 * 365 * 5, 0, "Europe/Berlin", False),
    ],
)
def test_clocks_agree_while_their_readings_match(hours: int, late_ms: int, zone: str, same: bool) -> None:
    clock = clock_at("Europe/Berlin", BEGUN)
    known = wall_clock(1000, clock.utc_ms, clock.offsets)
    present = clock_at(zone, BEGUN + timedelta(hours=hours, milliseconds=late_ms))

    assert agree(known, present, 1000 + hours * 3_600_000) is same
