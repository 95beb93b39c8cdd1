"""Every request generated from the OpenAPI document gets a documented response."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pendula.server.schedulers.credit.scheduler import scheduler_for
from pendula.server.settings import Settings
from tests.server.living import LiveServer
from tests.server.schedulers.credit.simulators import BASE, RING, STILL

CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance, content_type_conformance]


@pytest.mark.long
@pytest.mark.req("SIM-API-24", "SIM-ERR-5")
def test_every_generated_request_is_answered_as_documented(tmp_path: Path) -> None:
    server_settings = Settings(port=0, data=str(tmp_path / "data"))
    with LiveServer(server_settings, (scheduler_for(server_settings, STILL),)) as live:
        with live.client() as client:
            run_id = client.post(f"{BASE}/runs", json=RING).json()["run_id"]
        # Streams have their own tests.
        openapi = schemathesis.openapi.from_url(f"{live.url}/openapi.json")
        schema = openapi.include(path_regex="/simulator/").exclude(path_regex="/events$")
        operations = [operation.ok() for operation in schema.get_all_operations() if isinstance(operation, Ok)]
        for operation in operations:

            @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy())
            def answered_as_documented(case: "schemathesis.Case[Any]") -> None:
                if "run_id" in (case.path_parameters or {}):
                    case.path_parameters["run_id"] = run_id
                case.call_and_validate(checks=CHECKS)

            answered_as_documented()

    assert len(operations) > 30
