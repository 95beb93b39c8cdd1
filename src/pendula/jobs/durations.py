"""ISO 8601 durations in weeks, days, hours, minutes and seconds; months and years have no fixed length."""

from decimal import Decimal
from re import ASCII
from re import compile as regex

from pendula.kernel.errors import InputRefused

_SHAPE = regex(
    r"P(?:(\d{1,6})W|(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,8})M)?(?:(\d{1,9}(?:\.\d{1,6})?)S)?)?)", ASCII
)
_UNITS = (604_800, 86_400, 3600, 60, 1)
SECOND_US = 1_000_000
DAYS_MOST = 36_525  # a hundred years, so that every date so far ahead can be written
ALLOWED = f"a duration such as P7D, PT12H or P1DT30M (no months or years), at most P{DAYS_MOST}D"


def parse_duration(text: object) -> int | None:
    """Whole microseconds, above 0 and at most a hundred years; None for anything else."""
    match = _SHAPE.fullmatch(text) if isinstance(text, str) and not text.endswith("T") else None
    if match is None or not any(match.groups()):
        return None
    parts = zip(match.groups(), _UNITS, strict=True)
    seconds = sum((Decimal(amount) * unit for amount, unit in parts if amount), Decimal(0))
    micros = int(seconds * SECOND_US)
    return micros if 0 < micros <= DAYS_MOST * 86_400 * SECOND_US else None


def duration_us(text: str) -> int:
    """Like `parse_duration`, but raises `InputRefused`."""
    length = parse_duration(text)
    if length is None:
        raise InputRefused(f"{text[:100]!r} is not a duration; write {ALLOWED}", value=text[:100])
    return length


def format_duration(micros: int) -> str:
    days, rest = divmod(micros, 86_400 * SECOND_US)
    hours, rest = divmod(rest, 3600 * SECOND_US)
    minutes, rest = divmod(rest, 60 * SECOND_US)
    seconds = f"{rest // SECOND_US}.{rest % SECOND_US:06d}".rstrip("0").rstrip(".")
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if n not in (0, "0"))
    day = f"{days}D" if days or not clock else ""
    return f"P{day}T{clock}" if clock else f"P{day}"
