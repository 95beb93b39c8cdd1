"""An invalid body is refused with the fault, its place, the allowed values and a suggestion."""

import json
from typing import Annotated, Any

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
        (
            TaskBody,
            {**TASK, "robotId": "R1"},
            "$.robotId",
            "the member 'robotId' is not known here (did you mean robotIds?)",
        ),
        (TaskBody, {"dropNodeId": "B"}, "$.pickNodeId", "the member 'pickNodeId' is missing"),
        (TaskBody, {**TASK, "priority": "high"}, "$.priority", "'high' is not an integer"),
        (TaskBody, {**TASK, "dropNodeId": "A"}, "$", "dropNodeId: the task picks up and drops in the same node 'A'"),
        (ActionBody, {"type": "PAUSE_FLEET"}, "$.reason", "the member 'reason' is missing"),
        (StockBody, {"nodeId": "A", "goods": -1}, "$.goods", "-1 is out of range"),
        (
            ReportsBody,
            {"reports": [REPORT, {**REPORT, "status": "FAULTY"}]},
            "$.reports[1].status",
            "'FAULTY' is not a robot status (did you mean FAULT?)",
        ),
        (World.commands, {"type": "SUBMIT"}, "$.type", "'SUBMIT' is not one of the allowed words (did you mean submit"),
        (ReportsBody, [REPORT], "$", "a list of 1 is not an object"),
    ],
)
def test_an_invalid_body_is_refused_with_what_is_allowed(kind: Any, body: Any, place: str, message: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        parse(encode(body), kind, DocumentLimits())

    (fault,) = refused.value.faults
    assert fault.path == place
    assert fault.message.startswith(message)
    assert "`" not in fault.message


def test_every_fault_of_a_body_is_reported_with_its_place() -> None:
    body = {"pickNodeId": "A", "dropNodeId": "A", "priority": 5000, "robotIds": ["R1", 2], "colour": "red"}

    with pytest.raises(DocumentRefused) as refused:
        parse(json.dumps(body, indent=1).encode(), TaskBody, DocumentLimits())

    assert [(fault.path, fault.line, fault.allowed[:1]) for fault in refused.value.faults] == [
        ("$.priority", 4, ("from -1000 to 1000",)),
        ("$.robotIds[1]", 7, ("text from 1 to 128 characters",)),
        ("$.colour", 9, ("dropDurationMs",)),
    ]


def test_text_that_is_accepted_as_a_number_is_no_fault_beside_others() -> None:
    pose = {"x": "1.5", "y": 0, "yaw": 0}
    parse(encode({"reports": [{**REPORT, "pose": pose}]}), ReportsBody, DocumentLimits())

    with pytest.raises(DocumentRefused) as refused:
        parse(encode({"reports": [{**REPORT, "pose": pose, "status": "FINE"}]}), ReportsBody, DocumentLimits())

    assert [fault.path for fault in refused.value.faults] == ["$.reports[0].status"]


class Odd(msgspec.Struct):
    """A command whose types only msgspec reads."""

    data: bytes
    share: float = 0.5
    word: Annotated[str, msgspec.Meta(pattern="b")] = "b"


def test_body_of_types_that_only_msgspec_reads_is_refused_in_its_words() -> None:
    assert parse(b'{"data": "YQ=="}', Odd, DocumentLimits()) == Odd(b"a")

    with pytest.raises(DocumentRefused) as refused:
        parse(b'{"data": 1}', Odd, DocumentLimits())

    (fault,) = refused.value.faults
    assert fault.message.startswith("Expected `bytes`, got `int`")


def test_the_member_of_a_free_object_is_part_of_the_place() -> None:
    class Free(msgspec.Struct):
        counts: dict[str, int]

    with pytest.raises(DocumentRefused) as refused:
        parse(encode({"counts": {"a": 1, "b": "two"}}), Free, DocumentLimits())

    assert refused.value.faults[0].path == "$.counts.b"
