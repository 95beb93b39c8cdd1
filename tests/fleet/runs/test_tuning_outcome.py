"""The best trial, and recommendations for trucks and map."""

import xml.etree.ElementTree as Tree
from itertools import combinations
from typing import Any

import pytest

from pendula.fleet.runs.tuning import Outcome, Trial, TrialFigures, outcome_of, throughput_svg

HOUR_MS = 3_600_000
LIMIT_MS = 300_000


def of(tasks: int, wait_s: int = 10, **more: Any) -> TrialFigures:
    return TrialFigures(HOUR_MS, tasks, wait_s * 1000, **more)


def outcome(*pairs: tuple[Trial, TrialFigures]) -> Outcome:
    return outcome_of([trial for trial, _ in pairs], [one for _, one in pairs], LIMIT_MS)


def best(*pairs: tuple[Trial, TrialFigures]) -> tuple[int, int] | None:
    found = outcome(*pairs).best
    return None if found is None else (found.trucks, found.one_way_milli)


@pytest.mark.req("FLT-LIVE-11")
def test_the_most_tasks_an_hour_win() -> None:
    assert best((Trial(1, 0), of(30)), (Trial(2, 0), of(50)), (Trial(3, 0), of(45))) == (2, 0)


@pytest.mark.req("FLT-LIVE-11")
def test_a_trial_with_too_long_a_wait_is_not_the_best() -> None:
    assert best((Trial(1, 0), of(30)), (Trial(2, 0), of(50, wait_s=301))) == (1, 0)


@pytest.mark.req("FLT-LIVE-11")
@pytest.mark.parametrize("spoilt", [{"violations": 1}, {"refused": "not LIVE"}])
def test_a_trial_that_is_not_sound_is_not_the_best(spoilt: dict[str, Any]) -> None:
    assert best((Trial(1, 0), of(30)), (Trial(2, 0), of(50, **spoilt))) == (1, 0)


@pytest.mark.req("FLT-LIVE-11")
def test_ties_are_broken_by_fewer_trucks_then_by_the_shorter_wait() -> None:
    assert best((Trial(3, 0), of(50)), (Trial(2, 0), of(50, 20)), (Trial(2, 9), of(50, 10))) == (2, 9)


@pytest.mark.req("FLT-LIVE-11")
def test_rates_are_means_of_seeds_and_the_longest_wait_of_any_counts() -> None:
    row = outcome((Trial(1, 0, seed=0), of(30, 5)), (Trial(1, 0, seed=1), of(40, 9))).rows[0]

    assert (row.tasks_per_hour, row.longest_wait_ms) == (35, 9_000)


@pytest.mark.req("FLT-LIVE-11")
def test_without_an_acceptable_trial_there_is_no_best() -> None:
    assert best((Trial(1, 0), of(30, 999))) is None


@pytest.mark.req("FLT-LIVE-11")
def test_trucks_that_add_nothing_are_named() -> None:
    found = outcome((Trial(3, 0), of(50)), (Trial(4, 0), of(49)))

    assert found.sentences == ("more than 3 trucks add nothing: 49 tasks an hour with 4; 49 tasks were done",)


@pytest.mark.parametrize(("tasks", "warned"), [(1, True), (9, True), (10, False)])
def test_a_rate_over_few_tasks_is_the_first_sentence(tasks: int, warned: bool) -> None:
    found = outcome((Trial(1, 0), of(20)), (Trial(2, 0), of(tasks)), (Trial(3, 0), of(0, refused="not LIVE")))
    sentence = f"these results rest on few tasks, {tasks} task{'s' * (tasks != 1)} with 2 trucks: "

    assert found.sentences[0].startswith(sentence) is warned
    assert [row["tasks"] for row in found.form()["rows"]] == [20, tasks, 0]  # type: ignore[index,union-attr,call-overload]


def test_fewer_trucks_that_do_nearly_as_much_are_named() -> None:
    found = outcome((Trial(2, 0), of(98)), (Trial(4, 0), of(100)))

    assert found.sentences == (
        "2 trucks do nearly as much as 4: 98 against 100 tasks an hour; 98 and 100 tasks were done",
    )


@pytest.mark.req("FLT-LIVE-11")
def test_a_station_that_is_always_busy_is_named() -> None:
    found = outcome((Trial(1, 0), of(90, busy=(("EAST", HOUR_MS * 9 // 10), ("WEST", HOUR_MS // 2)))))

    assert len(found.sentences) == 1
    assert found.sentences[0].startswith("EAST is loading or unloading 90 % of the time: add a second station")


@pytest.mark.req("FLT-LIVE-11")
def test_the_place_with_the_longest_waits_is_named_with_a_remedy() -> None:
    lane, node = "EDGE_GROUP:A<->B", "NODE:C"
    waits = (
        (lane, "WAIT_EDGE_DIRECTION", HOUR_MS // 4),
        (lane, "WAIT_SPACING", HOUR_MS // 9),
        (node, "WAIT_NODE", HOUR_MS // 50),
    )
    found = outcome((Trial(2, 0), of(90, waits=waits)))

    assert len(found.sentences) == 1
    assert found.sentences[0].startswith(f"trucks spend 18 % of their time waiting for {lane} (WAIT_EDGE_DIRECTION)")
    assert "one-way" in found.sentences[0]


@pytest.mark.req("FLT-LIVE-11")
def test_the_smallest_fleet_without_rest_nodes_is_named_with_a_remedy() -> None:
    found = outcome((Trial(1, 0), of(30)), (Trial(2, 0), TrialFigures(refused="add a parking spur at N17")))

    assert found.sentences[0] == "2 trucks cannot run on this map: add a parking spur at N17"


def test_the_picture_has_a_dot_for_every_number_of_trucks_and_a_line_for_every_strength() -> None:
    found = outcome(*((Trial(n, milli), of(20 * n, 999 if n == 3 else 9)) for milli in (0, 2000) for n in (1, 2, 3)))
    picture = Tree.fromstring(throughput_svg(found, "a & b"))
    classes = [one.get("class", "") for one in picture.iter()]

    assert sum(one.startswith("dot ") for one in classes) == 4
    assert classes.count("not") == 2
    assert [classes.count(f"line c{number}") for number in (0, 1)] == [2, 2]
    assert classes.count("best") == 1


def test_equal_lines_of_a_picture_are_visible_and_labels_do_not_overlap() -> None:
    pairs = [(Trial(n, milli), of(20 * n, 10 + milli // 100)) for milli in (0, 1000, 2000) for n in range(1, 13)]
    picture = Tree.fromstring(throughput_svg(outcome(*pairs), "equal"))
    lines = {one.get("class"): one.get("style") for one in picture.iter() if one.get("class", "").startswith("line ")}
    dots = {one.get("class"): one.get("r") for one in picture.iter() if one.get("class", "").startswith("dot ")}
    waits = [one for one in picture.iter() if one.get("class", "").startswith("mid c")]
    places = [(float(one.get("x", "")), float(one.get("y", ""))) for one in waits]

    assert len(set(lines.values())) == len(set(dots.values())) == 3
    assert len(waits) > 12
    assert [pair for pair in combinations(places, 2) if _overlap(*pair)] == []


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two texts of four letters, ten pixels high, lie over each other."""
    return abs(one[0] - other[0]) < 22 and abs(one[1] - other[1]) < 9


def test_a_picture_without_an_acceptable_trial_says_so() -> None:
    assert "no trial was acceptable" in throughput_svg(outcome((Trial(1, 0), of(0, 999))), "none")
