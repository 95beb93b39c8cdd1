"""The journeys in ARCHITECTURE.md are those that a trace finds: their hops are on it, and they do not get longer."""

import pytest

from tests.architecture.journeys import JOURNEYS, Journey, main, of_the_page, traced


@pytest.fixture(scope="module", params=JOURNEYS)
def walked(request: pytest.FixtureRequest) -> tuple[str, Journey]:
    return request.param, traced(request.param)


def test_the_page_has_the_journeys_that_are_traced() -> None:
    assert list(of_the_page()) == list(JOURNEYS)


def test_a_journey_passes_no_more_modules_than_the_page_says(walked: tuple[str, Journey]) -> None:
    name, journey = walked

    assert 5 < journey.modules <= of_the_page()[name].modules, sorted(journey.calls)


def test_each_hop_of_the_page_is_on_the_journey(walked: tuple[str, Journey]) -> None:
    name, journey = walked

    assert [hop for hop in of_the_page()[name].hops if hop not in journey.calls] == []


def test_the_modules_of_a_journey_are_printed_in_the_order_they_are_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["credit tick"]) == 0

    first, *_ = (line.split()[-1] for line in capsys.readouterr().out.splitlines() if "/" in line)
    assert first == "credit/runs/headless"


def test_an_unknown_journey_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ride"]) == 2

    assert "no journey 'ride'" in capsys.readouterr().err
