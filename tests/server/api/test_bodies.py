"""An invalid body is refused with the fault, its place, the allowed values and a suggestion."""

import sys
from typing import Any

import msgspec
import pytest

from pendula.actions import World
from pendula.documents import DocumentLimits, DocumentRefused
from pendula.kernel.canonical import encode
from pendula.server.api.requests import parse
from pendula.server.schedulers.fleet.commands import ActionBody, ReportsBody, StockBody, TaskBody

TASK = {"pickNodeId": "A", "dropNodeId": "B"}
REPORT = {"robotId": "R1", "nowMs": 1, "pose": {"x": 1, "y": 0, "yaw": 0}, "v": 0, "status": "OK"}


@pytest.mark.parametrize(
    ("kind", "body", "place", "message"),
    [
        (TaskBody, {**TASK, "robotId": "R1"}, "$", "'robotId' is not a field here (did you mean robotIds?); allowed"),
        (TaskBody, {"dropNodeId": "B"}, "$", "'pickNodeId' is missing"),
        (TaskBody, {**TASK, "priority": "high"}, "$.priority", "priority is 'high'; it must be a whole number"),
        (ActionBody, {"type": "PAUSE_FLEET"}, "$", "'reason' is missing"),
        (StockBody, {"nodeId": "A", "goods": -1}, "$.goods", "goods is -1; it must be a whole number >= 0"),
        (
            ReportsBody,
            {"reports": [REPORT, {**REPORT, "status": "FAULTY"}]},
            "$.reports[1].status",
            "reports[1].status is 'FAULTY'; allowed are OK, OFFLINE, FAULT (did you mean FAULT?)",
        ),
        (World.commands, {"type": "SUBMIT"}, "$.type", "type is 'SUBMIT'; allowed are submit, request, advance (did"),
        (ReportsBody, [REPORT], "$", "it is a list of 1; it must be an object"),
    ],
)
def test_an_invalid_body_is_refused_with_what_is_allowed(kind: Any, body: Any, place: str, message: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        parse(encode(body), kind, DocumentLimits())

    (fault,) = refused.value.faults
    assert fault.path == place
    assert fault.message.startswith(message)
    assert "`" not in fault.message


@pytest.mark.parametrize(
    "name",
    ["x - at `$.reports[0].robotId`", "x` - at `$.reports[0].robotId`", "x - at `$.reports[0].robotId", "x` - at `$.a"],
)
def test_a_place_written_by_the_caller_is_not_reported(name: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        parse(encode({"reports": [REPORT], name: 1}), ReportsBody, DocumentLimits())

    (fault,) = refused.value.faults
    assert fault.path == "$"
    assert fault.message.startswith(repr(name))


def test_the_reported_place_is_the_one_at_the_end_of_the_message() -> None:
    status = "FAULTY` - at `$.reports[1].robotId`"

    with pytest.raises(DocumentRefused) as refused:
        parse(encode({"reports": [REPORT, {**REPORT, "status": status}]}), ReportsBody, DocumentLimits())

    (fault,) = refused.value.faults
    assert fault.path == "$.reports[1].status"
    assert fault.message.startswith(f"reports[1].status is {status!r}")


def test_the_member_of_a_free_object_is_part_of_the_place() -> None:
    class Free(msgspec.Struct):
        counts: dict[str, int]

    with pytest.raises(DocumentRefused) as refused:
        parse(encode({"counts": {"a": 1, "b": "two"}}), Free, DocumentLimits())

    assert refused.value.faults[0].path == "$.counts.b"


def test_a_name_full_of_places_is_parsed_in_linear_time() -> None:
    """Counts calls of Python functions: quadratic parsing would make one for each step of a path."""
    steps = 0

    def count(_frame: Any, _event: str, _arg: Any) -> None:
        nonlocal steps
        steps += 1

    for name in ("x" + " - at `$.a" * 20_000, "x` - at `$" + ".a" * 100_000 + "`"):
        sys.setprofile(count)
        try:
            with pytest.raises(DocumentRefused) as refused:
                parse(encode({"reports": [REPORT], name: 1}), ReportsBody, DocumentLimits())
        finally:
            sys.setprofile(None)
        assert refused.value.faults[0].path == "$"
        assert len(refused.value.faults[0].message) < 300

    assert steps < 20_000
