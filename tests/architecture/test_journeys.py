"""The journeys in ARCHITECTURE.md: each hop is an existing module."""

import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, SOURCE
from tests.docs.markdown import blocks

PAGE = Path("ARCHITECTURE.md")
HOP = re.compile(r"\s*(?P<name>[a-z_]+(?:/[a-z_]+)+)\s+(?P<says>\S.*)")
JOURNEYS = ("actions run", "one credit tick", "ack over HTTP", "fleet compile", "next of a player")


def journeys() -> dict[str, list[str]]:
    """The hops of every block that begins with `journey: NAME`."""
    found: dict[str, list[str]] = {}
    for block in blocks(PAGE, (ROOT / PAGE).read_text(encoding="utf-8")):
        first, _, rest = block.text.partition("\n")
        if first.startswith("journey: "):
            hops = [HOP.fullmatch(line) for line in rest.split("\n")]
            found[first.removeprefix("journey: ")] = [hop["name"] for hop in hops if hop]
    return found


def test_there_are_five_journeys() -> None:
    assert tuple(journeys()) == JOURNEYS


@pytest.mark.parametrize("name", JOURNEYS)
def test_each_hop_is_a_module_that_exists(name: str) -> None:
    hops = journeys()[name]

    assert len(hops) >= 5
    assert [hop for hop in hops if not _is_there(hop)] == []


def _is_there(hop: str) -> bool:
    return (SOURCE / f"{hop}.py").is_file() or (SOURCE / hop / "__init__.py").is_file()
