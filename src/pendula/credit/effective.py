"""Settings as texts, by variable: what a run writes down of them, and what differs between two runs.

Put back into an environment, the texts give the same settings again.
"""

from decimal import Decimal
from enum import StrEnum
from typing import Any

from pendula.credit.money import text
from pendula.credit.settings import TABLE, Kind, Setting, Settings


def effective(settings: Settings) -> dict[str, str]:
    """Every setting under its variable; empty where a setting is not given and has no default."""
    return {setting.variable: _text(setting, getattr(settings, setting.name)) for setting in TABLE}


def differing(one: Settings, other: Settings) -> dict[str, tuple[str, str]]:
    """The variables that differ, each with both texts."""
    left, right = effective(one), effective(other)
    return {variable: (left[variable], right[variable]) for variable in left if left[variable] != right[variable]}


def _text(setting: Setting, value: Any) -> str:
    match value:
        case None:
            return "none" if setting.kind is Kind.AMOUNT else ""
        case bool():
            return "on" if value else "off"
        case StrEnum():
            return value.value
        case Decimal():
            # Without zeros at the end: a journal does not keep them, and nothing differs by them.
            digits = format(value, "f")
            return digits.rstrip("0").rstrip(".") if "." in digits else digits
        case _:
            return text(value) if setting.kind is Kind.AMOUNT else str(value)
