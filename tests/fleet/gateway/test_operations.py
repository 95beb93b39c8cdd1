"""Completions from a gateway: which operation they end, and invalid ones."""

from typing import Any, cast

import pytest

from pendula.fleet.gateway import IssuedOperations, Received, read_gateway
from pendula.fleet.tasks import Operation, OperationDone


@pytest.mark.req("FLT-TASK-7")
def test_a_completion_with_only_a_truck_means_its_last_operation() -> None:
    issued = IssuedOperations()
    before = issued.with_ids(["R1"])
    issued.note([Operation("R1", "LOAD", "N", 500, "T/LOAD")])

    assert before == (OperationDone("R1", ""),)
    assert issued.with_ids(["R1", OperationDone("R1")]) == (OperationDone("R1", "T/LOAD"),) * 2
    assert issued.with_ids([OperationDone("R1", "T0/LOAD")]) == (OperationDone("R1", "T0/LOAD"),)


@pytest.mark.req("FLT-RTP-11")
def test_an_invalid_operation_is_ignored_and_the_others_are_read() -> None:
    handed = ("R1", OperationDone("R2", "T/LOAD"), OperationDone(cast(Any, 5)), 7, "\ud800", OperationDone("\ud800"))

    assert read_gateway(Received((), cast(Any, handed))).done == ("R1", OperationDone("R2", "T/LOAD"))
