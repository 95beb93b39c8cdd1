"""The pages of the scheduler `credit` name every command, event, reason, warning and preset there is, and no other."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import get_args

from pendula.credit.authoring import linting
from pendula.credit.commands import Commands
from pendula.credit.events import Event
from pendula.credit.planning.profiles import PRESETS
from pendula.credit.runs.artifacts import NAMES
from pendula.credit.state.clearing_policy import Why
from tests.docs.markdown import ROOT

SOURCE = ROOT / "src/pendula/credit"
WARNING_MODULES = ("reading.py", "authoring/linting.py")
LENIENT = ("unknown_member", "id_for_scenario_id", "no_schema_version", "amount_rounded")


def section(page: str, title: str) -> str:
    """The text below a heading, up to the next of the same or a higher rank."""
    text = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
    marks, _, _ = title.partition(" ")
    _, _, below = text.partition(f"\n{title}\n")
    return re.split(rf"^#{{1,{len(marks)}}} ", below, maxsplit=1, flags=re.MULTILINE)[0]


def named(text: str) -> list[str]:
    """What stands in the first cell of each row, in the order of the page."""
    lines = text.split("\n")
    rows = (line for line, after in pairwise(lines) if line.startswith("| `") and not after.startswith("|---"))
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def warnings_in_the_source() -> set[str]:
    literal = {code for name in WARNING_MODULES for code in _codes(ast.parse((SOURCE / name).read_text("utf-8")))}
    return literal.union(map(str, linting.Code))


def _codes(tree: ast.AST) -> Iterator[str]:
    """The codes that are written where a caution is made."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(id="Caution") | ast.Attribute(attr="warn"), args=[ast.Constant(value=str(code)), *_]
            ):
                yield code


def test_every_command_has_its_row() -> None:
    tags = [command.__struct_config__.tag for command in get_args(Commands)]

    assert named(section("credit.md", "## Commands")) == tags


def test_every_event_has_its_row() -> None:
    tags = [event.__struct_config__.tag for event in get_args(Event)]

    assert named(section("credit.md", "## Events").split("###")[0]) == tags


def test_every_reason_of_a_clearing_has_its_row() -> None:
    assert sorted(named(section("credit.md", "### Reasons of a clearing"))) == sorted(Why)


def test_every_artifact_has_its_row() -> None:
    assert sorted(named(section("credit.md", "## Artifacts"))) == sorted(NAMES)


def test_every_warning_has_its_row() -> None:
    strict = named(section("scenario-file.md", "## Warnings"))
    lenient = named(section("scenario-file.md", "## Lenient"))

    assert sorted(lenient) == sorted(LENIENT)
    assert sorted({*strict, *lenient}) == sorted(warnings_in_the_source())
    assert len({*strict, *lenient}) == len(strict) + len(lenient)


def test_presets_are_on_the_page() -> None:
    rows = section("scenario-file.md", "### Profiles that are known")
    told = re.findall(r"^\| `(\w+)` \| ([0-9.]+) \| ([^|]+) \| ([0-9.]+), ([0-9.]+), ([0-9.]+) \|$", rows, re.MULTILINE)

    found = {
        name: (float(rate), groups_of(groups), float(p50), float(p90), round(1000 * float(least)))
        for name, rate, groups, p50, p90, least in told
    }

    assert found == {name: (one.tx_rate, one.groups, one.p50, one.p90, one.min) for name, one in PRESETS.items()}


def groups_of(cell: str) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((name, float(weight)) for name, weight in re.findall(r"(\w+) (\.\d+)", cell)))
