"""Sentences about unmet expectations; these are wrong on purpose."""

from typing import Any

import pytest

from pendula.documents import from_value
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.scenarios.measures import unmet
from pendula.fleet.scenarios.model import Expectation
from pendula.fleet.scenarios.reading import KINDS, expectation


def expected(form: dict[str, Any]) -> Expectation:
    return from_value(form).read(expectation)


@pytest.fixture(scope="module")
def crossing() -> Run:
    run = Run(shipped("crossing"))
    run.run(40_000)
    return run


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"tasksDone": 3}, "tasks done: 0, not 3"),
    ({"arrives": {"robotId": "R1", "nodeId": "S", "byMs": 40000}}, "did not arrive at S"),
    ({"arrives": {"robotId": "R1", "nodeId": "E", "byMs": 5000}}, "did not arrive at E by 5000 ms"),
    ({"neverBeyond": {"robotId": "R1", "edgeKey": "W->X", "sM": 5}}, "beyond 5 m"),
    (
        {"neverTogether": [{"robotId": "R1", "edgeKey": "W->X"}, {"robotId": "R2", "edgeKey": "S->X"}]},
        "were at these places at the same time",
    ),
    ({"longestWait": {"atMostMs": 1000}}, "longer than 1000"),
    ({"noTruckWaits": True}, "waited: WAIT_CONFLICT"),
    ({"someTruckWaits": {"reasonCode": "WAIT_ACK"}}, "no truck waited with WAIT_ACK"),
    ({"someTruckWaits": {"reasonCode": "WAIT_ACK", "robotId": "R1"}}, "R1 never waited"),
    ({"alert": {"code": "DEADLOCK_SUSPECTED", "byMs": 40000}}, "was not raised"),
    ({"routeRefused": {}}, "no route of any truck was refused"),
    ({"goHoldChanges": {"atMost": 0}}, "changed between go and hold"),
    ({"givesBack": {"robotId": "R1", "atLeastMs": 0}}, "R1 returned nothing"),
    ({"calm": {"goHoldChanges": 0}}, "R1 changed between go and hold, times 2 within a window"),
]


@pytest.mark.parametrize(("form", "sentence"), WRONG, ids=[next(iter(form)) for form, _ in WRONG])
def test_an_unmet_expectation_has_a_sentence(crossing: Run, form: dict[str, Any], sentence: str) -> None:
    sentences = unmet(crossing.outcome(), [expected(form)])

    assert any(sentence in text for text in sentences), sentences


def test_a_truck_that_is_not_in_its_rest_node_is_named() -> None:
    run = Run(shipped("crossing"))
    run.run(5_000)

    assert unmet(run.outcome(), [expected({"allAtRest": True})]) == [
        "R1 is not in its rest node E",
        "R2 is not in its rest node N",
    ]


def test_an_unwanted_alert_has_a_sentence() -> None:
    run = Run(shipped("triangle-8"))
    run.run(40_000)

    assert unmet(run.outcome(), [expected({"noAlert": "DEADLOCK_SUSPECTED"})])[0].startswith(
        "the alert DEADLOCK_SUSPECTED was raised at"
    )
    late = expected({"alert": {"code": "DEADLOCK_SUSPECTED", "byMs": 40000, "withinMs": 4900}})
    assert "ms, more than 4900" in unmet(run.outcome(), [late])[0]


def test_early_returns_and_early_grants_have_a_sentence() -> None:
    run = Run(shipped("given-back-late"))
    run.run(22_500)
    first, second = run.traffic.records
    assert first.retraction is not None
    # As if the second truck had got a grant before the acknowledgement of the first, and then all were free.
    second.held = {**second.held, first.retraction.resources[0]: 0}
    run.measures._give_back([first, second], 23_000)
    first.retraction = None
    run.measures._give_back([first], 23_100)

    sentences = unmet(run.outcome(), [expected({"givesBack": {"robotId": "R1", "atLeastMs": 3_000}})])

    assert sentences == [
        "R1 kept the returned resources for 1100 ms, less than 3000",
        "R2 held at 23000 ms what R1 had not yet returned",
    ]


def test_every_kind_can_be_read() -> None:
    assert set(KINDS) >= {next(iter(form)) for form, _ in WRONG}
