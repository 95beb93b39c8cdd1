"""A body that cannot be read is told what is wrong, where, what is allowed and what was probably meant."""

from typing import Any

import pytest

from pendula.documents import DocumentLimits, DocumentRefused
from pendula.kernel.canonical import encode
from pendula.server.rooms.fleet.bodies import ActionBody, ReportsBody, StockBody, TaskBody
from pendula.server.routes.bodies import parse

TASK = {"pickNodeId": "A", "dropNodeId": "B"}
REPORT = {"robotId": "R1", "atMs": 1, "xUm": 1, "yUm": 0, "yawUrad": 0, "vUmS": 0}


@pytest.mark.parametrize(
    ("kind", "body", "place", "said"),
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
        (ReportsBody, [REPORT], "$", "it is a list of 1; it must be an object"),
    ],
)
def test_a_body_that_cannot_be_read_is_told_what_would_be_right(kind: Any, body: Any, place: str, said: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        parse(encode(body), kind, DocumentLimits())

    (fault,) = refused.value.faults
    assert fault.path == place
    assert fault.message.startswith(said)
    assert "`" not in fault.message
