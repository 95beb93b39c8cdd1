"""Settings: what they may be, every number exact, and changed in part.

Each member that is given replaces that member, the others stay. A number is what its decimal text says, never a float.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.playback.model import (
    RECORDS_MOST,
    Exposure,
    InvalidParameter,
    InvalidWeight,
    Mode,
    PickMode,
    Settings,
    said,
    unfit,
)

DEFAULTS = Settings()


class Rules(Struct, frozen=True):
    """What the decisions of versions differ in. A journal names the decisions it was written with."""

    known_channels: bool = True  # weights and counts are of channels that are followed
    plain_words: bool = True  # refused settings are told in words of the room


FIRST = Rules(known_channels=False, plain_words=False)
NOW = Rules()
BUFFER_MOST = 1024  # of history and lookahead
POOL_MOST = 64
DIGITS_MOST = 30  # of a weight or fraction, before and after the point
COUNT_MOST = (1 << 63) - 1


def checked(settings: Settings) -> Settings:
    """The same with exact numbers; raises `InvalidParameter` and `InvalidWeight`."""
    spans = {
        "history": (settings.history, 1, BUFFER_MOST),
        "lookahead": (settings.lookahead, 1, BUFFER_MOST),
        "nae.cap": (settings.nae.cap, 1, POOL_MOST),
        "pick.r": (settings.pick.r, 1, RECORDS_MOST),
    }
    for name, (value, least, most) in spans.items():
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise unfit(name, value, f"an integer from {least} to {most}")
    for name, flag in (("nae.enabled", settings.nae.enabled), ("preserve_history", settings.preserve_history)):
        if not isinstance(flag, bool):
            raise unfit(name, flag, "true or false")
    mode = _known_pick(settings.pick.mode)
    pick = msgspec.structs.replace(settings.pick, mode=mode)
    return msgspec.structs.replace(settings, exposure=checked_exposure(settings.exposure), pick=pick)


def checked_exposure(exposure: Exposure) -> Exposure:
    """The same with every number exact; raises `InvalidWeight` and `InvalidParameter`."""
    weights = {name: _weight(name, value) for name, value in exposure.manual_weights.items()}
    # 0 is what a channel nobody mentions has: to write it down is no change. Less than 0 counts as 0.
    weights = {name: weight for name, weight in weights.items() if weight > 0}
    for field, counts in (("total_count", exposure.total_count), ("recent_count", exposure.recent_count)):
        for name, count in counts.items():
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COUNT_MOST:
                raise unfit(f"{field}.{name}", count, "an integer from 0 to 2^63 - 1")
    alpha, least, most = (_fraction(name, getattr(exposure, name)) for name in ("alpha", "p_min", "p_max"))
    if not 0 <= alpha <= 1:
        raise unfit("alpha", alpha, "a number from 0 to 1")
    if not 0 < least <= 1:
        raise unfit("p_min", least, "a number above 0, at most p_max")
    if not least <= most <= 1:
        raise unfit("p_max", most, "a number from p_min to 1")
    return msgspec.structs.replace(
        exposure,
        mode=_mode(exposure.mode),
        manual_weights=weights,
        total_count={name: count for name, count in exposure.total_count.items() if count},
        recent_count={name: count for name, count in exposure.recent_count.items() if count},
        alpha=alpha,
        p_min=least,
        p_max=most,
    )


def _mode(value: object) -> Mode:
    try:
        return Mode(value)  # type: ignore[arg-type]
    except ValueError:
        raise unfit("mode", value, "EqE, MaE or PrE") from None


def _weight(name: str, value: object) -> Decimal:
    number = exact(value)
    if number is None:
        raise InvalidWeight(
            f"The weight of channel {name!r} is {said(value)}; allowed are finite numbers of {DIGITS_MOST} digits",
            channel=name,
            value=said(value),
        )
    return number


def _fraction(name: str, value: object) -> Decimal:
    number = exact(value)
    if number is None:
        raise unfit(name, value, f"a finite number of at most {DIGITS_MOST} digits")
    return number


def exact(value: object) -> Decimal | None:
    """A number by its decimal text, so that 0.1 is a tenth; None for what is none, not finite or far too long."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    if isinstance(value, int) and value.bit_length() > 4 * DIGITS_MOST:
        return None
    try:
        number = Decimal(str(value)) if not isinstance(value, Decimal) else value
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) + max(exponent, 0) > DIGITS_MOST or -exponent > DIGITS_MOST:
        return None
    return _plain(sign, digits, exponent)


def _plain(sign: int, digits: tuple[int, ...], exponent: int) -> Decimal:
    """One form for one number, so that 0.50 is no change after 0.5; whatever precision the caller's context has."""
    kept = len(digits)
    while kept > 1 and digits[kept - 1] == 0:
        kept -= 1
    if digits[:kept] == (0,):
        return Decimal(0)
    return Decimal((sign, digits[:kept], exponent + len(digits) - kept))


def _joined(there: Json, value: Json) -> Json:
    """Objects member by member, by channel too; a member that is null goes."""
    if not isinstance(there, Mapping) or not isinstance(value, Mapping):
        return value
    joined = {**there, **{name: _joined(there.get(name), one) for name, one in value.items()}}
    return {name: one for name, one in joined.items() if one is not None}


def merged(settings: Settings, changes: Json) -> Settings:
    """The settings with these changes in them; raises `InvalidParameter` and `InvalidWeight`."""
    if not isinstance(changes, Mapping):
        raise unfit("settings", changes, "an object of settings")
    whole: dict[str, Json] = msgspec.to_builtins(settings)
    for name, value in changes.items():
        whole[name] = _joined(whole.get(name), value)
    try:
        return checked(msgspec.convert(whole, Settings))
    except msgspec.ValidationError as trouble:
        raise InvalidParameter(
            f"The settings cannot be so: {trouble}", parameter="settings", value=str(trouble)
        ) from None


def _known_pick(value: str) -> PickMode:
    try:
        return PickMode(value)
    except ValueError:
        raise unfit("pick.mode", value, "recency or random") from None
