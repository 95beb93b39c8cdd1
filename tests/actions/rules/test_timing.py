"""Duration of an instance in its world: modifiers, noise, actors without skills."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from tests.actions.worlds import codes, day, does, lasting, of, outcome


@pytest.mark.req("ACT-DUR-4")
def test_only_modifiers_of_the_minute_the_verb_and_the_actor_apply() -> None:
    modifiers = [
        {"name": "night", "factor": "2", "to": 360},
        {"name": "rain", "factor": "1.5", "from": "2025-07-01T05:00:00", "to": "2025-07-01T06:00:00"},
        {"name": "saw", "factor": "0.5", "verbs": ["cut"]},
        {"name": "limp", "factor": "1.1", "actors": ["bob"]},
    ]
    times = {"A": 299, "B": 300, "C": 359, "D": 360}

    result = day(
        {"walk": lasting(100)},
        *(does(name, t, "walk") for name, t in times.items()),
        world_state={"modifiers": modifiers},
    )

    assert {name: of(result, "start", name).meta["d"] for name in times} == {"A": 200, "B": 300, "C": 300, "D": 100}
    assert of(result, "start", "B").meta["modifiers"] == {"names": ["night", "rain"], "f_mod": Decimal("3.0")}
    assert "modifiers" not in of(result, "start", "D").meta


@pytest.mark.req("ACT-DUR-4")
def test_two_modifiers_of_one_name_both_count() -> None:
    twice = [{"name": "rain", "factor": 2}, {"name": "rain", "factor": 3}]

    result = day({"walk": lasting(100)}, does("A", 0, "walk"), world_state={"modifiers": twice})

    assert of(result, "start", "A").meta["d"] == 600


@pytest.mark.req("ACT-DUR-4")
def test_modifiers_are_taken_at_submission_and_kept_for_all_segments() -> None:
    defs = {"walk": lasting(10, "path", interruptible=True), "block": lasting(40, "path")}
    rain = {"name": "rain", "factor": 3, "from": 5, "to": 6}

    result = day(
        defs,
        does("B", 0, "block"),
        does("A", 5, "walk"),
        interrupts=[{"t": 50, "target": "A", "priority": 1}],
        world_state={"modifiers": [rain]},
    )

    assert of(result, "start", "A").meta["d"] == 30
    assert of(result, "start", "A", 1).meta["d"] == 20
    assert "modifiers" in of(result, "start", "A").meta
    assert "modifiers" not in of(result, "start", "A", 1).meta


@pytest.mark.req("ACT-DUR-4")
@pytest.mark.parametrize("factor", [0, -1, "10.0000001", 11, "NaN", "-Infinity"])
def test_a_factor_outside_its_range_rejects_those_it_applies_to(factor: object) -> None:
    modifiers = [{"name": "odd", "factor": factor, "verbs": ["walk"]}]

    result = day(
        {"walk": lasting(5), "sit": lasting(5)},
        does("A", 0, "walk"),
        does("B", 0, "sit"),
        world_state={"modifiers": modifiers},
    )

    assert codes(result) == {"A": "InvalidDuration"}
    assert of(result, "start", "B").t == 0


@pytest.mark.req("ACT-DUR-4")
def test_ten_is_the_largest_factor() -> None:
    result = day({"walk": lasting(5)}, does("A", 0, "walk"), world_state={"modifiers": [{"name": "mud", "factor": 10}]})

    assert of(result, "start", "A").meta["d"] == 50


@pytest.mark.req("ACT-DUR-5")
def test_an_actor_without_skills_has_the_ordinary_level() -> None:
    defs = {"walk": lasting(100), "swim": lasting(100, skill="water")}
    skills = {"ann": {"water": 3}}

    result = day(defs, does("A", 0, "walk"), does("B", 0, "swim"), does("C", 0, "swim", actor="bob"), skills=skills)

    assert [of(result, "start", name).meta["d"] for name in "ABC"] == [100, 70, 100]


@pytest.mark.req("ACT-DUR-6")
def test_noise_is_small_recorded_and_the_same_every_time() -> None:
    actions = [does(f"A{n}", 0, "walk") for n in range(50)]

    first, second = (day({"walk": lasting(1000)}, *actions, options={"noise_seed": 7}) for _ in range(2))
    other = day({"walk": lasting(1000)}, *actions, options={"noise_seed": 8})

    durations = [event.meta["d"] for event in first.events if "d" in event.meta]
    assert first.events == second.events
    assert [event.meta["d"] for event in other.events if "d" in event.meta] != durations
    assert 900 <= min(durations) < max(durations) <= 1100
    assert all("noise" in event.meta for event in first.events if "d" in event.meta)


@pytest.mark.req("ACT-DUR-6")
def test_noise_depends_on_the_epoch_index_whatever_the_first_epoch_of_the_run() -> None:
    def second_day(first: int, epochs: int) -> list[int]:
        """The durations of the same actions in the epoch of index 1."""
        start = (date(2025, 7, 1) + timedelta(first)).isoformat()
        end = (date(2025, 7, 2) + timedelta(first)).isoformat()
        epoch = {"index": first, "start_at": f"{start}T00:00:00", "end_at": f"{end}T00:00:00"}
        actions = [does(f"A{n}", "2025-07-02T00:00:00", "walk") for n in range(50)]
        run = outcome({"walk": lasting(1000)}, *actions, epochs=epochs, epoch=epoch, options={"noise_seed": 7})
        return [event.meta["d"] for event in run.epochs[-1].events if "d" in event.meta]

    assert len(second_day(1, 1)) == 50
    assert second_day(1, 1) == second_day(0, 2)
    assert second_day(0, 2) != [
        event.meta["d"]
        for event in day(
            {"walk": lasting(1000)}, *(does(f"A{n}", 0, "walk") for n in range(50)), options={"noise_seed": 7}
        ).events
        if "d" in event.meta
    ]


@pytest.mark.req("ACT-DUR-6")
def test_noise_is_off_by_default() -> None:
    result = day({"walk": lasting(1000)}, does("A", 0, "walk"))

    assert of(result, "start", "A").meta["d"] == 1000
