"""The page of the scheduler `credit` has every setting, with its variable, its default and what is allowed."""

import re

import pytest

from pendula.credit.settings import NUMBER_MOST, TABLE, Kind, Setting, Settings, setting_texts
from tests.docs.markdown import ROOT

PAGE = ROOT / "docs/reference/credit.md"
ROW = re.compile(r"^\| `(?P<name>[a-z_]+)` \| `(?P<variable>[A-Z_]+)` \| (?P<default>[^|]+) \| (?P<allowed>[^|]+) \| ")
ROUND = {NUMBER_MOST: "10^9", -NUMBER_MOST: "-10^9", 2**64 - 1: "2^64 - 1"}


def rows(text: str) -> list[tuple[str, ...]]:
    found = (ROW.match(line) for line in text.split("\n"))
    return [(one["name"], one["variable"], one["default"], one["allowed"]) for one in found if one is not None]


def row(setting: Setting) -> tuple[str, ...]:
    """A setting as the page writes it."""
    default = setting_texts(Settings())[setting.variable] or "not given"
    return setting.name, setting.variable, default, allowed(setting)


def allowed(setting: Setting) -> str:
    if setting.fixed:
        return f"{getattr(Settings(), setting.name)} alone"
    match setting.kind:
        case Kind.INTEGER | Kind.DECIMAL:
            return f"{number(setting.least)} to {number(setting.most)}"
        case Kind.SWITCH:
            return "on, off"
        case Kind.WORD:
            assert setting.words is not None
            return ", ".join(setting.words)
        case Kind.AMOUNT:
            return "an amount from 0, none"


def number(value: int) -> str:
    return ROUND.get(value) or f"{value:,}".replace(",", " ")


def test_every_setting_is_on_the_page_once_with_its_values() -> None:
    assert sorted(rows(PAGE.read_text(encoding="utf-8"))) == sorted(map(row, TABLE))


@pytest.mark.parametrize(
    "changed",
    ["| `a_name` | `A_NAME` | 1 | 1 to 3 | x |", "| `a_name` | `A_NAME` | 2 | 1 to 2 | x |", "| a_name | A_NAME |"],
)
def test_a_changed_row_is_found(changed: str) -> None:
    assert rows("| `a_name` | `A_NAME` | 2 | 1 to 3 | x |\n") == [("a_name", "A_NAME", "2", "1 to 3")]
    assert rows(changed) != [("a_name", "A_NAME", "2", "1 to 3")]
