"""Integer instants, and ISO-8601 parsing and formatting; no clock is read here.

Two kinds never mix: UTC instants (the text has an offset) and local ones (the text has none). Both are whole
microseconds since 1970-01-01T00:00:00 on their axis; further digits are cut off. Daylight saving is ignored.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from re import Match
from re import compile as regex
from typing import NewType

from msgspec import Struct, ValidationError, convert

from pendula.kernel.errors import InputRefused

UtcMicros = NewType("UtcMicros", int)

SECOND = 1_000_000
MINUTE = 60 * SECOND

# Without a zone: the arithmetic is the same for both axes, and formatting takes half the time.
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min - _EPOCH) // _MICROSECOND  # noqa: DTZ901
_LAST = (datetime.max - _EPOCH) // _MICROSECOND  # noqa: DTZ901

# Groups: the part that `datetime` parses, and in it the seconds; the fraction; the offset.
_TIMESTAMP = regex(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}"
    r"(?::([0-9]{2}))?)(?(2)(?:\.([0-9]+))?)"
    r"(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
)


class InvalidTimestamp(InputRefused):
    """Facts: `value`."""

    code = "invalid_timestamp"


class NaiveTimestamp(InputRefused):
    """A timestamp without an offset where one is needed. Facts: `value`."""

    code = "naive_timestamp"


class TimestampOutOfRange(InputRefused):
    """A timestamp outside the range of its kind. Facts: `value`."""

    code = "timestamp_out_of_range"


class MixedTimes(InvalidTimestamp):
    """A time with an offset was combined with one without."""

    code = "mixed_times"


class Instant(Struct, frozen=True, eq=False):
    """A point on the UTC axis, or on the local axis if `offset_minutes` is None.

    The offset is for display only: instants are equal when they are the same moment. Ordering or subtracting instants
    of different kinds raises `MixedTimes`; they are never equal.
    """

    micros: int
    offset_minutes: int | None = None

    @property
    def is_local(self) -> bool:
        return self.offset_minutes is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Instant):
            return NotImplemented
        return self.micros == other.micros and self.is_local == other.is_local

    def __hash__(self) -> int:
        return hash((self.micros, self.is_local))

    def __lt__(self, other: "Instant") -> bool:
        return self - other < 0

    def __le__(self, other: "Instant") -> bool:
        return self - other <= 0

    def __gt__(self, other: "Instant") -> bool:
        return self - other > 0

    def __ge__(self, other: "Instant") -> bool:
        return self - other >= 0

    def __sub__(self, other: "Instant") -> int:
        """Microseconds from `other` to this instant."""
        if self.is_local != other.is_local:
            raise MixedTimes(
                f"{format_iso(self)} and {format_iso(other)} cannot be compared: only one of them has an offset",
                values=[format_iso(self), format_iso(other)],
            )
        return self.micros - other.micros


def parse_utc(text: object) -> UtcMicros:
    """The instant of an RFC 3339 date-time with offset, 1970-01-01T00:00:00Z or later."""
    if isinstance(text, str) and (micros := _parse_usual(text)) is not None:
        return UtcMicros(micros)
    match = _match(text)
    if match[2] is None:
        raise _invalid(text)
    micros = _micros(match)
    if match[4] is None:
        shown = match[0][:64]
        raise NaiveTimestamp(f"The timestamp {shown!r} has no offset; allowed are Z and ±hh:mm at its end", value=shown)
    micros -= _offset_minutes(match[4]) * MINUTE
    if not 0 <= micros <= _LAST:
        raise _out_of_range(match[0], "1970-01-01T00:00:00Z")
    return UtcMicros(micros)


# Cached: the same moments occur many times, for example in every job of a batch.
@lru_cache(maxsize=4096)
def format_utc(micros: int) -> str:
    """UTC with `Z`; a nonzero fraction has six digits."""
    return _civil(micros) + "Z"


def parse_iso(text: object) -> Instant:
    """The instant of an ISO-8601 date and time, with or without offset; seconds may be left out."""
    match = _match(text)
    micros = _micros(match)
    if match[4] is None:
        return Instant(micros)
    offset = _offset_minutes(match[4])
    return Instant(micros - offset * MINUTE, offset)


def format_iso(instant: Instant) -> str:
    """The instant in its own offset (zero is `Z`), or without an offset if local."""
    if instant.offset_minutes is None:
        return _civil(instant.micros)
    civil = _civil(instant.micros + instant.offset_minutes * MINUTE)
    if instant.offset_minutes == 0:
        return civil + "Z"
    hours, minutes = divmod(abs(instant.offset_minutes), 60)
    sign = "-" if instant.offset_minutes < 0 else "+"
    return f"{civil}{sign}{hours:02}:{minutes:02}"


def minutes_between_ceil(start: Instant, end: Instant) -> int:
    """Whole minutes from `start` to `end`, rounded up. Negative if `end` is before `start`."""
    return -((start - end) // MINUTE)


def plus_minutes(start: Instant, minutes: int) -> Instant:
    """The instant `minutes` later, with the same offset."""
    return Instant(start.micros + minutes * MINUTE, start.offset_minutes)


def slot_of(minute: int, slot_minutes: int = 60, slots: int = 24) -> int:
    """The slot of a minute of an epoch; the end of the epoch belongs to the last slot."""
    return min(minute // slot_minutes, slots - 1)


def _parse_usual(text: str) -> int | None:
    """Parse the form that programs write (`Z`, no fraction or six digits) in a third of the time."""
    if len(text) not in (20, 27) or text[10] != "T" or text[-1] != "Z":
        return None
    try:
        micros = (convert(text, datetime) - _EPOCH_UTC) // _MICROSECOND
    except ValidationError:
        return None
    return micros if micros >= 0 else None


def _match(text: object) -> Match[str]:
    match = _TIMESTAMP.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise _invalid(text)
    return match


def _micros(match: Match[str]) -> int:
    """The microseconds of the date and time as written, ignoring the offset."""
    text = match[1]
    # RFC 3339 allows the year 0000, `datetime` does not; 2000 is a leap year too.
    early = text.startswith("0000")
    try:
        written = datetime.fromisoformat("2" + text[1:] if early else text)
    except ValueError:
        raise _invalid(match[0]) from None
    if early:
        raise _out_of_range(match[0], "0001-01-01T00:00:00")
    micros = (written - _EPOCH) // _MICROSECOND
    return micros if match[3] is None else micros + int(match[3][:6].ljust(6, "0"))


def _offset_minutes(offset: str) -> int:
    if offset == "Z":
        return 0
    minutes = int(offset[1:3]) * 60 + int(offset[4:6])
    return -minutes if offset[0] == "-" else minutes


def _civil(micros: int) -> str:
    if not _FIRST <= micros <= _LAST:
        raise _out_of_range(f"{micros} microseconds", "0001-01-01T00:00:00")
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()


def _invalid(value: object) -> InvalidTimestamp:
    shown = value[:64] if isinstance(value, str) else value
    return InvalidTimestamp(
        f"{shown!r} is not a timestamp; write it like '2026-02-21T08:00:00+08:00', with upper-case letters", value=shown
    )


def _out_of_range(value: str, first: str) -> TimestampOutOfRange:
    return TimestampOutOfRange(
        f"The timestamp {value[:64]!r} is out of range; allowed is {first} to the end of 9999", value=value[:64]
    )
