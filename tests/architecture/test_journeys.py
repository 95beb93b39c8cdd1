"""The journeys in ARCHITECTURE.md have modules that exist; the journeys of requests and ticks do not get longer."""

import re
from pathlib import Path

import pytest

from tests.architecture.journeys import MOST_MODULES, main, traced
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


@pytest.mark.parametrize("name", MOST_MODULES)
def test_a_journey_passes_no_more_modules_than_before(name: str) -> None:
    journey = traced(name)

    assert 5 < journey.modules <= MOST_MODULES[name], sorted(journey.calls)


def test_the_modules_of_a_journey_are_printed_in_the_order_they_are_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["enqueue"]) == 0

    first, *_, last = (line.split()[-1] for line in capsys.readouterr().out.splitlines() if "/" in line)
    assert first.startswith("server/http/")
    assert "/" in last


def test_an_unknown_journey_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ride"]) == 2

    assert "no journey 'ride'" in capsys.readouterr().err
